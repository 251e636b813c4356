//! The Python module `dpcore._core`: convert, release the interpreter, call, map errors.

// Arrays arrive by value: that is how pyo3 extracts them.
#![allow(clippy::needless_pass_by_value)]

mod divergence;
mod neighbours;
mod score;
mod sensitivity;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use numpy::{
    PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::pool::{MOST_THREADS, default_threads};
use crate::{Clip, Cpu, Error, Job, Mechanism, Noise, Purpose, Route, Vote, probe, run};

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid { .. } => PyValueError::new_err(error.to_string()),
            Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}

/// A mechanism as Python describes it: class name, numbers, mode, clip, factor.
#[derive(FromPyObject)]
struct Description(String, Vec<f64>, String, Option<(String, f64)>, f64);

impl Description {
    fn noise(&self) -> Result<Noise, Error> {
        Noise::new(&self.0, &self.1, &self.2)
    }

    fn mechanism(&self) -> Result<Mechanism, Error> {
        let clip = self.3.as_ref().map(|(norm, radius)| Clip::new(norm, *radius)).transpose()?;
        Mechanism::new(self.noise()?, clip, self.4)
    }
}

/// (seed, purpose, side, trials per block): which draws.
#[derive(FromPyObject)]
struct Draws(u64, u8, u8, u64);

impl Draws {
    fn job(&self, description: &Description, x: &PyReadonlyArray1<'_, f64>) -> PyResult<Job> {
        let purpose = match self.1 {
            0 => Purpose::Pilot,
            1 => Purpose::Selection,
            2 => Purpose::Count,
            3 => Purpose::Sample,
            other => return Err(Error::invalid("purpose", "from 0 to 3", other).into()),
        };
        if self.2 > 1 {
            return Err(Error::invalid("side", "0 or 1", self.2).into());
        }
        let name = (self.0, purpose, self.2);
        Ok(Job::new(description.mechanism()?, contiguous("x", x)?, name, self.3)?)
    }
}

fn contiguous<'a, T: numpy::Element>(
    name: &str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name} must be contiguous")))
}

fn checked(threads: usize) -> Result<usize, Error> {
    if (1..=MOST_THREADS).contains(&threads) {
        Ok(threads)
    } else {
        Err(Error::invalid("threads", format!("from 1 to {MOST_THREADS}"), threads))
    }
}

/// Refuses an array whose rows are not one after the other: `as_slice` takes columns, too.
fn check_order<'py>(name: &str, array: &impl PyUntypedArrayMethods<'py>) -> PyResult<()> {
    if array.is_c_contiguous() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name} must be C-contiguous")))
}

/// The entries of a matrix, row by row.
fn by_rows<'a, T: numpy::Element>(
    name: &str,
    array: &'a PyReadonlyArray2<'_, T>,
) -> PyResult<&'a [T]> {
    check_order(name, &**array)?;
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name} must be C-contiguous")))
}

/// Runs short work without the interpreter; a panic is an error.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(|| guarded(work))
}

fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| PyRuntimeError::new_err("dpcore failed: a bug, please report it"))
        .and_then(|result| result.map_err(PyErr::from))
}

/// Work of fewer draws than this (some milliseconds) is not worth a thread that can be told to stop.
const SHORT: usize = 1 << 21;

/// Runs without the interpreter, looking for signals ten times a second if it takes long.
fn interruptible<T: Send>(
    py: Python<'_>,
    draws: usize,
    work: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let run = || guarded(|| work(&stop));
    if draws < SHORT {
        return py.detach(run);
    }
    let (slot, ready) = (Mutex::new(None), Condvar::new());
    let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let result = run();
            *lock() = Some(result);
            ready.notify_one();
        });
        let mut interrupted = None;
        loop {
            let result = py.detach(|| {
                let waited =
                    ready.wait_timeout_while(lock(), Duration::from_millis(100), |result| {
                        result.is_none()
                    });
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            if let Some(result) = result {
                return interrupted.map_or(result, Err);
            }
            if interrupted.is_none() {
                interrupted = py.check_signals().err();
                stop.store(interrupted.is_some(), Ordering::Relaxed);
            }
        }
    })
}

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
    let (description, draws): (Description, Draws) = (description.extract()?, draws.extract()?);
    let job = draws.job(&description, &x)?;
    let how = (Cpu::current()?, checked(threads)?);
    if let Ok(array) = out.cast::<PyArrayDyn<f64>>() {
        fill(py, &job, array.try_readwrite(), start, how)
    } else if let Ok(array) = out.cast::<PyArrayDyn<f32>>() {
        fill(py, &job, array.try_readwrite(), start, how)
    } else {
        Err(PyTypeError::new_err("out must be an array of float64 or float32"))
    }
}

