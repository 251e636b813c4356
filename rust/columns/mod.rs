//! Columns of numbers: what rounding may move them by, and bins that split no real number.
//!
//! [`grains`] reads off each column which format it was rounded to, [`steps`] finds the gaps between
//! sorted values that an edge may lie in, and [`bins`] chooses among them. Each loop over numbers of
//! a pilot is here; Python sorts the columns, because its sort is vectorised.

pub(crate) mod bins;
pub(crate) mod grains;
pub(crate) mod steps;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::pool::each;

/// Numbers in a piece of work: some tenths of a millisecond.
const PIECE: usize = 1 << 15;
/// Pieces that are worth another thread.
const PIECES_PER_THREAD: usize = 4;

/// Calls `work` on ranges of columns that hold about [`PIECE`] numbers, and returns the results in
/// the order of the columns.
fn on_pieces<T: Send>(
    columns: usize,
    numbers: usize,
    threads: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let step = (PIECE * columns).div_ceil(numbers.max(1)).clamp(1, columns.max(1));
    let threads = threads.min(numbers / PIECE / PIECES_PER_THREAD).max(1);
    let pieces = (0..columns).step_by(step).map(|first| first..(first + step).min(columns));
    let run = |results: &mut Vec<(usize, T)>, piece: Range<usize>| {
        results.push((piece.start, work(piece)));
    };
    let merge = |all: &mut Vec<(usize, T)>, some: Vec<(usize, T)>| all.extend(some);
    let mut results = each(pieces, threads, &AtomicBool::new(false), run, merge)?;
    results.sort_unstable_by_key(|(first, _)| *first);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_columns_in_order_on_any_number_of_threads() {
        for (columns, numbers) in [(0, 0), (1, 0), (7, 7), (7, 7 << 20), (1000, 1 << 20)] {
            for threads in [1, 3] {
                let pieces = on_pieces(columns, numbers, threads, |piece| piece).unwrap();
                let places: Vec<_> = pieces.into_iter().flatten().collect();
                assert_eq!(places, (0..columns).collect::<Vec<_>>());
            }
        }
    }
}
