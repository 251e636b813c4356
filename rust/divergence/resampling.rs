//! How sets of numbers are resampled.

/// Which rows each replicate has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Resampling<'a> {
    /// No replicates.
    None,
    /// Replicate i lacks the rows of group i of set 0, and then of set 1: the group of every row,
    /// and how many groups there are.
    Groups([&'a [i64]; 2], [usize; 2]),
    /// How often each row is present, replicate after replicate.
    Weights([&'a [u32]; 2]),
}
