//! The Python module `dpcore._core`: convert, release the interpreter, call, map errors.

// Arrays arrive by value: that is how pyo3 extracts them.
#![allow(clippy::needless_pass_by_value)]

mod cells;
mod columns;
mod convert;
mod description;
mod detach;
mod divergence;
mod instances;
mod machine;
mod neighbours;
mod probe;
mod replacement;
mod sampling;
mod score;
mod sensitivity;
mod tables;

use pyo3::prelude::*;

/// The module. It declares that it needs the GIL: it has not been tried without one.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // DPCORE_CPU is read now; a wrong one is an error of the first call that draws, because an
    // import that fails would end the command line with the status of a refuted claim.
    let _ = crate::Cpu::current();
    module.add("LANES", crate::random::LANES)?;
    module.add("MOST_THREADS", crate::MOST_THREADS)?;
    module.add("NOISES", crate::Noise::NAMES)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    sampling::register(module)?;
    probe::register(module)?;
    machine::register(module)?;
    score::register(module)?;
    divergence::register(module)?;
    instances::register(module)?;
    neighbours::register(module)?;
    replacement::register(module)?;
    sensitivity::register(module)?;
    tables::register(module)?;
    cells::register(module)?;
    columns::register(module)
}
