//! Scores of arrays of outputs.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{by_rows, by_rows_mut, contiguous};
use super::detach::{detached, guarded};
use crate::mechanisms::Norm;
use crate::score;
use crate::score::{Comparison, Patterns, Transform, Weights};

/// The numbers of an array of outputs, row by row, and how many a row has.
fn rows<'a>(outputs: &'a PyReadonlyArray2<'_, f64>) -> PyResult<(&'a [f64], usize)> {
    Ok((by_rows("outputs", outputs)?, outputs.shape()[1]))
}

fn check_columns(dim: usize, expected: usize) -> PyResult<()> {
    if dim == expected {
        return Ok(());
    }
    let message = format!("outputs must be rows of {expected}, got rows of {dim}");
    Err(PyValueError::new_err(message))
}

/// (transform, edges, offsets, keys): the bins of every column.
#[derive(FromPyObject)]
struct Layout<'py>(
    String,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, u64>,
);

impl Layout<'_> {
    fn read(&self) -> PyResult<score::Layout<'_>> {
        Ok(score::Layout {
            transform: Transform::named(&self.0)?,
            edges: contiguous("edges", &self.1)?,
            offsets: contiguous("offsets", &self.2)?,
            keys: contiguous("keys", &self.3)?,
        })
    }
}

/// (keys, first, groups): the table of patterns.
#[derive(FromPyObject)]
struct Table<'py>(
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
);

impl Table<'_> {
    fn read(&self) -> PyResult<Patterns<'_>> {
        let keys = contiguous("patterns", &self.0)?;
        Ok(Patterns::new(keys, contiguous("first", &self.1)?, contiguous("groups", &self.2)?)?)
    }
}

#[pyfunction]
fn score_closer(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    x: PyReadonlyArray1<'_, f64>,
    x_prime: PyReadonlyArray1<'_, f64>,
    norm: &str,
    mut out: PyReadwriteArray1<'_, f64>,
) -> PyResult<()> {
    guarded(|| {
        let (values, dim) = rows(&outputs)?;
        let (x, x_prime) = (contiguous("x", &x)?, contiguous("x_prime", &x_prime)?);
        check_columns(dim, x.len())?;
        let (norm, out) = (Norm::named(norm)?, by_rows_mut("out", &mut out)?);
        detached(py, || score::closer(values, x, x_prime, norm, out))
    })
}

#[pyfunction]
fn score_finer(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    exponent: i32,
    window: (f64, f64),
    every: bool,
    mut out: PyReadwriteArray1<'_, f64>,
) -> PyResult<()> {
    guarded(|| {
        let ((values, dim), (low, high)) = (rows(&outputs)?, window);
        let (finer, out) =
            (score::Finer { exponent, low, high, every }, by_rows_mut("out", &mut out)?);
        detached(py, || finer.score(values, dim, out))
    })
}

#[pyfunction]
fn score_additive(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    layout: &Bound<'_, PyAny>,
    table: &Bound<'_, PyAny>,
    pattern_weights: PyReadonlyArray1<'_, f64>,
    weights: PyReadonlyArray2<'_, f64>,
    mut out: PyReadwriteArray1<'_, f64>,
) -> PyResult<()> {
    guarded(|| {
        let (values, dim) = rows(&outputs)?;
        let (layout, table): (Layout<'_>, Table<'_>) = (layout.extract()?, table.extract()?);
        let (layout, patterns) = (layout.read()?, table.read()?);
        check_columns(dim, layout.dim())?;
        let weights = Weights {
            patterns: contiguous("pattern_weights", &pattern_weights)?,
            bins: by_rows("weights", &weights)?,
        };
        let out = by_rows_mut("out", &mut out)?;
        detached(py, || score::score_additive(&layout, &patterns, &weights, values, out))
    })
}

#[pyfunction]
fn count_additive(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    layout: &Bound<'_, PyAny>,
    table: &Bound<'_, PyAny>,
    mut pattern_counts: PyReadwriteArray1<'_, u64>,
    mut counts: PyReadwriteArray2<'_, u64>,
) -> PyResult<()> {
    guarded(|| {
        let (values, dim) = rows(&outputs)?;
        let (layout, table): (Layout<'_>, Table<'_>) = (layout.extract()?, table.extract()?);
        let (layout, patterns) = (layout.read()?, table.read()?);
        check_columns(dim, layout.dim())?;
        let pattern_counts = by_rows_mut("pattern_counts", &mut pattern_counts)?;
        let counts = by_rows_mut("counts", &mut counts)?;
        detached(py, || score::count_additive(&layout, &patterns, values, counts, pattern_counts))
    })
}

