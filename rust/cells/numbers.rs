//! The number that a cell holds, and how it is written.
//!
//! A number is *exact* if a double holds all digits of its cell: the double, printed with as many
//! digits, is the cell, or its shortest text has the same digits. Up to 15 digits that always
//! holds. For 16 to 19 digits the cell and the double are compared as integers of 128 bits, where
//! both are multiplied by a power of 5; printing would take longer than reading the number.
//!
//! Source: D. Goldberg, "What every computer scientist should know about floating-point
//! arithmetic", 1991, theorem 15 (15 digits).

use std::cmp::Ordering;
use std::str;

/// The first integer with more than 15 digits, which every double in the normal range holds.
const SAFE_END: u64 = 1_000_000_000_000_000;
/// Digits that an integer of 64 bits holds.
const WORD_DIGITS: usize = 19;
/// Digits above which a number is a text.
const MOST_DIGITS: usize = 4_000;

/// Kinds of cells that a double does not hold, in the order of `Column::kinds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// A whole number with more digits.
    Whole,
    /// Another number with more digits.
    Decimal,
    /// A whole number with a leading zero.
    Padded,
    /// A text with a digit.
    Text,
    /// A text without one.
    Word,
}

/// How a number is written: its decimals, exponent and sign in the lower 16 bits, and above them
/// one of these classes.
///
/// A value has one text of the classes `PLAIN`, `POINT_ZERO` and `WHOLE`, unless a column has both
/// of the latter; and of one class of exponents.
pub struct Spelling;

impl Spelling {
    /// The fewest digits, with a point and without an exponent.
    const PLAIN: u32 = 0;
    /// A whole number that ends with ".0".
    const POINT_ZERO: u32 = 1;
    /// A whole number without a point.
    const WHOLE: u32 = 2;
    /// The fewest digits with an exponent of two digits, as Python and C write it.
    const SHORT_EXPONENT: u32 = 3;
    /// The fewest digits with an exponent of the fewest digits, as JavaScript writes it.
    const BARE_EXPONENT: u32 = 4;
    /// Below 1e-4 or from 1e16 on without an exponent.
    const LONG: u32 = 5;
    /// NaN or infinity.
    pub const NAMED: u32 = 6;
    /// All others.
    const OTHER: u32 = 7;
    /// The spelling of a cell that is no number.
    pub const NONE: u32 = u32::MAX;
}

/// A number as its cell shows it.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub value: f64,
    pub odd: Option<Odd>,
    pub spelling: u32,
    /// Digits, where there is neither a point nor an exponent.
    pub width: Option<usize>,
}

impl Written {
    /// Reads a number; None for other cells.
    pub fn read(cell: &[u8]) -> Option<Self> {
        match Self::read_head(cell) {
            Some((written, length)) => (length == cell.len()).then_some(written),
            None => Self::read_name(cell),
        }
    }

    /// Reads the number in decimal digits that a text begins with, and returns its bytes, too.
    pub fn read_head(text: &[u8]) -> Option<(Self, usize)> {
        let (sign, bare) = match text.first()? {
            sign @ (b'+' | b'-') => (Some(*sign), &text[1..]),
            _ => (None, text),
        };
        let mantissa = Mantissa::scan(bare);
        let Mantissa { whole, decimals, has_point, .. } = mantissa;
        if whole + decimals == 0 {
            return None;
        }
        let exponent = Exponent::read(&bare[mantissa.length..]).unwrap_or_default();
        let length = mantissa.length + exponent.length;
        let last = exponent.value - i64::try_from(decimals).ok()?;
        let (size, is_held, is_shortest) = mantissa.read(&bare[..length], last)?;
        let is_bare = !has_point && exponent.digits == 0;
        let is_padded = whole > 1 && bare[0] == b'0';
        let odd = if is_bare && is_padded {
            Some(Odd::Padded)
        } else if is_held {
            None
        } else if whole + decimals > MOST_DIGITS {
            Some(Odd::Text)
        } else if is_bare {
            Some(Odd::Whole)
        } else {
            Some(Odd::Decimal)
        };
        let mut style = u32::try_from(decimals.min(63)).expect("at most 63") | exponent.style();
        style |= u32::from(sign == Some(b'+')) << 11;
        style |= u32::from(has_point && (whole == 0 || decimals == 0)) << 12;
        style |= u32::from(is_padded) << 13;
        style |= u32::from(sign == Some(b'-') && size == 0.0) << 14;
        // The sign of a zero does not change how its digits are written.
        let is_usual = (style >> 11) & !8 == 0 && is_shortest && odd.is_none();
        let is_one_digit = whole == 1 && (bare[0] != b'0' || exponent.digits == 0);
        let ends_with_zero = decimals > 0 && bare[mantissa.length - 1] == b'0';
        let is_long = size != 0.0 && !(1e-4..1e16).contains(&size);
        let class = match (exponent.digits, ends_with_zero) {
            _ if !is_usual => Spelling::OTHER,
            (0, true) if decimals == 1 => Spelling::POINT_ZERO,
            (0, false) if is_long => Spelling::LONG,
            (0, false) if decimals == 0 => Spelling::WHOLE,
            (0, false) => Spelling::PLAIN,
            (2.., false) if is_long && is_one_digit => Spelling::SHORT_EXPONENT,
            (1, false) if is_long && is_one_digit => Spelling::BARE_EXPONENT,
            _ => Spelling::OTHER,
        };
        let value = if sign == Some(b'-') { -size } else { size };
        let width = is_bare.then_some(whole);
        let length = length + usize::from(sign.is_some());
        Some((Self { value, odd, spelling: class << 16 | style, width }, length))
    }

