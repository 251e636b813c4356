//! Draws from rows of probabilities by the alias method.

use crate::error::Error;
use crate::options::Options;
use crate::pool::each;
use crate::random::{Purpose, Side};
use crate::simd::prefetch;
use crate::words::Words;

/// Draws of a block, a stream each.
const BLOCK: usize = 1 << 14;

/// Numbers of an entry: its threshold and its alias.
const PARTS: usize = 2;

/// Prepared rows, and which of them each input word has.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    entries: &'a [u64],
    outputs: usize,
    slots: &'a [i64],
}

impl<'a> Rows<'a> {
    /// Rows of `outputs` entries by [`prepare_rows`]; `slots` has the row of each input word, or -1
    /// for a word whose draws are left out.
    ///
    /// # Errors
    ///
    /// No whole rows, no outputs, or a slot beyond the rows.
    pub fn new(entries: &'a [u64], outputs: usize, slots: &'a [i64]) -> Result<Self, Error> {
        let size = outputs.saturating_mul(PARTS);
        if size == 0 || !entries.len().is_multiple_of(size) {
            let requirement = format!("rows of {outputs} entries");
            return Err(Error::invalid("entries", requirement, entries.len()));
        }
        let rows = (entries.len() / size) as i64;
        match slots.iter().find(|&&slot| slot < -1 || slot >= rows) {
            Some(slot) => Err(Error::invalid("slots", format!("from -1 to {}", rows - 1), slot)),
            None => Ok(Self { entries, outputs, slots }),
        }
    }
}

/// Fills `entries` with the alias rows of rows of log weights, `outputs` to a row.
///
/// Weights need not add up to 1. Entry j of a row is a threshold and an alias: of the random words
/// that choose column j those below the threshold give output j, the others the alias.
///
/// # Errors
///
/// Sizes that do not fit; a row with a NaN, with an infinite weight, or without a positive one;
/// options out of range; [`Error::Interrupted`].
pub fn prepare_rows(
    log_rows: &[f64],
    outputs: usize,
    entries: &mut [u64],
    options: &Options<'_>,
) -> Result<(), Error> {
    let (_, threads, stop) = options.settle()?;
    if outputs == 0 || !log_rows.len().is_multiple_of(outputs) {
        return Err(Error::invalid("log_rows", format!("rows of {outputs}"), log_rows.len()));
    }
    if entries.len() != PARTS * log_rows.len() {
        let requirement = format!("{PARTS} numbers for each log weight");
        return Err(Error::invalid("entries", requirement, entries.len()));
    }
    if let Some(row) = log_rows.chunks_exact(outputs).find(|row| !is_weighted(row)) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        return Err(Error::invalid("log_rows", "numbers below infinity, one finite", largest));
    }
    let parts = log_rows.chunks_exact(outputs).zip(entries.chunks_exact_mut(PARTS * outputs));
    let work = |room: &mut Room, (row, entries): (&[f64], &mut [u64])| room.prepare(row, entries);
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
    fn prepare(&mut self, log_row: &[f64], entries: &mut [u64]) {
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
            fill_entry(entries, to, shares[to], from);
            shares[from] -= 1.0 - shares[to];
            if shares[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        for &full in &*large {
            fill_entry(entries, full, 1.0, full);
        }
        // Rounding leaves columns that nothing is left to fill: what they lack is at most some
        // 2^-53 each, unless their share is tiny, and then it must not become a whole column.
        for &rest in &*small {
            fill_entry(entries, rest, shares[rest], likeliest);
        }
    }
}

/// Stores the threshold `share` 2^64 and the alias of column `j`.
fn fill_entry(entries: &mut [u64], j: usize, share: f64, alias: usize) {
    // 2^64, beyond the largest word: a full column is its own alias. Casts saturate.
    #[allow(clippy::cast_sign_loss)]
    let threshold = (share * 18_446_744_073_709_551_616.0).ceil() as u64;
    entries[PARTS * j] = threshold;
    entries[PARTS * j + 1] = alias as u64;
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
/// let mut entries = [0; 6];
/// prepare_rows(&log_rows, 3, &mut entries, &options)?;
/// let rows = Rows::new(&entries, 3, &[0])?;
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
        Some(input) => Err(Error::invalid("inputs", format!("from 0 to {}", words as i64 - 1), input)),
        None => Ok(()),
    }
}

/// Draws whose entries are asked for before the first is read: on 1,000 rows of 1,000 entries, which
/// are in no cache near by, four times as fast.
const TILE: usize = 64;

