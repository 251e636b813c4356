//! Which draws are made: a mechanism, an input, and the name of a stream.

use super::cyclic::Cyclic;
use crate::error::Error;
use crate::mechanisms::Mechanism;
use crate::random::{Purpose, Stream};

/// Draws of one mechanism on one input: everything that fixes them.
#[derive(Clone, Debug)]
pub struct Job {
    pub(super) mechanism: Mechanism,
    pub(super) centre: Cyclic<f64>,
    /// Seed of the whole run.
    pub seed: u64,
    /// What the draws are for.
    pub purpose: Purpose,
    /// 0: draws on x; 1: draws on x'.
    pub side: u8,
    /// Trials in a block; part of what repeats a result.
    pub block: u64,
}

impl Job {
    /// A job on input `x`, a point of dimension at least 1.
    ///
    /// # Errors
    ///
    /// An empty input or one that is not finite; a block of no trials, or of more draws than fit
    /// in memory's addresses.
    pub fn new(
        mechanism: Mechanism,
        x: &[f64],
        (seed, purpose, side): (u64, Purpose, u8),
        block: u64,
    ) -> Result<Self, Error> {
        let centre = Cyclic::new(&mechanism.centre(x)?);
        let most = (isize::MAX.unsigned_abs() / x.len()) as u64;
        if block == 0 || block > most {
            return Err(Error::invalid("block", format!("from 1 to {most}"), block));
        }
        Ok(Self { mechanism, centre, seed, purpose, side, block })
    }

    /// Entries of an output.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.centre.period
    }

    /// Row ranges (first, end) by block, for the trials `start..stop`.
    pub(super) fn blocks(
        &self,
        start: u64,
        stop: u64,
    ) -> impl ExactSizeIterator<Item = Rows> + Send + use<> {
        let block = self.block;
        let count = if start < stop { (stop - 1) / block - start / block + 1 } else { 0 };
        (0..count as usize).map(move |index| {
            let number = start / block + index as u64;
            Rows {
                block: number,
                first: start.saturating_sub(number * block),
                end: (stop - number * block).min(block),
            }
        })
    }

    /// Whether all coordinates are alike and nothing is done after the noise.
    pub(super) fn same(&self) -> bool {
        self.centre.uniform() && self.mechanism.factor == 1.0
    }

    pub(super) fn stream(&self, block: u64) -> Stream {
        Stream::new(self.seed, self.purpose, self.side, block)
    }
}

/// Rows `first..end` of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) block: u64,
    pub(super) first: u64,
    pub(super) end: u64,
}