    fn read_name(cell: &[u8]) -> Option<Self> {
        let bare = cell.strip_prefix(b"-").or(cell.strip_prefix(b"+")).unwrap_or(cell);
        let is_name = bare.first().is_some_and(|byte| matches!(byte, b'n' | b'N' | b'i' | b'I'));
        if !is_name || bare.len() > 8 {
            return None;
        }
        let value = str::from_utf8(cell).ok()?.parse::<f64>().ok()?;
        let capitals = bare.iter().filter(|byte| byte.is_ascii_uppercase()).count();
        let style = u32::try_from(capitals).expect("at most 8")
            | u32::from(cell[0] == b'+') << 11
            | u32::from(bare.len() > 3) << 12;
        Some(Self { value, odd: None, spelling: Spelling::NAMED << 16 | style, width: None })
    }
}

/// The digits before the exponent of a cell, and the point between them.
#[derive(Clone, Copy, Debug, Default)]
struct Mantissa {
    /// The digits as an integer, if there are at most 19.
    word: u64,
    /// Digits before and after the point.
    whole: usize,
    decimals: usize,
    has_point: bool,
    /// Bytes.
    length: usize,
}

impl Mantissa {
    fn scan(text: &[u8]) -> Self {
        let mut word = 0_u64;
        let whole = read_digits(text, &mut word);
        let has_point = text.get(whole) == Some(&b'.');
        let decimals = if has_point { read_digits(&text[whole + 1..], &mut word) } else { 0 };
        let length = whole + usize::from(has_point) + decimals;
        Self { word, whole, decimals, has_point, length }
    }

    /// Returns the nearest double, whether it holds all digits, and whether no fewer stand for it.
    ///
    /// `last` is the power of 10 of the last digit.
    fn read(&self, text: &[u8], last: i64) -> Option<(f64, bool, bool)> {
        let zeros = text[..self.length].iter().take_while(|&byte| matches!(byte, b'0' | b'.'));
        let total = self.whole + self.decimals;
        // Zeros in front change neither the integer nor its size.
        let digits = if total <= WORD_DIGITS { total } else { self.length - zeros.count() };
        let (mut word, mut exponent) = (self.word, last);
        if digits <= WORD_DIGITS {
            if word == 0 {
                return Some((0.0, true, true));
            }
            while word >= SAFE_END && word % 10 == 0 {
                (word, exponent) = (word / 10, exponent + 1);
            }
            if let Some(nearest) = find_nearest(word, exponent) {
                return Some(nearest);
            }
        }
        let value = str::from_utf8(text).ok()?.parse::<f64>().ok()?;
        if digits <= WORD_DIGITS && value.is_normal() {
            if word < SAFE_END {
                return Some((value, true, true));
            }
            if let Some(compared) = compare_words(word, exponent, value) {
                return Some((value, compared.is_held, compared.is_shortest));
            }
        }
        if !value.is_finite() || value == 0.0 {
            return Some((value, false, false));
        }
        let digits = text[..self.length].iter().copied().filter(u8::is_ascii_digit);
        let digits: Vec<u8> = digits.skip_while(|&byte| byte == b'0').collect();
        let (is_held, is_shortest) = compare_texts(&digits, last, value);
        Some((value, is_held, is_shortest))
    }
}