/// Draws on input words from `place` on.
#[allow(clippy::cast_sign_loss)]
fn draw_block(
    rows: Rows<'_>,
    inputs: &[i64],
    mut place: usize,
    mut words: Words,
    out: &mut [i64],
) {
    let mut tile = [(0, 0, 0); TILE];
    for out in out.chunks_mut(TILE) {
        for chosen in &mut tile[..out.len()] {
            // The upper half of the product is a column, uniform; the lower one where in it.
            let product = u128::from(words.word()) * rows.outputs as u128;
            let slot = rows.slots[inputs[place] as usize];
            place = if place + 1 == inputs.len() { 0 } else { place + 1 };
            let column = (product >> 64) as usize;
            *chosen = (rows.entries.len(), column, product as u64);
            if slot >= 0 {
                chosen.0 = PARTS * (slot as usize * rows.outputs + column);
                prefetch(&rows.entries[chosen.0..chosen.0 + PARTS]);
            }
        }
        for (out, chosen) in out.iter_mut().zip(tile) {
            let (entry, column, within) = chosen;
            let Some([threshold, alias]) = rows.entries.get(entry..entry + PARTS) else { continue };
            // No branch, which half of the draws would take unforeseen.
            let own = u64::from(within < *threshold).wrapping_neg();
            *out = (alias ^ ((alias ^ column as u64) & own)) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// The probability of each output, summed over the entries.
    fn law(entries: &[u64]) -> Vec<f64> {
        let outputs = entries.len() / PARTS;
        let mut law = vec![0.0; outputs];
        for (j, entry) in entries.chunks_exact(PARTS).enumerate() {
            let share = entry[0] as f64 / 2.0_f64.powi(64) / outputs as f64;
            law[j] += share;
            law[entry[1] as usize] += 1.0 / outputs as f64 - share;
        }
        law
    }

    fn prepared(log_row: &[f64]) -> Vec<u64> {
        let mut entries = vec![0; PARTS * log_row.len()];
        prepare_rows(log_row, log_row.len(), &mut entries, &Options::new()).unwrap();
        entries
    }

    #[test]
    fn entries_have_the_law_of_the_row() {
        for outputs in [1_usize, 2, 3, 7, 100, 1000] {
            for steepness in [0.0, 0.1, 3.0, 40.0] {
                let log_row: Vec<f64> = (0..outputs)
                    .map(|j| -steepness * ((j * 37 % outputs) as f64) / outputs as f64)
                    .collect();
                let sum: f64 = log_row.iter().map(|value| value.exp()).sum();
                for (value, found) in log_row.iter().zip(law(&prepared(&log_row))) {
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
            let entries = prepared(&log_row);
            for (j, entry) in entries.chunks_exact(PARTS).enumerate() {
                assert!(j % 2 == 0 || entry[0] == 0);
                assert!(entry[0] == u64::MAX || entry[1] % 2 == 0);
            }
            assert!(law(&entries).iter().skip(1).step_by(2).all(|&share| share == 0.0));
        }
    }

    #[test]
    fn draws_depend_neither_on_threads_nor_on_which_rows_are_prepared() {
        let (outputs, size) = (5, 3 * BLOCK + 17);
        let log_rows: Vec<f64> = (0..3 * outputs).map(|j| -f64::from((j * 7 % 11) as u8)).collect();
        let mut entries = vec![0; PARTS * log_rows.len()];
        prepare_rows(&log_rows, outputs, &mut entries, &Options::new()).unwrap();
        let inputs = [0, 2, 1, 1, 0, 2, 2];
        let drawn = |entries: &[u64], slots: &[i64], threads: usize, out: &mut [i64]| {
            let rows = Rows::new(entries, outputs, slots).unwrap();
            draw(rows, &inputs, 5, out, &Options::new().threads(threads)).unwrap();
        };
        let (mut whole, mut other) = (vec![0; size], vec![0; size]);
        drawn(&entries, &[0, 1, 2], 1, &mut whole);
        drawn(&entries[..2 * PARTS * outputs], &[0, 1, -1], 2, &mut other);
        drawn(&entries[2 * PARTS * outputs..], &[-1, -1, 0], 4, &mut other);
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
        let mut entries = [0; 4];
        for row in [[f64::NAN, 0.0], [f64::INFINITY, 0.0], [f64::NEG_INFINITY; 2]] {
            assert!(prepare_rows(&row, 2, &mut entries, &options).is_err());
        }
        assert!(prepare_rows(&[0.0; 3], 2, &mut entries, &options).is_err());
        assert!(prepare_rows(&[0.0; 4], 2, &mut entries, &options).is_err());
        prepare_rows(&[0.0; 2], 2, &mut entries, &options).unwrap();
        assert!(Rows::new(&entries, 2, &[1]).is_err() && Rows::new(&entries, 3, &[0]).is_err());
        let rows = Rows::new(&entries, 2, &[0, -1]).unwrap();
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
