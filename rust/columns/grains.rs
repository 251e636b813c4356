//! The step by which rounding may move a number of a column, read off its numbers.

use super::on_pieces;
use crate::error::Error;

/// Last places within which two computations of one real number are taken to agree.
const PLACES: f64 = 8.0;
const FLOAT64_BITS: i32 = 53;
/// A format or a step is believed where chance would need so many bits of luck.
const CERTAIN_FORMAT_BITS: i64 = 40;
/// The same for last places that grow with the magnitude.
///
/// One number gives at most `MAX_GROWTH_BITS`: a sentinel such as -2147483648 is a multiple of a
/// large power of two by itself.
const CERTAIN_GROWTH_BITS: i64 = 24;
const MAX_GROWTH_BITS: i64 = 8;
/// Significant bits of the formats narrower than float64, and the largest number of each.
const FORMATS: [(i64, f64); 3] = [(8, f64::INFINITY), (11, 65504.0), (24, f64::INFINITY)];
const LARGEST_WHOLE: f64 = (1_u64 << 53) as f64;
/// Rows of each side that the median magnitude is read off.
const MIDDLE_ROWS: usize = 512;
/// Columns whose numbers are gathered at a time.
const GATHERED_COLUMNS: usize = 64;

/// The step by which rounding may move a number of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grain {
    bits: i64,
    middle: f64,
    absolute: f64,
    /// Tolerance in last places of float64.
    places: f64,
}

impl Grain {
    /// Significant bits of the column's format (0 for numbers that were never rounded), the median
    /// magnitude of its numbers that are not 0, and what is added at every magnitude.
    pub(crate) fn new(bits: i64, middle: f64, absolute: f64) -> Self {
        let power = FLOAT64_BITS - bits.clamp(0, i64::from(FLOAT64_BITS)) as i32;
        Self { bits, middle, absolute, places: PLACES * 2.0_f64.powi(power) }
    }

    /// Significant bits; 0 for numbers that were never rounded.
    #[cfg(feature = "python")]
    pub(crate) fn bits(&self) -> i64 {
        self.bits
    }

    /// The median magnitude.
    #[cfg(feature = "python")]
    pub(crate) fn middle(&self) -> f64 {
        self.middle
    }

    /// Whether nothing was rounded.
    pub(crate) fn is_exact(&self) -> bool {
        self.bits == 0 && self.absolute == 0.0
    }

    /// The tolerance at a finite value: near 0 a sum carries the rounding of its terms.
    pub(crate) fn at(&self, value: f64) -> f64 {
        if self.bits == 0 {
            return self.absolute;
        }
        // The largest double has no last place above it.
        let size = value.abs().max(self.middle).min(f64::MAX.next_down());
        // The bits of positive numbers are ordered as they are.
        self.absolute + self.places * (f64::from_bits(size.to_bits() + 1) - size)
    }
}

/// The stored digits of a number that is finite and not 0, with the leading 1 of a normal number.
fn significand(value: f64) -> u64 {
    let bits = value.to_bits();
    bits & ((1 << 52) - 1) | u64::from(bits >> 52 & 0x7FF > 0) << 52
}

/// Significant bits that a number needs; 0 for 0, NaN and infinities.
fn bits_needed(value: f64) -> i64 {
    let digits = significand(value);
    if digits == 0 || !value.is_finite() {
        return 0;
    }
    i64::from(64 - digits.leading_zeros() - digits.trailing_zeros())
}

/// The exponent t of `odd 2^t`, for a number that is finite and not 0.
fn lowest_bit(value: f64) -> i64 {
    let power = (value.to_bits() >> 52 & 0x7FF).max(1) as i64;
    power - 1075 + i64::from(significand(value).trailing_zeros())
}

/// Whether a number is whole, as infinities are and NaN is not.
fn is_whole(value: f64) -> bool {
    const ALL_WHOLE: f64 = (1_u64 << 52) as f64;
    let size = value.abs();
    size >= ALL_WHOLE || (size + ALL_WHOLE) - ALL_WHOLE == size
}

/// The number in the middle of magnitudes given as bits, the lower of two; 0 without any.
fn median(sizes: &mut [u64]) -> f64 {
    if sizes.is_empty() {
        return 0.0;
    }
    let middle = (sizes.len() - 1) / 2;
    f64::from_bits(*sizes.select_nth_unstable(middle).1)
}

/// The magnitude of a number as bits, which are ordered as magnitudes are; None for 0, NaN and
/// infinities.
fn size_bits(value: f64) -> Option<u64> {
    (value != 0.0 && value.is_finite()).then(|| value.abs().to_bits())
}