/// Reads the digits that a text begins with, appends them to an integer, and returns their number.
fn read_digits(text: &[u8], word: &mut u64) -> usize {
    let mut length = 0;
    while let Some(chunk) = text[length..].first_chunk() {
        let (value, digits) = read_eight(u64::from_le_bytes(*chunk));
        *word = word.wrapping_mul(TEN_TO[digits]).wrapping_add(value);
        length += digits;
        if digits < 8 {
            return length;
        }
    }
    for digit in text[length..].iter().map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        *word = word.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    length
}

const TEN_TO: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Reads the digits at the beginning of eight bytes together: their integer and their number.
///
/// The digits are moved to the end of the eight bytes, for zeros in front of them change nothing.
/// Neighbours are then joined to numbers below 10^2, 10^4 and 10^8.
fn read_eight(bytes: u64) -> (u64, usize) {
    const ONES: u64 = u64::MAX / 255;
    let digits = bytes ^ (0x30 * ONES);
    // Adding 0x76 sets the highest bit of a byte above 9. What it carries reaches later bytes only.
    let others = (digits.wrapping_add(0x76 * ONES) | digits) & (0x80 * ONES);
    let count = others.trailing_zeros() / 8;
    let digits = digits.checked_shl(64 - 8 * count).unwrap_or(0);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & (u64::MAX / 0xffff * 0xff);
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0xffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    (eight, count as usize)
}

/// Returns what `Mantissa::read` does where integers of 128 bits suffice.
///
/// Up to 15 digits, one operation of exact numbers gives the nearest double (W. Clinger, "How to
/// read floating point numbers accurately", 1990, section 3). With more of them a product of 64
/// bits gives it or a neighbour, and the comparison shows on which side the nearest one is.
fn find_nearest(word: u64, exponent: i64) -> Option<(f64, bool, bool)> {
    let power = usize::try_from(exponent.unsigned_abs()).ok()?;
    #[allow(clippy::cast_precision_loss)]
    let size = word as f64;
    if word < SAFE_END {
        let ten = TENS.get(power)?;
        return Some((if exponent < 0 { size / ten } else { size * ten }, true, true));
    }
    let mut value =
        if exponent < 0 { divide_by_ten_to(word, power)? } else { size * TENS.get(power)? };
    for _ in 0..4 {
        // Below a power of 2 the next double is half as far away.
        if value.to_bits() << 12 == 0 {
            return None;
        }
        let compared = compare_words(word, exponent, value)?;
        match compared.side {
            Ordering::Equal => return Some((value, compared.is_held, compared.is_shortest)),
            Ordering::Less => value = value.next_down(),
            Ordering::Greater => value = value.next_up(),
        }
    }
    None
}

/// Powers of 10 that doubles hold.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of 5 below 2^64.
const FIVES: [u64; 28] = {
    let mut powers = [1; 28];
    let mut place = 1;
    while place < 28 {
        powers[place] = 5 * powers[place - 1];
        place += 1;
    }
    powers
};

/// For each power of 5 its bits, and 2^(63 + bits) divided by it, of 64 bits.
const RECIPROCALS: [(u64, u32); 28] = {
    let mut reciprocals = [(0, 0); 28];
    let mut place = 0;
    while place < 28 {
        let bits = 64 - FIVES[place].leading_zeros();
        let quotient = ((1_u128 << (63 + bits)) - 1) / FIVES[place] as u128;
        reciprocals[place] = (quotient as u64, bits);
        place += 1;
    }
    reciprocals
};

/// Returns the double nearest to `word / 10^power`, or a neighbour of it.
fn divide_by_ten_to(word: u64, power: usize) -> Option<f64> {
    let &(reciprocal, bits) = RECIPROCALS.get(power)?;
    let zeros = word.leading_zeros();
    let product = u128::from(word << zeros) * u128::from(reciprocal);
    #[allow(clippy::cast_possible_truncation)]
    let upper = (product >> 64) as u64;
    // A signed integer is converted at once; its last bit keeps what is shifted out.
    #[allow(clippy::cast_possible_wrap, clippy::cast_precision_loss)]
    let size = (upper >> 1 | upper & 1) as i64 as f64;
    let exponent = 1023 + 2 - u64::from(zeros + bits) - power as u64;
    Some(size * f64::from_bits(exponent << 52))
}

