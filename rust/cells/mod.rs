//! Cells of tables in text: where each ends, the number that it holds, and how that is written.
//!
//! A slice of a file is read at a time, and what follows its last whole row is left for the next
//! slice.
//!
//! Source: RFC 4180 for quotation marks.

mod numbers;

use std::ops::Range;
use std::str;

use numbers::{Odd, Spelling, Written};

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
    /// Spellings that were found last, and their places.
    recent: [Option<(u32, u8)>; 32],
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
        let start = splitter.at;
        // In a row of numbers each of them shows its own end.
        let numbers =
            if piece.empty == 0 { splitter.numbers(&roles, &mut piece.columns) } else { 0 };
        if numbers > 0 && numbers == roles.len() {
            if position.leaves_out_empty {
                piece.starts.push(line);
            }
            piece.rows += 1;
            piece.lines += 1;
            if piece.rows == 1 {
                // The other rows are about as long.
                let rows = position.rows.min(data.len() / (splitter.at - start));
                for column in &mut piece.columns {
                    column.numbers.reserve(rows);
                    column.codes.reserve(rows);
                }
            }
            continue;
        }
        cells.clear();
        cells.resize(numbers, (0..0, false));
        unquoted.clear();
        let end = splitter.row(position.is_last, &mut cells, &mut unquoted);
        let lines = splitter.lines;
        let Some(is_whole) = end.map_err(|(fault, cell, inner)| refuse(fault, cell, inner))? else {
            splitter.at = start;
            for column in &mut piece.columns[..numbers] {
                column.numbers.truncate(piece.rows);
                column.codes.truncate(piece.rows);
            }
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
                cells.iter().zip(&mut piece.columns).enumerate().skip(numbers)
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
    /// Whether a number ends where its digits do.
    shows_ends: bool,
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
        let shows_ends =
            dialect.separator.first().is_none_or(|byte| !b"0123456789.eE+-".contains(byte));
        Self { data, dialect, ends, at: 0, lines: 0, shows_ends }
    }

    /// Reads exact numbers at the beginning of a row, and returns how many there are.
    fn numbers(&mut self, roles: &[Role], columns: &mut [Column]) -> usize {
        let separator = self.dialect.separator;
        let most = if self.shows_ends { roles.len() } else { 0 };
        for (cell, column) in columns.iter_mut().enumerate().take(most) {
            let blank = self.data.get(self.at) == Some(&b' ') && separator.first() != Some(&b' ');
            let start = self.at + usize::from(blank);
            let number = match roles[cell] {
                Role::Number => Written::read_head(&self.data[start..]),
                Role::Skip | Role::Text => None,
            };
            let Some((written, length)) = number.filter(|(written, _)| written.odd.is_none())
            else {
                return cell;
            };
            let end = match &self.data[start + length..] {
                [b'\n', ..] if cell + 1 == most => 1,
                [b'\r', b'\n', ..] if cell + 1 == most => 2,
                rest if cell + 1 < most && rest.starts_with(separator) => separator.len(),
                _ => return cell,
            };
            column.push_number(&written);
            self.at = start + length + end;
        }
        most
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
            if role == Role::Number && written.odd.is_none() {
                self.push_number(&written);
                return Ok(());
            }
            self.measure(&written);
        }
        let text = str::from_utf8(bytes).map_err(|_| Fault::Encoding)?;
        let text = if strip { text.trim() } else { text };
        if role == Role::Number {
            self.numbers.push(0.0);
            let code = self.code_of(Spelling::NONE);
            self.codes.push(code);
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

    fn push_number(&mut self, written: &Written) {
        self.measure(written);
        self.numbers.push(written.value);
        let code = self.code_of(written.spelling);
        self.codes.push(code);
    }

    /// Returns the place of a spelling.
    fn code_of(&mut self, spelling: u32) -> u8 {
        // Spellings differ in their decimals first. Those of a column mostly have a place each.
        let place = (spelling ^ spelling >> 13) as usize % self.recent.len();
        match self.recent[place] {
            Some((other, code)) if other == spelling => code,
            _ => {
                let code = find_or_push(&mut self.spellings, spelling);
                self.recent[place] = Some((spelling, code));
                code
            }
        }
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
    let place = spellings.iter().position(|&other| other == spelling).unwrap_or_else(|| {
        if spellings.len() < MOST_SPELLINGS {
            spellings.push(spelling);
        }
        spellings.len() - 1
    });
    u8::try_from(place).expect("fewer than 256 spellings")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Position =
        Position { lines: 0, empty: 0, leaves_out_empty: false, is_last: true, rows: usize::MAX };

    const COMMA: Dialect<'_> = Dialect { separator: b",", quotes: true };

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
    fn numbers_that_show_their_ends_are_those_of_cells_in_quotation_marks() {
        let cells = [
            "1.5",
            "-0",
            " 12",
            "1e-05",
            "007",
            "0.1000000000000000055511151231257827",
            "nan",
            "12345678901234567890",
            "1.50",
            "+3",
            "",
            "x1",
            "9007199254740993",
            "4.",
            ".5",
            "1 ",
            "-12.345678901234567",
            "1e400",
            "2.5e+10",
            "0.000000000000000001",
            "é",
        ];
        let (mut bare, mut quoted) = (String::new(), String::new());
        for row in 0..cells.len() * cells.len() {
            let row = [row % cells.len(), row / cells.len(), (3 * row + 1) % cells.len()];
            let row = row.map(|place| cells[place]);
            bare.push_str(&row.join(","));
            quoted.push_str(&row.map(|cell| format!("\"{cell}\"")).join(","));
            let end = if bare.len() % 2 == 0 { "\n" } else { "\r\n" };
            bare.push_str(end);
            quoted.push_str(end);
        }
        let [bare, quoted] = [bare, quoted]
            .map(|text| parse(text.as_bytes(), COMMA, &[Role::Number; 3], WHOLE).unwrap());
        assert_eq!(bare.rows, cells.len() * cells.len());
        for (column, other) in bare.columns.iter().zip(&quoted.columns) {
            let bits = |column: &Column| -> Vec<u64> {
                column.numbers.iter().map(|number| number.to_bits()).collect()
            };
            assert_eq!(bits(column), bits(other));
            assert_eq!((&column.codes, &column.spellings), (&other.codes, &other.spellings));
            assert_eq!((&column.odd, &column.texts), (&other.odd, &other.texts));
            assert_eq!((&column.kinds, column.widths), (&other.kinds, other.widths));
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
