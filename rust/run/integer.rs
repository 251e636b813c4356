//! The integer route: the random integers themselves are compared.

use std::sync::atomic::AtomicBool;

use super::bits::{Bits, Counter, put_bits};
use super::job::{Job, Rows};
use super::limits::Limits;
use super::sweep::{Sink, Source, Tiles, sweep_keys};
use crate::events::Counted;
use crate::mechanisms::Monotone;
use crate::simd::Simd;
use crate::simd::kernel::Kernel;

/// Compares integers. `FLIP` says whether some are flipped, `SAME` that all coordinates are alike
/// and none is.
struct CompareKeys<'a, const NAN: bool, const FLIP: bool, const SAME: bool> {
    limits: &'a Limits,
    first: u64,
    bits: &'a mut Bits,
    nan: &'a mut Bits,
}

impl<S: Simd, const NAN: bool, const FLIP: bool, const SAME: bool> Sink<S, (S::U, S::M)>
    for CompareKeys<'_, NAN, FLIP, SAME>
{
    #[inline(always)]
    unsafe fn put(
        &mut self,
        simd: S,
        draw: usize,
        coordinate: usize,
        (word, number): (S::U, S::M),
    ) {
        // SAFETY: the caller vouches for the draw and the coordinate.
        unsafe {
            let word = match &self.limits.flip {
                Some(flip) if FLIP => simd.xor(word, simd.load(flip.at(coordinate))),
                _ => word,
            };
            let limit = if SAME {
                simd.splat(self.first)
            } else {
                simd.load(self.limits.limit.at(coordinate))
            };
            let mut vote = simd.gt(word, limit);
            if NAN {
                vote = simd.andm(vote, number);
                put_bits::<S>(self.nan, draw, simd.mask(simd.notm(number)));
            }
            put_bits::<S>(self.bits, draw, simd.mask(vote));
        }
    }
}

/// Counts one block's votes by its integers.
pub(super) struct CountKeys<'a, N> {
    pub(super) noise: N,
    pub(super) job: &'a Job,
    pub(super) limits: &'a Limits,
    pub(super) rows: Rows,
    pub(super) stop: &'a AtomicBool,
}

impl<N: Monotone> Kernel for CountKeys<'_, N> {
    type Result = Counted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Counted {
        let Self { noise, job, limits, rows, stop } = self;
        let first = limits.limit.first();
        let same = limits.limit.uniform() && limits.flip.is_none();
        let mut counter = Counter::new(job.dim(), limits.need, N::NAN);
        let mut source = Source::new(job.stream(rows.block));
        let tiles = Tiles::begin(simd, &noise, &mut source, (rows, job.dim()), stop);
        for part in tiles {
            let (bits, nan) = (&mut counter.bits, &mut counter.nan_bits);
            let place = (part.origin, job.dim());
            // SAFETY: the bits have room for a whole tile; a part has the steps and the origin of one.
            unsafe {
                if N::NAN {
                    let mut sink = CompareKeys::<true, true, false> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut source, part.steps, place, &mut sink);
                } else if same {
                    let mut sink = CompareKeys::<false, false, true> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut source, part.steps, place, &mut sink);
                } else {
                    let mut sink = CompareKeys::<false, true, false> { limits, first, bits, nan };
                    sweep_keys(simd, &noise, &mut source, part.steps, place, &mut sink);
                }
            }
            counter.take(part);
        }
        let mut counted = counter.counted();
        if !limits.reached_is_x_prime {
            counted.votes = rows.end - rows.first - counted.votes;
        }
        counted
    }
}
