//! Divergences from counts in balls.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::convert::{by_rows, contiguous};
use super::detach::{detached, guarded, interruptible};
use crate::Options;
use crate::divergence::cells;
use crate::divergence::gamma;
use crate::divergence::line::{self, Resampling};
use crate::divergence::lists::{Lists, Rows};
use crate::divergence::walk;
use crate::neighbours::distance::Coordinate;

type Vector<'py> = Bound<'py, PyArray1<f64>>;

fn vector(py: Python<'_>, values: Vec<f64>) -> Vector<'_> {
    PyArray1::from_vec(py, values)
}

#[pyfunction]
fn log_gamma_ratio<'py>(
    py: Python<'py>,
    x: PyReadonlyArray1<'py, f64>,
    b: f64,
) -> PyResult<Vector<'py>> {
    guarded(|| {
        let x = contiguous("x", &x)?;
        Ok(vector(py, detached(py, || gamma::log_gamma_ratios(x, b))?))
    })
}

#[pyfunction]
fn digamma(x: f64) -> PyResult<f64> {
    guarded(|| Ok(gamma::checked_digamma(x)?))
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn ball_values<'py>(
    py: Python<'py>,
    n: PyReadonlyArray1<'py, i64>,
    j: PyReadonlyArray1<'py, i64>,
    atom: PyReadonlyArray1<'py, bool>,
    weight: PyReadonlyArray1<'py, f64>,
    size_own: u64,
    size_other: u64,
    alphas: PyReadonlyArray1<'py, f64>,
) -> PyResult<(Vector<'py>, Vector<'py>)> {
    guarded(|| {
        let counts = (contiguous("n", &n)?, contiguous("j", &j)?);
        let (atom, weight) = (contiguous("atom", &atom)?, contiguous("weight", &weight)?);
        let (sizes, alphas) = ((size_own, size_other), contiguous("alphas", &alphas)?);
        let values = detached(py, || cells::ball_values(counts, atom, weight, sizes, alphas))?;
        Ok((vector(py, values.value), vector(py, values.effective)))
    })
}

/// (starts, ids, squared): neighbours in the other set.
#[derive(FromPyObject)]
struct Other<'py>(
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, f64>,
);

/// (starts, ids, upto, inverted, capped): points of the own set.
#[derive(FromPyObject)]
struct Own<'py>(
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, bool>,
    PyReadonlyArray1<'py, bool>,
);

type Ids<'py> = PyReadonlyArray1<'py, u32>;

fn lists<'a>(
    queries: &'a Ids<'_>,
    other: &'a Other<'_>,
    own: &'a Own<'_>,
    own_points: &'a Ids<'_>,
    other_points: &'a Ids<'_>,
) -> PyResult<Lists<'a>> {
    Ok(Lists {
        queries: contiguous("queries", queries)?,
        starts: contiguous("starts", &other.0)?,
        ids: contiguous("ids", &other.1)?,
        squared: contiguous("squared", &other.2)?,
        own_starts: contiguous("own_starts", &own.0)?,
        own_ids: contiguous("own_ids", &own.1)?,
        upto: contiguous("upto", &own.2)?,
        inverted: contiguous("inverted", &own.3)?,
        capped: contiguous("capped", &own.4)?,
        own_points: contiguous("own_points", own_points)?,
        other_points: contiguous("other_points", other_points)?,
    })
}

/// The rows of both sets, of one type.
enum Both<'py> {
    Single([PyReadonlyArray2<'py, f32>; 2]),
    Double([PyReadonlyArray2<'py, f64>; 2]),
}

impl<'py> Both<'py> {
    fn read(rows0: &Bound<'py, PyAny>, rows1: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let (Ok(first), Ok(second)) = (rows0.extract(), rows1.extract()) {
            return Ok(Self::Single([first, second]));
        }
        match (rows0.extract(), rows1.extract()) {
            (Ok(first), Ok(second)) => Ok(Self::Double([first, second])),
            _ => Err(PyTypeError::new_err(
                "rows0 and rows1 must be two-dimensional arrays of float32, or both of float64",
            )),
        }
    }
}

fn rows<'a, T: Coordinate + numpy::Element>(
    both: &'a [PyReadonlyArray2<'_, T>; 2],
    first: &'a [i64],
) -> PyResult<Rows<'a, T>> {
    let dim = both[0].shape()[1];
    check_columns("rows1", both[1].shape()[1], dim)?;
    Ok(Rows::new([by_rows("rows0", &both[0])?, by_rows("rows1", &both[1])?], dim, first)?)
}

