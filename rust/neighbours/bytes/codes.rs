//! Rows in bytes, and how wrong products of bytes can be.
//!
//! # The guard
//!
//! As in [`super::super::frame`], X = s (x - m), Y = s (y - m) and D = |X - Y|^2. A row is encoded
//! by a step (an f32) times whole numbers of at most 127: X is near X^ = t q, with a residual of
//! norm e = |X - X^|, and Y near Y^ = r p with f = |Y - Y^|. Then X.Y - X^.Y^ is the sum of
//! X^.(Y - Y^) and (X - X^).Y, and by Cauchy and Schwarz
//!
//! |X.Y - X^.Y^| <= |X^| f + e |Y| =: E.
//!
//! X^.Y^ = t r (q.p), where the product of the whole numbers is exact (below). So, with a = |X|^2
//! and b = |Y|^2, D = a + b - 2 X.Y is within 2 E of a + b - 2 t r (q.p). Compared is, in f32,
//!
//! v = low - 2 |X^| f - 2 e |Y| - 2 t (r (q.p)), low = b (1 - K) rounded down.
//!
//! 1. A number is rounded to the nearest code, so a residual is at most the number: e <= |X| and
//!    |X^| <= 2 |X|. The four terms of v are at most b, 4 |X| |Y|, 2 |X| |Y| and 8 |X| |Y|, together
//!    at most 8 (a + b), and each meets at most six roundings, with or without fused multiply-add:
//!    with u = 2^-24 the error of v is at most 49 u (a + b).
//! 2. |X^|, e, f and |Y| are computed in f64 and rounded up, with room for the roundings of f64 (d
//!    of them in a sum, d <= 2^16, and 2^-53 of every coordinate); what the room adds, and the error
//!    of a, b and of the f64 distance that is compared, is below u (a + b).
//!
//! So with K = 64 u, and up to `TINY`,
//!
//! a (1 - K) + v <= s^2 squared(x, y) <= a (1 + K) + v + 4 E + 2 K b.
//!
//! Underflow. Steps are 0 or at least 2^-67, and numbers at most 2^41 (the frame's rows), so what
//! flushed products lose is below d 2^-80 = `TINY`, and nothing overflows.
//!
//! Whole numbers. The instruction multiplies bytes without a sign by bytes with one: codes of
//! queries are raised by 128, and the sum begins at -128 times the sum of the point's codes. That is
//! at most 128 x 127 d in size, what is added at most 255 x 127 d, which is below 2^31 for
//! d <= 66,311: above the dimension that frames are made for.

use super::super::distance::Coordinate;
use super::super::frame::{Frame, down, up};
use super::super::search::Search;
use super::{TILE, WIDTH};
use crate::simd::Simd;
use crate::simd::kernel::Kernel;

/// K above.
const GUARD: f64 = 1.0 / (1u32 << 18) as f64;

/// Numbers below are all residual.
const LEAST: f64 = 1.0 / (1u64 << 60) as f64;

/// What the comparison needs of a point.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct About {
    /// b (1 - K) rounded down and b (1 + K) rounded up.
    pub low: f32,
    pub high: f32,
    /// What E needs of Y: f and |Y|, rounded up.
    pub error: f32,
    pub length: f32,
    pub step: f32,
    /// Where its sums begin.
    pub start: i32,
}

/// Points in bytes.
#[derive(Default)]
pub(in super::super) struct Codes {
    /// Row by row, `stride` bytes each.
    pub rows: Vec<i8>,
    pub about: Vec<About>,
}

/// Bytes of a row: the instruction takes four at a time.
pub(in super::super) fn stride(dim: usize) -> usize {
    dim.next_multiple_of(4)
}

/// Numbers of a row in f64, its code, and what is known of it.
struct Encoder<'a> {
    frame: &'a Frame,
    values: Vec<f64>,
    codes: Vec<i8>,
}

/// A row's squared norm, step, |X^|, residual norm (these two with room) and sum of codes.
struct Encoded {
    norm: f64,
    step: f32,
    size: f64,
    error: f64,
    sum: i32,
}

/// Sums that need not wait for each other.
const SUMS: usize = 16;

impl<'a> Encoder<'a> {
    fn new(frame: &'a Frame) -> Self {
        let room = frame.dim().next_multiple_of(SUMS);
        Self { frame, values: vec![0.0; room], codes: vec![0; room] }
    }

