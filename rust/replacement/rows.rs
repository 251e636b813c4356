//! Draws from rows of probabilities by the alias method.

use crate::error::Error;
use crate::options::Options;
use crate::pool::each;
use crate::random::{Purpose, Side};
use crate::simd::prefetch;
use crate::words::Words;

/// Draws of a block, a stream each.
const BLOCK: usize = 1 << 14;

/// The most outputs of a row: an entry has 16 bits for its alias.
pub const MOST_OUTPUTS: usize = 1 << ALIAS_BITS;
const ALIAS_BITS: u32 = 16;

/// Prepared rows, and which of them each input word has.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    thresholds: &'a [u64],
    entries: &'a [u32],
    outputs: usize,
    slots: &'a [i64],
}

impl<'a> Rows<'a> {
    /// Rows of `outputs` columns by [`prepare_rows`]; `slots` has the row of each input word, or -1
    /// for a word whose draws are left out.
    ///
    /// # Errors
    ///
    /// No whole rows, no outputs or too many, or a slot beyond the rows.
    pub fn new(
        (thresholds, entries): (&'a [u64], &'a [u32]),
        outputs: usize,
        slots: &'a [i64],
    ) -> Result<Self, Error> {
        check_rows(entries.len(), thresholds.len(), outputs)?;
        let rows = (entries.len() / outputs) as i64;
        match slots.iter().find(|&&slot| slot < -1 || slot >= rows) {
            Some(slot) => Err(Error::invalid("slots", format!("from -1 to {}", rows - 1), slot)),
            None => Ok(Self { thresholds, entries, outputs, slots }),
        }
    }
}

fn check_rows(numbers: usize, others: usize, outputs: usize) -> Result<(), Error> {
    if !(1..=MOST_OUTPUTS).contains(&outputs) {
        return Err(Error::invalid("outputs", format!("from 1 to {MOST_OUTPUTS}"), outputs));
    }
    if numbers != others || !numbers.is_multiple_of(outputs) {
        let requirement = format!("rows of {outputs}, as many as there are thresholds");
        return Err(Error::invalid("entries", requirement, numbers));
    }
    Ok(())
}

/// Fills `thresholds` and `entries` with the alias rows of rows of log weights, `outputs` to a row.
///
/// Weights need not add up to 1. Of the random words that choose column j those whose position in it
/// is below threshold j give output j, the others its alias. Entry j has the 16 highest bits of the
/// threshold above the alias: a quarter of what both take, and all that most draws read.
///
/// # Errors
///
/// Sizes that do not fit; more than [`MOST_OUTPUTS`]; a row with a NaN, with an infinite weight, or
/// without a positive one; options out of range; [`Error::Interrupted`].
pub fn prepare_rows(
    log_rows: &[f64],
    outputs: usize,
    (thresholds, entries): (&mut [u64], &mut [u32]),
    options: &Options<'_>,
) -> Result<(), Error> {
    let (_, threads, stop) = options.settle()?;
    check_rows(entries.len(), thresholds.len(), outputs)?;
    if entries.len() != log_rows.len() {
        return Err(Error::invalid(
            "log_rows",
            format!("{} numbers", entries.len()),
            log_rows.len(),
        ));
    }
    if let Some(row) = log_rows.chunks_exact(outputs).find(|row| !is_weighted(row)) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        return Err(Error::invalid("log_rows", "numbers below infinity, one finite", largest));
    }
    let columns = thresholds.chunks_exact_mut(outputs).zip(entries.chunks_exact_mut(outputs));
    let parts = log_rows.chunks_exact(outputs).zip(columns);
    let work = |room: &mut Room, (row, columns): (&[f64], (&mut [u64], &mut [u32]))| {
        room.prepare(row, columns);
    };
    each(parts, threads, stop, work, |_, _| ()).map(|_| ())
}

fn is_weighted(row: &[f64]) -> bool {
    let below = row.iter().all(|&value| value < f64::INFINITY);
    below && row.iter().any(|&value| value > f64::NEG_INFINITY)
}

