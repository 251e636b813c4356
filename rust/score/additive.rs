//! Scores that are sums over the columns of an output, of a weight for the bin that each falls in.
//!
//! What a row's bins spell, each bin's *key* summed, is its *pattern*; a pattern has a weight of
//! its own, and it names the group of bin weights that the row's columns are scored with. So one
//! model holds the likelihood ratio of independent columns (one group), of the pattern of flags
//! alone (no bin weights), and of columns given the pattern.

use super::bins::Search;
use super::checks::{check_rows, check_sorted};
use crate::error::Error;

/// What the columns of a row are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transform {
    /// Its entries.
    Values,
    /// Its first entry, then each entry less the one before.
    Differences,
    /// Its entries from the smallest to the largest, NaN last.
    Sorted,
}

impl Transform {
    /// The transform called "values", "differences" or "sorted".
    ///
    /// # Errors
    ///
    /// Another name.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "values" => Ok(Self::Values),
            "differences" => Ok(Self::Differences),
            "sorted" => Ok(Self::Sorted),
            _ => {
                let names = "\"values\", \"differences\" or \"sorted\"";
                Err(Error::invalid("transform", names, name))
            }
        }
    }
}

/// The bins of every column and what they add to a row's pattern.
///
/// Column i has the edges `edges[offsets[i]..offsets[i + 1]]`, sorted, and two bins more than
/// edges: one before the first, one after the last, and one for NaN. `keys` has an entry for each
/// bin, column after column, or none where there are no patterns.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The columns.
    pub transform: Transform,
    /// Edges, column after column.
    pub edges: &'a [f64],
    /// Where each column's edges begin, and where the last column's end.
    pub offsets: &'a [i64],
    /// What each bin adds to the pattern, or nothing.
    pub keys: &'a [u64],
}

/// A column: its search, and where its bins begin among those of all columns.
pub(super) struct Column {
    pub(super) search: Search,
    pub(super) start: usize,
}

impl Column {
    /// The places of its bins among those of all columns.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.search.nowhere() as usize + 1
    }
}

impl Layout<'_> {
    /// Entries of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Bins of all columns.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.edges.len() + 2 * self.dim()
    }

    /// The columns, prepared for `rows` rows.
    pub(super) fn columns(&self, rows: usize) -> Result<Vec<Column>, Error> {
        let most = i64::from(u32::MAX / 2);
        let ends = (self.offsets.first(), self.offsets.last());
        if ends != (Some(&0), Some(&(self.edges.len() as i64))) || self.edges.len() as i64 > most {
            let requirement = format!("from 0 to the number of edges, {}", self.edges.len());
            return Err(Error::invalid("offsets", requirement, ends));
        }
        if !self.offsets.is_sorted() {
            return Err(Error::invalid("offsets", "in nondecreasing order", "others"));
        }
        if !(self.keys.is_empty() || self.keys.len() == self.bins()) {
            let requirement = format!("one for each of {} bins, or none", self.bins());
            return Err(Error::invalid("keys", requirement, self.keys.len()));
        }
        let columns = self.offsets.windows(2).enumerate().map(|(i, ends)| {
            // In order and within the edges, as just checked.
            let edges =
                &self.edges[ends[0].unsigned_abs() as usize..ends[1].unsigned_abs() as usize];
            check_sorted("edges", edges)?;
            let start = ends[0].unsigned_abs() as usize + 2 * i;
            Ok(Column { search: Search::new(edges, rows), start })
        });
        columns.collect()
    }

    /// Checks that outputs are `rows` rows of this layout.
    pub(super) fn check(&self, outputs: &[f64], rows: usize) -> Result<(), Error> {
        check_rows(outputs, self.dim(), rows)
    }
}

/// The patterns that have a weight and a group, in the order of their hashes.
#[derive(Clone, Copy, Debug)]
pub struct Patterns<'a> {
    pub(super) keys: &'a [u64],
    // `first[h]..first[h + 1]` are the places of the patterns with hash h; 2^k + 1 places.
    first: &'a [u32],
    pub(super) groups: &'a [u32],
    shift: u32,
}

impl<'a> Patterns<'a> {
    /// A table of patterns with a hash of k bits, the top ones of key * 0x9e3779b97f4a7c15:
    /// `first[h]..first[h + 1]` are the places of those with hash h, `groups` the group of each. A
    /// pattern that is not here is in group 0.
    ///
    /// # Errors
    ///
    /// Lengths that do not fit, or k outside 1..=31.
    pub fn new(keys: &'a [u64], first: &'a [u32], groups: &'a [u32]) -> Result<Self, Error> {
        let buckets = first.len().saturating_sub(1);
        if !buckets.is_power_of_two() || !(2..=1 << 31).contains(&buckets) {
            return Err(Error::invalid("first", "of length 2^k + 1, k from 1 to 31", first.len()));
        }
        if first.last().copied() != u32::try_from(keys.len()).ok() {
            let requirement = format!("ending with the number of patterns, {}", keys.len());
            return Err(Error::invalid("first", requirement, first.last()));
        }
        if groups.len() != keys.len() {
            let lengths = (groups.len(), keys.len());
            return Err(Error::invalid("groups", "one for each pattern", lengths));
        }
        Ok(Self { keys, first, groups, shift: 64 - buckets.trailing_zeros() })
    }

    /// The place of a pattern.
    #[inline(always)]
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        let (first, end) = (self.first[hash] as usize, self.first[hash + 1] as usize);
        // A table out of order finds nothing; it is never an index out of range.
        let bucket = self.keys.get(first..end)?;
        bucket.iter().position(|&other| other == key).map(|place| first + place)
    }
}

/// Weights of patterns and, by group, of bins.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// One for each pattern; a pattern that is not in the table weighs 0.
    pub patterns: &'a [f64],
    /// One for each bin of each group, group after group; or none: all are 0.
    pub bins: &'a [f64],
}

/// Number of groups in `length` bin weights or counts.
pub(super) fn groups(name: &'static str, length: usize, bins: usize) -> Result<usize, Error> {
    if length.is_multiple_of(bins) {
        return Ok(length / bins);
    }
    Err(Error::invalid(name, format!("a whole number of groups of {bins} bins"), length))
}
