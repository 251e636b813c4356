//! Distances in f64 to many points at once.

use super::distance::{Coordinate, LANES, squared, squared_four};
use super::search::Search;
use crate::simd::kernel::Kernel;
use crate::simd::{Simd, prefetch};

/// Points whose distances are computed together.
pub(super) const STRIP: usize = 256;

/// Coordinates of at most this many dimensions are transposed, so that lanes are points.
pub(super) const SMALL: usize = LANES;

/// Points side by side.
#[derive(Default)]
pub(super) struct Strip {
    // Coordinate c of the strip's point j at c * STRIP + j, where there are few coordinates.
    columns: Vec<f64>,
    first: usize,
    size: usize,
}

impl Strip {
    pub fn fill<T: Coordinate>(&mut self, search: &Search<'_, T>, (first, last): (usize, usize)) {
        (self.first, self.size) = (first, last - first);
        let dim = search.sets.dim;
        if dim > SMALL {
            return;
        }
        self.columns.resize(dim * STRIP, 0.0);
        for j in 0..self.size {
            for (c, value) in search.point(first + j).iter().enumerate() {
                self.columns[c * STRIP + j] = value.wide();
            }
        }
    }
}

/// Squared distances of a row to all points of a strip, the same bits as [`squared`].
pub(super) struct Distances<'a, T> {
    pub search: &'a Search<'a, T>,
    pub strip: &'a Strip,
    pub query: &'a [T],
    pub out: &'a mut [f64; STRIP],
}

impl<T: Coordinate> Kernel for Distances<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        const WIDTH: usize = 16;
        let Self { search, strip, query, out } = self;
        if search.sets.dim > SMALL {
            for (j, out) in out.iter_mut().enumerate().take(strip.size) {
                *out = squared(query, search.point(strip.first + j));
            }
            return;
        }
        for (part, out) in out.chunks_exact_mut(WIDTH).enumerate() {
            if part * WIDTH >= strip.size {
                break;
            }
            // One coordinate to every partial sum, as in `squared`.
            let mut sums = [[0.0f64; WIDTH]; LANES];
            for ((c, value), sum) in query.iter().enumerate().zip(&mut sums) {
                let value = value.wide();
                let column = &strip.columns[c * STRIP + part * WIDTH..][..WIDTH];
                for lane in 0..WIDTH {
                    let difference = value - column[lane];
                    sum[lane] = difference * difference;
                }
            }
            for (lane, out) in out.iter_mut().enumerate() {
                let sum = |c: usize| sums[c][lane];
                *out = ((sum(0) + sum(4)) + (sum(2) + sum(6)))
                    + ((sum(1) + sum(5)) + (sum(3) + sum(7)));
            }
        }
    }
}

/// Squared distances of a row to chosen points.
pub(super) struct Chosen<'a, T> {
    pub search: &'a Search<'a, T>,
    pub query: &'a [T],
    pub places: &'a [u32],
    pub out: &'a mut Vec<(f64, u32)>,
}

impl<T: Coordinate> Kernel for Chosen<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let row = |place: u32| self.search.point(place as usize);
        let fours = self.places.chunks_exact(4);
        let rest = fours.remainder();
        for (i, four) in fours.enumerate() {
            // The rows lie anywhere: waiting for them takes longer than their distances.
            for &place in self.places.iter().skip(4 * (i + 1)).take(4) {
                prefetch(row(place));
            }
            let [a, b, c, d] = [four[0], four[1], four[2], four[3]];
            let values = squared_four(self.query, [row(a), row(b), row(c), row(d)]);
            self.out.extend(values.into_iter().zip([a, b, c, d]));
        }
        self.out.extend(rest.iter().map(|&place| (squared(self.query, row(place)), place)));
    }
}
