//! Which bin a value falls into, and how many values fall into each.
//!
//! Sorted edges make one bin more than they are; a value's bin is the number of edges at or below
//! it.

use std::hint::select_unpredictable;

use super::checks::check_sorted;
use super::grid::Grid;
use crate::error::Error;

/// Values looked up side by side, so that none waits for another.
pub(crate) const TILE: usize = 128;

/// Counts how many values fall into each of the `edges.len() + 1` bins; NaN falls into none.
///
/// # Errors
///
/// Edges out of order or NaN; `out` of another length than one more than the edges.
pub fn bin_counts(values: &[f64], edges: &[f64], out: &mut [u64]) -> Result<(), Error> {
    check_sorted("edges", edges)?;
    if out.len() != edges.len() + 1 {
        let requirement = format!("of length {}, one more than edges", edges.len() + 1);
        return Err(Error::invalid("out", requirement, out.len()));
    }
    let search = Search::new(edges, values.len());
    // One place more, for NaN.
    let mut counts = vec![0_u64; out.len() + 1];
    let mut bins = [0; TILE];
    for tile in values.chunks(TILE) {
        let bins = &mut bins[..tile.len()];
        search.find(tile, bins);
        for &bin in &*bins {
            counts[bin as usize] += 1;
        }
    }
    out.copy_from_slice(&counts[..out.len()]);
    Ok(())
}

/// Counts how many of each column's sorted values lie below each of its points.
///
/// `sorted` holds `rows` values of each column, `points` as many points of each as `out` has places
/// for; a point that is NaN is above every number.
pub fn count_below(sorted: &[f64], rows: usize, points: &[f64], of_each: usize, out: &mut [i64]) {
    let columns = sorted.chunks_exact(rows.max(1)).zip(points.chunks_exact(of_each.max(1)));
    for ((values, points), counts) in columns.zip(out.chunks_exact_mut(of_each.max(1))) {
        for (&point, count) in points.iter().zip(counts) {
            let is_below = |value: &f64| *value < point || (point.is_nan() && !value.is_nan());
            *count = values.partition_point(is_below) as i64;
        }
    }
}

/// Up to so many edges are all compared.
const FEW: usize = 4;

/// A search for bins, prepared for many values.
///
/// Where edges and values are many, a grid of equal cells says between which edges to search. The
/// cell of a value is a nondecreasing function of it in floating point too, so an edge in a lower
/// cell is below the value and one in a higher cell above it: the answer is exact, whatever is
/// rounded.
pub(crate) struct Search {
    /// The edges, then NaN, which is at or below nothing, for searches that run over the end.
    edges: Vec<f64>,
    count: usize,
    grid: Option<Grid>,
}

impl Search {
    /// A search among sorted edges, fewer than 2^32, that will be used for about `uses` values.
    pub(crate) fn new(edges: &[f64], uses: usize) -> Self {
        let worthwhile = edges.len() > FEW && uses > 16 * edges.len();
        let grid = if worthwhile { Grid::best(edges) } else { None };
        let over = grid.as_ref().map_or(1, |grid| grid.most);
        let mut padded = edges.to_vec();
        padded.resize(edges.len() + over, f64::NAN);
        Self { edges: padded, count: edges.len(), grid }
    }

    /// The bin of NaN, after all others.
    pub(crate) fn nowhere(&self) -> u32 {
        self.count as u32 + 1
    }

    /// The bin of every value; NaN has one of its own, the last.
    pub(crate) fn find(&self, values: &[f64], bins: &mut [u32]) {
        match (self.count, &self.grid) {
            (0, _) => self.few::<0>(values, bins),
            (1, _) => self.few::<1>(values, bins),
            (2, _) => self.few::<2>(values, bins),
            (3, _) => self.few::<3>(values, bins),
            (FEW, _) => self.few::<FEW>(values, bins),
            (_, Some(grid)) if grid.most == 1 => self.near::<1>(grid, values, bins),
            (_, Some(grid)) if grid.most == 2 => self.near::<2>(grid, values, bins),
            (_, Some(grid)) => {
                for (&value, bin) in values.iter().zip(&mut *bins) {
                    *bin = grid.first(value);
                }
                self.halve(values, bins, grid.most);
            }
            (count, None) => {
                bins.fill(0);
                self.halve(values, bins, count);
            }
        }
    }