    #[inline(always)]
    fn encode<T: Coordinate>(&mut self, row: &[T]) -> Encoded {
        // 1.5 x 2^52: adding it leaves the nearest whole number in the last bits.
        const WHOLE: f64 = 6_755_399_441_055_744.0;
        self.frame.place(row, &mut self.values);
        let (mut norms, mut tops) = ([0.0_f64; SUMS], [0.0_f64; SUMS]);
        for values in self.values.chunks_exact(SUMS) {
            for lane in 0..SUMS {
                let size = values[lane].abs();
                norms[lane] += size * size;
                tops[lane] = if size > tops[lane] { size } else { tops[lane] };
            }
        }
        let norm: f64 = norms.iter().sum();
        let top = tops.into_iter().fold(0.0, f64::max);
        let known = Frame::fits(norm) && top >= LEAST;
        let step = if known { (top / 127.0) as f32 } else { 0.0 };
        let (wide, inverse) = (f64::from(step), if known { 1.0 / f64::from(step) } else { 0.0 });
        let [mut errors, mut squares, mut sums] = [[0.0_f64; SUMS]; 3];
        let parts = self.values.chunks_exact(SUMS).zip(self.codes.chunks_exact_mut(SUMS));
        for (values, codes) in parts {
            for lane in 0..SUMS {
                let shifted = values[lane] * inverse + WHOLE;
                let code = shifted - WHOLE;
                let rest = values[lane] - wide * code;
                errors[lane] += rest * rest;
                squares[lane] += code * code;
                sums[lane] += code;
                codes[lane] = shifted.to_bits() as i8;
            }
        }
        // Sums of whole numbers are exact in any order.
        let [errors, squares, sum] = [errors, squares, sums].map(|sums| sums.iter().sum::<f64>());
        let room = 1.0 + 2.0_f64.powi(-30);
        let error = errors.sqrt() * room + norm.sqrt() * 2.0_f64.powi(-40);
        Encoded { norm, step, size: wide * squares.sqrt() * room, error, sum: sum as i32 }
    }
}

/// Encodes points of a cloud.
pub(in super::super) struct EncodePoints<'a, T> {
    pub frame: &'a Frame,
    pub search: &'a Search<'a, T>,
    pub places: &'a [u32],
}

impl<T: Coordinate> Kernel for EncodePoints<'_, T> {
    type Result = Codes;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Codes {
        let (dim, stride) = (self.frame.dim(), stride(self.frame.dim()));
        let mut encoder = Encoder::new(self.frame);
        let mut found = Codes { rows: vec![0; self.places.len() * stride], about: Vec::new() };
        for (&place, out) in self.places.iter().zip(found.rows.chunks_exact_mut(stride)) {
            let row = encoder.encode(self.search.point(place as usize));
            out[..dim].copy_from_slice(&encoder.codes[..dim]);
            found.about.push(About {
                low: down(row.norm * (1.0 - GUARD)),
                high: up(row.norm * (1.0 + GUARD)),
                error: up(row.error),
                length: up(row.norm.sqrt() * (1.0 + 2.0_f64.powi(-30))),
                step: row.step,
                start: -128 * row.sum,
            });
        }
        found
    }
}

/// Four bytes each of 16 queries: what one register holds.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Line(pub [[u8; 4]; 16]);

/// A block of queries in bytes.
#[derive(Default)]
pub(in super::super) struct Coded {
    /// For every tile of [`WIDTH`] queries, stride / 4 times [`TILE`] lines.
    pub(super) tiles: Vec<Line>,
    /// For every query, those that fill up the last tile included: 2 |X^|, 2 e and 2 t.
    pub sizes: Vec<f32>,
    pub errors: Vec<f32>,
    pub steps: Vec<f32>,
    /// Squared norms a, a (1 - K) - TINY, and 2 (K a + TINY).
    pub norms: Vec<f64>,
    pub less: Vec<f64>,
    pub more: Vec<f64>,
}

/// Encodes queries.
pub(in super::super) struct EncodeQueries<'a, T> {
    pub frame: &'a Frame,
    pub search: &'a Search<'a, T>,
    pub queries: &'a [usize],
    pub out: &'a mut Coded,
}

