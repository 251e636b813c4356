//! The one loop over random words, tile by tile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::job::Rows;
use crate::events::TILE_WORDS;
use crate::mechanisms::{Draw, Monotone};
use crate::random::{LANES, Stream};
use crate::simd::Simd;

/// Draws in a tile.
pub(super) const TILE: usize = 64 * TILE_WORDS;

/// Where a sweep's items go: number of the first draw in the tile, its coordinate, the item.
pub(super) trait Sink<S: Simd, I> {
    /// # Safety
    ///
    /// `draw + S::WIDTH` is at most [`TILE`], `coordinate` is below the dimension.
    unsafe fn put(&mut self, simd: S, draw: usize, coordinate: usize, item: I);
}

/// A tile's words, or outputs, in the first-level cache.
#[repr(align(64))]
pub(super) struct Tile<T>(pub(super) [T; TILE]);

/// Draws `steps` steps of all lanes and gives their values to `sink`.
///
/// `origin` is the coordinate of the first draw. Going through the lanes group by group keeps the
/// generator's state in registers for a whole tile. First all words, then all values: a value's
/// chain of operations is about 100 cycles long, and the scheduler holds more chains at once when
/// the generator's instructions do not stand between them (3 % faster on AVX-512, 13 % on AVX2).
///
/// # Safety
///
/// `steps` is at most [`TILE`] / [`LANES`], a multiple of the noise's steps; `dim` is the sink's
/// dimension and `origin` below it.
#[inline(always)]
pub(super) unsafe fn sweep_values<S: Simd, N: Draw>(
    simd: S,
    noise: &N,
    stream: &mut Stream,
    words: &mut Tile<u64>,
    steps: usize,
    (origin, dim): (usize, usize),
    sink: &mut impl Sink<S, S::F>,
) {
    let to = words.0.as_mut_ptr();
    // SAFETY: the caller vouches for the steps, so that all draws lie in the tile, and the coordinates.
    unsafe {
        for group in (0..LANES).step_by(S::WIDTH) {
            let mut lanes = stream.load(simd, group);
            for step in 0..steps {
                simd.store(to.add(step * LANES + group), noise.word(&mut lanes));
            }
            stream.store(group, lanes);
        }
        let (mut coordinate, step, width) = (origin, LANES % dim, S::WIDTH % dim);
        for first in (0..steps).step_by(N::STEPS) {
            for lane in (0..LANES).step_by(S::WIDTH) {
                let at = first * LANES + lane;
                let second = if N::STEPS == 2 { at + LANES } else { at };
                let values = noise.values(simd, [simd.load(to.add(at)), simd.load(to.add(second))]);
                sink.put(simd, at, coordinate, values[0]);
                if N::STEPS == 2 {
                    sink.put(simd, second, ahead(coordinate, step, dim), values[1]);
                }
                coordinate = ahead(coordinate, width, dim);
            }
            if N::STEPS == 2 {
                coordinate = ahead(coordinate, step, dim);
            }
        }
    }
}

/// Draws `steps` steps of all lanes and gives their integers to `sink`.
///
/// # Safety
///
/// As for [`sweep_values`].
#[inline(always)]
pub(super) unsafe fn sweep_keys<S: Simd, N: Monotone>(
    simd: S,
    noise: &N,
    stream: &mut Stream,
    steps: usize,
    (origin, dim): (usize, usize),
    sink: &mut impl Sink<S, (S::U, S::M)>,
) {
    let advance = LANES % dim;
    // SAFETY: as for `sweep_values`.
    unsafe {
        for group in (0..LANES).step_by(S::WIDTH) {
            let mut coordinate = ahead(origin, group % dim, dim);
            let mut lanes = stream.load(simd, group);
            for step in 0..steps {
                let word = noise.word(&mut lanes);
                sink.put(simd, step * LANES + group, coordinate, noise.ordered(simd, word));
                coordinate = ahead(coordinate, advance, dim);
            }
            stream.store(group, lanes);
        }
    }
}

/// The coordinate `by` draws further on, where `by` is below `dim`.
#[inline(always)]
pub(super) fn ahead(coordinate: usize, by: usize, dim: usize) -> usize {
    let next = coordinate + by;
    if next >= dim { next - dim } else { next }
}

/// The part of a tile that a block's rows need: tiles are visited in order.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Steps of all lanes.
    pub(super) steps: usize,
    /// The draws `from..to` of the tile are used.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Coordinate of the first draw.
    pub(super) origin: usize,
    /// Number of the first draw in the block.
    pub(super) first_draw: usize,
}

/// The tiles of a block's first `end` rows, until `stop` is set; its first `first` rows are drawn
/// but not used.
///
/// An iterator and not a function that calls back: a closure does not inherit the instruction
/// set of its caller, and a large one is not inlined.
pub(super) struct Tiles<'a> {
    skip: usize,
    draws: usize,
    dim: usize,
    steps_at_once: usize,
    done: usize,
    origin: usize,
    advance: usize,
    stop: &'a AtomicBool,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(
        (rows, dim): (Rows, usize),
        steps_at_once: usize,
        stop: &'a AtomicBool,
    ) -> Self {
        let (skip, draws) = (rows.first as usize * dim, rows.end as usize * dim);
        Self { skip, draws, dim, steps_at_once, done: 0, origin: 0, advance: TILE % dim, stop }
    }

    /// The tiles from the one on that has the first row used; of those before it only the words
    /// are drawn.
    #[inline(always)]
    pub(super) fn begin<S: Simd, N: Draw>(
        simd: S,
        noise: &N,
        stream: &mut Stream,
        place: (Rows, usize),
        stop: &'a AtomicBool,
    ) -> Self {
        let mut tiles = Self::new(place, N::STEPS, stop);
        while tiles.done + TILE <= tiles.skip {
            if tiles.next().is_none() {
                break;
            }
            for group in (0..LANES).step_by(S::WIDTH) {
                let mut lanes = stream.load(simd, group);
                for _ in 0..TILE / LANES {
                    noise.word(&mut lanes);
                }
                stream.store(group, lanes);
            }
        }
        tiles
    }
}

impl Iterator for Tiles<'_> {
    type Item = Part;
    #[inline(always)]
    fn next(&mut self) -> Option<Part> {
        // A tile takes microseconds, so that a stop is heard whatever the size of a block.
        if self.done >= self.draws || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let (done, to) = (self.done, TILE.min(self.draws - self.done));
        let origin = self.origin;
        self.done += to;
        self.origin = ahead(origin, self.advance, self.dim);
        Some(Part {
            steps: to.div_ceil(LANES).next_multiple_of(self.steps_at_once),
            from: self.skip.saturating_sub(done).min(to),
            to,
            origin,
            first_draw: done,
        })
    }
}
