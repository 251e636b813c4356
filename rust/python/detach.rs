//! Work without the interpreter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::Error;

/// A binding's whole body: a panic in it is a `RuntimeError`; pyo3's `PanicException` is one that no
/// `except Exception` catches.
pub(super) fn guarded<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let told = panic.downcast_ref::<String>().map(String::as_str);
        let told = told.or_else(|| panic.downcast_ref().copied()).unwrap_or("a panic");
        Err(PyRuntimeError::new_err(format!("dpcore failed: a bug, please report it ({told})")))
    })
}

/// Runs short work without the interpreter.
pub(super) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    Ok(py.detach(work)?)
}

/// Work of fewer draws than this (some milliseconds) is not worth a thread that can be told to stop.
const SHORT: usize = 1 << 21;

/// Runs without the interpreter, looking for signals ten times a second if it takes long.
pub(super) fn interruptible<T: Send>(
    py: Python<'_>,
    draws: usize,
    work: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    // A thread that panicked would leave this one waiting.
    let run = || guarded(|| Ok(work(&stop)?));
    if draws < SHORT {
        return py.detach(run);
    }
    let (slot, ready) = (Mutex::new(None), Condvar::new());
    let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let worker = || {
            let result = run();
            *lock() = Some(result);
            ready.notify_one();
        };
        thread::Builder::new().spawn_scoped(scope, worker)?;
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
