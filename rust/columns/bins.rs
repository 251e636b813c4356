//! Bins of sorted columns: edges near quantiles and around atoms.

use super::grains::Grain;
use super::on_pieces;
use super::steps::{Cuts, Step};
use crate::error::Error;

/// Place of an edge in its gap: not at a simple fraction, where an unseen atom may sit.
const SHARE: f64 = 0.381_966_011_250_105;
/// Columns with at most so many values, each met so often, are all atoms.
const MAX_ALPHABET_SIZE: usize = 64;
const MIN_ATOM_COUNT: usize = 8;
/// Elsewhere a value with this share of all is an atom, if at most `MAX_SENTINELS` have it.
const MIN_ATOM_SHARE: f64 = 0.005;
const MAX_SENTINELS: usize = 8;
/// An atom's bin reaches so many tolerances into a continuum around it.
const ATOM_REACH_TOLERANCES: f64 = 16.0;
const TAIL_LEVELS: [f64; 4] = [0.001, 0.003, 0.01, 0.03];
const OUTPUTS_PER_BIN: usize = 100;

/// Bins of columns, one column after the other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Bins {
    /// Sorted edges of each column; they make one bin more than they are, and NaN has another.
    pub edges: Vec<f64>,
    /// How many edges each column has.
    pub sizes: Vec<i64>,
    /// What each bin says in a pattern: 0 for ordinary values, another number for each atom, and
    /// for infinities and NaN if they occur.
    pub symbols: Vec<i64>,
}

/// Cuts columns into bins.
///
/// Column i is `values[ends[i - 1]..ends[i]]`, sorted, NaN last. It has about `bins` quantile bins
/// for ordinary values, besides some in its tails.
///
/// # Errors
///
/// `ends` are not those of all columns.
pub(crate) fn bin_columns(
    values: &[f64],
    ends: &[usize],
    grains: &[Grain],
    bins: usize,
    threads: usize,
) -> Result<Bins, Error> {
    if !ends.is_sorted() || ends.last().copied().unwrap_or(0) != values.len() {
        return Err(Error::invalid("ends", format!("sorted, up to {}", values.len()), ends.last()));
    }
    if grains.len() != ends.len() {
        return Err(Error::invalid("grains", format!("of {} columns", ends.len()), grains.len()));
    }
    let parts = on_pieces(ends.len(), values.len(), threads, |piece| {
        let (mut found, mut scratch) = (Bins::default(), Scratch::default());
        let mut start = if piece.start == 0 { 0 } else { ends[piece.start - 1] };
        for (end, grain) in ends[piece.clone()].iter().zip(&grains[piece]) {
            scratch.bin_column(&values[start..*end], grain, bins, &mut found);
            start = *end;
        }
        found
    })?;
    let mut all = Bins::default();
    for part in parts {
        all.edges.extend(part.edges);
        all.sizes.extend(part.sizes);
        all.symbols.extend(part.symbols);
    }
    Ok(all)
}

/// Rows and columns that are copied at a time: columns are often a power of two apart, where their
/// lines in the cache would displace each other.
#[cfg(feature = "python")]
const TILE: [usize; 2] = [64, 16];

/// Copies columns of rows of `width` numbers, one after the other, or their differences to the
/// columns before them; the first column has none before it.
#[cfg(feature = "python")]
pub(crate) fn gather(
    rows: &[f64],
    width: usize,
    columns: &[usize],
    differences: bool,
    out: &mut [f64],
) {
    let size = rows.len().checked_div(width).unwrap_or(0);
    if size == 0 {
        return;
    }
    let mut tile = [0.0; TILE[0] * TILE[1]];
    let groups = columns.chunks(TILE[1]).zip(out.chunks_mut(TILE[1] * size));
    for (columns, out) in groups {
        for (place, rows) in rows.chunks(TILE[0] * width).enumerate() {
            for (place, row) in rows.chunks_exact(width).enumerate() {
                let tile = tile[place..].iter_mut().step_by(TILE[0]);
                for (&column, value) in columns.iter().zip(tile) {
                    let before = if differences && column > 0 { row[column - 1] } else { 0.0 };
                    // Without one before it each keeps its bits, -0.0 as well.
                    *value = row[column] - before;
                }
            }
            let (start, count) = (place * TILE[0], rows.len() / width);
            for (out, tile) in out.chunks_exact_mut(size).zip(tile.chunks_exact(TILE[0])) {
                out[start..start + count].copy_from_slice(&tile[..count]);
            }
        }
    }
}

