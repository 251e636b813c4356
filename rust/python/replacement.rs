//! Replacement of words.

use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use super::convert::{by_rows, by_rows_mut, contiguous};
use super::detach::{guarded, interruptible};
use crate::Options;
use crate::replacement::{self, Noisy, Rows};

#[pyfunction]
fn prepare_rows(
    py: Python<'_>,
    log_rows: PyReadonlyArray2<'_, f64>,
    mut thresholds: PyReadwriteArray2<'_, u64>,
    mut entries: PyReadwriteArray2<'_, u32>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let (rows, outputs) = (by_rows("log_rows", &log_rows)?, log_rows.shape()[1]);
        let thresholds = by_rows_mut("thresholds", &mut thresholds)?;
        let columns = (thresholds, by_rows_mut("entries", &mut entries)?);
        let options = Options::new().threads(threads);
        interruptible(py, rows.len(), |stop| {
            replacement::prepare_rows(rows, outputs, columns, &options.stop(stop))
        })
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn draw_words(
    py: Python<'_>,
    thresholds: PyReadonlyArray2<'_, u64>,
    entries: PyReadonlyArray2<'_, u32>,
    slots: PyReadonlyArray1<'_, i64>,
    inputs: PyReadonlyArray1<'_, i64>,
    seed: u64,
    mut out: PyReadwriteArray1<'_, i64>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let columns = (by_rows("thresholds", &thresholds)?, by_rows("entries", &entries)?);
        let rows = Rows::new(columns, entries.shape()[1], contiguous("slots", &slots)?)?;
        let (inputs, out) = (contiguous("inputs", &inputs)?, by_rows_mut("out", &mut out)?);
        let options = Options::new().threads(threads);
        interruptible(py, out.len(), |stop| {
            replacement::draw(rows, inputs, seed, out, &options.stop(stop))
        })
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn add_noise(
    py: Python<'_>,
    vectors: PyReadonlyArray2<'_, f64>,
    inputs: PyReadonlyArray1<'_, i64>,
    scale: f64,
    seed: u64,
    start: u64,
    mut out: PyReadwriteArray2<'_, f64>,
    mut coins: PyReadwriteArray1<'_, f64>,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let dim = vectors.shape()[1];
        let noisy = Noisy { vectors: by_rows("vectors", &vectors)?, dim, scale, seed };
        let inputs = contiguous("inputs", &inputs)?;
        let out = by_rows_mut("out", &mut out)?;
        let coins = by_rows_mut("coins", &mut coins)?;
        let options = Options::new().threads(threads);
        interruptible(py, out.len(), |stop| {
            replacement::add_noise(noisy, inputs, start, (out, coins), &options.stop(stop))
        })
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(prepare_rows, module)?)?;
    module.add_function(wrap_pyfunction!(draw_words, module)?)?;
    module.add_function(wrap_pyfunction!(add_noise, module)?)
}