#[pyfunction]
fn pattern_keys(
    py: Python<'_>,
    outputs: PyReadonlyArray2<'_, f64>,
    layout: &Bound<'_, PyAny>,
    mut out: PyReadwriteArray1<'_, u64>,
) -> PyResult<()> {
    guarded(|| {
        let (values, dim) = rows(&outputs)?;
        let layout: Layout<'_> = layout.extract()?;
        let layout = layout.read()?;
        check_columns(dim, layout.dim())?;
        let out = by_rows_mut("out", &mut out)?;
        detached(py, || score::pattern_keys(&layout, values, out))
    })
}

#[pyfunction]
fn bin_counts(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, f64>,
    edges: PyReadonlyArray1<'_, f64>,
    mut out: PyReadwriteArray1<'_, u64>,
) -> PyResult<()> {
    guarded(|| {
        let (values, edges) = (contiguous("values", &values)?, contiguous("edges", &edges)?);
        let out = by_rows_mut("out", &mut out)?;
        detached(py, || score::bin_counts(values, edges, out))
    })
}

/// How many values of each row of `sorted` are below each point of that row.
#[pyfunction]
fn count_below<'py>(
    py: Python<'py>,
    sorted: PyReadonlyArray2<'py, f64>,
    points: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    guarded(|| {
        let (values, places) = (by_rows("sorted", &sorted)?, by_rows("points", &points)?);
        let (columns, size, of_each) = (sorted.shape()[0], sorted.shape()[1], points.shape()[1]);
        if points.shape()[0] != columns {
            let message = format!("points must have {columns} rows, got {}", points.shape()[0]);
            return Err(PyValueError::new_err(message));
        }
        let out = PyArray2::zeros(py, [columns, of_each], false);
        let mut counts = out.readwrite();
        let counts = by_rows_mut("out", &mut counts)?;
        detached(py, || {
            score::count_below(values, size, places, of_each, counts);
            Ok(())
        })?;
        Ok(out)
    })
}

/// (statistics, freedoms) of columns, which are the rows of an array.
#[pyfunction]
fn compare_columns<'py>(
    py: Python<'py>,
    columns: PyReadonlyArray2<'py, f64>,
    split: usize,
) -> PyResult<Comparisons<'py>> {
    guarded(|| {
        let (values, rows) = (by_rows("columns", &columns)?, columns.shape()[1]);
        check_split(split, rows)?;
        let mut out = vec![Comparison::default(); columns.shape()[0]];
        detached(py, || {
            score::compare_columns(values, rows, split, &mut out);
            Ok(())
        })?;
        Ok(divide(py, &out))
    })
}

/// The same of the remainders of columns by each of some moduli, one column after the other.
#[pyfunction]
fn compare_remainders<'py>(
    py: Python<'py>,
    columns: PyReadonlyArray2<'py, f64>,
    split: usize,
    moduli: PyReadonlyArray1<'py, f64>,
) -> PyResult<Comparisons<'py>> {
    guarded(|| {
        let (values, rows) = (by_rows("columns", &columns)?, columns.shape()[1]);
        let moduli = contiguous("moduli", &moduli)?;
        check_split(split, rows)?;
        let mut out = vec![Comparison::default(); columns.shape()[0] * moduli.len()];
        detached(py, || {
            score::compare_remainders(values, rows, split, moduli, &mut out);
            Ok(())
        })?;
        Ok(divide(py, &out))
    })
}

type Comparisons<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

fn divide<'py>(py: Python<'py>, comparisons: &[Comparison]) -> Comparisons<'py> {
    let statistics = comparisons.iter().map(|one| one.statistic);
    let freedoms = comparisons.iter().map(|one| one.freedom);
    (PyArray1::from_iter(py, statistics), PyArray1::from_iter(py, freedoms))
}

fn check_split(split: usize, rows: usize) -> PyResult<()> {
    if 0 < split && split < rows {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("split must be from 1 to {rows} - 1, got {split}")))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(score_closer, module)?)?;
    module.add_function(wrap_pyfunction!(score_finer, module)?)?;
    module.add_function(wrap_pyfunction!(score_additive, module)?)?;
    module.add_function(wrap_pyfunction!(count_additive, module)?)?;
    module.add_function(wrap_pyfunction!(pattern_keys, module)?)?;
    module.add_function(wrap_pyfunction!(bin_counts, module)?)?;
    module.add_function(wrap_pyfunction!(count_below, module)?)?;
    module.add_function(wrap_pyfunction!(compare_columns, module)?)?;
    module.add_function(wrap_pyfunction!(compare_remainders, module)?)
}