impl<T: Coordinate> Kernel for EncodeQueries<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { frame, search, queries, out } = self;
        let (fours, whole) = (stride(frame.dim()) / 4, queries.len().next_multiple_of(WIDTH));
        let mut encoder = Encoder::new(frame);
        out.tiles.clear();
        out.tiles.resize(whole / 16 * fours, Line([[128; 4]; 16]));
        for lanes in [&mut out.sizes, &mut out.errors, &mut out.steps] {
            lanes.clear();
        }
        for numbers in [&mut out.norms, &mut out.less, &mut out.more] {
            numbers.clear();
        }
        for (i, &query) in queries.iter().enumerate() {
            let row = encoder.encode(search.query(query));
            let lines = &mut out.tiles[i / WIDTH * fours * TILE + i / 16 % TILE..];
            let codes = encoder.codes.as_chunks::<4>().0;
            for (line, codes) in lines.iter_mut().step_by(TILE).zip(&codes[..fours]) {
                line.0[i % 16] = codes.map(|code| code.cast_unsigned() ^ 128);
            }
            out.sizes.push(up(2.0 * row.size));
            out.errors.push(up(2.0 * row.error));
            out.steps.push(2.0 * row.step);
            out.norms.push(row.norm);
            out.less.push(row.norm * (1.0 - GUARD) - frame.tiny);
            out.more.push(2.0 * (row.norm * GUARD + frame.tiny));
        }
        for lanes in [&mut out.sizes, &mut out.errors, &mut out.steps] {
            lanes.resize(whole, 0.0);
        }
    }
}

