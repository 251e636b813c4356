//! Parts of the samplers on their own: values at chosen words, the logarithm, the clip.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::convert::contiguous;
use super::description::Description;
use super::detach::{detached, guarded};
use crate::{Clip, Norm, probe};

#[pyfunction]
fn noise_at<'py>(
    py: Python<'py>,
    description: &Bound<'py, PyAny>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
    guarded(|| {
        let noise = description.extract::<Description>()?.noise()?;
        let words = contiguous("words", &words)?;
        let values = detached(py, || Ok(probe::noise_at(noise, words)))?;
        Ok(values.map(|values| PyArray1::from_vec(py, values)))
    })
}

#[pyfunction]
fn ln<'py>(py: Python<'py>, j: PyReadonlyArray1<'py, u64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    guarded(|| {
        let j = contiguous("j", &j)?;
        Ok(PyArray1::from_vec(py, detached(py, || Ok(probe::ln(j)))?))
    })
}

#[pyfunction]
fn clip<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    norm: &str,
    radius: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    guarded(|| {
        let mut clipped = contiguous("x", &x)?.to_vec();
        Clip::new(Norm::named(norm)?, radius)?.apply(&mut clipped);
        Ok(PyArray1::from_vec(py, clipped))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(noise_at, module)?)?;
    module.add_function(wrap_pyfunction!(ln, module)?)?;
    module.add_function(wrap_pyfunction!(clip, module)?)
}
