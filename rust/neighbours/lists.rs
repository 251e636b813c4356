//! The shells of every query, and the list of one of them.

use super::frame::{down, up};
use crate::error::Error;

/// Radii of every query: `squared[starts[i]..starts[i + 1]]`, ascending.
#[derive(Clone, Copy, Debug)]
pub struct Shells<'a> {
    pub(super) starts: &'a [i64],
    squared: &'a [f64],
}

impl<'a> Shells<'a> {
    /// Radii of `queries` queries.
    ///
    /// # Errors
    ///
    /// `starts` do not divide `squared` among the queries; radii that do not ascend, or NaN.
    pub fn new(starts: &'a [i64], squared: &'a [f64], queries: usize) -> Result<Self, Error> {
        let whole = starts.len() == queries + 1
            && starts[0] == 0
            && starts.is_sorted()
            && starts[queries] == squared.len() as i64;
        if !whole {
            let requirement = format!("{} ascending numbers, 0 to len(squared)", queries + 1);
            return Err(Error::invalid("starts", requirement, starts.len()));
        }
        let shells = Self { starts, squared };
        for i in 0..queries {
            // `is_sorted` is false where there is a NaN, but for a single one.
            let own = shells.of(i);
            if !own.is_sorted() || own.first().is_some_and(|radius| radius.is_nan()) {
                return Err(Error::invalid("squared", "ascending for every query", own));
            }
        }
        Ok(shells)
    }

    pub(super) fn of(&self, i: usize) -> &'a [f64] {
        &self.squared[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

/// How many of the shells a point at this squared distance is outside of: of all, if that is NaN.
#[inline(always)]
pub(super) fn rank(shells: &[f64], value: f64) -> usize {
    shells.partition_point(|&radius| value > radius || value.is_nan())
}

/// The points of one query so far. A point's rank is the number of shells that it is outside of.
#[derive(Default)]
pub(super) struct List {
    pub query: usize,
    pub outside: bool,
    // (rank, place), in the order of the places; none once there were more than the cap.
    pub listed: Vec<(u32, u32)>,
    // Nodes of a tree within the first shell; their points are counted but not yet listed.
    pub whole: Vec<usize>,
    // Points of rank 0, of rank 1 up to the last shell, and beyond it. Of the points that need no
    // list, rank 0 where the outside is listed and the last where the inside is, only some are seen.
    pub counts: [usize; 3],
    // The shells in the panel's units, and the bounds for a whole row of products; whether the guard
    // holds for the query.
    pub scaled: Vec<f64>,
    pub more: f64,
    pub fits: bool,
}

impl List {
    pub fn start(&mut self, query: usize, outside: bool) {
        (self.query, self.outside, self.counts, self.fits) = (query, outside, [0; 3], true);
        self.listed.clear();
        self.whole.clear();
    }

    /// Starts anew, with the other side.
    pub fn turn(&mut self) {
        let fits = self.fits;
        self.start(self.query, !self.outside);
        self.fits = fits;
    }

    /// Points of the panel with `low - 2 product` of at most this are to be ranked, or all others:
    /// what is certainly beyond all shells, or within the first, needs no rank.
    pub fn bound(&self, widest: f32) -> Option<(f32, bool)> {
        let (&first, &last) = (self.scaled.first()?, self.scaled.last()?);
        let begin = down(first - self.more - f64::from(widest));
        Some(if self.outside { (begin, true) } else { (up(last), false) })
    }

    #[inline(always)]
    pub fn put(&mut self, rank: usize, place: u32, shells: usize, cap: usize) {
        let part = if rank == 0 { 0 } else { 1 + usize::from(rank == shells) };
        self.counts[part] += 1;
        let wanted = if self.outside { rank > 0 } else { rank < shells };
        if wanted && self.listed.len() <= cap {
            self.listed.push((rank as u32, place));
        }
    }

    /// Whether the outside of the first shell is to be listed, from numbers that both kinds of
    /// list know.
    pub fn better_outside(&self, points: usize) -> (bool, usize) {
        let (first, within) = if self.outside {
            let first = points - self.counts[1] - self.counts[2];
            (first, first + self.counts[1])
        } else {
            (self.counts[0], self.counts[0] + self.counts[1])
        };
        let outside = 2 * first > points && points - first < within;
        (outside, if outside { points - first } else { within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_panel_are_rounded_so_that_nothing_is_forgotten() {
        for i in 1..100 {
            let (first, last) = (f64::from(i) / 3.0, f64::from(i) / 0.7);
            let more = 0.1 / f64::from(i);
            let mut list = List { scaled: vec![first, last], more, ..List::default() };
            let (bound, outside) = list.bound(0.01).unwrap();
            assert!(!outside && f64::from(bound) >= last);
            list.outside = true;
            let (bound, outside) = list.bound(0.01).unwrap();
            // Only what is within by all errors is not looked at.
            let least = first - more - f64::from(0.01_f32);
            assert!(outside && f64::from(bound) <= least && least < f64::from(bound.next_up()));
        }
    }

    #[test]
    fn a_nan_is_outside_of_all() {
        let shells = [1.0, 2.0, 2.0];
        for (value, outside) in [(0.5, 0), (1.0, 0), (1.5, 1), (2.0, 1), (3.0, 3), (f64::NAN, 3)] {
            assert_eq!(rank(&shells, value), outside);
        }
    }
}
