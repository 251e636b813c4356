//! Columns of numbers: grains, gaps and bins.

use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use super::convert::{by_rows, by_rows_mut, contiguous};
use super::detach::{detached, guarded};
use crate::Error;
use crate::columns::bins::{self, Bins};
use crate::columns::grains::{self, Grain, Sides};
use crate::columns::steps::{Cuts, classify};

type Vector<'py, T> = Bound<'py, PyArray1<T>>;

/// (bits, middles, absolutes) of columns.
#[derive(FromPyObject)]
struct Grains<'py>(
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
);

impl Grains<'_> {
    fn read(&self) -> PyResult<Vec<Grain>> {
        let bits = contiguous("bits", &self.0)?;
        let (middles, absolutes) =
            (contiguous("middles", &self.1)?, contiguous("absolutes", &self.2)?);
        check_length("middles", middles.len(), bits.len())?;
        check_length("absolutes", absolutes.len(), bits.len())?;
        let fields = bits.iter().zip(middles).zip(absolutes);
        Ok(fields.map(|((bits, middle), absolute)| Grain::new(*bits, *middle, *absolute)).collect())
    }
}

fn check_length(name: &'static str, length: usize, expected: usize) -> Result<(), Error> {
    if length == expected {
        return Ok(());
    }
    Err(Error::invalid(name, format!("of length {expected}"), length))
}

#[pyfunction]
fn steps_of<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    grain: (i64, f64, f64),
) -> PyResult<Vector<'py, i8>> {
    guarded(|| {
        let (values, mut steps) = (contiguous("values", &values)?, Vec::new());
        detached(py, || {
            classify(values, &Grain::new(grain.0, grain.1, grain.2), &mut steps);
            Ok(())
        })?;
        Ok(PyArray1::from_iter(py, steps.into_iter().map(|step| step as i8)))
    })
}

#[pyfunction]
fn cuts_of<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    grain: (i64, f64, f64),
) -> PyResult<Vector<'py, i64>> {
    guarded(|| {
        let (values, mut cuts) = (contiguous("values", &values)?, Cuts::default());
        detached(py, || {
            let grain = Grain::new(grain.0, grain.1, grain.2);
            cuts.find(values, &grain, &mut Vec::new());
            Ok(())
        })?;
        Ok(PyArray1::from_iter(py, cuts.iter().map(|place| place as i64)))
    })
}

#[pyfunction]
#[allow(clippy::type_complexity)]
fn bin_columns<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    ends: PyReadonlyArray1<'py, i64>,
    grains: Grains<'py>,
    bins: usize,
    threads: usize,
) -> PyResult<(Vector<'py, f64>, Vector<'py, i64>, Vector<'py, i64>)> {
    guarded(|| {
        let (values, grains) = (contiguous("values", &values)?, grains.read()?);
        let ends = read_places("ends", contiguous("ends", &ends)?)?;
        let work = || bins::bin_columns(values, &ends, &grains, bins, threads);
        let Bins { edges, sizes, symbols } = detached(py, work)?;
        let [sizes, symbols] = [sizes, symbols].map(|numbers| PyArray1::from_vec(py, numbers));
        Ok((PyArray1::from_vec(py, edges), sizes, symbols))
    })
}

/// Whole numbers that count or name something.
fn read_places(name: &'static str, places: &[i64]) -> Result<Vec<usize>, Error> {
    let read = |place: &i64| {
        usize::try_from(*place).map_err(|_| Error::invalid(name, "at least 0", place))
    };
    places.iter().map(read).collect()
}

#[pyfunction]
fn gather_columns<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    columns: PyReadonlyArray1<'py, i64>,
    differences: bool,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    guarded(|| {
        let (values, [size, width]) = (by_rows("rows", &rows)?, [rows.shape()[0], rows.shape()[1]]);
        let columns = read_places("columns", contiguous("columns", &columns)?)?;
        if let Some(column) = columns.iter().find(|column| **column >= width) {
            return Err(Error::invalid("columns", format!("below {width}"), column).into());
        }
        let out = PyArray2::zeros(py, [columns.len(), size], false);
        let mut filled = out.readwrite();
        let filled = by_rows_mut("out", &mut filled)?;
        detached(py, || {
            bins::gather(values, width, &columns, differences, filled);
            Ok(())
        })?;
        Ok(out)
    })
}

#[pyfunction]
fn measure_columns<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f64>,
    rows_prime: PyReadonlyArray2<'py, f64>,
    own: i64,
    threads: usize,
) -> PyResult<(Vector<'py, f64>, Vector<'py, bool>)> {
    guarded(|| {
        let columns = rows.shape()[1];
        check_length("rows_prime", rows_prime.shape()[1], columns)?;
        let sides = [by_rows("rows", &rows)?, by_rows("rows_prime", &rows_prime)?];
        let (middles, usual) = detached(py, || grains::measure(sides, columns, own, threads))?;
        Ok((PyArray1::from_vec(py, middles), PyArray1::from_vec(py, usual)))
    })
}

#[pyfunction]
fn judge_columns<'py>(
    py: Python<'py>,
    columns: PyReadonlyArray2<'py, f64>,
    columns_prime: PyReadonlyArray2<'py, f64>,
    are_floats: (bool, bool),
    own: i64,
    most: usize,
    threads: usize,
) -> PyResult<(Vector<'py, i64>, Vector<'py, f64>)> {
    guarded(|| {
        let count = columns.shape()[0];
        check_length("columns_prime", columns_prime.shape()[0], count)?;
        let rows = [columns.shape()[1], columns_prime.shape()[1]];
        let values = [by_rows("columns", &columns)?, by_rows("columns_prime", &columns_prime)?];
        let sides = Sides { values, rows, are_floats: are_floats.into(), own, most };
        let grains = detached(py, || grains::judge(&sides, count, threads))?;
        let bits = grains.iter().map(Grain::bits);
        let middles = grains.iter().map(Grain::middle);
        Ok((PyArray1::from_iter(py, bits), PyArray1::from_iter(py, middles)))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(steps_of, module)?)?;
    module.add_function(wrap_pyfunction!(cuts_of, module)?)?;
    module.add_function(wrap_pyfunction!(bin_columns, module)?)?;
    module.add_function(wrap_pyfunction!(gather_columns, module)?)?;
    module.add_function(wrap_pyfunction!(measure_columns, module)?)?;
    module.add_function(wrap_pyfunction!(judge_columns, module)?)
}
