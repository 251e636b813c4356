//! The one loop over random words, tile by tile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::job::Rows;
use crate::events::TILE_WORDS;
use crate::mechanisms::{Draw, Monotone};
use crate::random::{LANES, Stream};
use crate::simd::{Simd, WIDEST};

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

/// A block's stream, and the words drawn from it for a tile.
#[repr(align(64))]
pub(super) struct Source {
    // With room for a step more than a tile has.
    words: [u64; TILE + LANES],
    stream: Stream,
}

impl Source {
    #[allow(clippy::large_stack_arrays, reason = "a step more than a tile, which is at the limit")]
    pub(super) fn new(stream: Stream) -> Self {
        Self { words: [0; TILE + LANES], stream }
    }

    /// Draws the next `steps` words of each lane that the noise can use, step after step.
    ///
    /// Going through the lanes group by group keeps the generator's state in registers. No branch
    /// depends on which words the noise takes: each lane writes at a place of its own and moves on
    /// where its word was taken.
    ///
    /// # Panics
    ///
    /// `steps` is above [`TILE`] / [`LANES`].
    #[inline(always)]
    fn draw<S: Simd, N: Draw>(&mut self, simd: S, noise: &N, steps: usize) {
        let end = steps * LANES;
        assert!(end <= TILE);
        for group in (0..LANES).step_by(S::WIDTH) {
            let mut lanes = self.stream.load(simd, group);
            for step in 0..if N::PASSES { 0 } else { steps } {
                // SAFETY: the last step, and so all of them, lies in the tile.
                unsafe {
                    let to = self.words.as_mut_ptr().add(step * LANES + group);
                    simd.store(to, noise.word(&mut lanes));
                }
            }
            if N::PASSES {
                let places: [u64; WIDEST] = std::array::from_fn(|lane| (group + lane) as u64);
                // SAFETY: there are as many words as in the widest vector.
                let mut place = unsafe { simd.load(places.as_ptr()) };
                for round in 0.. {
                    let open = simd.gt(simd.splat(end as u64), place);
                    // In as many rounds as steps no lane comes to its end.
                    let word = if round < steps {
                        lanes.next()
                    } else if simd.mask(open) == 0 {
                        break;
                    } else {
                        lanes.next_where(open)
                    };
                    // SAFETY: at its end a lane has a place in the step behind the last.
                    unsafe { simd.scatter(self.words.as_mut_ptr(), place, word) };
                    let next = simd.add(place, simd.splat(LANES as u64));
                    place = simd.select(simd.andm(open, noise.takes(simd, word)), next, place);
                }
            }
            self.stream.store(group, lanes);
        }
    }
}

/// Draws `steps` steps of all lanes and gives their values to `sink`.
///
/// `origin` is the coordinate of the first draw. First all words, then all values: a value's chain
/// of operations is about 100 cycles long, and the scheduler holds more chains at once when the
/// generator's instructions do not stand between them (3 % faster on AVX-512, 13 % on AVX2).
///
/// # Safety
///
/// `steps` is at most [`TILE`] / [`LANES`], a multiple of the noise's steps; `dim` is the sink's
/// dimension and `origin` below it.
#[inline(always)]
pub(super) unsafe fn sweep_values<S: Simd, N: Draw>(
    simd: S,
    noise: &N,
    source: &mut Source,
    steps: usize,
    (origin, dim): (usize, usize),
    sink: &mut impl Sink<S, S::F>,
) {
    source.draw(simd, noise, steps);
    let from = source.words.as_ptr();
    // SAFETY: the caller vouches for the steps, so that all draws lie in the tile, and the coordinates.
    unsafe {
        let (mut coordinate, step, width) = (origin, LANES % dim, S::WIDTH % dim);
        for first in (0..steps).step_by(N::STEPS) {
            for lane in (0..LANES).step_by(S::WIDTH) {
                let at = first * LANES + lane;
                let second = if N::STEPS == 2 { at + LANES } else { at };
                let values =
                    noise.values(simd, [simd.load(from.add(at)), simd.load(from.add(second))]);
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
    source: &mut Source,
    steps: usize,
    (origin, dim): (usize, usize),
    sink: &mut impl Sink<S, (S::U, S::M)>,
) {
    let advance = LANES % dim;
    if N::PASSES {
        source.draw(simd, noise, steps);
    }
    // SAFETY: as for `sweep_values`.
    unsafe {
        for group in (0..LANES).step_by(S::WIDTH) {
            let mut coordinate = ahead(origin, group % dim, dim);
            let mut lanes = source.stream.load(simd, group);
            for step in 0..steps {
                let at = step * LANES + group;
                let word = if N::PASSES {
                    simd.load(source.words.as_ptr().add(at))
                } else {
                    noise.word(&mut lanes)
                };
                sink.put(simd, at, coordinate, noise.ordered(simd, word));
                coordinate = ahead(coordinate, advance, dim);
            }
            if !N::PASSES {
                source.stream.store(group, lanes);
            }
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
        source: &mut Source,
        place: (Rows, usize),
        stop: &'a AtomicBool,
    ) -> Self {
        let mut tiles = Self::new(place, N::STEPS, stop);
        while tiles.done + TILE <= tiles.skip {
            if tiles.next().is_none() {
                break;
            }
            source.draw(simd, noise, TILE / LANES);
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
