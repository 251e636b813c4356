//! How unlike two samples of a column are: Pearson's statistic of its bins, for many columns.
//!
//! The columns of a pilot are screened by this figure. What is derived from a number, its
//! remainders, is screened too, and there are up to 23 of these for a column.

// Places, and differences from a smallest value, are at least 0.
#![allow(clippy::cast_sign_loss)]

/// Bins of a column with many values.
const BINS: usize = 32;
/// Whole numbers within so wide a range have a bin each.
const MAX_RANGE: f64 = 256.0;
/// Fewer finite values of a column have no remainders that are compared.
const MIN_FINITE_VALUES: usize = 16;
/// Remainders are those of numbers rounded to so many significant bits.
const ROUNDED_BITS: u32 = 16;
/// The numbers below it have exact quotients and remainders here; those beyond are left to `%`.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;
/// So many remainders have places that 32 bits hold.
const MAX_KEYS: usize = 1 << 30;
const SIGN: u64 = 1 << 63;

/// Pearson's statistic of two samples in bins, and its degrees of freedom, at least 1.
///
/// Freedom 0 stands for a column that is not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The statistic.
    pub statistic: f64,
    /// Bins with a value, less one.
    pub freedom: f64,
}

/// What comparisons need, kept from column to column.
#[derive(Default)]
struct Scratch {
    sorted: Vec<f64>,
    edges: Vec<f64>,
    counts: Vec<[u64; 2]>,
    /// Remainders with their sides, in the order of the values.
    keys: Vec<u64>,
    /// Ends of the intervals into which remainders are sorted first.
    ends: Vec<u32>,
}

/// Compares the first `split` values of every column with the others.
///
/// `columns` holds them one after the other, `rows` values each.
pub fn compare_columns(columns: &[f64], rows: usize, split: usize, out: &mut [Comparison]) {
    let mut scratch = Scratch::default();
    for (column, comparison) in columns.chunks_exact(rows.max(1)).zip(out) {
        *comparison = scratch.compare(column, split);
    }
}

/// Compares the remainders of every column by each modulus no larger than the column's spread.
///
/// The spread is the distance of its deciles. `out` has a comparison for each column and modulus.
pub fn compare_remainders(
    columns: &[f64],
    rows: usize,
    split: usize,
    moduli: &[f64],
    out: &mut [Comparison],
) {
    let mut scratch = Scratch::default();
    let (mut rounded, mut remainders) = (Vec::new(), Vec::new());
    let places = out.chunks_exact_mut(moduli.len().max(1));
    for (column, comparisons) in columns.chunks_exact(rows.max(1)).zip(places) {
        let whole = column.iter().all(|value| is_whole(*value) || !value.is_finite());
        let spread = scratch.spread(column);
        let applies = |modulus: f64| modulus <= spread && !(whole && modulus <= 1.0);
        comparisons.fill(Comparison::default());
        if scratch.sorted.len() < MIN_FINITE_VALUES || !moduli.iter().any(|&m| applies(m)) {
            continue;
        }
        rounded.clear();
        rounded.extend(column.iter().map(|&value| round(value)));
        for (&modulus, comparison) in moduli.iter().zip(comparisons) {
            if applies(modulus) {
                remainders.clear();
                remainders.extend(rounded.iter().map(|&value| remainder(value, modulus)));
                *comparison = scratch.compare_rests(&remainders, split, modulus);
            }
        }
    }
}

/// Rounds to 16 significant bits, whole numbers excepted: a remainder must not show rounding.
fn round(value: f64) -> f64 {
    if value == value.round_ties_even() || !value.is_finite() {
        return value;
    }
    // What is not whole is below 2^52. A subnormal is moved to where its bits are significant.
    let scale = if value.is_normal() { 1.0 } else { 2.0_f64.powi(200) };
    let bits = (value * scale).to_bits();
    let dropped = f64::MANTISSA_DIGITS - ROUNDED_BITS;
    let half = (1_u64 << (dropped - 1)) - 1 + (bits >> dropped & 1);
    f64::from_bits((bits + half) >> dropped << dropped) / scale
}

/// Rounds a number below 2^53 down, without a call on machines that have no instruction for it.
fn round_down(value: f64) -> f64 {
    let whole = value as i64 as f64;
    if whole > value { whole - 1.0 } else { whole }
}

fn is_whole(value: f64) -> bool {
    value.abs() >= LARGEST_WHOLE || value as i64 as f64 == value
}

/// The remainder of a division rounded down, from 0 to the modulus.
fn remainder(value: f64, modulus: f64) -> f64 {
    if value.abs() < LARGEST_WHOLE {
        // The product is exact, and so is the difference: either both have few bits, or the
        // quotient is 0 or -1. A quotient that was rounded up leaves a negative difference.
        let rest = value - round_down(value / modulus) * modulus;
        return if rest < 0.0 { rest + modulus } else { rest.abs() };
    }
    let rest = value % modulus;
    if rest < 0.0 { rest + modulus } else { rest.abs() }
}

