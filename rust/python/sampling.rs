//! Draws of mechanisms, and votes counted among them.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArrayDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::convert::{by_rows, by_rows_mut, contiguous};
use super::description::{Description, Draws};
use super::detach::{guarded, interruptible};
use crate::{Error, Job, Options, Route, Vote, run};

#[pyfunction]
fn sample(
    py: Python<'_>,
    description: &Bound<'_, PyAny>,
    x: PyReadonlyArray1<'_, f64>,
    out: &Bound<'_, PyAny>,
    draws: &Bound<'_, PyAny>,
    start: u64,
    threads: usize,
) -> PyResult<()> {
    guarded(|| {
        let (description, draws): (Description, Draws) = (description.extract()?, draws.extract()?);
        let job = draws.job(&description, &x)?;
        let options = Options::new().threads(threads);
        if let Ok(array) = out.cast::<PyArrayDyn<f64>>() {
            fill(py, &job, array.try_readwrite(), start, options)
        } else if let Ok(array) = out.cast::<PyArrayDyn<f32>>() {
            fill(py, &job, array.try_readwrite(), start, options)
        } else {
            Err(PyTypeError::new_err("out must be an array of float64 or float32"))
        }
    })
}

fn fill<T: run::Real + numpy::Element>(
    py: Python<'_>,
    job: &Job,
    out: Result<PyReadwriteArrayDyn<'_, T>, numpy::BorrowError>,
    start: u64,
    options: Options<'_>,
) -> PyResult<()> {
    let mut out = out?;
    let slice = by_rows_mut("out", &mut out)?;
    let stop = start.saturating_add((slice.len() / job.dim()) as u64);
    let work = work(job, start, stop);
    interruptible(py, work, |stop| run::sample(job, slice, start, &options.stop(stop)))
}

/// Numbers to draw for the trials `start..stop`, those before `start` in its block among them: a
/// stream is read from its beginning.
fn work(job: &Job, start: u64, stop: u64) -> usize {
    let trials = if start < stop { stop - start + start % job.trials_per_block() } else { 0 };
    usize::try_from(trials).unwrap_or(usize::MAX).saturating_mul(job.dim())
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn count(
    py: Python<'_>,
    description: &Bound<'_, PyAny>,
    x: PyReadonlyArray1<'_, f64>,
    threshold: PyReadonlyArray1<'_, f64>,
    towards: PyReadonlyArray1<'_, i8>,
    draws: &Bound<'_, PyAny>,
    trials: (u64, u64),
    route: &str,
    threads: usize,
) -> PyResult<(u64, u64)> {
    guarded(|| {
        let (description, draws): (Description, Draws) = (description.extract()?, draws.extract()?);
        let job = draws.job(&description, &x)?;
        let vote =
            Vote::new(contiguous("threshold", &threshold)?, contiguous("towards", &towards)?)?;
        let route = match route {
            "sampled" => Route::Sampled,
            "integer" => Route::Integer,
            _ => return Err(Error::invalid("route", "\"sampled\" or \"integer\"", route).into()),
        };
        let options = Options::new().threads(threads).route(route);
        // A coordinate's limit on the integer route costs some hundred draws.
        let draws = work(&job, trials.0, trials.1).saturating_add(job.dim().saturating_mul(128));
        let trials = trials.0..trials.1;
        let counted =
            interruptible(py, draws, |stop| run::count(&job, &vote, trials, &options.stop(stop)))?;
        Ok((counted.votes, counted.nan))
    })
}

#[pyfunction]
fn count_outputs(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    threshold: PyReadonlyArray1<'_, f64>,
    towards: PyReadonlyArray1<'_, i8>,
) -> PyResult<(u64, u64)> {
    guarded(|| {
        let vote =
            Vote::new(contiguous("threshold", &threshold)?, contiguous("towards", &towards)?)?;
        let slice = by_rows("outputs", &outputs)?;
        let counted = interruptible(py, slice.len(), |stop| {
            run::count_outputs(&vote, slice, &Options::new().stop(stop))
        })?;
        Ok((counted.votes, counted.nan))
    })
}

#[pyfunction]
fn no_integer_route(description: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    guarded(|| Ok(description.extract::<Description>()?.noise()?.no_integer_route()))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sample, module)?)?;
    module.add_function(wrap_pyfunction!(count, module)?)?;
    module.add_function(wrap_pyfunction!(count_outputs, module)?)?;
    module.add_function(wrap_pyfunction!(no_integer_route, module)?)
}
