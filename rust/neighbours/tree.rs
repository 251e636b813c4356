//! A k-d tree over the points, which is faster than all distances where there are few coordinates.
//!
//! # Bounds need no slack
//!
//! A node's box holds its points, low <= p <= high in every coordinate. Rounding is monotone:
//! x <= y gives fl(x) <= fl(y). So with gap = max(fl(low - q), fl(q - high), 0) and
//! reach = max(fl(q - low), fl(high - q)),
//!
//! gap <= |fl(q - p)| <= reach
//!
//! holds for the computed numbers. `distance::squared` squares |fl(q - p)| and adds the squares;
//! a rounded product and a rounded sum of numbers that are not negative are monotone too. Gaps and
//! reaches are squared and added in the same order, by the same [`total`], so that
//!
//! lower <= squared(q, p) <= upper
//!
//! holds bit for bit, also where something underflows or overflows to infinity. It needs points
//! without NaN and infinity (the tree is not built for others); a query may have them, as a NaN
//! makes its gap 0, its upper bound NaN and every comparison with that false.
//!
//! # Shape
//!
//! A node's points are halved by number at their widest side, down to leaves of 2^height equal
//! sizes (but for one point): duplicates and lattices make no node deeper. Node i has the children
//! 2i and 2i + 1, the root is 1.
//!
//! # Memory
//!
//! At most 11 dim + 6 bytes a point (of more than 64), and 8 dim + 20 more while it is built. A
//! thread adds the coordinates of a block of queries in f64.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::distance::{Coordinate, LANES};
use super::lists::List;
use super::search::{Method, Search};

/// The most coordinates that a tree can be built for.
pub(super) const MOST: usize = 16;

/// The most points of a leaf.
const LEAF: usize = 64;

/// Points of a leaf whose distances are computed together.
pub(super) const GROUP: usize = 8;

/// The points of a search, halved again and again.
pub(super) struct Tree {
    pub dim: usize,
    points: usize,
    // Nodes below this number have children, the others, as many, are leaves.
    pub leaves: usize,
    // Slots of a leaf; those without a point have NaN coordinates.
    stride: usize,
    // Of node i: dim times low, then dim times high, from 2 dim i.
    boxes: Vec<f64>,
    // Coordinate c of slot s at [dim (s / GROUP) + c][s % GROUP].
    columns: Vec<[f64; GROUP]>,
    // The place of every slot's point.
    places: Vec<u32>,
}

impl Tree {
    /// The tree of a search, if that is the way to do it.
    pub fn of<T: Coordinate>(
        search: &Search<'_, T>,
        depth: usize,
        stop: &AtomicBool,
    ) -> Option<Self> {
        match search.method {
            Method::Faster if !pays(search, depth) => None,
            Method::Pairs | Method::Bytes => None,
            Method::Faster | Method::Tree => Self::new(search, stop),
        }
    }

    /// Halves the points; None where there are none, more coordinates than [`MOST`], a number
    /// that is not finite, or a stop.
    fn new<T: Coordinate>(search: &Search<'_, T>, stop: &AtomicBool) -> Option<Self> {
        let (dim, points) = (search.sets.dim, search.points.len());
        if dim > MOST || points == 0 {
            return None;
        }
        let mut leaves = 1;
        while points.div_ceil(leaves) > LEAF {
            leaves *= 2;
        }
        let stride = points.div_ceil(leaves).next_multiple_of(GROUP);
        let (boxes, columns, places) = (Vec::new(), Vec::new(), Vec::new());
        let mut tree = Self { dim, points, leaves, stride, boxes, columns, places };
        let rows = wide(search.points.len(), |place| search.point(place));
        if !rows.iter().all(|value| value.is_finite()) {
            return None;
        }
        let order = tree.halve(&rows, stop)?;
        tree.columns = vec![[f64::NAN; GROUP]; leaves * stride / GROUP * dim];
        tree.places = vec![u32::MAX; leaves * stride];
        for leaf in leaves..2 * leaves {
            for (&place, slot) in order[tree.range(leaf)].iter().zip((leaf - leaves) * stride..) {
                tree.places[slot] = place;
                for (c, &value) in rows[place as usize * dim..][..dim].iter().enumerate() {
                    tree.columns[slot / GROUP * dim + c][slot % GROUP] = value;
                }
            }
        }
        Some(tree)
    }

    /// Fills the boxes; the places in the order of the leaves.
    fn halve(&mut self, rows: &[f64], stop: &AtomicBool) -> Option<Vec<u32>> {
        let dim = self.dim;
        let mut order: Vec<u32> = (0..self.points as u32).collect();
        let mut keys: Vec<(i64, u32)> = Vec::with_capacity(self.points);
        self.boxes = vec![0.0; 2 * self.leaves * 2 * dim];
        for node in 1..2 * self.leaves {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let own = &mut order[self.range(node)];
            let (low, high) = self.boxes[2 * dim * node..][..2 * dim].split_at_mut(dim);
            low.fill(f64::INFINITY);
            high.fill(f64::NEG_INFINITY);
            for &place in &*own {
                let row = &rows[place as usize * dim..][..dim];
                for ((&value, low), high) in row.iter().zip(&mut *low).zip(&mut *high) {
                    *low = if value < *low { value } else { *low };
                    *high = if value > *high { value } else { *high };
                }
            }
            if node >= self.leaves {
                continue;
            }
            let width = |&c: &usize| high[c] - low[c];
            let side = (0..dim).max_by(|a, b| width(a).total_cmp(&width(b)))?;
            let key = |&place: &u32| (ordered(rows[place as usize * dim + side]), place);
            keys.clear();
            keys.extend(own.iter().map(key));
            let half = self.range(2 * node).len();
            keys.select_nth_unstable_by_key(half, |key| key.0);
            for (place, key) in own.iter_mut().zip(&keys) {
                *place = key.1;
            }
        }
        Some(order)
    }

