//! Outputs, and arrays filled with them.

use std::sync::atomic::AtomicBool;

use super::cyclic::Cyclic;
use super::job::{Job, Rows};
use super::sweep::{Sink, Source, TILE, Tile, Tiles, sweep_values};
use crate::mechanisms::Draw;
use crate::simd::Simd;
use crate::simd::kernel::Kernel;

/// (centre + noise) * factor, the one place where an output is made.
///
/// `SAME` promises that all coordinates are alike and the factor is 1, which saves a load, a
/// product and keeping track of coordinates; the results are the same.
#[derive(Clone, Copy)]
pub(super) struct Output<'a, const SAME: bool> {
    centre: &'a Cyclic<f64>,
    first: f64,
    factor: f64,
}

impl<'a, const SAME: bool> Output<'a, SAME> {
    pub(super) fn new(job: &'a Job) -> Self {
        let (centre, factor) = (&job.centre, job.mechanism.factor());
        Self { centre, first: centre.first(), factor }
    }

    /// # Safety
    ///
    /// `coordinate` is below the dimension.
    #[inline(always)]
    pub(super) unsafe fn of<S: Simd>(&self, simd: S, coordinate: usize, noise: S::F) -> S::F {
        if SAME {
            simd.addf(simd.splatf(self.first), noise)
        } else {
            // SAFETY: the caller vouches for the coordinate, from which on there is a vector.
            let centre = unsafe { simd.loadf(self.centre.at(coordinate)) };
            simd.mulf(simd.addf(centre, noise), simd.splatf(self.factor))
        }
    }
}

/// Stores outputs.
struct Store<'a, const SAME: bool> {
    output: Output<'a, SAME>,
    to: *mut f64,
}

impl<S: Simd, const SAME: bool> Sink<S, S::F> for Store<'_, SAME> {
    #[inline(always)]
    unsafe fn put(&mut self, simd: S, draw: usize, coordinate: usize, noise: S::F) {
        // SAFETY: `to` has room for a whole tile; the caller vouches for the draw and the coordinate.
        unsafe {
            simd.storef(self.to.add(draw), self.output.of(simd, coordinate, noise));
        }
    }
}

/// An output type: f64, or f32 rounded once from it.
///
/// No other crate can add one, for a block is written through what the type says of its memory:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Liar;
/// impl dpcore::run::Real for Liar {}
/// ```
pub trait Real: sealed::Rounded {}

impl Real for f64 {}
impl Real for f32 {}

mod sealed {
    pub trait Rounded: Copy + Send + Sync {
        /// What numpy calls it.
        const NAME: &'static str;
        /// The largest number that does not become infinite.
        const LARGEST: f64;
        /// Rounds.
        fn from_f64(value: f64) -> Self;
        /// The same memory, where no conversion is needed.
        fn as_f64(slice: &mut [Self]) -> Option<&mut [f64]>;
    }
}

impl sealed::Rounded for f64 {
    const NAME: &'static str = "float64";
    const LARGEST: f64 = f64::INFINITY;
    fn from_f64(value: f64) -> Self {
        value
    }
    fn as_f64(slice: &mut [Self]) -> Option<&mut [f64]> {
        Some(slice)
    }
}

impl sealed::Rounded for f32 {
    const NAME: &'static str = "float32";
    const LARGEST: f64 = f32::MAX as f64;
    #[allow(clippy::cast_possible_truncation)]
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn as_f64(_: &mut [Self]) -> Option<&mut [f64]> {
        None
    }
}

/// Fills one block's rows.
pub(super) struct FillBlock<'a, N, T, const SAME: bool> {
    pub(super) noise: N,
    pub(super) job: &'a Job,
    pub(super) rows: Rows,
    pub(super) out: &'a mut [T],
    pub(super) stop: &'a AtomicBool,
}

impl<N: Draw, T: Real, const SAME: bool> Kernel for FillBlock<'_, N, T, SAME> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { noise, job, rows, out, stop } = self;
        let dim = job.dim();
        let output = Output::<SAME>::new(job);
        let skip = rows.first as usize * dim;
        let (mut source, mut buffer) = (Source::new(job.stream(rows.block)), Tile([0.0; TILE]));
        let tiles = Tiles::begin(simd, &noise, &mut source, (rows, dim), stop);
        for part in tiles {
            let used = (part.first_draw + part.from).saturating_sub(skip)
                ..(part.first_draw + part.to).saturating_sub(skip);
            let whole = part.from == 0 && part.to == TILE;
            let direct = T::as_f64(&mut out[used.clone()]).filter(|_| whole);
            let is_buffer = direct.is_none();
            let to = direct.map_or(buffer.0.as_mut_ptr(), <[f64]>::as_mut_ptr);
            let (mut store, place) = (Store { output, to }, (part.origin, dim));
            // SAFETY: `to` has room for a whole tile; a part has the steps and the origin of one.
            unsafe {
                sweep_values(simd, &noise, &mut source, part.steps, place, &mut store);
            }
            if is_buffer {
                let values = &buffer.0[part.from..part.to];
                for (slot, &value) in out[used].iter_mut().zip(values) {
                    *slot = T::from_f64(value);
                }
            }
        }
    }
}
