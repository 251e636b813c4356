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
use crate::simd::Simd;
use crate::simd::kernel::Kernel;

/// Registers of queries in a tile, and queries of a tile: they stand side by side.
pub(super) const TILE: usize = 3;
pub(in super::super) const WIDTH: usize = 16 * TILE;

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