impl Coded {
    /// Bounds on s^2 squared from the product of the codes of query `i` and a point.
    #[inline(always)]
    pub fn bounds(&self, i: usize, point: &About, product: i32) -> (f64, f64) {
        let wide = |value: f32| f64::from(value);
        // Twice E.
        let error = wide(self.sizes[i]) * wide(point.error);
        let error = error + wide(self.errors[i]) * wide(point.length);
        let product = wide(self.steps[i]) * wide(point.step) * f64::from(product);
        let low = self.less[i] + (wide(point.low) - error - product);
        (low, low + 2.0 * error + (wide(point.high) - wide(point.low)) + self.more[i])
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::distance::squared;
    use super::super::super::search::Sets;
    use super::super::{Products, Sink};
    use super::*;
    use crate::simd::cpu::Cpu;
    use crate::simd::kernel::dispatch;

    /// Rows as queries and as points of a frame around zero with the scale 1.
    fn encoded(rows: &[f64], dim: usize, cpu: Cpu) -> (Coded, Codes) {
        let sets = Sets::new(rows, &[], dim).unwrap();
        let all: Vec<i64> = (0..sets.len() as i64).collect();
        let search = &Search::new(sets, &all, &all).unwrap();
        let (frame, mut out) = (&Frame::new(vec![0.0; dim], 1.0), Coded::default());
        let queries: Vec<usize> = (0..all.len()).collect();
        let places: Vec<u32> = (0..all.len() as u32).collect();
        dispatch(cpu, EncodeQueries { frame, search, queries: &queries, out: &mut out });
        (out, dispatch(cpu, EncodePoints { frame, search, places: &places }))
    }

    struct All(Vec<(usize, usize, i32)>);

    impl Sink for All {
        fn hit(&mut self, i: usize, j: usize, product: i32, _: &mut [f32]) {
            self.0.push((i, j, product));
        }
    }

    /// Hits of all queries with one point, with a bound for each query.
    fn hits(
        (coded, codes): &(Coded, Codes),
        dim: usize,
        j: usize,
        bound: impl Fn(usize) -> f32,
        cpu: Cpu,
    ) -> Vec<(usize, usize, i32)> {
        let (stride, mut sink) = (stride(dim), All(Vec::new()));
        let mut bounds = vec![f32::NAN; coded.sizes.len()];
        bounds[..coded.norms.len()].iter_mut().zip(0..).for_each(|(own, i)| *own = bound(i));
        let (points, about) = (&codes.rows[j * stride..(j + 1) * stride], &codes.about[j..=j]);
        let bounds = &mut bounds[..];
        Products { dim, queries: coded, points, about, bounds, sink: &mut sink }.run(cpu);
        sink.0
    }

    /// All pairs: products are exact, bounds hold, and v is a hit at the distance itself.
    fn check(rows: &[f64], dim: usize, cpu: Cpu) {
        let both = encoded(rows, dim, cpu);
        let (coded, codes) = (&both.0, &both.1);
        let (row, stride) = (|i: usize| &rows[i * dim..(i + 1) * dim], stride(dim));
        let code = |i: usize| codes.rows[i * stride..(i + 1) * stride].iter();
        for j in 0..coded.norms.len() {
            let distance = |i: usize| squared(row(i), row(j));
            let found = hits(&both, dim, j, |i| up(distance(i) - coded.less[i]), cpu);
            assert_eq!(found.len(), coded.norms.len(), "{cpu:?} {j}");
            for (i, _, product) in found {
                let exact = code(i).zip(code(j)).map(|(&a, &b)| i64::from(a) * i64::from(b));
                assert_eq!(i64::from(product), exact.sum::<i64>());
                let (low, high) = coded.bounds(i, &codes.about[j], product);
                let value = distance(i);
                assert!(low <= value && value <= high, "{cpu:?} {value} not in {low}..{high}");
            }
        }
    }

    #[test]
    fn residuals_in_one_direction_are_within_the_guard_and_close_to_it() {
        // A row that is its code, along the residuals of another one: Cauchy and Schwarz are equal.
        let dim = 400;
        for sign in [1.0, -1.0] {
            let mut rows = vec![sign; 2 * dim];
            rows[dim..].iter_mut().zip(0..).for_each(|(value, i)| {
                *value = if i == 0 { 127.0 } else { f64::from(i % 5) - 2.0 + 0.499 };
            });
            for cpu in Cpu::present() {
                check(&rows, dim, cpu);
                let both = encoded(&rows, dim, cpu);
                let value = squared(&rows[..dim], &rows[dim..]);
                for (i, j) in [(0, 1), (1, 0)] {
                    let found = hits(&both, dim, j, |_| f32::INFINITY, cpu);
                    let (low, high) = both.0.bounds(i, &both.1.about[j], found[i].2);
                    let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
                    assert!((value - middle).abs() > 0.95 * half, "{value} {middle} {half}");
                    assert!((value > middle) == (sign < 0.0));
                }
            }
        }
    }

    #[test]
    fn rows_that_are_their_codes_need_the_guard_of_the_roundings() {
        // No residual: what v loses by rounding is all that there is.
        let (dim, mut state) = (150, 1_u32);
        let mut rows = Vec::new();
        for i in 0..60 * dim {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f64::from(state >> 24) - 128.0;
            let value = if i % dim == 0 { 127.0 } else { value.max(-127.0) };
            rows.push(value * f64::from(1 + 2 * (i / dim) as u32));
        }
        for cpu in Cpu::present() {
            check(&rows, dim, cpu);
        }
    }

    #[test]
    fn a_product_at_the_bound_is_a_hit() {
        for cpu in Cpu::present() {
            let both = encoded(&[127.0, 3.0, -5.0, 20.0], 4, cpu);
            let (coded, point) = (&both.0, &both.1.about[0]);
            let product = hits(&both, 4, 0, |_| f32::INFINITY, cpu)[0].2;
            let (size, error, step) = (coded.sizes[0], coded.errors[0], coded.steps[0]);
            let last = point.step * product as f32;
            let value = if super::super::fast(cpu) {
                let value = (-error).mul_add(point.length, (-size).mul_add(point.error, point.low));
                (-step).mul_add(last, value)
            } else {
                point.low - size * point.error - error * point.length - step * last
            };
            assert_eq!(hits(&both, 4, 0, |_| value, cpu).len(), 1);
            assert_eq!(hits(&both, 4, 0, |_| value.next_down(), cpu).len(), 0);
        }
    }

    #[test]
    fn any_magnitude_and_rows_that_vanish() {
        for (dim, power) in [(1, 0), (7, 30), (33, -20), (65, -59), (70, -61), (130, -130)] {
            let mut rows: Vec<f64> = (0..50 * dim).map(|i| (i as f64 * 0.7).sin()).collect();
            for value in &mut rows {
                *value *= 2.0_f64.powi(power);
            }
            rows[..dim].fill(0.0);
            rows[2 * dim..3 * dim].iter_mut().for_each(|value| *value *= 1e-9);
            rows.copy_within(4 * dim..5 * dim, 5 * dim);
            for cpu in Cpu::present() {
                check(&rows, dim, cpu);
            }
        }
    }

    #[test]
    fn the_largest_products_do_not_overflow() {
        let dim = 1 << 16;
        let mut rows = vec![3.0; 3 * dim];
        rows[dim..2 * dim].fill(-3.0);
        rows[2 * dim..].iter_mut().step_by(2).for_each(|value| *value = -3.0);
        for cpu in Cpu::present() {
            check(&rows, dim, cpu);
        }
    }

    #[test]
    fn rows_that_fit_no_frame_are_never_hits() {
        for bad in [f64::NAN, f64::INFINITY, 1e300, 1e13] {
            let rows = [bad, 1.0, 2.0, 3.0, 1.0, 0.5, 0.1, 2.0];
            for cpu in Cpu::present() {
                let both = encoded(&rows, 4, cpu);
                assert!(!Frame::fits(both.0.norms[0]) && Frame::fits(both.0.norms[1]));
                let bound = |i: usize| if i == 0 { f32::NAN } else { f32::INFINITY };
                let found = hits(&both, 4, 1, bound, cpu);
                assert!(found.len() == 1 && found[0].0 == 1);
            }
        }
    }
}
