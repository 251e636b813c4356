//! Which draws are made: a mechanism, an input, and the name of a stream.

use super::cyclic::Cyclic;
use crate::error::Error;
use crate::mechanisms::Mechanism;
use crate::random::{Purpose, Side, Stream};

/// Numbers in a block where nothing else is asked for.
const BLOCK_NUMBERS: usize = 1 << 17;

/// Draws of one mechanism on one input: everything that fixes them.
///
/// Trial i of a job is row `i % block` of block `i / block`, and a block is a stream of its own,
/// named by seed, purpose, side and number; nothing else changes a bit of it.
///
/// ```
/// use dpcore::{Error, Job, Laplace, Mechanism, Options, Purpose, Side, run};
///
/// let mechanism = Mechanism::new(Laplace::new(2.0)?);
/// let job = Job::new(mechanism, &[0.0, 1.0])?.seed(7).purpose(Purpose::Count).side(Side::XPrime);
/// let mut out = [[0.0; 2]; 5];
/// run::sample(&job, out.as_flattened_mut(), 0, &Options::new())?;
/// // The same rows, whatever is drawn at once.
/// let mut last = [0.0; 2];
/// run::sample(&job, &mut last, 4, &Options::new().threads(1))?;
/// assert_eq!(last, out[4]);
///
/// let error = Job::new(mechanism, &[f64::NAN]).unwrap_err();
/// assert_eq!(error.to_string(), "x must be finite in every entry, got NaN");
/// # Ok::<(), Error>(())
/// ```
///
/// What was checked stays as it is:
///
/// ```compile_fail,E0616
/// # let mechanism = dpcore::Mechanism::new(dpcore::Identity);
/// let mut job = dpcore::Job::new(mechanism, &[0.0]).unwrap();
/// job.block = 0;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Job {
    pub(super) mechanism: Mechanism,
    pub(super) centre: Cyclic<f64>,
    seed: u64,
    purpose: Purpose,
    side: Side,
    block: u64,
}

impl Job {
    /// Draws on input `x`, a point of dimension at least 1: seed 0, for [`Purpose::Sample`], on
    /// [`Side::X`], in blocks of 2^17 numbers (at least one trial).
    ///
    /// # Errors
    ///
    /// An empty input or one that is not finite.
    pub fn new(mechanism: Mechanism, x: &[f64]) -> Result<Self, Error> {
        let centre = Cyclic::new(&mechanism.centre(x)?);
        let block = (BLOCK_NUMBERS / x.len()).max(1) as u64;
        Ok(Self { mechanism, centre, seed: 0, purpose: Purpose::Sample, side: Side::X, block })
    }

    /// With another seed of the whole run.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// For another purpose.
    pub fn purpose(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }

    /// Draws on another side of the pair.
    pub fn side(self, side: Side) -> Self {
        Self { side, ..self }
    }

    /// With so many trials in a block, which are part of what repeats a result.
    ///
    /// # Errors
    ///
    /// A block of no trials, or of more draws than fit in memory's addresses.
    pub fn block(self, block: u64) -> Result<Self, Error> {
        let most = (isize::MAX.unsigned_abs() / self.dim()) as u64;
        if block == 0 || block > most {
            return Err(Error::invalid("block", format!("from 1 to {most}"), block));
        }
        Ok(Self { block, ..self })
    }

    /// Entries of an output.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.centre.period
    }

    /// Trials in a block.
    #[must_use]
    pub fn trials_per_block(&self) -> u64 {
        self.block
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

    /// No output is larger in magnitude.
    pub(super) fn reach(&self) -> f64 {
        let largest = (0..self.dim()).fold(0.0_f64, |most, i| most.max(self.centre.get(i).abs()));
        (largest + self.mechanism.noise().reach()) * self.mechanism.factor()
    }

    /// Whether all coordinates are alike and nothing is done after the noise.
    pub(super) fn same(&self) -> bool {
        self.centre.uniform() && self.mechanism.factor() == 1.0
    }

    pub(super) fn stream(&self, block: u64) -> Stream {
        Stream::new(self.seed, self.purpose, self.side as u8, block)
    }
}

/// Rows `first..end` of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) block: u64,
    pub(super) first: u64,
    pub(super) end: u64,
}
