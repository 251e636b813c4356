//! A block of queries and a panel of points, packed for their products.

use std::marker::PhantomData;
use std::ops::Range;

use super::distance::Coordinate;
use super::frame::{Frame, down, up};
use super::search::Search;
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Points of a panel: at most 240, and about 2^17 numbers; 4, 6 or 8 at a time are multiplied.
pub(super) fn panel_of(dim: usize) -> usize {
    ((1 << 17) / dim).clamp(24, 240).next_multiple_of(24)
}

/// The most queries of a block: about 1000, and 2^20 numbers.
pub(super) fn most_of(dim: usize) -> usize {
    ((1 << 20) / dim).clamp(48, 1008).next_multiple_of(48)
}

/// Numbers of a line of the cache.
const LINE: usize = 16;

/// Packs rows one after the other.
struct Pack<'a, 'b, T, R> {
    frame: &'b Frame,
    rows: R,
    out: &'b mut [f32],
    norms: &'b mut Vec<f64>,
    row: PhantomData<&'a [T]>,
}

impl<'a, T: Coordinate, R: Iterator<Item = &'a [T]> + Sync> Kernel for Pack<'a, '_, T, R> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let mut rest = self.out;
        for row in self.rows {
            let (out, after) = rest.split_at_mut(row.len());
            self.norms.push(self.frame.pack(row, out));
            rest = after;
        }
    }
}

fn pack<'a, T: Coordinate>(
    frame: &Frame,
    rows: impl ExactSizeIterator<Item = &'a [T]> + Sync,
    cpu: Cpu,
    out: &mut Vec<f32>,
    norms: &mut Vec<f64>,
) {
    out.resize(rows.len() * frame.dim(), 0.0);
    norms.clear();
    dispatch(cpu, Pack { frame, rows, out, norms, row: PhantomData });
}

/// A block of queries in f32.
#[derive(Default)]
pub(super) struct Block {
    // Tiles of `width` queries side by side, dim x width each; the last is filled up with zeros.
    room: Vec<f32>,
    // Where they are: at a multiple of 64 bytes, so that no load takes two lines of the cache.
    tiles: Range<usize>,
    /// Squared norms a, a (1 - G) - TINY, and 2 (G a + TINY).
    pub norms: Vec<f64>,
    pub less: Vec<f64>,
    pub more: Vec<f64>,
}

