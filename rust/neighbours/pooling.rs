//! Distinct rows of two sets, by hashing.

use std::sync::atomic::Ordering;

use super::distance::Coordinate;
use super::search::Sets;
use crate::error::Error;
use crate::options::Options;

/// Which distinct row every row is, numbered in the order of their first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pooled {
    /// Of the rows of the first set, then of the second.
    pub ids: Vec<u32>,
    /// Where in the stack each distinct row is first.
    pub first: Vec<i64>,
}

const FREE: u32 = u32::MAX;

/// 2^64 over the golden ratio, odd: its multiples are spread in their high bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Numbers the distinct rows, on one thread; -0.0 equals 0.0, and NaN nothing.
///
/// # Errors
///
/// Options out of range; [`Error::Interrupted`].
pub fn pool_rows<T: Coordinate>(sets: Sets<'_, T>, options: &Options<'_>) -> Result<Pooled, Error> {
    let (_, _, stop) = options.settle()?;
    let slots = (2 * sets.len()).next_power_of_two().max(2);
    let mut table = vec![FREE; slots];
    let mut hashes: Vec<u64> = Vec::new();
    let mut pooled = Pooled::default();
    pooled.ids.reserve_exact(sets.len());
    for index in 0..sets.len() {
        if index % 1024 == 0 && stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let row = sets.row(index);
        let hash = key(row, index);
        let mut slot = (hash >> 32) as usize & (slots - 1);
        let id = loop {
            let id = table[slot];
            if id == FREE {
                let id = pooled.first.len() as u32;
                table[slot] = id;
                hashes.push(hash);
                pooled.first.push(index as i64);
                break id;
            }
            let same = hashes[id as usize] == hash
                && same(row, sets.row(pooled.first[id as usize] as usize));
            if same {
                break id;
            }
            slot = (slot + 1) & (slots - 1);
        };
        pooled.ids.push(id);
    }
    Ok(pooled)
}

fn same<T: Coordinate>(x: &[T], y: &[T]) -> bool {
    x.iter().zip(y).all(|(a, b)| a.wide() == b.wide())
}

/// The hash of a row; one with a NaN equals none, and does not meet its like.
fn key<T: Coordinate>(row: &[T], index: usize) -> u64 {
    hash(row) ^ if same(row, row) { 0 } else { (index as u64 + 1).wrapping_mul(FACTOR) }
}

/// Four chains of multiplications, so that one need not wait for another, then mixed.
fn hash<T: Coordinate>(row: &[T]) -> u64 {
    let mut chains = [1u64, 2, 3, 4];
    let quads = row.chunks_exact(4);
    let rest = quads.remainder();
    let step = |chain: &mut u64, value: T| {
        // Adding 0.0 turns -0.0 into 0.0.
        let word = (value.wide() + 0.0).to_bits();
        *chain = (*chain ^ word ^ (word >> 32)).wrapping_mul(FACTOR).rotate_left(29);
    };
    for quad in quads {
        for (chain, &value) in chains.iter_mut().zip(quad) {
            step(chain, value);
        }
    }
    for (chain, &value) in chains.iter_mut().zip(rest) {
        step(chain, value);
    }
    let mut hash = row.len() as u64;
    for chain in chains {
        hash = (hash ^ chain).wrapping_mul(FACTOR);
        hash ^= hash >> 32;
    }
    hash.wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_that_differ_anywhere_have_hashes_that_differ() {
        // Rows of small whole numbers, of any length: what equal hashes would make slow.
        let (mut hashes, mut slots) = (HashSet::new(), HashSet::new());
        for size in 1..=9 {
            for at in 0..size {
                for value in 0..100 {
                    let mut row = vec![1.0; size];
                    row[at] = f64::from(value) * 0.5;
                    hashes.insert(hash(&row));
                    slots.insert(hash(&row) >> 48);
                }
            }
        }
        // Every size has one row of ones more often than once.
        let distinct = (1..=9).map(|size| 99 * size + 1).sum::<usize>();
        assert_eq!(hashes.len(), distinct);
        // Of 4,464 in 2^16 slots about 4,315 are taken.
        assert!(slots.len() > 4200, "{}", slots.len());
    }

    #[test]
    fn rows_with_a_nan_are_apart_and_equal_rows_are_not() {
        let slots = |row: &[f64]| (0..1000).map(|i| key(row, i) >> 40).collect::<HashSet<_>>();
        assert_eq!(slots(&[1.0, 2.0]).len(), 1);
        assert!(slots(&[1.0, f64::NAN]).len() > 990);
    }
}
