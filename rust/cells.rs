//! Cells of tables in text: where each ends, the number that it holds, and how that is written.
//!
//! A slice of a file is read at a time, and what follows its last whole row is left for the next
//! slice. A number is *exact* if a double holds all digits of its cell: the double, printed with as
//! many digits, is the cell, or its shortest text has the same digits. Up to 15 digits that always
//! holds. For 16 to 19 digits the cell and the double are compared as integers of 128 bits, where
//! both are multiplied by a power of 5; printing would take longer than reading the number.
//!
//! Source: D. Goldberg, "What every computer scientist should know about floating-point
//! arithmetic", 1991, theorem 15 (15 digits); RFC 4180 for quotation marks.

use std::cmp::Ordering;
use std::ops::Range;
use std::str;

/// Digits that every double in the normal range holds.
const SAFE_DIGITS: usize = 15;
/// Digits that an integer of 64 bits holds.
const WORD_DIGITS: usize = 19;
/// Digits above which a number is a text.
const MOST_DIGITS: usize = 4_000;
/// Spellings that one byte distinguishes; the last one stands for all others.
const MOST_SPELLINGS: usize = 255;

/// What is done with the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Skip,
    Number,
    Text,
}

/// How rows and cells are separated.
#[derive(Clone, Copy, Debug)]
pub struct Dialect<'a> {
    /// The bytes between two cells; none where a line is a cell.
    pub separator: &'a [u8],
    /// Whether quotation marks enclose cells; otherwise they are letters.
    pub quotes: bool,
}

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

/// The cells of a column in one slice.
#[derive(Debug, Default)]
pub struct Column {
    /// One number for each row; 0 where the cell is none.
    pub numbers: Vec<f64>,
    /// The spelling of each number, as a place in `spellings`.
    pub codes: Vec<u8>,
    /// See `Spelling`.
    pub spellings: Vec<u32>,
    /// Rows of empty cells.
    pub missing: Vec<i64>,
    /// Rows of cells that are no exact numbers; their texts are in `texts`.
    pub odd: Vec<i64>,
    /// Texts of odd cells, or of all cells where texts are asked for, one after the other.
    pub texts: String,
    /// Ends of the texts in `texts`.
    pub ends: Vec<usize>,
    /// Of each kind in `Odd` the number of cells, and the line and text of the first of them.
    pub kinds: [(u64, u64, String); 5],
    /// Fewest and most digits of numbers without a point and an exponent.
    pub widths: Option<(usize, usize)>,
    /// Whether a number has a point or an exponent.
    pub has_fractions: bool,
}

/// Reasons to refuse a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A row has another number of cells than the first; `cell` is that number.
    Length,
    /// An empty line stands above a row.
    Empty,
    Nul,
    Encoding,
    /// A quotation mark does not end.
    OpenQuote,
    /// Something other than a separator follows a closing quotation mark.
    AfterQuote,
}

/// A fault and its place: the number of its line and of its cell in the row, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub fault: Fault,
    pub line: u64,
    pub cell: usize,
}

/// What was read in a slice.
#[derive(Debug, Default)]
pub struct Piece {
    pub columns: Vec<Column>,
    /// Bytes of the whole rows.
    pub consumed: usize,
    pub rows: usize,
    /// Lines of the whole rows.
    pub lines: u64,
    /// The first empty line, 0 if there is none.
    pub empty: u64,
    /// The line of each row, where empty lines are left out.
    pub starts: Vec<u64>,
}

/// Where reading stands.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Lines above the slice.
    pub lines: u64,
    /// The first empty line, 0 if there is none.
    pub empty: u64,
    /// Whether empty lines are left out; otherwise they are a fault above a row.
    pub leaves_out_empty: bool,
    /// Whether nothing follows the slice.
    pub is_last: bool,
    /// Rows to read at most.
    pub rows: usize,
}

