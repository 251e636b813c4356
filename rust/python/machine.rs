//! What the machine has.

use pyo3::prelude::*;

use super::detach::guarded;
use crate::{Cpu, default_threads};

#[pyfunction]
fn cpu() -> PyResult<&'static str> {
    guarded(|| Ok(Cpu::current()?.name()))
}

#[pyfunction]
fn cpus() -> PyResult<Vec<&'static str>> {
    guarded(|| Ok(Cpu::present().into_iter().map(Cpu::name).collect()))
}

#[pyfunction]
fn cores() -> PyResult<usize> {
    guarded(|| Ok(default_threads()))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cpu, module)?)?;
    module.add_function(wrap_pyfunction!(cpus, module)?)?;
    module.add_function(wrap_pyfunction!(cores, module)?)
}
