//! Distances of random pairs after clipping.

use pyo3::prelude::*;

use super::detach::{guarded, interruptible};
use crate::Options;
use crate::mechanisms::Norm;
use crate::sensitivity::{Law, Pairs, beyond};

/// (name, spread): what an entry is drawn from; (norm, radius): the clip.
#[pyfunction]
fn pairs_beyond(
    py: Python<'_>,
    law: (String, f64),
    clip: (String, f64),
    dim: usize,
    pairs: u64,
    seed: u64,
    threads: usize,
) -> PyResult<u64> {
    guarded(|| {
        let (law, norm) = (Law::named(&law.0, law.1)?, Norm::named(&clip.0)?);
        let all = Pairs::new(law, (norm, clip.1), dim, seed)?;
        let options = Options::new().threads(threads);
        let draws = usize::try_from(pairs).unwrap_or(usize::MAX).saturating_mul(2 * dim);
        interruptible(py, draws, |stop| beyond(&all, pairs, &options.stop(stop)))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MOST_PAIR_ENTRIES", crate::sensitivity::LARGEST_DIM)?;
    module.add_function(wrap_pyfunction!(pairs_beyond, module)?)
}