/// Reads the whole rows of a slice.
///
/// `roles` has one entry for each cell of a row; without any, all cells of the first row are texts,
/// and all rows have as many. Cells are stripped of the white space around them
/// unless a line is a cell.
pub fn parse(
    data: &[u8],
    dialect: Dialect<'_>,
    roles: &[Role],
    position: Position,
) -> Result<Piece, Refusal> {
    let mut roles = roles.to_vec();
    let mut piece = Piece {
        columns: roles.iter().map(|_| Column::default()).collect(),
        empty: position.empty,
        ..Piece::default()
    };
    let mut splitter = Splitter::new(data, dialect);
    let (mut cells, mut unquoted) = (Vec::with_capacity(roles.len()), String::new());
    while splitter.at < data.len() && piece.rows < position.rows {
        let line = position.lines + piece.lines + 1;
        let refuse = |fault, cell, inner| Refusal { fault, line: line + inner, cell };
        cells.clear();
        unquoted.clear();
        let start = splitter.at;
        let end = splitter.row(position.is_last, &mut cells, &mut unquoted);
        let lines = splitter.lines;
        let Some(is_whole) = end.map_err(|(fault, cell, inner)| refuse(fault, cell, inner))? else {
            splitter.at = start;
            break;
        };
        if position.leaves_out_empty {
            // White space is a cell where quotation marks could have shown that it is none.
            let is_blank = |(range, _): &(Range<usize>, bool)| {
                !dialect.quotes && data[range.clone()].trim_ascii().is_empty()
            };
            if !is_whole || (cells.len() == 1 && is_blank(&cells[0])) {
                piece.lines += lines;
                continue;
            }
            piece.starts.push(line);
        }
        if dialect.separator.is_empty() || is_whole {
            if piece.empty != 0 {
                return Err(Refusal { fault: Fault::Empty, line: piece.empty, cell: 0 });
            }
            if roles.is_empty() {
                roles.resize(cells.len(), Role::Text);
                piece.columns.resize_with(cells.len(), Column::default);
            }
            if cells.len() != roles.len() {
                return Err(refuse(Fault::Length, cells.len(), 0));
            }
            let row = i64::try_from(piece.rows).expect("rows of one slice");
            for (cell, ((range, is_quoted), column)) in
                cells.iter().zip(&mut piece.columns).enumerate()
            {
                let text = if *is_quoted { unquoted.as_bytes() } else { data };
                let bytes = &text[range.clone()];
                if roles[cell] != Role::Skip {
                    let strip = !dialect.separator.is_empty();
                    column
                        .push(bytes, roles[cell], row, line, strip)
                        .map_err(|fault| refuse(fault, cell, 0))?;
                } else if !bytes.is_ascii() && str::from_utf8(bytes).is_err() {
                    return Err(refuse(Fault::Encoding, cell, 0));
                }
            }
            piece.rows += 1;
        } else if piece.empty == 0 {
            piece.empty = line;
        }
        piece.lines += lines;
    }
    piece.consumed = splitter.at;
    Ok(piece)
}

/// Ranges of cells; those that had quotation marks are in a text of their own.
type Cells = Vec<(Range<usize>, bool)>;

struct Splitter<'a> {
    data: &'a [u8],
    dialect: Dialect<'a>,
    /// Bytes at which a cell may end, and NUL.
    ends: [bool; 256],
    at: usize,
    /// Lines of the last row.
    lines: u64,
}

impl<'a> Splitter<'a> {
    fn new(data: &'a [u8], dialect: Dialect<'a>) -> Self {
        let mut ends = [false; 256];
        ends[0] = true;
        ends[usize::from(b'\n')] = true;
        if let Some(&first) = dialect.separator.first() {
            ends[usize::from(first)] = true;
            ends[usize::from(b'\r')] = true;
        }
        Self { data, dialect, ends, at: 0, lines: 0 }
    }