impl Scratch {
    /// Sorts the finite values and returns the distance of their first and last deciles.
    fn spread(&mut self, column: &[f64]) -> f64 {
        self.sorted.clear();
        self.sorted.extend(column.iter().filter(|value| value.is_finite()));
        self.sorted.sort_unstable_by(f64::total_cmp);
        if self.sorted.is_empty() { 0.0 } else { self.quantile(0.9) - self.quantile(0.1) }
    }

    /// A quantile of the sorted values, interpolated from both ends alike.
    fn quantile(&self, level: f64) -> f64 {
        let last = self.sorted.len() - 1;
        let place = level * last as f64;
        let low = place.floor() as usize;
        let (a, b, share) =
            (self.sorted[low], self.sorted[(low + 1).min(last)], place - place.floor());
        if share >= 0.5 { b - (b - a) * (1.0 - share) } else { a + (b - a) * share }
    }

    fn compare(&mut self, column: &[f64], split: usize) -> Comparison {
        let (mut low, mut high, mut whole) = (0.0_f64, f64::NEG_INFINITY, true);
        for &value in column.iter().filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
            whole &= is_whole(value);
        }
        self.counts.clear();
        if whole && high - low < MAX_RANGE && high.is_finite() {
            self.counts.resize((high - low) as usize + 2, [0; 2]);
            for (row, &value) in column.iter().enumerate() {
                let bin = if value.is_finite() { (value - low) as usize + 1 } else { 0 };
                self.counts[bin][usize::from(row >= split)] += 1;
            }
        } else {
            self.choose_edges(column);
            self.counts.resize(self.edges.len() + 1, [0; 2]);
            for (row, value) in column.iter().enumerate() {
                let bin = self.edges.partition_point(|edge| is_below(*edge, *value));
                self.counts[bin][usize::from(row >= split)] += 1;
            }
        }
        sum_up(&self.counts, split as f64 / (column.len() - split).max(1) as f64)
    }

    /// Compares remainders by a modulus as `compare` does.
    ///
    /// They are spread over the modulus, so that a distribution into intervals nearly sorts them.
    fn compare_rests(&mut self, rests: &[f64], split: usize, modulus: f64) -> Comparison {
        if rests.iter().all(|rest| is_whole(*rest) || rest.is_nan()) || rests.len() > MAX_KEYS {
            return self.compare(rests, split);
        }
        self.sort_keys(rests, split, modulus);
        let places = spread_places(rests.len());
        let mut next = places.map(|place| value_of(self.keys[place])).peekable();
        // Bins end with their edge; the last one holds what lies above all edges.
        self.counts.clear();
        let mut start = 0;
        while let Some(edge) = next.next() {
            if next.peek().is_some_and(|later| !is_below(edge, *later)) {
                continue;
            }
            let size = self.keys[start..].partition_point(|key| !is_below(edge, value_of(*key)));
            self.counts.push(count_sides(&self.keys[start..start + size]));
            start += size;
        }
        self.counts.push(count_sides(&self.keys[start..]));
        sum_up(&self.counts, split as f64 / (rests.len() - split).max(1) as f64)
    }

    /// Sorts remainders, from 0 to the modulus or NaN, each with its side in the lowest bit.
    fn sort_keys(&mut self, rests: &[f64], split: usize, modulus: f64) {
        let intervals = rests.len();
        let scale = intervals as f64 / modulus;
        // NaN has the last interval.
        let interval = |rest: f64| {
            if rest.is_nan() { intervals } else { ((rest * scale) as usize).min(intervals - 1) }
        };
        self.ends.clear();
        self.ends.resize(intervals + 2, 0);
        for rest in rests {
            self.ends[interval(*rest) + 1] += 1;
        }
        for place in 1..self.ends.len() {
            self.ends[place] += self.ends[place - 1];
        }
        self.keys.clear();
        self.keys.resize(rests.len(), 0);
        for (row, rest) in rests.iter().enumerate() {
            let end = &mut self.ends[interval(*rest)];
            self.keys[*end as usize] = key_of(*rest, row >= split);
            *end += 1;
        }
        let mut start = 0;
        for end in &self.ends[..=intervals] {
            let end = *end as usize;
            if end - start > 1 {
                self.keys[start..end].sort_unstable();
            }
            start = end;
        }
    }

    /// Takes 32 order statistics as edges, each once; NaN lies above all other values.
    fn choose_edges(&mut self, column: &[f64]) {
        self.sorted.clear();
        // All NaN alike: one with a sign would come first.
        self.sorted.extend(column.iter().map(|v| if v.is_nan() { f64::NAN } else { *v }));
        self.sorted.sort_unstable_by(f64::total_cmp);
        let values = spread_places(self.sorted.len()).map(|place| self.sorted[place]);
        self.edges.clear();
        self.edges.extend(values);
        self.edges.dedup_by(|b, a| !is_below(*a, *b));
    }
}