/// A number of 16 to 19 digits beside a double.
struct Compared {
    /// Where the nearest double is, seen from this one.
    side: Ordering,
    is_held: bool,
    is_shortest: bool,
}

/// Compares 16 to 19 digits with a double as integers of 128 bits.
///
/// None where the integers are too large, or the double lies between two texts.
#[inline]
fn compare_words(word: u64, last: i64, value: f64) -> Option<Compared> {
    let fives = u128::from(*FIVES.get(usize::try_from(last.unsigned_abs()).ok()?)?);
    let bits = value.to_bits();
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let binary = i64::try_from(bits >> 52 & 0x7ff).ok()? - 1075;
    let (word, ten) = (u128::from(word), u128::from((word + 5) / 10 * 10));
    // The power of 2 is moved to the side where it is whole. `unit` is the last digit there, `step`
    // the distance of two doubles.
    let shift = binary - last;
    let (mine, next, its, unit, step) = if last <= 0 {
        (word, ten, mantissa * fives, 1, fives)
    } else {
        (word * fives, ten * fives, mantissa, fives, 1)
    };
    let places = u32::try_from(shift.unsigned_abs()).ok()?;
    let raise = |number: u128| (number.leading_zeros() > places + 4).then(|| number << places);
    let (mine, next, its, unit, step) = if shift < 0 {
        (raise(mine)?, raise(next)?, its, raise(unit)?, step)
    } else {
        (mine, next, raise(its)?, unit, raise(step)?)
    };
    let (gap, reach) = (2 * mine.abs_diff(its), 2 * next.abs_diff(its));
    // Halfway between two doubles a text stands for the even one.
    let is_beyond = |distance| distance > step || (distance == step && bits % 2 == 1);
    let side = if is_beyond(gap) { mine.cmp(&its) } else { Ordering::Equal };
    (gap != unit).then(|| Compared { side, is_held: gap < unit, is_shortest: is_beyond(reach) })
}

/// Compares digits, of which the first is not 0, with a printed double, see `Mantissa::compare`.
fn compare_texts(digits: &[u8], last: i64, value: f64) -> (bool, bool) {
    let first = last + i64::try_from(digits.len()).expect("a length") - 1;
    let zeros = digits.iter().rev().take_while(|&&byte| byte == b'0').count();
    let bare = &digits[..digits.len() - zeros];
    let equals = |text: &str| {
        let (mantissa, exponent) = text.split_once('e').expect("an exponent");
        let texts = mantissa.trim_end_matches('0').bytes().filter(|&byte| byte != b'.');
        exponent.parse() == Ok(first) && texts.eq(bare.iter().copied())
    };
    let shortest = format!("{value:e}");
    let length = shortest.bytes().take_while(|&byte| byte != b'e').filter(u8::is_ascii_digit);
    let is_held = equals(&shortest)
        || (digits.len() <= MOST_DIGITS && equals(&format!("{value:.*e}", digits.len() - 1)));
    (is_held, bare.len() == length.count())
}

/// The exponent of a cell.
#[derive(Default)]
struct Exponent {
    value: i64,
    digits: usize,
    is_capital: bool,
    has_plus: bool,
    /// Bytes.
    length: usize,
}

impl Exponent {
    /// Reads the exponent that a text begins with, if there is one.
    fn read(text: &[u8]) -> Option<Self> {
        let (letter, rest) = text.split_first()?;
        let is_capital = *letter == b'E';
        if *letter != b'e' && !is_capital {
            return None;
        }
        let sign = rest.first().filter(|byte| matches!(byte, b'+' | b'-'));
        let bare = &rest[usize::from(sign.is_some())..];
        let digits = bare.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        // Beyond 18 digits every number is 0 or infinite.
        let shown = bare[digits.saturating_sub(18)..digits].iter();
        let size = shown.fold(0, |size, byte| 10 * size + i64::from(byte - b'0'));
        let value = if sign == Some(&b'-') { -size } else { size };
        let length = 1 + usize::from(sign.is_some()) + digits;
        Some(Self { value, digits, is_capital, has_plus: sign == Some(&b'+'), length })
    }