    /// Reads one row: whether it holds anything, or None if its end is not in the slice.
    fn row(
        &mut self,
        is_last: bool,
        cells: &mut Cells,
        unquoted: &mut String,
    ) -> Result<Option<bool>, (Fault, usize, u64)> {
        let data = self.data;
        self.lines = 1;
        loop {
            let start = self.at;
            let is_quoted = self.dialect.quotes && data.get(start) == Some(&b'"');
            if is_quoted {
                let from = unquoted.len();
                if !self.quoted(is_last, cells.len(), unquoted)? {
                    return Ok(None);
                }
                cells.push((from..unquoted.len(), true));
            }
            let stop = self.end_of_cell();
            let byte = data.get(stop).copied();
            if byte == Some(0) {
                return Err((Fault::Nul, cells.len(), self.lines - 1));
            }
            if is_quoted {
                if stop != self.at {
                    return Err((Fault::AfterQuote, cells.len() - 1, self.lines - 1));
                }
            } else {
                // A line is a cell up to its line feed, and a carriage return before that.
                let bare = byte == Some(b'\n') && stop > start && data[stop - 1] == b'\r';
                cells.push((start..stop - usize::from(bare), false));
            }
            match byte {
                None if !is_last => return Ok(None),
                None => self.at = stop,
                Some(b'\n') => self.at = stop + 1,
                Some(b'\r') => match data.get(stop + 1) {
                    None if !is_last => return Ok(None),
                    Some(b'\n') => self.at = stop + 2,
                    _ => self.at = stop + 1,
                },
                Some(_) => {
                    self.at = stop + self.dialect.separator.len();
                    continue;
                }
            }
            return Ok(Some(cells.len() > 1 || is_quoted || stop > start));
        }
    }

    /// Returns the place of the next end of a cell.
    fn end_of_cell(&self) -> usize {
        let mut at = self.at;
        loop {
            match self.data[at..].iter().position(|&byte| self.ends[usize::from(byte)]) {
                None => return self.data.len(),
                Some(ahead) => at += ahead,
            }
            let is_separator = !matches!(self.data[at], 0 | b'\n' | b'\r');
            if !is_separator || self.data[at..].starts_with(self.dialect.separator) {
                return at;
            }
            at += 1;
        }
    }

    /// Reads the inside of quotation marks; false if their end is not in the slice.
    fn quoted(
        &mut self,
        is_last: bool,
        cell: usize,
        unquoted: &mut String,
    ) -> Result<bool, (Fault, usize, u64)> {
        let opening = self.lines;
        let mut at = self.at + 1;
        loop {
            let rest = &self.data[at..];
            let Some(length) = rest.iter().position(|&byte| byte == b'"') else {
                return if is_last {
                    Err((Fault::OpenQuote, cell, opening - 1))
                } else {
                    Ok(false)
                };
            };
            let Ok(inside) = str::from_utf8(&rest[..length]) else {
                return Err((Fault::Encoding, cell, opening - 1));
            };
            if inside.contains('\0') {
                return Err((Fault::Nul, cell, opening - 1));
            }
            self.lines += inside.bytes().filter(|&byte| byte == b'\n').count() as u64;
            unquoted.push_str(inside);
            at += length + 1;
            match self.data.get(at) {
                Some(b'"') => {
                    unquoted.push('"');
                    at += 1;
                }
                // The next byte decides whether this mark is the last.
                None if !is_last => return Ok(false),
                _ => break,
            }
        }
        self.at = at;
        Ok(true)
    }
}

