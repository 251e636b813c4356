//! Exact nearest neighbours: blocked products in f32 find who may matter, f64 decides.
//!
//! [`nearest`] and [`inside`] answer by [`distance::squared`], which gives the same bits on every
//! CPU; products in f32 only rule points out, and only where a bound on their error
//! ([`frame`]) proves that they may. So neither the CPU, nor the number of threads, nor the
//! blocks change a bit of an answer.
//!
//! # Memory
//!
//! Input is read in place; no copy of it is made. A thread holds a block of at most 1008 queries in
//! f32, twice while it is packed, and a panel of at most 240 points: about 2^20 and 2^17 numbers,
//! or 48 and 24 rows where those are more. The candidates of a block take at most 2^26 bytes (12 a
//! candidate and up to 4 depth + 4096 of them a query in [`nearest`], 8 an entry and up to the cap
//! in [`inside`]), unless a single query needs more. So a thread has about 80 MiB at worst. Answers
//! take 12 bytes an entry from [`nearest`] and 4 from [`inside`], with 8 for every shell, and are
//! there twice while the blocks are joined.

// Numbers of rows are checked to be such before they are used.
#![allow(clippy::cast_sign_loss)]

pub mod distance;
mod exact;
mod frame;
mod inside;
mod lanes;
mod nearest;
mod panel;
mod pooling;
mod products;
mod tree;
mod walks;

pub use inside::{Inside, Shells, inside};
pub use nearest::{Nearest, nearest};
pub use pooling::{Pooled, pool_rows};
pub use tree::Method;

use crate::error::Error;
use distance::Coordinate;

/// Two sets of rows, stacked: row i of the second is row n + i, n rows being in the first.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a, T> {
    rows: [&'a [T]; 2],
    dim: usize,
}

impl<'a, T: Coordinate> Sets<'a, T> {
    /// Two sets, each a matrix row by row.
    ///
    /// # Errors
    ///
    /// No dimension, or a length that is not a number of rows; 2^32 - 1 rows or more.
    pub fn new(first: &'a [T], second: &'a [T], dim: usize) -> Result<Self, Error> {
        if dim == 0 {
            return Err(Error::invalid("dim", "at least 1", dim));
        }
        for (name, rows) in [("rows0", first), ("rows1", second)] {
            if !rows.len().is_multiple_of(dim) {
                return Err(Error::invalid(name, format!("rows of {dim}"), rows.len()));
            }
        }
        let sets = Self { rows: [first, second], dim };
        if sets.len() >= u32::MAX as usize {
            return Err(Error::invalid("rows", "fewer than 2^32 - 1 in all", sets.len()));
        }
        Ok(sets)
    }

    /// Rows of both.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.rows[0].len() + self.rows[1].len()) / self.dim
    }

    /// Rows of the first set.
    #[must_use]
    pub fn split(&self) -> usize {
        self.rows[0].len() / self.dim
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// A row by its number in the stack.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [T] {
        let start = index * self.dim;
        let (rows, start) = match start.checked_sub(self.rows[0].len()) {
            Some(start) => (self.rows[1], start),
            None => (self.rows[0], start),
        };
        &rows[start..start + self.dim]
    }
}

/// Who is searched for, and among whom: rows of two sets by their numbers in the stack.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a, T> {
    sets: Sets<'a, T>,
    queries: &'a [i64],
    points: &'a [i64],
    method: Method,
}

impl<'a, T: Coordinate> Search<'a, T> {
    /// A search for `queries` among `points`.
    ///
    /// # Errors
    ///
    /// A number that is no row of the stack.
    pub fn new(sets: Sets<'a, T>, queries: &'a [i64], points: &'a [i64]) -> Result<Self, Error> {
        for (name, numbers) in [("queries", queries), ("points", points)] {
            let outside = |&&i: &&i64| usize::try_from(i).map_or(true, |i| i >= sets.len());
            if let Some(number) = numbers.iter().find(outside) {
                return Err(Error::invalid(name, format!("rows below {}", sets.len()), number));
            }
        }
        if points.len() > u32::MAX as usize {
            return Err(Error::invalid("points", "fewer than 2^32", points.len()));
        }
        Ok(Self { sets, queries, points, method: Method::Faster })
    }

    /// The same search by another method, with the same answers.
    #[must_use]
    pub fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    #[inline(always)]
    fn query(&self, i: usize) -> &'a [T] {
        self.sets.row(self.queries[i] as usize)
    }

    #[inline(always)]
    fn point(&self, place: usize) -> &'a [T] {
        self.sets.row(self.points[place] as usize)
    }
}

/// Bytes that the candidates of a thread's block may take.
const ROOM: usize = 1 << 26;

/// Queries of a block: at most `most`, fewer where they need much room or threads would be idle.
fn block_of(queries: usize, most: usize, threads: usize, bytes_each: usize) -> usize {
    let fair = queries.div_ceil(3 * threads.max(1)).next_multiple_of(48);
    fair.min(most).min(ROOM / bytes_each.max(1)).max(1)
}

/// The blocks of `all` queries, each with its number.
fn blocks(all: usize, block: usize) -> impl ExactSizeIterator<Item = (usize, usize)> + Send {
    (0..all.div_ceil(block)).map(move |i| (i * block, ((i + 1) * block).min(all)))
}
