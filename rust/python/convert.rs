//! Arguments and errors, from one language to the other.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
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

pub(super) fn contiguous<'a, T: numpy::Element>(
    name: &str,
    array: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name} must be contiguous")))
}

/// Refuses an array whose rows are not one after the other: `as_slice` takes columns, too.
pub(super) fn check_order<'py>(
    name: &str,
    array: &impl PyUntypedArrayMethods<'py>,
) -> PyResult<()> {
    if array.is_c_contiguous() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name} must be C-contiguous")))
}

/// The entries of a matrix, row by row.
pub(super) fn by_rows<'a, T: numpy::Element>(
    name: &str,
    array: &'a PyReadonlyArray2<'_, T>,
) -> PyResult<&'a [T]> {
    check_order(name, &**array)?;
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name} must be C-contiguous")))
}