    /// Compares with the first `N` edges, which are all.
    fn few<const N: usize>(&self, values: &[f64], bins: &mut [u32]) {
        let edges: [f64; N] = std::array::from_fn(|i| self.edges[i]);
        let nowhere = self.nowhere();
        for (&value, bin) in values.iter().zip(bins) {
            let below = edges.iter().map(|&edge| u32::from(edge <= value)).sum();
            *bin = if value.is_nan() { nowhere } else { below };
        }
    }

    /// Compares with the `N` edges from the cell's first one on.
    fn near<const N: usize>(&self, grid: &Grid, values: &[f64], bins: &mut [u32]) {
        let nowhere = self.nowhere();
        for (&value, bin) in values.iter().zip(bins) {
            let first = grid.first(value);
            let edges = &self.edges[first as usize..first as usize + N];
            let below = first + edges.iter().map(|&edge| u32::from(edge <= value)).sum::<u32>();
            *bin = if value.is_nan() { nowhere } else { below };
        }
    }

    /// Halves the `size` edges from each bin so far on, with the same steps for every value: one
    /// that has fewer edges to search finds later ones above it, or NaN.
    fn halve(&self, values: &[f64], bins: &mut [u32], mut size: usize) {
        while size > 0 {
            let half = size.div_ceil(2);
            for (&value, bin) in values.iter().zip(&mut *bins) {
                let below = self.edges[*bin as usize + half - 1] <= value;
                *bin = select_unpredictable(below, *bin + half as u32, *bin);
            }
            size -= half;
        }
        for (value, bin) in values.iter().zip(bins) {
            *bin = if value.is_nan() { self.nowhere() } else { *bin };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(edges: &[f64], value: f64) -> usize {
        edges.iter().filter(|&&edge| edge <= value).count()
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => -4.0..4.0_f64,
            4 => (-8_i32..8).prop_map(f64::from),
            1 => any::<f64>(),
            1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
        ]
    }

    fn check(edges: &[f64], values: &[f64]) {
        let mut expected = vec![0; edges.len() + 1];
        for &value in values.iter().filter(|value| !value.is_nan()) {
            expected[naive(edges, value)] += 1;
        }
        let mut counts = vec![9; edges.len() + 1];
        bin_counts(values, edges, &mut counts).unwrap();
        assert_eq!(counts, expected, "{edges:?}");
        for uses in [0, usize::MAX] {
            let search = Search::new(edges, uses);
            let mut bins = vec![0; values.len()];
            search.find(values, &mut bins);
            for (&value, bin) in values.iter().zip(bins) {
                let expected = if value.is_nan() { edges.len() + 1 } else { naive(edges, value) };
                assert_eq!(bin as usize, expected, "{value} in {edges:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn bins_are_what_a_plain_loop_finds(
            mut edges in prop::collection::vec(number(), 0..70),
            mut values in prop::collection::vec(number(), 0..400),
        ) {
            edges.retain(|edge| !edge.is_nan());
            edges.sort_by(f64::total_cmp);
            values.extend(edges.clone());
            check(&edges, &values);
        }
    }

    #[test]
    fn edges_far_off_or_next_to_each_other() {
        let close: Vec<f64> = (0..40).map(|i| f64::from_bits(1.0_f64.to_bits() + i)).collect();
        let far: Vec<f64> = (0..40).map(|i| if i < 5 { -1e300 } else { f64::from(i) }).collect();
        let wide = [f64::MIN, -1.0, 0.0, 1.0, 2.0, 3.0, f64::MAX];
        let tiny: Vec<f64> = (0..40).map(f64::from_bits).collect();
        let equal = [1.0; 30];
        for edges in [&close[..], &far, &wide, &tiny, &equal] {
            let mut values = edges.to_vec();
            values.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5, -0.0]);
            let many = values.repeat(20);
            check(edges, &many);
        }
    }

    #[test]
    fn bad_edges_are_named() {
        let refused = |edges: &[f64], length: usize| {
            bin_counts(&[0.0], edges, &mut vec![0; length]).unwrap_err().to_string()
        };
        assert!(refused(&[1.0, 0.0], 3).starts_with("edges must be numbers in nondecreasing"));
        assert!(refused(&[0.0, f64::NAN], 3).starts_with("edges must be"));
        assert!(refused(&[f64::NAN], 2).starts_with("edges must be"));
        assert!(refused(&[0.0], 1).starts_with("out must be of length 2"));
    }
}