    fn style(&self) -> u32 {
        if self.digits == 0 {
            return 0;
        }
        let length = u32::try_from(self.digits.min(4)).expect("at most 4") - 1;
        1 << 6 << u32::from(self.is_capital) | u32::from(self.has_plus) << 8 | length << 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_kind(cell: &str, kind: Option<Odd>) -> bool {
        Written::read(cell.as_bytes()).is_some_and(|written| written.odd == kind)
    }

    #[test]
    fn numbers_are_those_that_a_double_holds() {
        for cell in [
            "0",
            "-0",
            "1.5",
            "123456789012345",
            "9007199254740992",
            "0.1",
            "0.10000000000000001",
            "1.000000000000000056e-01",
            "0.1000000000000000055511151231257827",
            "1e23",
            "5e-324",
            "-1.7976931348623157e308",
            "0.30000000000000004",
            "100000000000000000000000",
            "1e22",
            "1152921504606846976",
            "nan",
            "-Infinity",
            "1.50000000000000000000000",
            "0e999999999999999999999",
            "5.684341886080802e-14",
            "5.6843418860808015e-14",
            "0.000",
            ".5",
            "5.",
            "+1",
        ] {
            assert!(is_kind(cell, None), "{cell}");
        }
        for cell in ["9007199254740993", "1152921504606846977", "12345678901234567890"] {
            assert!(is_kind(cell, Some(Odd::Whole)), "{cell}");
        }
        for cell in ["0.12345678901234567890", "1.0000000000000000001", "1e400", "1e-400"] {
            assert!(is_kind(cell, Some(Odd::Decimal)), "{cell}");
        }
        for cell in ["007", "-00"] {
            assert!(is_kind(cell, Some(Odd::Padded)), "{cell}");
        }
        for cell in
            ["", "1_000", "1,5", "0x10", "e5", ".", "1e", "1e+", "1.5.5", "--1", "nano", "ä"]
        {
            assert!(Written::read(cell.as_bytes()).is_none(), "{cell}");
        }
    }

    #[test]
    fn integers_decide_as_printing_does() {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        let mut compared = [0; 2];
        for round in 0..40_000 {
            let value = f64::from_bits(next() << 11 ^ next());
            let decimals = 15 + usize::try_from(round % 4).unwrap();
            if !value.is_finite() {
                continue;
            }
            // Numbers near 1, too, and digits that are one unit off.
            let value = if round % 3 == 0 { value } else { next() as f64 / 1e13 };
            let mut cell = format!("{value:.decimals$e}");
            if round % 2 == 0 {
                let place = cell.find('e').unwrap() - 1;
                let digit = (cell.as_bytes()[place] - b'0' + 1) % 10;
                cell.replace_range(place..=place, &digit.to_string());
            }
            let value: f64 = cell.parse().unwrap();
            let digits: Vec<u8> =
                cell.bytes().take_while(|&b| b != b'e').filter(u8::is_ascii_digit).collect();
            let first: i64 = cell.split_once('e').unwrap().1.parse().unwrap();
            let zeros = digits.iter().rev().take_while(|&&byte| byte == b'0').count();
            let digits = &digits[..digits.len() - zeros];
            let last = first + 1 - i64::try_from(digits.len()).unwrap();
            let word = str::from_utf8(digits).unwrap().parse().unwrap();
            if word < SAFE_END || !value.is_normal() {
                continue;
            }
            let Some(nearest) = find_nearest(word, last) else { continue };
            let expected = compare_texts(digits, last, value.abs());
            assert_eq!((nearest.0, nearest.1), (value.abs(), expected.0), "{cell}");
            if nearest.1 {
                assert_eq!(nearest.2, expected.1, "{cell}");
                compared[usize::from(nearest.2)] += 1;
            }
        }
        assert!(compared.iter().all(|&count| count > 1_000), "{compared:?}");
    }

    #[test]
    fn a_value_has_one_spelling_of_each_style() {
        for (cells, class) in [
            (["0.1", "-12.25"], Spelling::PLAIN),
            (["1.0", "-0.0"], Spelling::POINT_ZERO),
            (["1", "-20"], Spelling::WHOLE),
            (["1e-05", "1.5e+16"], Spelling::SHORT_EXPONENT),
            (["1e-5", "1.5e+300"], Spelling::SHORT_EXPONENT),
            (["0.00001", "12345678901234567000"], Spelling::LONG),
            (["1.50", "0.10000000000000001"], Spelling::OTHER),
            (["1e5", "+1"], Spelling::OTHER),
            (["nan", "-inf"], Spelling::NAMED),
        ] {
            let classes = cells.map(|cell| Written::read(cell.as_bytes()).unwrap().spelling >> 16);
            assert!(classes.contains(&class), "{cells:?} {classes:?}");
        }
    }
}