/// A thread's room.
#[derive(Default)]
struct Room {
    shares: Vec<f64>,
    small: Vec<usize>,
    large: Vec<usize>,
}

impl Room {
    /// Vose's construction: shares are probabilities times the number of outputs, and every column
    /// that is not full is filled up from one with more than its share.
    fn prepare(&mut self, log_row: &[f64], columns: (&mut [u64], &mut [u32])) {
        let (thresholds, entries) = columns;
        let mut fill = |j: usize, share: f64, alias: usize| {
            (thresholds[j], entries[j]) = make_entry(share, alias);
        };
        let Self { shares, small, large } = self;
        let top = log_row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.clear();
        shares.extend(log_row.iter().map(|&value| (value - top).exp()));
        let factor = shares.len() as f64 / shares.iter().sum::<f64>();
        let mut likeliest = 0;
        small.clear();
        large.clear();
        for j in 0..shares.len() {
            shares[j] *= factor;
            if shares[j] > shares[likeliest] {
                likeliest = j;
            }
            if shares[j] < 1.0 { small.push(j) } else { large.push(j) }
        }
        while let (Some(&from), Some(&to)) = (large.last(), small.last()) {
            small.pop();
            fill(to, shares[to], from);
            shares[from] -= 1.0 - shares[to];
            if shares[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        for &full in &*large {
            fill(full, 1.0, full);
        }
        // Rounding leaves columns that nothing is left to fill: what they lack is at most some
        // 2^-53 each, unless their share is tiny, and then it must not become a whole column.
        for &rest in &*small {
            fill(rest, shares[rest], likeliest);
        }
    }
}

/// The threshold `share` 2^64, and the entry with its highest bits and the alias.
fn make_entry(share: f64, alias: usize) -> (u64, u32) {
    // 2^64 is beyond the largest word; casts saturate, and a full column is its own alias.
    let threshold = (share * 18_446_744_073_709_551_616.0).ceil() as u64;
    (threshold, ((threshold >> 48) as u32) << ALIAS_BITS | alias as u32)
}

/// Fills `out` with an output for each draw; draw i is on input word `inputs[i % inputs.len()]`.
///
/// Draws on words without a row keep what `out` has.
///
/// # Errors
///
/// No inputs, or an input word without a slot; options out of range; [`Error::Interrupted`].
///
/// ```
/// use dpcore::Options;
/// use dpcore::replacement::{Rows, draw, prepare_rows};
///
/// let options = Options::new();
/// let log_rows = [0.5_f64, 0.5, 0.0].map(f64::ln);
/// let (mut thresholds, mut entries) = ([0; 3], [0; 3]);
/// prepare_rows(&log_rows, 3, (&mut thresholds, &mut entries), &options)?;
/// let rows = Rows::new((&thresholds, &entries), 3, &[0])?;
/// let mut out = [0; 1000];
/// draw(rows, &[0], 7, &mut out, &options)?;
/// let ones = out.iter().sum::<i64>();
/// assert!(out.iter().all(|&output| output < 2) && (430..570).contains(&ones));
/// # Ok::<(), dpcore::Error>(())
/// ```
pub fn draw(
    rows: Rows<'_>,
    inputs: &[i64],
    seed: u64,
    out: &mut [i64],
    options: &Options<'_>,
) -> Result<(), Error> {
    let (_, threads, stop) = options.settle()?;
    check_inputs(inputs, rows.slots.len())?;
    let parts = out.chunks_mut(BLOCK).enumerate();
    let work = |(): &mut (), (block, out): (usize, &mut [i64])| {
        let words = Words::of_block(seed, Purpose::Sample, Side::X, block as u64);
        draw_block(rows, inputs, (block * BLOCK) % inputs.len(), words, out);
    };
    each(parts, threads, stop, work, |(), ()| ())
}

/// Checks that there are input words and that each is the number of one of `words`.
pub(super) fn check_inputs(inputs: &[i64], words: usize) -> Result<(), Error> {
    if inputs.is_empty() {
        return Err(Error::invalid("inputs", "at least one word", 0));
    }
    let range = 0..words as i64;
    match inputs.iter().find(|input| !range.contains(input)) {
        Some(input) => {
            Err(Error::invalid("inputs", format!("from 0 to {}", words as i64 - 1), input))
        }
        None => Ok(()),
    }
}

/// Draws whose entries are asked for before the first is read: rows of many words are in no cache
/// near by.
const TILE: usize = 64;

/// Draws on input words from `place` on.
fn draw_block(rows: Rows<'_>, inputs: &[i64], mut place: usize, mut words: Words, out: &mut [i64]) {
    let Rows { thresholds, entries, outputs, slots } = rows;
    let (mut random, mut starts) = ([0; TILE], [0; TILE]);
    for out in out.chunks_mut(TILE) {
        let random = &mut random[..out.len()];
        words.fill(random);
        for (word, start) in random.iter_mut().zip(&mut starts) {
            let slot = slots[inputs[place] as usize];
            place = if place + 1 == inputs.len() { 0 } else { place + 1 };
            // The upper half of the product is a column, uniform; the lower one where in it.
            let column = ((u128::from(*word) * outputs as u128) >> 64) as usize;
            *start = if slot < 0 { entries.len() } else { slot as usize * outputs };
            if let Some(entry) = entries.get(*start + column..=*start + column) {
                prefetch(entry);
            }
        }
        for ((out, &word), start) in out.iter_mut().zip(&*random).zip(starts) {
            let product = u128::from(word) * outputs as u128;
            let (column, within) = ((product >> 64) as usize, product as u64);
            let Some(&entry) = entries.get(start + column) else { continue };
            let (high, bits) = (entry >> ALIAS_BITS, (within >> 48) as u32);
            let alias = entry & (u32::MAX >> ALIAS_BITS);
            let below =
                if high == bits { within < thresholds[start + column] } else { bits < high };
            // No branch, which half of the draws would take unforeseen.
            let own = u32::from(below).wrapping_neg();
            *out = i64::from(alias ^ ((alias ^ column as u32) & own));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::atomic::AtomicBool;

    use super::*;

    type Columns = (Vec<u64>, Vec<u32>);

    fn prepared(log_rows: &[f64], outputs: usize) -> Columns {
        let (mut thresholds, mut entries) = (vec![0; log_rows.len()], vec![0; log_rows.len()]);
        let columns = (&mut thresholds[..], &mut entries[..]);
        prepare_rows(log_rows, outputs, columns, &Options::new()).unwrap();
        (thresholds, entries)
    }

    /// The probability of each output of one row, summed over the columns.
    fn law((thresholds, entries): &Columns) -> Vec<f64> {
        let outputs = entries.len() as f64;
        let mut law = vec![0.0; entries.len()];
        for (j, (&threshold, &entry)) in thresholds.iter().zip(entries).enumerate() {
            assert_eq!(u64::from(entry >> 16), threshold >> 48);
            let share = threshold as f64 / 2.0_f64.powi(64) / outputs;
            law[j] += share;
            law[(entry & 0xffff) as usize] += 1.0 / outputs - share;
        }
        law
    }

    #[test]
    fn entries_have_the_law_of_the_row() {
        for outputs in [1_usize, 2, 3, 7, 100, 1000] {
            for steepness in [0.0, 0.1, 3.0, 40.0] {
                let log_row: Vec<f64> = (0..outputs)
                    .map(|j| -steepness * ((j * 37 % outputs) as f64) / outputs as f64)
                    .collect();
                let sum: f64 = log_row.iter().map(|value| value.exp()).sum();
                for (value, found) in log_row.iter().zip(law(&prepared(&log_row, outputs))) {
                    let wanted = value.exp() / sum;
                    // Shares of full columns are what is left after up to `outputs` subtractions.
                    assert!((found - wanted).abs() < 1e-13, "{found} {wanted}");
                }
            }
        }
    }

    #[test]
    fn impossible_outputs_are_never_drawn_and_rare_ones_stay_rare() {
        // Rounding must not give the last column of a row a share of 1.
        for outputs in [3_usize, 10, 49, 1000] {
            let log_row: Vec<f64> = (0..outputs)
                .map(|j| if j % 2 == 1 { f64::NEG_INFINITY } else { -0.1 * j as f64 })
                .collect();
            let columns = prepared(&log_row, outputs);
            assert!(law(&columns).iter().skip(1).step_by(2).all(|&share| share == 0.0));
            for (j, (threshold, entry)) in columns.0.iter().zip(&columns.1).enumerate() {
                assert!(j % 2 == 0 || *threshold == 0);
                assert!(*threshold == u64::MAX || entry % 2 == 0);
            }
        }
    }

    #[test]
    fn draws_depend_neither_on_threads_nor_on_which_rows_are_prepared() {
        let (outputs, size) = (5, 3 * BLOCK + 17);
        let log_rows: Vec<f64> = (0..3 * outputs).map(|j| -f64::from((j * 7 % 11) as u8)).collect();
        let columns = prepared(&log_rows, outputs);
        let inputs = [0, 2, 1, 1, 0, 2, 2];
        let drawn = |rows: Range<usize>, slots: &[i64], threads: usize, out: &mut [i64]| {
            let numbers = rows.start * outputs..rows.end * outputs;
            let columns = (&columns.0[numbers.clone()], &columns.1[numbers]);
            let rows = Rows::new(columns, outputs, slots).unwrap();
            draw(rows, &inputs, 5, out, &Options::new().threads(threads)).unwrap();
        };
        let (mut whole, mut other) = (vec![0; size], vec![0; size]);
        drawn(0..3, &[0, 1, 2], 1, &mut whole);
        drawn(0..2, &[0, 1, -1], 2, &mut other);
        drawn(2..3, &[-1, -1, 0], 4, &mut other);
        assert_eq!(whole, other);
        let mut counts = vec![[0_u32; 5]; 3];
        for (i, &output) in whole.iter().enumerate() {
            counts[inputs[i % 7] as usize][output as usize] += 1;
        }
        for (row, counts) in log_rows.chunks_exact(outputs).zip(counts) {
            let sum: f64 = row.iter().map(|value| value.exp()).sum();
            let all = f64::from(counts.iter().sum::<u32>());
            for (value, count) in row.iter().zip(counts) {
                let share = value.exp() / sum;
                // Six standard deviations; without the rows' own weights by far more.
                let deviation = (f64::from(count) / all - share).abs();
                assert!(deviation < 6.0 * (share * (1.0 - share) / all).sqrt() + 1e-9);
            }
        }
    }

    #[test]
    fn wrong_rows_and_inputs_are_refused() {
        let options = Options::new();
        let (mut thresholds, mut entries) = ([0; 2], [0; 2]);
        let mut prepare = |log_rows: &[f64], outputs: usize| {
            prepare_rows(log_rows, outputs, (&mut thresholds, &mut entries), &options)
        };
        for row in [[f64::NAN, 0.0], [f64::INFINITY, 0.0], [f64::NEG_INFINITY; 2]] {
            assert!(prepare(&row, 2).is_err());
        }
        assert!(prepare(&[0.0; 3], 2).is_err() && prepare(&[0.0; 2], 3).is_err());
        assert!(prepare(&[0.0; 2], 0).is_err() && prepare(&[0.0; 2], MOST_OUTPUTS + 1).is_err());
        prepare(&[0.0; 2], 2).unwrap();
        let columns = (&thresholds[..], &entries[..]);
        assert!(Rows::new(columns, 2, &[1]).is_err() && Rows::new(columns, 3, &[0]).is_err());
        let rows = Rows::new(columns, 2, &[0, -1]).unwrap();
        let mut out = [9; 4];
        for inputs in [&[][..], &[2], &[-1]] {
            assert!(draw(rows, inputs, 1, &mut out, &options).is_err());
        }
        draw(rows, &[1], 1, &mut out, &options).unwrap();
        assert_eq!(out, [9; 4]);
        let stop = AtomicBool::new(true);
        let stopped = draw(rows, &[0], 1, &mut out, &options.stop(&stop));
        assert_eq!(stopped, Err(Error::Interrupted));
    }
}
