//! Lists of neighbours as the search hands them over, checked once.

use std::ops::Range;

use crate::error::Error;
use crate::neighbours::distance::{Coordinate, squared};

/// For each query its neighbours in the other set, nearest first, and the points of its own set
/// inside each of their distances. Points are pooled ids.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// The queries: points of the own set.
    pub queries: &'a [u32],
    /// Where the neighbours of each query begin, and their end.
    pub starts: &'a [i64],
    /// Neighbours in the other set.
    pub ids: &'a [u32],
    /// Their squared distances.
    pub squared: &'a [f64],
    /// Where the points of the own set begin for each query, and their end.
    pub own_starts: &'a [i64],
    /// Points of the own set.
    pub own_ids: &'a [u32],
    /// For each neighbour how many points of the own set are within its distance.
    pub upto: &'a [i64],
    /// Whether a query lists the points outside its first shell: those after `upto` are outside.
    pub inverted: &'a [bool],
    /// Whether a query's list of its own set was too long to be kept.
    pub capped: &'a [bool],
    /// Points of the own set that are searched.
    pub own_points: &'a [u32],
    /// Points of the other set that are searched.
    pub other_points: &'a [u32],
}

impl Lists<'_> {
    /// Neighbours of query i in the other set.
    pub(super) fn other(&self, i: usize) -> Range<usize> {
        between(self.starts, i)
    }

    /// Points listed for query i in its own set.
    pub(super) fn own(&self, i: usize) -> Range<usize> {
        between(self.own_starts, i)
    }

    /// Checks all lengths and places, and that ids are below the number of points.
    ///
    /// # Errors
    ///
    /// The first array that does not fit; distances that are NaN or fall.
    pub fn check(&self, points: usize) -> Result<(), Error> {
        let queries = self.queries.len();
        for (name, ids) in [
            ("queries", self.queries),
            ("ids", self.ids),
            ("own_ids", self.own_ids),
            ("own_points", self.own_points),
            ("other_points", self.other_points),
        ] {
            check_ids(name, ids, points)?;
        }
        check_starts("starts", self.starts, queries, self.ids.len())?;
        check_starts("own_starts", self.own_starts, queries, self.own_ids.len())?;
        for (name, length, expected) in [
            ("squared", self.squared.len(), self.ids.len()),
            ("upto", self.upto.len(), self.ids.len()),
            ("inverted", self.inverted.len(), queries),
            ("capped", self.capped.len(), queries),
        ] {
            if length != expected {
                return Err(Error::invalid(name, format!("of length {expected}"), length));
            }
        }
        for query in 0..queries {
            let (list, listed) = (self.other(query), self.own(query).len() as u64);
            let upto = self.upto[list.clone()].iter().find(|&&upto| upto.cast_unsigned() > listed);
            if let Some(upto) = upto {
                return Err(Error::invalid("upto", format!("from 0 to {listed}"), upto));
            }
            if !self.squared[list].is_sorted() {
                return Err(Error::invalid("squared", "ascending for each query", query));
            }
        }
        Ok(())
    }
}

fn between(starts: &[i64], i: usize) -> Range<usize> {
    starts[i].cast_unsigned() as usize..starts[i + 1].cast_unsigned() as usize
}

/// Checks that all ids are below the number of points.
pub(super) fn check_ids(name: &'static str, ids: &[u32], points: usize) -> Result<(), Error> {
    match ids.iter().max() {
        Some(&id) if id as usize >= points => {
            Err(Error::invalid(name, format!("ids of {points} points"), id))
        }
        _ => Ok(()),
    }
}

fn check_starts(
    name: &'static str,
    starts: &[i64],
    queries: usize,
    entries: usize,
) -> Result<(), Error> {
    let ends = (starts.first(), starts.last());
    if starts.len() != queries + 1 || ends != (Some(&0), Some(&(entries as i64))) {
        let requirement = format!("{} places from 0 to {entries}", queries + 1);
        return Err(Error::invalid(name, requirement, (starts.len(), ends)));
    }
    if starts.is_sorted() { Ok(()) } else { Err(Error::invalid(name, "ascending", "a fall")) }
}

/// The rows of both sets, and where each pooled point has its first one among them.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    sets: [&'a [T]; 2],
    dim: usize,
    first: &'a [i64],
}

impl<'a, T: Coordinate> Rows<'a, T> {
    /// Rows of `dim` numbers; `first` are places among those of set 0 and then set 1.
    ///
    /// # Errors
    ///
    /// Rows that are not whole; a place that there is not.
    pub fn new(rows: [&'a [T]; 2], dim: usize, first: &'a [i64]) -> Result<Self, Error> {
        for (name, rows) in [("rows0", rows[0]), ("rows1", rows[1])] {
            if dim == 0 || !rows.len().is_multiple_of(dim) {
                return Err(Error::invalid(name, format!("rows of {dim} >= 1"), rows.len()));
            }
        }
        let stacked = (rows[0].len() + rows[1].len()) / dim;
        match first.iter().find(|&&place| place.cast_unsigned() >= stacked as u64) {
            Some(place) => Err(Error::invalid("first", format!("below {stacked}"), place)),
            None => Ok(Self { sets: rows, dim, first }),
        }
    }

    /// How many points there are.
    #[must_use]
    pub fn points(&self) -> usize {
        self.first.len()
    }

    fn row(&self, id: u32) -> &'a [T] {
        let start = self.first[id as usize].cast_unsigned() as usize * self.dim;
        let [rows0, rows1] = self.sets;
        if start < rows0.len() {
            &rows0[start..start + self.dim]
        } else {
            &rows1[start - rows0.len()..start - rows0.len() + self.dim]
        }
    }

    /// The squared distance of two points.
    pub(super) fn squared(&self, query: u32, id: u32) -> f64 {
        squared(self.row(query), self.row(id))
    }
}
