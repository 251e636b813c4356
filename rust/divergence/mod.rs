//! Divergences from counts in balls.
//!
//! A query of the numerator's set with n other rows of its own set and j of the denominator's in
//! its ball contributes ratios of gamma functions of n and j alone ([`cells`]), and few pairs
//! (n, j) differ. [`walk`] finds them from lists of neighbours, [`mod@line`] by a sweep over sorted
//! numbers; both serve any re-weighting of the rows.

mod ball;
pub mod cells;
pub mod gamma;
pub mod line;
pub mod lists;
mod replicates;
mod resampling;
mod sorted;
mod sweep;
mod tally;
pub mod walk;

/// Sets hold fewer rows than this, so that a pair of counts fits into one word.
pub const MOST_ROWS: u64 = 1 << 31;
