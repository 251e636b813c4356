//! Arguments and errors, from one language to the other.

use numpy::ndarray::Dimension;
use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::Error;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid { .. } => PyValueError::new_err(error.to_string()),
            Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}

/// The entries of a vector.
pub(super) fn contiguous<'a, T: Element>(
    name: &str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    check::<T>(name, &**array)?;
    array.as_slice().map_err(|_| strided(name))
}

/// The entries of a matrix, row by row.
pub(super) fn by_rows<'a, T: Element>(
    name: &str,
    array: &'a PyReadonlyArray2<'_, T>,
) -> PyResult<&'a [T]> {
    check::<T>(name, &**array)?;
    array.as_slice().map_err(|_| strided(name))
}

/// The entries of an array to fill, row by row.
pub(super) fn by_rows_mut<'a, T: Element, D: Dimension>(
    name: &str,
    array: &'a mut PyReadwriteArray<'_, T, D>,
) -> PyResult<&'a mut [T]> {
    check::<T>(name, &***array)?;
    array.as_slice_mut().map_err(|_| strided(name))
}

/// Refuses an array that is not aligned, and one whose rows are not one after the other: slices are
/// made of columns, too, and of the others it is only said that it cannot be done.
fn check<'py, T>(name: &str, array: &impl PyUntypedArrayMethods<'py>) -> PyResult<()> {
    if !array.is_aligned() {
        let requirement = format!("aligned, its address a multiple of {}", align_of::<T>());
        let message = format!("{name} must be {requirement}, got a misaligned array");
        return Err(PyValueError::new_err(message));
    }
    if array.is_c_contiguous() { Ok(()) } else { Err(strided(name)) }
}

fn strided(name: &str) -> PyErr {
    PyValueError::new_err(format!("{name} must be C-contiguous"))
}
