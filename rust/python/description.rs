//! Mechanisms and draws as Python describes them.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::convert::contiguous;
use crate::{Clip, Error, Job, Mechanism, Noise, Norm, Purpose, Side};

/// A mechanism as Python describes it: class name, numbers, mode, clip, factor.
#[derive(FromPyObject)]
pub(super) struct Description(String, Vec<f64>, String, Option<(String, f64)>, f64);

impl Description {
    pub(super) fn noise(&self) -> Result<Noise, Error> {
        Noise::named(&self.0, &self.1, &self.2)
    }

    fn mechanism(&self) -> Result<Mechanism, Error> {
        let mechanism = Mechanism::new(self.noise()?).scaled(self.4)?;
        Ok(match &self.3 {
            Some((norm, radius)) => mechanism.clipped(Clip::new(Norm::named(norm)?, *radius)?),
            None => mechanism,
        })
    }
}

/// (seed, purpose, side, trials per block): which draws.
#[derive(FromPyObject)]
pub(super) struct Draws(u64, u8, u8, u64);

impl Draws {
    pub(super) fn job(
        &self,
        description: &Description,
        x: &PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Job> {
        let purpose = match self.1 {
            0 => Purpose::Pilot,
            1 => Purpose::Selection,
            2 => Purpose::Count,
            3 => Purpose::Sample,
            4 => Purpose::Probe,
            5 => Purpose::Pairs,
            other => return Err(Error::invalid("purpose", "from 0 to 5", other).into()),
        };
        let side = match self.2 {
            0 => Side::X,
            1 => Side::XPrime,
            other => return Err(Error::invalid("side", "0 or 1", other).into()),
        };
        let job = Job::new(description.mechanism()?, contiguous("x", x)?)?;
        Ok(job.seed(self.0).purpose(purpose).side(side).block(self.3)?)
    }
}
