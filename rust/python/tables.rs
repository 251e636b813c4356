//! Tables of finite mechanisms.

use numpy::{PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::convert::{by_rows, by_rows_mut};
use super::detach::{guarded, interruptible};
use crate::{Error, Options, tables};

type Matrix<'py> = PyReadonlyArray2<'py, f64>;
type Room<'py> = PyReadwriteArray2<'py, f64>;

/// Refuses rows that have not one number for each output.
fn outputs_of(rows: &Matrix<'_>, others: &Matrix<'_>) -> Result<usize, Error> {
    let outputs = rows.shape()[1];
    if others.shape()[1] == outputs {
        return Ok(outputs);
    }
    Err(Error::invalid("others", format!("rows of {outputs}"), others.shape()[1]))
}

/// About as much work as so many draws.
fn work(rows: &Matrix<'_>, others: &Matrix<'_>) -> usize {
    rows.len().saturating_mul(others.shape()[0]) / 16
}

#[pyfunction]
fn table_ratios(
    py: Python<'_>,
    rows: Matrix<'_>,
    others: Matrix<'_>,
    mut ahead: Room<'_>,
    mut back: Room<'_>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let outputs = outputs_of(&rows, &others)?;
        let both = [by_rows("rows", &rows)?, by_rows("others", &others)?];
        let out = [by_rows_mut("ahead", &mut ahead)?, by_rows_mut("back", &mut back)?];
        let options = Options::new().threads(threads);
        interruptible(py, work(&rows, &others), |stop| {
            tables::largest_log_ratios(both, outputs, out, &options.stop(stop))
        })
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn table_sticks(
    py: Python<'_>,
    rows: Matrix<'_>,
    others: Matrix<'_>,
    factors: Matrix<'_>,
    mut ahead: Room<'_>,
    mut back: Room<'_>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let outputs = outputs_of(&rows, &others)?;
        let both = [by_rows("rows", &rows)?, by_rows("others", &others)?];
        let factors = by_rows("factors", &factors)?;
        let out = [by_rows_mut("ahead", &mut ahead)?, by_rows_mut("back", &mut back)?];
        let options = Options::new().threads(threads);
        interruptible(py, work(&rows, &others), |stop| {
            tables::hockey_sticks(both, outputs, factors, out, &options.stop(stop))
        })
    })
}

#[pyfunction]
fn table_logarithms(
    py: Python<'_>,
    values: Matrix<'_>,
    mut out: Room<'_>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let (from, to) = (by_rows("values", &values)?, by_rows_mut("out", &mut out)?);
        let options = Options::new().threads(threads);
        interruptible(py, from.len(), |stop| tables::logarithms(from, to, &options.stop(stop)))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(table_ratios, module)?)?;
    module.add_function(wrap_pyfunction!(table_sticks, module)?)?;
    module.add_function(wrap_pyfunction!(table_logarithms, module)?)
}