impl Column {
    fn push(
        &mut self,
        bytes: &[u8],
        role: Role,
        row: i64,
        line: u64,
        strip: bool,
    ) -> Result<(), Fault> {
        let number = Written::read(bytes.trim_ascii());
        if let Some(written) = number {
            self.measure(&written);
            if role == Role::Number && written.odd.is_none() {
                self.numbers.push(written.value);
                self.codes.push(find_or_push(&mut self.spellings, written.spelling));
                return Ok(());
            }
        }
        let text = str::from_utf8(bytes).map_err(|_| Fault::Encoding)?;
        let text = if strip { text.trim() } else { text };
        if role == Role::Number {
            self.numbers.push(0.0);
            self.codes.push(find_or_push(&mut self.spellings, Spelling::NONE));
        }
        let odd = match number {
            Some(written) => written.odd,
            None if text.bytes().any(|byte| byte.is_ascii_digit()) => Some(Odd::Text),
            None => Some(Odd::Word),
        };
        if text.is_empty() {
            self.missing.push(row);
            if role == Role::Number {
                return Ok(());
            }
        } else if let Some(odd) = odd {
            self.odd.push(row);
            let (count, first, example) = &mut self.kinds[odd as usize];
            if *count == 0 {
                *first = line;
                example.push_str(text);
            }
            *count += 1;
        }
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
        Ok(())
    }

    /// Keeps how many digits whole numbers have.
    fn measure(&mut self, written: &Written) {
        match written.width {
            None => self.has_fractions |= written.spelling >> 16 != Spelling::NAMED,
            Some(width) => {
                let (least, most) = self.widths.unwrap_or((width, width));
                self.widths = Some((least.min(width), most.max(width)));
            }
        }
    }
}

fn find_or_push(spellings: &mut Vec<u32>, spelling: u32) -> u8 {
    // The spelling of a cell is mostly that of one of few.
    let place = spellings.iter().position(|&other| other == spelling).unwrap_or_else(|| {
        if spellings.len() < MOST_SPELLINGS {
            spellings.push(spelling);
        }
        spellings.len() - 1
    });
    u8::try_from(place).expect("fewer than 256 spellings")
}

/// How a number is written: its decimals, exponent and sign in the lower 16 bits, and above them
/// one of these classes.
///
/// A value has one text of the classes `PLAIN`, `POINT_ZERO` and `WHOLE`, unless a column has both
/// of the latter; and of one class of exponents.
struct Spelling;

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
    const NAMED: u32 = 6;
    /// All others.
    const OTHER: u32 = 7;
    /// The spelling of a cell that is no number.
    const NONE: u32 = u32::MAX;
}

/// A number as its cell shows it.
#[derive(Clone, Copy, Debug)]
struct Written {
    value: f64,
    odd: Option<Odd>,
    spelling: u32,
    /// Digits, where there is neither a point nor an exponent.
    width: Option<usize>,
}