/// Returns for each column the median magnitude in the first rows, and whether the column is usual:
/// a number of each side needs all bits of the format `own`, and not all are whole.
pub(crate) fn measure(
    sides: [&[f64]; 2],
    columns: usize,
    own: i64,
    threads: usize,
) -> Result<(Vec<f64>, Vec<bool>), Error> {
    let numbers = sides.iter().map(|side| side.len()).sum();
    let pieces = on_pieces(columns, numbers, threads, |piece| {
        let (mut middles, mut usual) = (Vec::new(), Vec::new());
        let mut sizes = vec![Vec::new(); GATHERED_COLUMNS.min(piece.len())];
        for first in piece.clone().step_by(GATHERED_COLUMNS) {
            let width = GATHERED_COLUMNS.min(piece.end - first);
            sizes.iter_mut().for_each(Vec::clear);
            for side in sides {
                for row in side.chunks_exact(columns).take(MIDDLE_ROWS) {
                    for (sizes, value) in sizes.iter_mut().zip(&row[first..first + width]) {
                        sizes.extend(size_bits(*value));
                    }
                }
            }
            middles.extend(sizes[..width].iter_mut().map(|sizes| median(sizes)));
            usual.extend(find_usual(sides, columns, first, width, own));
        }
        (middles, usual)
    })?;
    let (middles, usual): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
    Ok((middles.concat(), usual.concat()))
}

/// Returns which of some columns are usual; rows are read until all of them are known to be.
fn find_usual(
    sides: [&[f64]; 2],
    columns: usize,
    first: usize,
    width: usize,
    own: i64,
) -> Vec<bool> {
    let mut has_fraction = vec![false; width];
    let mut fills = [vec![false; width], vec![false; width]];
    for (fills, side) in fills.iter_mut().zip(sides) {
        for row in side.chunks_exact(columns) {
            let mut all = true;
            let flags = fills.iter_mut().zip(&mut has_fraction);
            for ((fills, has_fraction), value) in flags.zip(&row[first..first + width]) {
                if !(*fills && *has_fraction) {
                    *fills |= bits_needed(*value) >= own;
                    *has_fraction |= !is_whole(*value);
                    all &= *fills && *has_fraction;
                }
            }
            if all {
                break;
            }
        }
    }
    let [fills, fills_prime] = fills;
    let flags = fills.into_iter().zip(fills_prime).zip(has_fraction);
    flags.map(|((fills, fills_prime), fraction)| fills && fills_prime && fraction).collect()
}

/// Both sides of some columns, column after column, and how they are to be read.
pub(crate) struct Sides<'a> {
    /// The numbers on x and on x'.
    pub values: [&'a [f64]; 2],
    /// Rows on x and on x'.
    pub rows: [usize; 2],
    /// Whether each side was an array of floats.
    pub are_floats: [bool; 2],
    /// Significant bits of the narrower type.
    pub own: i64,
    /// First rows of each side that a format is read off.
    pub most: usize,
}

/// Returns the grain of each column, which may be coarser than its type.
///
/// # Errors
///
/// A side does not hold all rows of all columns.
pub(crate) fn judge(
    sides: &Sides<'_>,
    columns: usize,
    threads: usize,
) -> Result<Vec<Grain>, Error> {
    for (values, rows) in sides.values.iter().zip(sides.rows) {
        if values.len() != columns * rows {
            return Err(Error::invalid(
                "sides",
                format!("{columns} columns of {rows}"),
                values.len(),
            ));
        }
    }
    let numbers = sides.values.iter().map(|values| values.len()).sum();
    let pieces = on_pieces(columns, numbers, threads, |piece| {
        let grains = piece.map(|column| {
            let [rows, rows_prime] = sides.rows;
            let values = &sides.values[0][column * rows..][..rows];
            judge_column(sides, [values, &sides.values[1][column * rows_prime..][..rows_prime]])
        });
        grains.collect::<Vec<_>>()
    })?;
    Ok(pieces.concat())
}

fn judge_column(sides: &Sides<'_>, values: [&[f64]; 2]) -> Grain {
    let exact = Grain::new(0, 0.0, 0.0);
    let heads = values.map(|side| &side[..sides.most.min(side.len())]);
    let are_multiples = |exponent: i64, limit: f64| {
        let step = 2.0_f64.powi(exponent.max(-1022) as i32);
        let mut floats = values.iter().zip(sides.are_floats).filter(|(_, is_float)| *is_float);
        heads.iter().all(|side| are_multiples(side, step, limit))
            && floats.all(|(side, _)| are_multiples(side, step, limit))
    };
    if are_multiples(0, LARGEST_WHOLE) {
        return exact;
    }
    let kept = heads.map(different_values);
    let is_empty = kept.iter().all(Vec::is_empty);
    let read = if is_empty { values } else { heads };
    let mut sizes: Vec<u64> = read.into_iter().flatten().copied().filter_map(size_bits).collect();
    let middle = median(&mut sizes);
    if is_empty {
        return Grain::new(sides.own, middle, 0.0);
    }
    let formats = kept.iter().map(|side| narrowest_format(side, sides.own));
    let format = formats.min().unwrap_or(sides.own);
    if format < sides.own {
        return Grain::new(format, middle, 0.0);
    }
    // A step that leaves bits of the format unused at the largest number was not made by rounding.
    let mut pooled = kept.concat();
    pooled.sort_unstable_by(f64::total_cmp);
    pooled.dedup();
    let step = pooled.iter().copied().map(lowest_bit).min().unwrap_or(0);
    let tops = pooled.iter().map(|value| lowest_bit(*value) + bits_needed(*value));
    let used = tops.max().unwrap_or(0) - step;
    let is_sure = (sides.own - used) * pooled.len() as i64 >= CERTAIN_FORMAT_BITS;
    if is_sure && are_multiples(step, f64::INFINITY) {
        return exact;
    }
    Grain::new(sides.own, middle, 0.0)
}

