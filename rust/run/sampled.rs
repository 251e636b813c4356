//! The sampled route: outputs are computed, compared and forgotten.

use std::sync::atomic::AtomicBool;

use super::bits::{Bits, Counter, put_bits};
use super::cyclic::Cyclic;
use super::job::{Job, Rows};
use super::output::Output;
use super::sweep::{Sink, Source, TILE, Tile, Tiles, ahead, sweep_values};
use crate::events::{Counted, Vote};
use crate::mechanisms::Draw;
use crate::simd::Simd;
use crate::simd::kernel::Kernel;

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

    /// Lanes whose output votes for x'.
    ///
    /// # Safety
    ///
    /// `coordinate` is below the dimension.
    #[inline(always)]
    unsafe fn votes<S: Simd>(&self, simd: S, coordinate: usize, output: S::F) -> S::M {
        // SAFETY: the caller vouches for the draw and the coordinate.
        unsafe {
            let sign = simd.load(self.sign.at(coordinate));
            let towards = simd.float(simd.xor(simd.bits(output), sign));
            simd.gef(towards, simd.loadf(self.threshold.at(coordinate)))
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
    unsafe fn put(&mut self, simd: S, draw: usize, coordinate: usize, noise: S::F) {
        // SAFETY: the caller vouches for the draw and the coordinate.
        unsafe {
            let output = self.output.of(simd, coordinate, noise);
            let votes = if SAME {
                // The branch is the same for all draws; one way it saves an operation in 45.
                let threshold = simd.splatf(self.first.0);
                if self.first.1 == 0 {
                    simd.gef(output, threshold)
                } else {
                    let sign = simd.splat(self.first.1);
                    simd.gef(simd.float(simd.xor(simd.bits(output), sign)), threshold)
                }
            } else {
                self.compare.votes(simd, coordinate, output)
            };
            put_bits::<S>(self.bits, draw, simd.mask(votes));
            if NAN {
                put_bits::<S>(self.nan, draw, simd.mask(simd.nanf(output)));
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
    pub(super) stop: &'a AtomicBool,
}

impl<N: Draw, const SAME: bool> Kernel for CountOutputs<'_, N, SAME> {
    type Result = Counted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Counted {
        let Self { noise, job, compare, rows, stop } = self;
        let output = Output::<SAME>::new(job);
        let first = (compare.threshold.first(), compare.sign.first());
        let mut counter = Counter::new(job.dim(), compare.need, N::NAN);
        let mut source = Source::new(job.stream(rows.block));
        let tiles = Tiles::begin(simd, &noise, &mut source, (rows, job.dim()), stop);
        for part in tiles {
            let (bits, nan) = (&mut counter.bits, &mut counter.nan_bits);
            let (place, steps) = ((part.origin, job.dim()), part.steps);
            // SAFETY: the bits have room for a whole tile; a part has the steps and the origin of one.
            unsafe {
                if N::NAN {
                    let mut sink =
                        CompareOutputs::<true, SAME> { output, compare, first, bits, nan };
                    sweep_values(simd, &noise, &mut source, steps, place, &mut sink);
                } else {
                    let mut sink =
                        CompareOutputs::<false, SAME> { output, compare, first, bits, nan };
                    sweep_values(simd, &noise, &mut source, steps, place, &mut sink);
                }
            }
            counter.take(part);
        }
        counter.counted()
    }
}

/// Counts rows of outputs made elsewhere.
pub(super) struct CountRows<'a> {
    pub(super) outputs: &'a [f64],
    pub(super) compare: &'a Compare,
    pub(super) dim: usize,
    pub(super) stop: &'a AtomicBool,
}

impl Kernel for CountRows<'_> {
    type Result = Counted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Counted {
        let Self { outputs, compare, dim, stop } = self;
        let rows = Rows { block: 0, first: 0, end: (outputs.len() / dim) as u64 };
        let mut counter = Counter::new(dim, compare.need, true);
        let mut rest = Tile([0.0; TILE]);
        for part in Tiles::new((rows, dim), 1, stop) {
            let mut from = &outputs[part.first_draw..part.first_draw + part.to];
            if from.len() < TILE {
                // The last vector may reach beyond the outputs; its bits there are not counted.
                rest.0[..from.len()].copy_from_slice(from);
                from = &rest.0;
            }
            let mut coordinate = part.origin;
            for draw in (0..part.to).step_by(S::WIDTH) {
                debug_assert!(draw + S::WIDTH <= from.len());
                // SAFETY: `from` is a whole tile, and `coordinate` below the dimension.
                unsafe {
                    let output = simd.loadf(from.as_ptr().add(draw));
                    let votes = compare.votes(simd, coordinate, output);
                    put_bits::<S>(&mut counter.bits, draw, simd.mask(votes));
                    put_bits::<S>(&mut counter.nan_bits, draw, simd.mask(simd.nanf(output)));
                }
                coordinate = ahead(coordinate, S::WIDTH % dim, dim);
            }
            counter.take(part);
        }
        counter.counted()
    }
}