    /// The points of a node, by their number in the order of the leaves.
    pub fn range(&self, node: usize) -> Range<usize> {
        let level = node.ilog2();
        let j = node - (1 << level);
        (j * self.points) >> level..((j + 1) * self.points) >> level
    }

    /// The places of a node's points.
    pub fn places(&self, node: usize) -> impl Iterator<Item = u32> {
        let below = self.leaves.ilog2() - node.ilog2();
        let leaves = node << below..(node + 1) << below;
        leaves.flat_map(|leaf| {
            let first = (leaf - self.leaves) * self.stride;
            self.places[first..first + self.range(leaf).len()].iter().copied()
        })
    }

    /// No point of the node is nearer.
    #[inline(always)]
    pub fn lower<const D: usize>(&self, node: usize, query: &[f64; D]) -> f64 {
        let (low, high) = self.sides::<D>(node);
        let mut gaps = [0.0; D];
        for c in 0..D {
            gaps[c] = greater(greater(low[c] - query[c], query[c] - high[c]), 0.0);
        }
        total(&gaps)
    }

    /// No point of the node is farther.
    #[inline(always)]
    pub fn upper<const D: usize>(&self, node: usize, query: &[f64; D]) -> f64 {
        let (low, high) = self.sides::<D>(node);
        let mut reaches = [0.0; D];
        for c in 0..D {
            reaches[c] = greater(query[c] - low[c], high[c] - query[c]);
        }
        total(&reaches)
    }

    #[inline(always)]
    fn sides<const D: usize>(&self, node: usize) -> (&[f64], &[f64]) {
        self.boxes[2 * D * node..][..2 * D].split_at(D)
    }

    /// Hands over the distances of a leaf's points, the same bits as `squared`, and their places.
    #[inline(always)]
    pub fn scan<const D: usize>(
        &self,
        leaf: usize,
        query: &[f64; D],
        mut take: impl FnMut(&[f64; GROUP], &[u32; GROUP]),
    ) {
        let (first, groups) = ((leaf - self.leaves) * self.stride, self.stride / GROUP);
        let places = self.places[first..first + self.stride].as_chunks::<GROUP>().0;
        let columns = self.columns[first / GROUP * D..][..groups * D].as_chunks::<D>().0;
        for (columns, places) in columns.iter().zip(places) {
            let mut values = [0.0; GROUP];
            for (lane, value) in values.iter_mut().enumerate() {
                let mut differences = [0.0; D];
                for c in 0..D {
                    differences[c] = query[c] - columns[c][lane];
                }
                *value = total(&differences);
            }
            take(&values, places);
        }
    }

    /// Lists the points of the `whole` nodes.
    pub fn unfold(&self, list: &mut List) {
        for node in list.whole.drain(..) {
            list.listed.extend(self.places(node).map(|place| (0, place)));
        }
    }
}

/// Rows one after the other.
pub(super) fn wide<'a, T: Coordinate>(size: usize, row: impl Fn(usize) -> &'a [T]) -> Vec<f64> {
    (0..size).flat_map(|i| row(i).iter().map(|value| value.wide())).collect()
}

/// In the order of `f64::total_cmp`.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (bits >> 63 & i64::MAX)
}

/// Measured against the products, which take 0.2 to 0.4 ns for a pair, while building takes some
/// 100 ns for a point; a query needs about 5 us in two dimensions, three times as much in four.
fn pays<T: Coordinate>(search: &Search<'_, T>, depth: usize) -> bool {
    let (queries, points) = (search.queries.len(), search.points.len());
    search.sets.dim <= 5 && queries >= 512 && points >= 512 && points / 8 > depth
}

/// The second where there is a NaN.
#[inline(always)]
fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The sum of squares in the order of `squared`; sums that have no coordinate are left out.
#[inline(always)]
fn total<const D: usize>(differences: &[f64; D]) -> f64 {
    let mut sums = [0.0; LANES];
    for (c, difference) in differences.iter().enumerate() {
        let square = difference * difference;
        sums[c % LANES] = if c < LANES { square } else { sums[c % LANES] + square };
    }
    let sum = |c: usize| (c < D).then(|| sums[c]);
    let plus = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    let even = plus(plus(sum(0), sum(4)), plus(sum(2), sum(6)));
    plus(even, plus(plus(sum(1), sum(5)), plus(sum(3), sum(7)))).unwrap_or(0.0)
}
