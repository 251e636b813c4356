//! Rows sorted side by side, each column compared with others in the same order for all rows.

/// Longer rows are sorted one by one.
const LONGEST: usize = 256;

/// A way to sort rows of one length.
pub(super) struct Sorting {
    dim: usize,
    /// Which columns to compare, in order; empty for rows that are sorted one by one.
    network: Vec<(u32, u32)>,
}

impl Sorting {
    /// For rows of `dim` numbers.
    pub(super) fn new(dim: usize) -> Self {
        Self { dim, network: if dim <= LONGEST { network(dim) } else { Vec::new() } }
    }

    /// Sorts each of the first `size` rows, NaN last.
    ///
    /// `values` holds `step` rows, column after column.
    pub(super) fn sort(&self, values: &mut [f64], step: usize, size: usize) {
        if self.network.is_empty() || values.iter().any(|value| value.is_nan()) {
            return self.one_by_one(values, step, size);
        }
        for &(low, high) in &self.network {
            let (front, back) = values.split_at_mut(high as usize * step);
            let low = low as usize * step;
            for (a, b) in front[low..low + size].iter_mut().zip(&mut back[..size]) {
                (*a, *b) = if *b < *a { (*b, *a) } else { (*a, *b) };
            }
        }
    }

    fn one_by_one(&self, values: &mut [f64], step: usize, size: usize) {
        let mut row = vec![0.0; self.dim];
        for r in 0..size {
            for (i, entry) in row.iter_mut().enumerate() {
                let value = values[i * step + r];
                // All NaN alike: one with a sign would come first.
                *entry = if value.is_nan() { f64::NAN } else { value };
            }
            row.sort_unstable_by(f64::total_cmp);
            for (i, &entry) in row.iter().enumerate() {
                values[i * step + r] = entry;
            }
        }
    }
}

/// Batcher's merge-exchange: the comparisons that sort `size` numbers, whatever they are.
///
/// Source: Knuth (1998), The Art of Computer Programming 3, section 5.2.2, algorithm M.
fn network(size: usize) -> Vec<(u32, u32)> {
    let mut comparisons = Vec::new();
    let top = size.next_power_of_two() / 2;
    let mut p = top;
    while p > 0 {
        let (mut q, mut r, mut d) = (top, 0, p);
        loop {
            let pairs = (0..size.saturating_sub(d)).filter(|i| i & p == r);
            comparisons.extend(pairs.map(|i| (i as u32, (i + d) as u32)));
            if q == p {
                break;
            }
            (d, q, r) = (q - p, q / 2, p);
        }
        p /= 2;
    }
    comparisons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network that sorts all rows of zeros and ones sorts all rows (Knuth, section 5.3.4).
    #[test]
    fn the_network_sorts() {
        for size in 1..=12_usize {
            let comparisons = network(size);
            for bits in 0..1_u32 << size {
                let mut row: Vec<u32> = (0..size).map(|i| bits >> i & 1).collect();
                for &(low, high) in &comparisons {
                    let (low, high) = (low as usize, high as usize);
                    if row[high] < row[low] {
                        row.swap(low, high);
                    }
                }
                assert!(row.is_sorted(), "{size} {bits:b}");
            }
        }
        assert_eq!(network(1), []);
        assert_eq!(network(16).len(), 63);
    }
}
