//! The one loop over random words, tile by tile.

use super::Rows;
use crate::events::TILE_WORDS;
use crate::mechanisms::{Draw, Monotone};
use crate::random::{LANES, Lanes, Stream};
use crate::simd::Simd;

/// Draws in a tile.
pub(super) const TILE: usize = 64 * TILE_WORDS;

/// What a sweep takes from the lanes: values of a noise, or the integers behind them.
pub(super) trait Source: Copy {
    const STEPS: usize;
    type Item<S: Simd>: Copy;
    unsafe fn draw<S: Simd>(&self, lanes: &mut Lanes<S>) -> [Self::Item<S>; 2];
}

#[derive(Clone, Copy)]
pub(super) struct Values<N>(pub(super) N);

impl<N: Draw> Source for Values<N> {
    const STEPS: usize = N::STEPS;
    type Item<S: Simd> = S::F;
    #[inline(always)]
    unsafe fn draw<S: Simd>(&self, lanes: &mut Lanes<S>) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe { self.0.draw(lanes) }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Keys<N>(pub(super) N);

impl<N: Monotone> Source for Keys<N> {
    const STEPS: usize = 1;
    type Item<S: Simd> = (S::U, S::M);
    #[inline(always)]
    unsafe fn draw<S: Simd>(&self, lanes: &mut Lanes<S>) -> [(S::U, S::M); 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe { [self.0.key(lanes); 2] }
    }
}

/// Where a sweep's items go: number of the first draw in the tile, its coordinate, the item.
pub(super) trait Sink<S: Simd, I> {
    unsafe fn put(&mut self, draw: usize, coordinate: usize, item: I);
}

/// Draws `steps` steps of all lanes, a group of `S::WIDTH` lanes at a time.
///
/// `origin` is the coordinate of the first draw. Going through the lanes group by group and not
/// step by step keeps the generator's state in registers for a whole tile.
///
/// # Safety
///
/// The CPU must have the instruction set `S`; `sink` must be able to take a whole tile.
#[inline(always)]
pub(super) unsafe fn sweep<S: Simd, D: Source>(
    source: &D,
    stream: &mut Stream,
    steps: usize,
    (origin, dim): (usize, usize),
    sink: &mut impl Sink<S, D::Item<S>>,
) {
    let advance = LANES % dim;
    for group in 0..LANES / S::WIDTH {
        let mut coordinate = (origin + group * S::WIDTH) % dim;
        // SAFETY: the caller vouches for the CPU and the sink; the groups are the stream's own.
        unsafe {
            let mut lanes: Lanes<S> = stream.load(group);
            for step in (0..steps).step_by(D::STEPS) {
                let items = source.draw(&mut lanes);
                for (next, &item) in items.iter().enumerate().take(D::STEPS) {
                    sink.put((step + next) * LANES + group * S::WIDTH, coordinate, item);
                    coordinate += advance;
                    coordinate -= if coordinate >= dim { dim } else { 0 };
                }
            }
            stream.store(group, lanes);
        }
    }
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

/// The tiles of a block's first `end` rows; its first `first` rows are drawn but not used.
///
/// An iterator and not a function that calls back: a closure does not inherit the instruction
/// set of its caller, and a large one is not inlined.
pub(super) struct Tiles {
    skip: usize,
    draws: usize,
    dim: usize,
    steps_at_once: usize,
    done: usize,
}

impl Tiles {
    pub(super) fn new(rows: Rows, dim: usize, steps_at_once: usize) -> Self {
        let (skip, draws) = (rows.first as usize * dim, rows.end as usize * dim);
        Self { skip, draws, dim, steps_at_once, done: 0 }
    }
}

impl Iterator for Tiles {
    type Item = Part;
    #[inline(always)]
    fn next(&mut self) -> Option<Part> {
        if self.done >= self.draws {
            return None;
        }
        let (done, to) = (self.done, TILE.min(self.draws - self.done));
        self.done += to;
        Some(Part {
            steps: to.div_ceil(LANES).next_multiple_of(self.steps_at_once),
            from: self.skip.saturating_sub(done).min(to),
            to,
            origin: done % self.dim,
            first_draw: done,
        })
    }
}
