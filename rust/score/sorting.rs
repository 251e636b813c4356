/// Longer rows are sorted one by one.
const LONGEST_NETWORK: usize = 256;

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