fn fill<T: run::Real + Sync + numpy::Element>(
    py: Python<'_>,
    job: &Job,
    out: Result<PyReadwriteArrayDyn<'_, T>, numpy::BorrowError>,
    start: u64,
    how: (Cpu, usize),
) -> PyResult<()> {
    let mut out = out?;
    check_order("out", &**out)?;
    let slice =
        out.as_slice_mut().map_err(|_| PyValueError::new_err("out must be C-contiguous"))?;
    interruptible(py, slice.len(), |stop| run::sample(job, slice, start, how, stop))
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
    let (description, draws): (Description, Draws) = (description.extract()?, draws.extract()?);
    let job = draws.job(&description, &x)?;
    let vote = Vote::new(contiguous("threshold", &threshold)?, contiguous("towards", &towards)?)?;
    let route = match route {
        "sampled" => Route::Sampled,
        "integer" => Route::Integer,
        _ => return Err(Error::invalid("route", "\"sampled\" or \"integer\"", route).into()),
    };
    let how = (Cpu::current()?, checked(threads)?);
    let draws = usize::try_from(trials.1.saturating_sub(trials.0)).unwrap_or(usize::MAX);
    let draws = draws.saturating_mul(job.dim());
    let counted =
        interruptible(py, draws, |stop| run::count(&job, &vote, trials, route, how, stop))?;
    Ok((counted.votes, counted.nan))
}

#[pyfunction]
fn count_outputs(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    threshold: PyReadonlyArray1<'_, f64>,
    towards: PyReadonlyArray1<'_, i8>,
) -> PyResult<(u64, u64)> {
    let vote = Vote::new(contiguous("threshold", &threshold)?, contiguous("towards", &towards)?)?;
    let slice = by_rows("outputs", &outputs)?;
    let cpu = Cpu::current()?;
    let counted = py.detach(|| run::count_outputs(&vote, slice, cpu))?;
    Ok((counted.votes, counted.nan))
}

#[pyfunction]
fn no_integer_route(description: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    Ok(description.extract::<Description>()?.noise()?.no_integer_route())
}

#[pyfunction]
fn noise_at<'py>(
    py: Python<'py>,
    description: &Bound<'py, PyAny>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
    let noise = description.extract::<Description>()?.noise()?;
    let values = probe::noise_at(noise, contiguous("words", &words)?);
    Ok(values.map(|values| PyArray1::from_vec(py, values)))
}

#[pyfunction]
fn ln<'py>(py: Python<'py>, j: PyReadonlyArray1<'py, u64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    Ok(PyArray1::from_vec(py, probe::ln(contiguous("j", &j)?)))
}

#[pyfunction]
fn clip<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    norm: &str,
    radius: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let mut clipped = contiguous("x", &x)?.to_vec();
    Clip::new(norm, radius)?.apply(&mut clipped);
    Ok(PyArray1::from_vec(py, clipped))
}

#[pyfunction]
fn cpu() -> PyResult<&'static str> {
    Ok(Cpu::current()?.name())
}

#[pyfunction]
fn cpus() -> Vec<&'static str> {
    Cpu::present().into_iter().map(Cpu::name).collect()
}

#[pyfunction]
fn cores() -> usize {
    default_threads()
}

/// The module. It declares that it needs the GIL: it has not been tried without one.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // DPCORE_CPU is read now; a wrong one is an error of the first call that draws, because an
    // import that fails would end the command line with the status of a refuted claim.
    let _ = Cpu::current();
    module.add("LANES", crate::random::LANES)?;
    module.add("MOST_THREADS", MOST_THREADS)?;
    module.add("NOISES", Noise::NAMES)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(sample, module)?)?;
    module.add_function(wrap_pyfunction!(count, module)?)?;
    module.add_function(wrap_pyfunction!(count_outputs, module)?)?;
    module.add_function(wrap_pyfunction!(no_integer_route, module)?)?;
    module.add_function(wrap_pyfunction!(noise_at, module)?)?;
    module.add_function(wrap_pyfunction!(ln, module)?)?;
    module.add_function(wrap_pyfunction!(clip, module)?)?;
    module.add_function(wrap_pyfunction!(cpu, module)?)?;
    module.add_function(wrap_pyfunction!(cpus, module)?)?;
    module.add_function(wrap_pyfunction!(cores, module)?)?;
    score::register(module)?;
    divergence::register(module)?;
    neighbours::register(module)?;
    sensitivity::register(module)?;
    Ok(())
}