impl Block {
    pub fn fill<T: Coordinate>(
        &mut self,
        (frame, search, cpu): (&Frame, &Search<'_, T>, Cpu),
        queries: impl ExactSizeIterator<Item = usize> + Sync,
        width: usize,
    ) {
        let (dim, size) = (search.sets.dim, queries.len());
        let mut rows = Vec::new();
        pack(frame, queries.map(|i| search.query(i)), cpu, &mut rows, &mut self.norms);
        let whole = size.next_multiple_of(width) * dim;
        self.room.clear();
        self.room.resize(whole + LINE, 0.0);
        let first = self.room.as_ptr().align_offset(4 * LINE).min(LINE);
        self.tiles = first..first + whole;
        let tiles = &mut self.room[self.tiles.clone()];
        for (i, row) in rows.chunks_exact(dim).enumerate() {
            let start = i / width * width * dim + i % width;
            for (c, &value) in row.iter().enumerate() {
                tiles[start + c * width] = value;
            }
        }
        self.less.clear();
        self.less.extend(self.norms.iter().map(|norm| norm * (1.0 - frame.guard) - frame.tiny));
        self.more.clear();
        let more = |norm: &f64| 2.0 * (norm * frame.guard + frame.tiny);
        self.more.extend(self.norms.iter().map(more));
    }
}

impl Block {
    /// The tiles.
    pub fn tiles(&self) -> &[f32] {
        &self.room[self.tiles.clone()]
    }
}

/// A panel of points in f32.
///
/// For query i and point j of the panel, with w = low[j] - 2 product,
/// `less[i] + w <= s^2 squared <= less[i] + w + (high[j] - low[j]) + more[i]`.
#[derive(Default)]
pub(super) struct Panel {
    /// Where the points are.
    pub places: Vec<u32>,
    /// Row by row.
    pub rows: Vec<f32>,
    norms: Vec<f64>,
    /// b (1 - G) rounded down and b (1 + G) rounded up.
    pub low: Vec<f32>,
    pub high: Vec<f32>,
    /// The greatest `high - low`, rounded up.
    pub widest: f32,
}

impl Panel {
    pub fn fill<T: Coordinate>(
        &mut self,
        (frame, search, cpu): (&Frame, &Search<'_, T>, Cpu),
        places: &[u32],
    ) {
        self.places.clear();
        self.places.extend_from_slice(places);
        let rows = places.iter().map(|&place| search.point(place as usize));
        pack(frame, rows, cpu, &mut self.rows, &mut self.norms);
        self.low.clear();
        self.low.extend(self.norms.iter().map(|norm| down(norm * (1.0 - frame.guard))));
        self.high.clear();
        self.high.extend(self.norms.iter().map(|norm| up(norm * (1.0 + frame.guard))));
        let widths = (0..places.len()).map(|j| up(self.width(j)));
        self.widest = widths.fold(0.0, f32::max);
    }

    /// `high - low` of a point.
    #[inline(always)]
    fn width(&self, j: usize) -> f64 {
        f64::from(self.high[j]) - f64::from(self.low[j])
    }

    /// Bounds on s^2 squared less `less` of the query, from its product with a point; `more` is the
    /// query's.
    #[inline(always)]
    pub fn bounds(&self, j: usize, product: f32, more: f64) -> (f64, f64) {
        let low = f64::from(self.low[j] - 2.0 * product);
        (low, low + self.width(j) + more)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::super::distance::squared;
    use super::super::frame::clouds::{Cloud, Clouds};
    use super::super::products::{Products, Sink, width};
    use super::super::search::Sets;
    use super::*;

    struct All(Vec<(usize, usize, f32)>);

    impl Sink for All {
        fn hit(&mut self, i: usize, j: usize, product: f32, _: &mut [f32]) {
            self.0.push((i, j, product));
        }
    }

    /// Checks every pair of rows; the largest error in units of the guard.
    fn check(rows: &[f64], dim: usize, cpu: Cpu) -> f64 {
        let sets = Sets::new(rows, &[], dim).unwrap();
        let all: Vec<i64> = (0..sets.len() as i64).collect();
        let search = Search::new(sets, &all, &all).unwrap();
        let clouds = Clouds::new((&search, 1), cpu, &AtomicBool::new(false)).unwrap();
        clouds
            .each
            .iter()
            .fold(0.0, |worst, cloud| worst.max(check_one(&search, &clouds, cloud, cpu)))
    }

    /// Checks all fitting rows against those of a cloud.
    fn check_one(search: &Search<'_, f64>, clouds: &Clouds, cloud: &Cloud, cpu: Cpu) -> f64 {
        let (frame, dim) = (&cloud.frame, search.sets.dim);
        let (size, width) = (search.queries.len(), width(cpu));
        let (mut block, mut panel) = (Block::default(), Panel::default());
        block.fill((frame, search, cpu), 0..size, width);
        panel.fill((frame, search, cpu), &clouds.order[cloud.range.clone()]);
        let mut bounds = vec![f32::NAN; size.next_multiple_of(width)];
        bounds[..size].fill(f32::INFINITY);
        let (bounds, flip) = (&mut bounds[..], &vec![0; size.div_ceil(width)][..]);
        let (queries, points, low) = (block.tiles(), &panel.rows[..], &panel.low[..]);
        let mut sink = All(Vec::new());
        Products { dim, queries, points, low, bounds, flip, sink: &mut sink }.run(cpu);
        assert_eq!(sink.0.len(), size * cloud.range.len());
        let mut worst = 0.0_f64;
        for (i, j, product) in sink.0.into_iter().filter(|hit| Frame::fits(block.norms[hit.0])) {
            let point = search.point(panel.places[j] as usize);
            let value = frame.scaled(squared(search.query(i), point));
            let (least, most) = panel.bounds(j, product, block.more[i]);
            let (least, most) = (block.less[i] + least, block.less[i] + most);
            assert!(least <= value && value <= most, "{i} {j}: {value} not in {least}..{most}");
            let middle = f64::midpoint(least, most);
            worst = worst.max((value - middle).abs() / (most - least).max(f64::MIN_POSITIVE));
        }
        worst
    }

    #[test]
    fn the_guard_holds_and_is_not_absurd() {
        for cpu in Cpu::present() {
            // One number times ones: every rounding of a sum goes the same way.
            for (dim, value) in [(1000, 1.0 + 1e-7), (4096, 0.1), (9, 1.0 / 3.0)] {
                let mut rows = vec![value; 20 * dim];
                rows[..dim].fill(-value);
                rows[dim..2 * dim].fill(3.0 * value);
                let worst = check(&rows, dim, cpu);
                assert!(worst < 0.5, "{worst}");
                assert!(dim < 1000 || worst > 1e-3, "{worst}");
            }
        }
    }

    /// A row as query and as point of a frame around zero with the scale 1.
    fn packed(row: &[f64]) -> (Block, Panel) {
        let dim = row.len();
        let sets = Sets::new(row, &[], dim).unwrap();
        let search = Search::new(sets, &[0], &[0]).unwrap();
        let frame = Frame::new(vec![0.0; dim], 1.0);
        let (mut block, mut panel) = (Block::default(), Panel::default());
        block.fill((&frame, &search, Cpu::Baseline), 0..1, width(Cpu::Baseline));
        panel.fill((&frame, &search, Cpu::Baseline), &[0]);
        (block, panel)
    }

    fn holds_zero((block, panel): &(Block, Panel), product: f64) -> bool {
        let (low, high) = panel.bounds(0, product as f32, block.more[0]);
        (block.less[0] + low..=block.less[0] + high).contains(&0.0)
    }

    #[test]
    fn products_at_the_guards_edge_are_within_it_and_none_beyond() {
        // d roundings in one direction: a machine may add so, though none of ours does.
        for dim in [512, 4096] {
            let row = packed(&vec![1.0; dim]);
            let error = dim as f64 * 2.0_f64.powi(-24);
            for sign in [1.0, -1.0] {
                let product = |error: f64| dim as f64 * (1.0 + sign * error);
                assert!(holds_zero(&row, product(error / (1.0 - error))));
                // The guard is no larger than it must be, but for eight roundings.
                assert!(!holds_zero(&row, product(error * (1.0 + 12.0 / dim as f64))));
            }
        }
    }

    #[test]
    fn rows_whose_products_vanish_are_within_the_guard() {
        for power in [-80, -100, -140] {
            assert!(holds_zero(&packed(&[2.0_f64.powi(power); 64]), 0.0));
        }
    }

    #[test]
    fn norms_are_rounded_outwards() {
        let guard = Frame::new(vec![0.0; 5], 1.0).guard;
        for i in 1..100 {
            let (_, panel) = packed(&[1.0 / f64::from(i), 0.3, 0.7, f64::from(i), 1e-3]);
            let norm = panel.norms[0];
            let (least, most) = (norm * (1.0 - guard), norm * (1.0 + guard));
            let (low, high) = (panel.low[0], panel.high[0]);
            assert!(f64::from(low) <= least && least < f64::from(low.next_up()));
            assert!(f64::from(high) >= most && most > f64::from(high.next_down()));
            assert!(f64::from(panel.widest) >= panel.width(0));
        }
    }

    #[test]
    fn a_product_at_the_bound_is_a_hit() {
        let (block, panel) = packed(&[1.0, 2.0, 2.0]);
        let at = panel.low[0] - 18.0;
        for cpu in Cpu::present() {
            let width = width(cpu);
            for (bound, hits) in [(at, 1), (at.next_down(), 0), (f32::NAN, 0)] {
                let mut queries = vec![0.0; 3 * width];
                for c in 0..3 {
                    queries[c * width] =
                        block.tiles()[c * super::super::products::width(Cpu::Baseline)];
                }
                let mut bounds = vec![f32::NAN; width];
                bounds[0] = bound;
                let (mut sink, points, low) = (All(Vec::new()), &panel.rows[..], &panel.low[..]);
                let (queries, bounds, sink_) = (&queries[..], &mut bounds[..], &mut sink);
                Products { dim: 3, queries, points, low, bounds, flip: &[0], sink: sink_ }.run(cpu);
                assert_eq!(sink.0.len(), hits);
            }
        }
    }

    #[test]
    fn panels_and_blocks_are_whole_tiles_of_about_their_size() {
        assert_eq!([1, 1 << 10, 1 << 16].map(panel_of), [240, 144, 24]);
        assert_eq!([1, 1 << 12, 1 << 16].map(most_of), [1008, 288, 48]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn the_guard_holds_for_any_magnitudes(
            dim in 1usize..80,
            seeds in prop::collection::vec((-1.0f64..1.0, -40i32..40), 80 * 9),
            near in -30i32..0,
            offset in -8.0f64..8.0,
            unit in -300i32..300,
        ) {
            let unit = 2.0f64.powi(unit);
            let mut rows: Vec<f64> = seeds[..8 * dim]
                .iter()
                .map(|&(value, power)| (value * 2.0f64.powi(power / 4) + offset.exp2()) * unit)
                .collect();
            // A row as it is, one nearly so, and one whose entries differ in magnitude.
            rows.extend_from_within(..dim);
            let close: Vec<f64> = rows[..dim]
                .iter()
                .zip(&seeds)
                .map(|(value, seed)| value * (1.0 + seed.0 * 2.0f64.powi(near)))
                .collect();
            rows.extend(close);
            rows.extend(seeds[8 * dim..9 * dim].iter().map(|&(value, power)| {
                value * 2.0f64.powi(power) * unit
            }));
            for cpu in Cpu::present() {
                check(&rows, dim, cpu);
            }
        }
    }
}