/// Returns whether all finite numbers are multiples of a step, at most `limit` of them each.
fn are_multiples(values: &[f64], step: f64, limit: f64) -> bool {
    // A power of two and its reciprocal are exact.
    let share = 1.0 / step;
    values.iter().filter(|value| value.is_finite()).all(|value| {
        let steps = value * share;
        is_whole(steps) && steps.abs() <= limit
    })
}

/// Returns the different finite numbers but 0, increasing.
fn different_values(values: &[f64]) -> Vec<f64> {
    let numbers = values.iter().copied().filter(|value| size_bits(*value).is_some());
    let mut different: Vec<f64> = numbers.collect();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    different
}

/// Returns the bits of the narrowest format that surely rounded these numbers, or `own`.
fn narrowest_format(values: &[f64], own: i64) -> i64 {
    let Some(lowest) = values.iter().copied().map(lowest_bit).min() else { return own };
    let most_needed = values.iter().copied().map(bits_needed).max().unwrap_or(0);
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (bits, limit) in FORMATS {
        let is_narrow = (own - bits) * values.len() as i64 >= CERTAIN_FORMAT_BITS;
        if bits >= own || !is_narrow || most_needed > bits || largest > limit {
            continue;
        }
        // Multiples of one step would fill all bits from it up to their highest.
        let growths = values.iter().map(|value| {
            let filled = bits_needed(*value) + lowest_bit(*value) - lowest;
            (filled - bits).clamp(0, MAX_GROWTH_BITS)
        });
        if growths.sum::<i64>() >= CERTAIN_GROWTH_BITS {
            return bits;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_numbers() {
        let expected = [(0.75, 2, -2), (1.0, 1, 0), (5e-324, 1, -1074), (-12.0, 2, 2)];
        for (value, bits, lowest) in expected {
            assert_eq!((bits_needed(value), lowest_bit(value)), (bits, lowest));
        }
        assert_eq!(bits_needed(f64::MAX), 53);
        assert_eq!([0.0, -0.0, f64::NAN, f64::INFINITY].map(bits_needed), [0; 4]);
    }

    #[test]
    fn tolerances_follow_the_format_and_the_middle() {
        let grain = Grain::new(24, 1.0, 0.25);
        assert_eq!(grain.at(-3.0), 0.25 + 8.0 * f64::from(f32::EPSILON) * 2.0);
        assert_eq!(grain.at(0.0), grain.at(1.0));
        assert_eq!(Grain::new(0, 1.0, 0.25).at(1e300), 0.25);
        assert!(Grain::new(53, 0.0, 0.0).at(f64::MAX).is_finite());
    }

    fn judge_one(values: &[f64]) -> Grain {
        let (values, rows, are_floats) = ([values; 2], [values.len(); 2], [true; 2]);
        let sides = Sides { values, rows, are_floats, own: 53, most: 512 };
        judge(&sides, 1, 1).unwrap()[0]
    }

    #[test]
    fn columns_are_exact_or_of_a_format() {
        let exact = Grain::new(0, 0.0, 0.0);
        let halves: Vec<f64> = (-50..50).map(|i| f64::from(i) / 4.0).collect();
        assert_eq!(judge_one(&halves), exact);
        assert_eq!(judge_one(&[f64::NAN, 7.0, f64::INFINITY]), exact);
        let tenths: Vec<f64> = (-50..50).map(|i| f64::from(i) * 0.1).collect();
        assert_eq!(judge_one(&tenths).bits, 53);
        let single: Vec<f64> = tenths.iter().map(|value| f64::from(*value as f32)).collect();
        assert_eq!(judge_one(&single).bits, 24);
        // A fraction beyond the first rows counts as well.
        let mut rare = vec![0.0; 5000];
        rare[4999] = 0.1;
        assert_eq!(judge_one(&rare), Grain::new(53, 0.1, 0.0));
    }

    #[test]
    fn a_usual_column_has_fractions_and_fills_its_format_on_both_sides() {
        let (full, short, whole) = (0.3, 0.5, (1_u64 << 53) as f64 - 1.0);
        let (rows, rows_prime) = ([full, full, whole, full], [full, short, whole, f64::NAN]);
        let (middles, usual) = measure([&rows, &rows_prime], 4, 53, 2).unwrap();
        assert_eq!(middles, [0.3, 0.3, whole, 0.3]);
        assert_eq!(usual, [true, false, false, false]);
        assert_eq!(measure([&[], &[]], 2, 53, 1), Ok((vec![0.0; 2], vec![false; 2])));
    }
}
