//! Scores of outputs, and the histograms they are fitted on.
//!
//! A score is one number for each output, higher where the output looks more like x; an audit
//! counts how often it passes a threshold. Everything here reads outputs that somebody else drew,
//! runs on one thread, and adds in one fixed order, so that a score is the same bits whatever the
//! machine and however the outputs are cut into blocks.

mod additive;
mod bins;
mod closer;
mod grid;
mod pass;
mod sorting;

pub use additive::{Layout, Patterns, Transform, Weights};
pub use bins::bin_counts;
pub use closer::closer;
pub use pass::{count_additive, pattern_keys, score_additive};

use crate::error::Error;

/// Rows of `dim` numbers, and one score for each.
pub(crate) fn check_rows(outputs: &[f64], dim: usize, out: usize) -> Result<(), Error> {
    if dim == 0 {
        return Err(Error::invalid("outputs", "rows of at least one number", dim));
    }
    if outputs.len() != out.saturating_mul(dim) {
        let requirement = format!("{out} rows of {dim}, one for each score");
        return Err(Error::invalid("outputs", requirement, outputs.len()));
    }
    Ok(())
}

/// Numbers in nondecreasing order; an infinity may be the first or the last.
pub(crate) fn check_sorted(name: &'static str, edges: &[f64]) -> Result<(), Error> {
    if edges.is_sorted() && !edges.iter().any(|edge| edge.is_nan()) {
        return Ok(());
    }
    Err(Error::invalid(name, "numbers in nondecreasing order", "others"))
}
