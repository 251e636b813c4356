//! The sampled route: outputs are computed, compared and forgotten.

use super::bits::{Bits, Counter, put_bits};
use super::cyclic::Cyclic;
use super::kernel::Kernel;
use super::output::Output;
use super::sweep::{Sink, Tiles, Values, sweep};
use super::{Job, Rows};
use crate::events::{Counted, Vote};
use crate::mechanisms::Draw;
use crate::simd::Simd;

/// What each coordinate's output is compared with, so that a bit is a vote for x'.
#[derive(Clone, Debug)]
pub(super) struct Compare {
    // output >= t, or -output >= -t; NaN where the coordinate does not vote.
    threshold: Cyclic<f64>,
    sign: Cyclic<u64>,
    need: i64,
}

impl Compare {
    pub(super) fn new(vote: &Vote<'_>) -> Self {
        let entries = || (0..vote.dim()).map(|i| vote.entry(i));
        let threshold = entries().map(|(threshold, towards)| match towards {
            0 => f64::NAN,
            1 => threshold,
            _ => -threshold,
        });
        let sign = entries().map(|(_, towards)| if towards < 0 { 1 << 63 } else { 0 });
        Self {
            threshold: Cyclic::new(&threshold.collect::<Vec<_>>()),
            sign: Cyclic::new(&sign.collect::<Vec<_>>()),
            need: vote.majority(),
        }
    }

    /// Whether all coordinates are compared alike.
    pub(super) fn uniform(&self) -> bool {
        self.threshold.uniform() && self.sign.uniform()
    }
}

/// Compares outputs. `NAN` says whether NaN entries are marked too, `SAME` that all coordinates
/// are alike.
struct CompareOutputs<'a, const NAN: bool, const SAME: bool> {
    output: Output<'a, SAME>,
    compare: &'a Compare,
    // The first coordinate's threshold and sign.
    first: (f64, u64),
    bits: &'a mut Bits,
    nan: &'a mut Bits,
}

impl<S: Simd, const NAN: bool, const SAME: bool> Sink<S, S::F> for CompareOutputs<'_, NAN, SAME> {
    #[inline(always)]
    unsafe fn put(&mut self, draw: usize, coordinate: usize, noise: S::F) {
        // SAFETY: the caller vouches for the CPU; `at` has a vector's worth of values.
        unsafe {
            let output = self.output.of::<S>(coordinate, noise);
            let (threshold, sign) = if SAME {
                (S::splatf(self.first.0), S::splat(self.first.1))
            } else {
                let compare = self.compare;
                (S::loadf(compare.threshold.at(coordinate)), S::load(compare.sign.at(coordinate)))
            };
            let towards = S::float(S::xor(S::bits(output), sign));
            put_bits::<S>(self.bits, draw, S::mask(S::gef(towards, threshold)));
            if NAN {
                put_bits::<S>(self.nan, draw, S::mask(S::nanf(output)));
            }
        }
    }
}

/// Counts one block's votes by its outputs.
pub(super) struct CountOutputs<'a, N, const SAME: bool> {
    pub(super) noise: N,
    pub(super) job: &'a Job,
    pub(super) compare: &'a Compare,
    pub(super) rows: Rows,
}

impl<N: Draw, const SAME: bool> Kernel for CountOutputs<'_, N, SAME> {
    type Result = Counted;
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Counted {
        let Self { noise, job, compare, rows } = self;
        let output = Output::<SAME>::new(job);
        let first = (compare.threshold.first(), compare.sign.first());
        let mut counter = Counter::new(job.dim(), compare.need, N::NAN);
        let mut stream = job.stream(rows.block);
        for part in Tiles::new(rows, job.dim(), N::STEPS) {
            let (bits, nan) = (&mut counter.bits, &mut counter.nan_bits);
            let (source, place) = (Values(noise), (part.origin, job.dim()));
            // SAFETY: the caller vouches for the CPU; the bits have room for a whole tile.
            unsafe {
                if N::NAN {
                    let mut sink =
                        CompareOutputs::<true, SAME> { output, compare, first, bits, nan };
                    sweep::<S, _>(&source, &mut stream, part.steps, place, &mut sink);
                } else {
                    let mut sink =
                        CompareOutputs::<false, SAME> { output, compare, first, bits, nan };
                    sweep::<S, _>(&source, &mut stream, part.steps, place, &mut sink);
                }
            }
            counter.take(part);
        }
        counter.counted()
    }
}