/// Vectors that are used for one column after the other.
#[derive(Default)]
struct Scratch {
    steps: Vec<Step>,
    /// Where edges may lie; the values between two gaps are a cluster, which no edge splits.
    gaps: Cuts,
    /// Clusters that are atoms, increasing, and how many values each has.
    atoms: Vec<(usize, usize)>,
    /// Places among the gaps of those that have an edge.
    chosen: Vec<usize>,
}

impl Scratch {
    fn bin_column(&mut self, values: &[f64], grain: &Grain, bins: usize, found: &mut Bins) {
        let first = values.partition_point(|value| *value == f64::NEG_INFINITY);
        let last = first + values[first..].partition_point(|value| value.is_finite());
        let (finite, rest) = (&values[first..last], &values[last..]);
        self.gaps.find(finite, grain, &mut self.steps);
        self.find_atoms(finite.len());
        self.choose_gaps(finite.len(), bins);
        let (start, top) = (found.edges.len(), self.atoms.len() as i64);
        // Atoms are numbered in their order.
        let symbol_of = |cluster: usize| {
            self.atoms.binary_search_by_key(&cluster, |atom| atom.0).map_or(0, |i| i as i64 + 1)
        };
        if first > 0 {
            found.edges.push(f64::MIN);
            found.symbols.push(top + 1);
        }
        found.symbols.push(symbol_of(0));
        for place in &self.chosen {
            // The cluster that begins a bin tells whether the bin is an atom.
            let (before, after) = (symbol_of(*place), symbol_of(place + 1));
            let near = [before > 0 && after == 0, after > 0 && before == 0];
            let gap = self.gaps.at(*place);
            found.edges.push(place_edge(finite[gap], finite[gap + 1], near, grain));
            found.symbols.push(after);
        }
        if rest.first() == Some(&f64::INFINITY) {
            found.edges.push(f64::INFINITY);
            found.symbols.push(top + 2);
        }
        let has_nan = rest.last().is_some_and(|value| value.is_nan());
        found.symbols.push(if has_nan { top + 3 } else { 0 });
        found.sizes.push((found.edges.len() - start) as i64);
    }

    /// Finds which clusters are atoms.
    fn find_atoms(&mut self, size: usize) {
        let count = self.gaps.len() + 1;
        let is_alphabet = count <= MAX_ALPHABET_SIZE && size >= MIN_ATOM_COUNT * count;
        let least = (MIN_ATOM_COUNT as f64).max(MIN_ATOM_SHARE * size as f64);
        #[allow(clippy::cast_sign_loss, reason = "it is at least MIN_ATOM_COUNT")]
        let least = if is_alphabet { 0 } else { least.ceil() as usize };
        self.atoms.clear();
        if self.gaps.has_all() && self.gaps.len() > 0 {
            // Each value is a cluster.
            return;
        }
        let mut start = 0;
        for (cluster, end) in self.gaps.iter().map(|gap| gap + 1).chain([size]).enumerate() {
            if end - start >= least {
                if !is_alphabet && self.atoms.len() == MAX_SENTINELS {
                    self.atoms.clear();
                    return;
                }
                self.atoms.push((cluster, end - start));
            }
            start = end;
        }
    }

    /// Chooses a gap on either side of an atom, and near every quantile of the other values.
    fn choose_gaps(&mut self, size: usize, bins: usize) {
        self.chosen.clear();
        let sides = self.atoms.iter().flat_map(|atom| [atom.0.wrapping_sub(1), atom.0]);
        self.chosen.extend(sides.filter(|gap| *gap < self.gaps.len()));
        let ordinary = size - self.atoms.iter().map(|atom| atom.1).sum::<usize>();
        if ordinary > 0 && self.gaps.len() > 0 {
            let (bins, total) = (bins.min(ordinary / OUTPUTS_PER_BIN).max(1), ordinary as f64);
            for level in (1..bins).map(|i| i as f64 / bins as f64) {
                self.chosen.push(self.nearest_gap(level * total));
            }
            for level in TAIL_LEVELS {
                if 1.0 / bins as f64 > level && level * total >= 4.0 {
                    self.chosen.push(self.nearest_gap(level * total));
                    self.chosen.push(self.nearest_gap((1.0 - level) * total));
                }
            }
        }
        self.chosen.sort_unstable();
        self.chosen.dedup();
    }