/// Ranks of 32 order statistics of so many values, the first and the last among them.
fn spread_places(size: usize) -> impl Iterator<Item = usize> {
    let last = size - 1;
    let step = last as f64 / (BINS - 1) as f64;
    (0..BINS).map(move |i| if i == BINS - 1 { last } else { (i as f64 * step) as usize })
}

/// The bits of a number that is not negative, or of NaN, and in the lowest place its side.
fn key_of(rest: f64, is_prime: bool) -> u64 {
    let bits = if rest.is_nan() { f64::NAN.to_bits() & !SIGN } else { rest.to_bits() };
    bits << 1 | u64::from(is_prime)
}

fn value_of(key: u64) -> f64 {
    f64::from_bits(key >> 1)
}

fn count_sides(keys: &[u64]) -> [u64; 2] {
    let prime = keys.iter().map(|key| key & 1).sum::<u64>();
    [keys.len() as u64 - prime, prime]
}

/// Compares two numbers in the order in which NaN is above all others and equal to itself.
fn is_below(a: f64, b: f64) -> bool {
    a < b || (b.is_nan() && !a.is_nan())
}

fn sum_up(counts: &[[u64; 2]], share: f64) -> Comparison {
    let (mut statistic, mut bins) = (0.0, 0.0_f64);
    for &[k, k_prime] in counts {
        let (k, k_prime) = (k as f64, k_prime as f64);
        let apart = k - share * k_prime;
        statistic += apart * apart / (k + k_prime).max(1.0);
        bins += if k + k_prime > 0.0 { 1.0 } else { 0.0 };
    }
    Comparison { statistic: statistic / share, freedom: (bins - 1.0).max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(column: &[f64], split: usize) -> Comparison {
        let mut out = [Comparison::default()];
        compare_columns(column, column.len(), split, &mut out);
        out[0]
    }

    #[test]
    fn whole_numbers_have_a_bin_each() {
        let comparison = compare(&[1.0, 1.0, 2.0, f64::NAN, 2.0, 2.0, 3.0, 3.0], 4);
        // k = 1, 2, 1, 0 and k' = 0, 0, 2, 2.
        let expected = 1.0 + 2.0 + 1.0 / 3.0 + 2.0;
        assert!((comparison.statistic - expected).abs() < 1e-12);
        assert_eq!(comparison.freedom, 3.0);
    }

    #[test]
    fn equal_samples_do_not_differ_and_separate_ones_do() {
        let half: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.37).collect();
        let column = [half.clone(), half.clone()].concat();
        assert_eq!(compare(&column, 100), Comparison { statistic: 0.0, freedom: 31.0 });
        let moved: Vec<f64> = half.iter().map(|value| value + 50.0).collect();
        // One bin holds the ends of both.
        assert!(compare(&[half, moved].concat(), 100).statistic > 190.0);
    }

    #[test]
    fn remainders_in_intervals_are_compared_as_all_columns_are() {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / LARGEST_WHOLE
        };
        for rows in [2, 40, 700] {
            let uniform: Vec<f64> = (0..rows).map(|_| 60.0 * draw()).collect();
            let uneven: Vec<f64> =
                uniform.iter().map(|rest| 60.0 * (rest / 60.0).powi(9)).collect();
            let ties: Vec<f64> = uniform.iter().map(|rest| (rest / 7.0).floor() * 7.5).collect();
            let holes = uniform.iter().map(|rest| if *rest < 9.0 { f64::NAN } else { *rest });
            for rests in [holes.collect(), uniform, uneven, ties, vec![60.0; rows]] {
                let mut scratch = Scratch::default();
                let usual = scratch.compare(&rests, rows / 2);
                assert_eq!(scratch.compare_rests(&rests, rows / 2, 60.0), usual);
            }
        }
    }

    #[test]
    fn remainders_are_those_of_a_division_rounded_down() {
        let values = [0.0, -0.0, 7.5, -7.5, -1e-20, 59.999, 1e15, -1e15, 1e300, -3600.0];
        for modulus in [1.0, 10.0, 60.0, 3600.0, 1_048_576.0] {
            for value in values.map(round) {
                let rest = value % modulus;
                let expected = if rest < 0.0 { rest + modulus } else { rest.abs() };
                assert_eq!(remainder(value, modulus).to_bits(), expected.to_bits(), "{value}");
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_sixteen_bits() {
        for (value, expected) in [(0.1, 52_429.0 / 524_288.0), (12_345_678.0, 12_345_678.0)] {
            assert_eq!(round(value).to_bits(), f64::to_bits(expected));
        }
        assert!(round(f64::NAN).is_nan());
    }
}
