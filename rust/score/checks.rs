//! What every score asks of its arguments.

use crate::error::Error;

/// Rows of `dim` numbers, and one score for each.
pub(super) fn check_rows(outputs: &[f64], dim: usize, out: usize) -> Result<(), Error> {
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
pub(super) fn check_sorted(name: &'static str, edges: &[f64]) -> Result<(), Error> {
    if edges.is_sorted() && !edges.iter().any(|edge| edge.is_nan()) {
        return Ok(());
    }
    Err(Error::invalid(name, "numbers in nondecreasing order", "others"))
}