    /// Returns the gap up to which the number of ordinary values is nearest to a target.
    fn nearest_gap(&self, target: f64) -> usize {
        let last = self.gaps.len() - 1;
        let (mut after, mut end) = (0, self.gaps.len());
        while after < end {
            let middle = usize::midpoint(after, end);
            if self.ordinary_below(middle) < target {
                after = middle + 1;
            } else {
                end = middle;
            }
        }
        let after = after.clamp(1.min(last), last);
        let before = after.saturating_sub(1);
        let is_before = target - self.ordinary_below(before) <= self.ordinary_below(after) - target;
        if is_before { before } else { after }
    }

    /// Returns the number of ordinary values below a gap.
    fn ordinary_below(&self, place: usize) -> f64 {
        let atoms = self.atoms.iter().take_while(|atom| atom.0 <= place);
        (self.gaps.at(place) + 1 - atoms.map(|atom| atom.1).sum::<usize>()) as f64
    }
}

/// Places an edge between two values; one between an atom and a continuum is near the atom.
///
/// `near` states whether the atom is below, or above.
fn place_edge(low: f64, high: f64, near: [bool; 2], grain: &Grain) -> f64 {
    let reach =
        if grain.is_exact() { f64::INFINITY } else { ATOM_REACH_TOLERANCES * grain.at(low) };
    let width = high - low;
    let middle = place_between(low, high);
    let edge = match near {
        [true, _] => middle.min(low + reach),
        [_, true] if width.is_finite() => high - (width - SHARE * width).min(reach),
        // The width of the gap overflows; the reach does not.
        [_, true] => middle.max(high - reach),
        _ => middle,
    };
    if edge > low { edge } else { high }
}

/// Returns a point in a gap between finite numbers: above the low end, at most the high.
fn place_between(low: f64, high: f64) -> f64 {
    let near = low + SHARE * (high - low);
    let point = if near.is_finite() { near } else { (1.0 - SHARE) * low + SHARE * high };
    if point > low { point } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(values: &[f64]) -> Bins {
        bin_columns(values, &[values.len()], &[Grain::new(0, 0.0, 1e-9)], 32, 1).unwrap()
    }

    #[test]
    fn a_small_alphabet_is_all_atoms_and_specials_have_symbols() {
        let mut values = [[0.0; 100], [1.0; 100], [5.0; 100]].concat();
        let found = bin(&values);
        assert_eq!((found.sizes, found.symbols), (vec![2], vec![1, 2, 3, 0]));
        values.insert(0, f64::NEG_INFINITY);
        values.extend([f64::INFINITY, f64::NAN]);
        let found = bin(&values);
        assert_eq!((found.sizes, found.symbols), (vec![4], vec![4, 1, 2, 3, 5, 6]));
        assert_eq!([found.edges[0], found.edges[3]], [f64::MIN, f64::INFINITY]);
        let expected = Bins { sizes: vec![0], symbols: vec![0, 0], ..Bins::default() };
        assert_eq!(bin(&[]), expected);
    }

    #[test]
    fn a_continuum_has_quantile_bins_and_tails() {
        let values: Vec<f64> = (0..100_000).map(f64::from).collect();
        let found = bin(&values);
        assert_eq!(found.edges.len(), 31 + 2 * 4);
        assert!(found.edges.is_sorted() && found.symbols.iter().all(|symbol| *symbol == 0));
        assert_eq!(found.edges[0], 99.0 + SHARE);
    }

    #[test]
    fn columns_have_their_own_bins_on_any_number_of_threads() {
        let column: Vec<f64> = (0..4000).map(f64::from).collect();
        let values = column.repeat(50);
        let ends: Vec<usize> = (1..=50).map(|i| i * 4000).collect();
        let grains = vec![Grain::new(0, 0.0, 0.0); 50];
        let found = bin_columns(&values, &ends, &grains, 8, 1).unwrap();
        assert_eq!(bin_columns(&values, &ends, &grains, 8, 3).as_ref(), Ok(&found));
        let single = bin_columns(&column, &[4000], &grains[..1], 8, 1).unwrap();
        assert_eq!(found.edges, single.edges.repeat(50));
        assert!(bin_columns(&values, &ends[1..], &grains, 8, 1).is_err());
        assert!(bin_columns(&values, &[1], &grains[..1], 8, 1).is_err());
    }
}