impl Written {
    /// Reads a number with decimal digits; None for other cells.
    fn read(cell: &[u8]) -> Option<Self> {
        let (sign, bare) = match cell.first()? {
            sign @ (b'+' | b'-') => (Some(*sign), &cell[1..]),
            _ => (None, cell),
        };
        let mantissa = Mantissa::scan(bare);
        let Mantissa { whole, decimals, has_point, .. } = mantissa;
        if whole + decimals == 0 {
            return Self::read_name(cell, bare);
        }
        let mut exponent = Exponent::default();
        if mantissa.length < bare.len() {
            exponent = Exponent::read(&bare[mantissa.length..])?;
        }
        let last = exponent.value - i64::try_from(decimals).ok()?;
        let (size, is_held, is_shortest) = mantissa.read(bare, last)?;
        let is_bare = !has_point && exponent.digits == 0;
        let is_padded = whole > 1 && bare[0] == b'0';
        let odd = if is_bare && is_padded {
            Some(Odd::Padded)
        } else if is_held {
            None
        } else if mantissa.digits > MOST_DIGITS {
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
        Some(Self { value, odd, spelling: class << 16 | style, width })
    }

    fn read_name(cell: &[u8], bare: &[u8]) -> Option<Self> {
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
    /// The digits as an integer, if there are at most 19 from the first that is not 0.
    word: u64,
    /// Digits from the first that is not 0.
    digits: usize,
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
        let mut count = |text: &[u8]| {
            let digits = text.iter().map(|byte| byte.wrapping_sub(b'0'));
            let mut length = 0;
            for digit in digits.take_while(|&digit| digit < 10) {
                word = word.wrapping_mul(10).wrapping_add(u64::from(digit));
                length += 1;
            }
            length
        };
        let whole = count(text);
        let has_point = text.get(whole) == Some(&b'.');
        let decimals = if has_point { count(&text[whole + 1..]) } else { 0 };
        let length = whole + usize::from(has_point) + decimals;
        let heads = text[..length].iter().take_while(|&&byte| byte == b'0' || byte == b'.').count();
        let digits = whole + decimals - (heads - usize::from(has_point && heads > whole));
        Self { word, digits, whole, decimals, has_point, length }
    }

    /// Returns the nearest double, whether it holds all digits, and whether no fewer stand for it.
    ///
    /// `last` is the power of 10 of the last digit.
    fn read(&self, text: &[u8], last: i64) -> Option<(f64, bool, bool)> {
        let (mut word, mut exponent, mut digits) = (self.word, last, self.digits);
        if digits == 0 {
            return Some((0.0, true, true));
        }
        if digits <= WORD_DIGITS {
            while digits > SAFE_DIGITS && word % 10 == 0 {
                (word, exponent, digits) = (word / 10, exponent + 1, digits - 1);
            }
            if let Some(nearest) = find_nearest(word, digits, exponent) {
                return Some(nearest);
            }
        }
        let value = str::from_utf8(text).ok()?.parse::<f64>().ok()?;
        if digits <= WORD_DIGITS
            && value.is_normal()
            && self.digits > SAFE_DIGITS
            && let Some(compared) = compare_words(word, exponent, value)
        {
            return Some((value, compared.is_held, compared.is_shortest));
        }
        if digits <= SAFE_DIGITS && value.is_normal() {
            return Some((value, true, true));
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

/// Returns what `Mantissa::read` does where integers of 128 bits suffice.
///
/// Up to 15 digits, one operation of exact numbers gives the nearest double (W. Clinger, "How to
/// read floating point numbers accurately", 1990, section 3). With more of them it gives a
/// neighbour, and the comparison shows on which side the nearest one is.
fn find_nearest(word: u64, digits: usize, exponent: i64) -> Option<(f64, bool, bool)> {
    let power = TENS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    #[allow(clippy::cast_precision_loss)]
    let size = word as f64;
    let mut value = if exponent < 0 { size / power } else { size * power };
    if digits <= SAFE_DIGITS {
        return Some((value, true, true));
    }
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

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The exponent of a cell.
#[derive(Default)]
struct Exponent {
    value: i64,
    digits: usize,
    is_capital: bool,
    has_plus: bool,
}

impl Exponent {
    fn read(text: &[u8]) -> Option<Self> {
        let (letter, rest) = text.split_first()?;
        let is_capital = *letter == b'E';
        if *letter != b'e' && !is_capital {
            return None;
        }
        let sign = rest.first().filter(|byte| matches!(byte, b'+' | b'-'));
        let bare = &rest[usize::from(sign.is_some())..];
        let digits = count_digits(bare);
        if digits == 0 || digits != bare.len() {
            return None;
        }
        // Beyond 18 digits every number is 0 or infinite.
        let shown = str::from_utf8(&bare[digits.saturating_sub(18)..]).ok()?;
        let size = shown.parse::<i64>().ok()?;
        let value = if sign == Some(&b'-') { -size } else { size };
        Some(Self { value, digits, is_capital, has_plus: sign == Some(&b'+') })
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

    const WHOLE: Position =
        Position { lines: 0, empty: 0, leaves_out_empty: false, is_last: true, rows: usize::MAX };

    const COMMA: Dialect<'_> = Dialect { separator: b",", quotes: true };

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
            if digits.len() <= SAFE_DIGITS || !value.is_normal() {
                continue;
            }
            let word = str::from_utf8(digits).unwrap().parse().unwrap();
            let Some(nearest) = find_nearest(word, digits.len(), last) else { continue };
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

    #[test]
    fn slices_of_any_size_give_the_same_cells() {
        let text = "a,\"b \"\"x\"\"\r\ny\"\r\n1.5, 2\n\"3\",\"\"\n,é\r4,5";
        let roles = [Role::Number, Role::Text];
        let expected = parse(text.as_bytes(), COMMA, &roles, WHOLE).unwrap();
        assert_eq!(expected.columns[0].numbers, [0.0, 1.5, 3.0, 0.0, 4.0]);
        assert_eq!((expected.rows, expected.lines), (5, 6));
        assert_eq!(expected.columns[1].texts, "b \"x\"\r\ny2é5");
        for size in 1..text.len() {
            let (mut rest, mut start, mut numbers, mut texts) =
                (Vec::new(), 0, Vec::new(), String::new());
            let mut lines = 0;
            while start < text.len() {
                let stop = (start + size).min(text.len());
                rest.extend_from_slice(&text.as_bytes()[start..stop]);
                let position = Position { lines, is_last: stop == text.len(), ..WHOLE };
                let piece = parse(&rest, COMMA, &roles, position).unwrap();
                numbers.extend_from_slice(&piece.columns[0].numbers);
                texts.push_str(&piece.columns[1].texts);
                lines += piece.lines;
                rest.drain(..piece.consumed);
                start = stop;
            }
            assert_eq!(numbers, expected.columns[0].numbers, "{size}");
            assert_eq!((&texts, lines), (&expected.columns[1].texts, 6), "{size}");
        }
    }

    #[test]
    fn faults_have_a_place() {
        for (text, fault, line, cell) in [
            ("1,2\n3\n", Fault::Length, 2, 1),
            ("1,2\n\n3,4\n", Fault::Empty, 2, 0),
            ("1,2\n3,\0\n", Fault::Nul, 2, 1),
            ("1,2\n3,\"a\nb", Fault::OpenQuote, 2, 1),
            ("1,2\n3,\"a\"b\n", Fault::AfterQuote, 2, 1),
        ] {
            let roles = [Role::Number, Role::Number];
            let refusal = parse(text.as_bytes(), COMMA, &roles, WHOLE).unwrap_err();
            assert_eq!(refusal, Refusal { fault, line, cell }, "{text:?}");
        }
        for roles in [[Role::Skip, Role::Text], [Role::Text, Role::Skip]] {
            let refusal = parse(b"1,2\n3,\xff\n", COMMA, &roles, WHOLE);
            assert_eq!(refusal.unwrap_err(), Refusal { fault: Fault::Encoding, line: 2, cell: 1 });
        }
    }

    #[test]
    fn empty_lines_may_be_left_out() {
        let position = Position { leaves_out_empty: true, ..WHOLE };
        let piece = parse(b"\n1,\"\n\"\n\r\n3,4\n", COMMA, &[], position).unwrap();
        assert_eq!((piece.rows, piece.lines), (2, 5));
        assert_eq!(piece.starts, [2, 5]);
        let tabs = Dialect { separator: b"\t", quotes: false };
        let piece = parse(b" \n1\t2\n  \n", tabs, &[], position).unwrap();
        assert_eq!(piece.starts, [2]);
    }

    #[test]
    fn a_line_is_a_cell_where_nothing_separates() {
        let lines = Dialect { separator: b"", quotes: false };
        let piece = parse(b" a, \"b\"\r\n\nc\rd", lines, &[Role::Text], WHOLE).unwrap();
        assert_eq!((piece.rows, piece.columns[0].texts.as_str()), (3, " a, \"b\"c\rd"));
        assert_eq!(piece.columns[0].ends, [7, 7, 10]);
    }
}
