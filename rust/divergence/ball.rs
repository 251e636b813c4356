//! One ball of one sample, by its lists or by distances to every point.

use super::lists::{Lists, Rows};
use crate::neighbours::distance::Coordinate;

/// Copies of every point, and how many there are of those that are searched.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) own: &'a [u32],
    pub(super) other: &'a [u32],
    searched: (u64, u64),
    depth: u64,
}

fn total(points: &[u32], copies: &[u32]) -> u64 {
    points.iter().map(|&id| u64::from(copies[id as usize])).sum()
}

pub(super) fn all(copies: &[u32]) -> u64 {
    copies.iter().map(|&copies| u64::from(copies)).sum()
}

pub(super) enum Ball {
    Counted { n: u64, j: u64 },
    Whole,
    RunOut,
    Capped,
}

impl<'a> Sample<'a> {
    pub(super) fn new(lists: &Lists<'_>, (own, other): (&'a [u32], &'a [u32]), depth: u64) -> Self {
        let searched = (total(lists.own_points, own), total(lists.other_points, other));
        Self { own, other, searched, depth }
    }

    fn is_whole(&self) -> bool {
        self.searched.1 < self.depth
    }

    /// (n, j) where the ball is everything that is searched.
    pub(super) fn whole(&self) -> (u64, u64) {
        (self.searched.0.saturating_sub(1), self.searched.1)
    }

    /// The rows of the other set up to `depth` of them, ties included, and the last entry walked.
    fn reach(&self, squared: &[f64], ids: impl Fn(usize) -> u32) -> Option<(u64, usize)> {
        let (mut rows, mut last) = (0, 0);
        let count = |place| u64::from(self.other[ids(place) as usize]);
        while rows < self.depth {
            if last == squared.len() {
                return None;
            }
            rows += count(last);
            last += 1;
        }
        while last < squared.len() && squared[last] == squared[last - 1] {
            rows += count(last);
            last += 1;
        }
        Some((rows, last - 1))
    }

    pub(super) fn ball(&self, lists: &Lists<'_>, query: usize) -> Ball {
        if self.is_whole() {
            return Ball::Whole;
        }
        let list = lists.other(query);
        let (squared, ids) = (&lists.squared[list.clone()], &lists.ids[list.clone()]);
        let Some((rows, last)) = self.reach(squared, |place| ids[place]) else {
            return Ball::RunOut;
        };
        if lists.capped[query] {
            return Ball::Capped;
        }
        let own = lists.own(query);
        let middle = own.start + lists.upto[list.start + last].cast_unsigned() as usize;
        let inside = if lists.inverted[query] {
            let outside = total(&lists.own_ids[middle..own.end], self.own);
            self.searched.0.saturating_sub(outside)
        } else {
            total(&lists.own_ids[own.start..middle], self.own)
        };
        Ball::Counted { n: inside.saturating_sub(1), j: rows - 1 }
    }
}

/// The distances of one query to every point searched, for samples whose lists do not do.
pub(super) struct Search {
    own: Vec<(f64, u32)>,
    /// In order of distance.
    squared: Vec<f64>,
    ids: Vec<u32>,
}

impl Search {
    pub(super) fn new<T: Coordinate>(lists: &Lists<'_>, rows: &Rows<'_, T>, query: usize) -> Self {
        let query = lists.queries[query];
        let measured = |points: &[u32]| {
            let pairs = points.iter().map(|&id| (rows.squared(query, id), id));
            pairs.collect::<Vec<_>>()
        };
        let mut other = measured(lists.other_points);
        other.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (squared, ids) = other.into_iter().unzip();
        Self { own: measured(lists.own_points), squared, ids }
    }

    /// (n, j) of a sample that has at least `depth` rows to reach.
    pub(super) fn count(&self, sample: &Sample<'_>) -> (u64, u64) {
        let Some((rows, last)) = sample.reach(&self.squared, |place| self.ids[place]) else {
            return sample.whole();
        };
        let inside = self.own.iter().filter(|(squared, _)| *squared <= self.squared[last]);
        let inside: u64 = inside.map(|&(_, id)| u64::from(sample.own[id as usize])).sum();
        (inside.saturating_sub(1), rows - 1)
    }
}
