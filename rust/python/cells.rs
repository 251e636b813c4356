//! Cells of tables in text.

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::detach::guarded;
use crate::cells::{self, Column, Dialect, Fault, Position, Role};

type Answer<'py> =
    (Option<(&'static str, u64, usize)>, (usize, usize, u64, u64), Bound<'py, PyList>, Vec<u64>);

/// Reads the whole rows of a slice; see `crate::cells::parse`.
///
/// Returns the fault and its place, or None; the bytes, rows and lines that were read; the first
/// empty line; for each column that is not left out a mapping of its arrays; and the lines of rows.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn parse_cells<'py>(
    py: Python<'py>,
    data: &[u8],
    separator: &str,
    quotes: bool,
    roles: &str,
    lines: u64,
    empty: u64,
    rows: usize,
    is_last: bool,
    leaves_out_empty: bool,
) -> PyResult<Answer<'py>> {
    guarded(|| {
        let roles = roles.chars().map(read_role).collect::<PyResult<Vec<_>>>()?;
        let dialect = Dialect { separator: separator.as_bytes(), quotes };
        let position = Position { lines, empty, leaves_out_empty, is_last, rows };
        let result = py.detach(|| cells::parse(data, dialect, &roles, position));
        let columns = PyList::empty(py);
        match result {
            Err(refusal) => {
                let fault = (name_fault(refusal.fault), refusal.line, refusal.cell);
                Ok((Some(fault), (0, 0, 0, 0), columns, Vec::new()))
            }
            Ok(piece) => {
                for (place, column) in piece.columns.into_iter().enumerate() {
                    if roles.get(place) != Some(&Role::Skip) {
                        columns.append(convert_column(py, column)?)?;
                    }
                }
                let totals = (piece.consumed, piece.rows, piece.lines, piece.empty);
                Ok((None, totals, columns, piece.starts))
            }
        }
    })
}

fn read_role(letter: char) -> PyResult<Role> {
    match letter {
        '-' => Ok(Role::Skip),
        'n' => Ok(Role::Number),
        't' => Ok(Role::Text),
        _ => Err(PyValueError::new_err(format!("roles must be of '-', 'n', 't', got {letter:?}"))),
    }
}

fn name_fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Length => "length",
        Fault::Empty => "empty",
        Fault::Nul => "nul",
        Fault::Encoding => "encoding",
        Fault::OpenQuote => "open",
        Fault::AfterQuote => "after",
    }
}

fn convert_column(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyDict>> {
    let texts = PyList::empty(py);
    let mut start = 0;
    for end in column.ends {
        texts.append(PyString::new(py, &column.texts[start..end]))?;
        start = end;
    }
    let arrays = PyDict::new(py);
    arrays.set_item("numbers", column.numbers.into_pyarray(py))?;
    arrays.set_item("codes", column.codes.into_pyarray(py))?;
    arrays.set_item("spellings", column.spellings)?;
    arrays.set_item("missing", column.missing.into_pyarray(py))?;
    arrays.set_item("odd", column.odd.into_pyarray(py))?;
    arrays.set_item("texts", texts)?;
    arrays.set_item("kinds", column.kinds.to_vec())?;
    arrays.set_item("widths", column.widths)?;
    arrays.set_item("has_fractions", column.has_fractions)?;
    Ok(arrays)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_cells, module)?)
}
