//! Nearest neighbours of rows of two sets.

use std::sync::atomic::AtomicBool;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::convert::{by_rows, contiguous};
use super::detach::{guarded, interruptible};
use crate::neighbours::distance::Coordinate;
use crate::neighbours::{Inside, Nearest, Pooled, Search, Sets, Shells};
use crate::neighbours::{inside as find_inside, nearest as find_nearest, pool_rows as find_rows};
use crate::{Error, Options};

type Numbers<'py, T> = Bound<'py, PyArray1<T>>;
type Indices<'py> = PyReadonlyArray1<'py, i64>;

/// Both sets of rows, of one type.
enum Rows<'py> {
    Single([PyReadonlyArray2<'py, f32>; 2]),
    Double([PyReadonlyArray2<'py, f64>; 2]),
}

impl<'py> Rows<'py> {
    fn new(rows0: &Bound<'py, PyAny>, rows1: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let (Ok(rows0), Ok(rows1)) = (rows0.extract(), rows1.extract()) {
            return Ok(Self::Single([rows0, rows1]));
        }
        if let (Ok(rows0), Ok(rows1)) = (rows0.extract(), rows1.extract()) {
            return Ok(Self::Double([rows0, rows1]));
        }
        let message = "rows0 and rows1 must be matrices, both of float32 or both of float64";
        Err(PyTypeError::new_err(message))
    }
}

fn sets<'a, T: numpy::Element + Coordinate>(
    rows: &'a [PyReadonlyArray2<'_, T>; 2],
) -> PyResult<Sets<'a, T>> {
    let dim = rows[0].shape()[1];
    if rows[1].shape()[1] != dim {
        let error = Error::invalid("rows1", format!("rows of {dim}"), rows[1].shape()[1]);
        return Err(error.into());
    }
    Ok(Sets::new(by_rows("rows0", &rows[0])?, by_rows("rows1", &rows[1])?, dim)?)
}

/// One call for rows of either type.
macro_rules! on_either {
    ($rows:expr, $sets:ident => $call:expr) => {
        match &$rows {
            Rows::Single(rows) => {
                let $sets = sets(rows)?;
                $call
            }
            Rows::Double(rows) => {
                let $sets = sets(rows)?;
                $call
            }
        }
    };
}

/// About as much work as so many draws.
fn work(queries: usize, points: usize, dim: usize) -> usize {
    queries.saturating_mul(points).saturating_mul(dim) / 64
}

#[pyfunction]
#[allow(clippy::type_complexity)]
fn pool_rows<'py>(
    py: Python<'py>,
    rows0: &Bound<'py, PyAny>,
    rows1: &Bound<'py, PyAny>,
) -> PyResult<(Numbers<'py, u32>, Numbers<'py, u32>, Numbers<'py, i64>)> {
    guarded(|| {
        let rows = Rows::new(rows0, rows1)?;
        let (Pooled { ids, first }, split) = on_either!(rows, sets => {
            let work = sets.len().saturating_mul(sets.dim());
            (interruptible(py, work, |stop| find_rows(sets, &Options::new().stop(stop)))?, sets.split())
        });
        Ok((
            PyArray1::from_slice(py, &ids[..split]),
            PyArray1::from_slice(py, &ids[split..]),
            PyArray1::from_vec(py, first),
        ))
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn nearest<'py>(
    py: Python<'py>,
    rows0: &Bound<'py, PyAny>,
    rows1: &Bound<'py, PyAny>,
    queries: Indices<'py>,
    points: Indices<'py>,
    depth: usize,
    threads: usize,
) -> PyResult<(Numbers<'py, i64>, Numbers<'py, u32>, Numbers<'py, f64>, u64)> {
    guarded(|| {
        let rows = Rows::new(rows0, rows1)?;
        let (queries, points) = (contiguous("queries", &queries)?, contiguous("points", &points)?);
        let options = Options::new().threads(threads);
        let Nearest { starts, places, squared, rescans } = on_either!(rows, sets => {
            let search = Search::new(sets, queries, points)?;
            let find = |stop: &AtomicBool| find_nearest(search, depth, &options.stop(stop));
            interruptible(py, work(queries.len(), points.len(), sets.dim()), find)?
        });
        let (starts, places) = (PyArray1::from_vec(py, starts), PyArray1::from_vec(py, places));
        Ok((starts, places, PyArray1::from_vec(py, squared), rescans))
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn inside<'py>(
    py: Python<'py>,
    rows0: &Bound<'py, PyAny>,
    rows1: &Bound<'py, PyAny>,
    queries: Indices<'py>,
    points: Indices<'py>,
    starts: Indices<'py>,
    squared: PyReadonlyArray1<'py, f64>,
    cap: usize,
    threads: usize,
) -> PyResult<(
    Numbers<'py, i64>,
    Numbers<'py, u32>,
    Numbers<'py, i64>,
    Numbers<'py, bool>,
    Numbers<'py, bool>,
    u64,
)> {
    guarded(|| {
        let rows = Rows::new(rows0, rows1)?;
        let (queries, points) = (contiguous("queries", &queries)?, contiguous("points", &points)?);
        let (starts, squared) = (contiguous("starts", &starts)?, contiguous("squared", &squared)?);
        let shells = Shells::new(starts, squared, queries.len())?;
        let options = Options::new().threads(threads);
        let found: Inside = on_either!(rows, sets => {
            let search = Search::new(sets, queries, points)?;
            let find = |stop: &AtomicBool| find_inside(search, shells, cap, &options.stop(stop));
            interruptible(py, work(queries.len(), points.len(), sets.dim()), find)?
        });
        Ok((
            PyArray1::from_vec(py, found.own_starts),
            PyArray1::from_vec(py, found.places),
            PyArray1::from_vec(py, found.upto),
            PyArray1::from_vec(py, found.inverted),
            PyArray1::from_vec(py, found.capped),
            found.rescans,
        ))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pool_rows, module)?)?;
    module.add_function(wrap_pyfunction!(nearest, module)?)?;
    module.add_function(wrap_pyfunction!(inside, module)?)?;
    Ok(())
}