type CountsResult<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<bool>>, u64, u64);

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn ball_counts<'py>(
    py: Python<'py>,
    queries: Ids<'py>,
    other: Other<'py>,
    own: Own<'py>,
    own_points: Ids<'py>,
    other_points: Ids<'py>,
    w_own: Ids<'py>,
    w_other: Ids<'py>,
    depth: u64,
    rows0: &Bound<'py, PyAny>,
    rows1: &Bound<'py, PyAny>,
    first: PyReadonlyArray1<'py, i64>,
    threads: usize,
) -> PyResult<CountsResult<'py>> {
    guarded(|| {
        let lists = lists(&queries, &other, &own, &own_points, &other_points)?;
        let copies = (contiguous("w_own", &w_own)?, contiguous("w_other", &w_other)?);
        let (first, options) = (contiguous("first", &first)?, Options::new().threads(threads));
        let both = Both::read(rows0, rows1)?;
        let work = lists.ids.len() + lists.own_ids.len();
        let counts = match &both {
            Both::Single(both) => {
                let rows = rows(both, first)?;
                let count =
                    |stop: &_| walk::ball_counts(&lists, copies, depth, &rows, &options.stop(stop));
                interruptible(py, work, count)
            }
            Both::Double(both) => {
                let rows = rows(both, first)?;
                let count =
                    |stop: &_| walk::ball_counts(&lists, copies, depth, &rows, &options.stop(stop));
                interruptible(py, work, count)
            }
        }?;
        let (n, j) = (PyArray1::from_vec(py, counts.n), PyArray1::from_vec(py, counts.j));
        let whole = PyArray1::from_vec(py, counts.whole);
        Ok((n, j, whole, counts.again.run_outs, counts.again.rescans))
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn ball_replicates<'py>(
    py: Python<'py>,
    queries: Ids<'py>,
    other: Other<'py>,
    own: Own<'py>,
    own_points: Ids<'py>,
    other_points: Ids<'py>,
    atoms: Ids<'py>,
    w_own: PyReadonlyArray2<'py, u32>,
    w_other: PyReadonlyArray2<'py, u32>,
    depth: u64,
    alphas: PyReadonlyArray1<'py, f64>,
    rows0: &Bound<'py, PyAny>,
    rows1: &Bound<'py, PyAny>,
    first: PyReadonlyArray1<'py, i64>,
    threads: usize,
) -> PyResult<(Bound<'py, PyArray2<f64>>, u64, u64)> {
    guarded(|| {
        let lists = lists(&queries, &other, &own, &own_points, &other_points)?;
        let (first, options) = (contiguous("first", &first)?, Options::new().threads(threads));
        let (atoms, alphas) = (contiguous("atoms", &atoms)?, contiguous("alphas", &alphas)?);
        for (name, weights) in [("w_own", &w_own), ("w_other", &w_other)] {
            check_columns(name, weights.shape()[1], first.len())?;
        }
        let copies = (by_rows("w_own", &w_own)?, by_rows("w_other", &w_other)?);
        let both = Both::read(rows0, rows1)?;
        let how = (depth, alphas);
        let work = (lists.ids.len() + lists.own_ids.len()).saturating_mul(w_own.shape()[0]);
        let found = match &both {
            Both::Single(both) => {
                let rows = rows(both, first)?;
                interruptible(py, work, |stop| {
                    walk::ball_replicates(&lists, atoms, copies, how, &rows, &options.stop(stop))
                })
            }
            Both::Double(both) => {
                let rows = rows(both, first)?;
                interruptible(py, work, |stop| {
                    walk::ball_replicates(&lists, atoms, copies, how, &rows, &options.stop(stop))
                })
            }
        }?;
        let shape = [found.values.len(), alphas.len()];
        let flat = found.values.into_iter().flat_map(|values| values.value).collect();
        let values = PyArray1::from_vec(py, flat).reshape(shape)?;
        Ok((values, found.again.run_outs, found.again.rescans))
    })
}

type LineResult<'py> = (Vector<'py>, Vector<'py>, [u64; 2], [f64; 2], [f64; 2], f64, Vector<'py>);

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn line_ball<'py>(
    py: Python<'py>,
    values0: PyReadonlyArray1<'py, f64>,
    values1: PyReadonlyArray1<'py, f64>,
    alphas: PyReadonlyArray1<'py, f64>,
    k: u64,
    labels0: Option<PyReadonlyArray1<'py, i64>>,
    units0: usize,
    labels1: Option<PyReadonlyArray1<'py, i64>>,
    units1: usize,
    weights0: Option<PyReadonlyArray2<'py, u32>>,
    weights1: Option<PyReadonlyArray2<'py, u32>>,
    threads: usize,
) -> PyResult<LineResult<'py>> {
    guarded(|| {
        let sets = [contiguous("values0", &values0)?, contiguous("values1", &values1)?];
        let alphas = contiguous("alphas", &alphas)?;
        let resampling = match (&labels0, &labels1, &weights0, &weights1) {
            (None, None, None, None) => Resampling::None,
            (Some(first), Some(second), None, None) => Resampling::Groups(
                [contiguous("labels0", first)?, contiguous("labels1", second)?],
                [units0, units1],
            ),
            (None, None, Some(first), Some(second)) => {
                for (name, weights, set) in [("weights0", first, 0), ("weights1", second, 1)] {
                    check_columns(name, weights.shape()[1], sets[set].len())?;
                }
                Resampling::Weights([by_rows("weights0", first)?, by_rows("weights1", second)?])
            }
            _ => {
                let message = "labels and weights must be given for both sets, one kind of them";
                return Err(PyValueError::new_err(message));
            }
        };
        let options = Options::new().threads(threads);
        // Sorting takes some ten operations a row.
        let work = (sets[0].len() + sets[1].len()).saturating_mul(32);
        let line = interruptible(py, work, |stop| {
            line::line_ball(sets, alphas, k, resampling, &options.stop(stop))
        })?;
        let [first, second] = line.values;
        Ok((
            vector(py, [first.value, second.value].concat()),
            vector(py, [first.effective, second.effective].concat()),
            line.depth,
            line.unseen_share,
            line.atom_share,
            line.rows_per_atom,
            vector(py, line.replicates),
        ))
    })
}

fn check_columns(name: &str, columns: usize, expected: usize) -> PyResult<()> {
    if columns == expected {
        return Ok(());
    }
    let message = format!("{name} must have {expected} columns, got {columns}");
    Err(PyValueError::new_err(message))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(log_gamma_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(digamma, module)?)?;
    module.add_function(wrap_pyfunction!(ball_values, module)?)?;
    module.add_function(wrap_pyfunction!(ball_counts, module)?)?;
    module.add_function(wrap_pyfunction!(ball_replicates, module)?)?;
    module.add_function(wrap_pyfunction!(line_ball, module)?)
}
