//! What is searched: rows of two sets, who among them, and how.

use super::distance::Coordinate;
use crate::error::Error;

/// Two sets of rows, stacked: row i of the second is row n + i, n rows being in the first.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a, T> {
    rows: [&'a [T]; 2],
    pub(super) dim: usize,
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

/// How neighbours are found; all ways give the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// By a tree or by bytes where that is expected to be faster.
    #[default]
    Faster,
    /// By a tree, for at most 16 coordinates, all finite.
    Tree,
    /// By the products of all pairs in f32.
    Pairs,
    /// By the products of all pairs in bytes, and in f32 where those leave too many candidates.
    Bytes,
}

/// Who is searched for, and among whom: rows of two sets by their numbers in the stack.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a, T> {
    pub(super) sets: Sets<'a, T>,
    pub(super) queries: &'a [i64],
    pub(super) points: &'a [i64],
    pub(super) method: Method,
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
    pub(super) fn query(&self, i: usize) -> &'a [T] {
        self.sets.row(self.queries[i] as usize)
    }

    #[inline(always)]
    pub(super) fn point(&self, place: usize) -> &'a [T] {
        self.sets.row(self.points[place] as usize)
    }
}

/// Bytes that the candidates of a thread's block may take.
const ROOM: usize = 1 << 26;

/// Queries of a block: at most `most`, fewer where they need much room or threads would be idle.
pub(super) fn block_of(queries: usize, most: usize, threads: usize, bytes_each: usize) -> usize {
    let fair = queries.div_ceil(3 * threads.max(1)).next_multiple_of(48);
    fair.min(most).min(ROOM / bytes_each.max(1)).max(1)
}

/// The blocks of `all` queries, each with its number.
pub(super) fn blocks(
    all: usize,
    block: usize,
) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator + Send {
    (0..all.div_ceil(block)).map(move |i| (i * block, ((i + 1) * block).min(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_every_query_once_and_fit_their_room() {
        for (all, block) in [(0, 5), (1, 5), (10, 5), (11, 5), (3, 1)] {
            let own: Vec<usize> =
                blocks(all, block).flat_map(|(first, last)| first..last).collect();
            assert!(own.into_iter().eq(0..all));
        }
        assert_eq!(block_of(100_000, 1008, 2, 1), 1008);
        // A third of a thread's share, in whole tiles.
        assert_eq!(block_of(1000, 1008, 2, 1), 192);
        assert_eq!(block_of(100_000, 1008, 1, (1 << 20) + 1), 63);
        assert_eq!(block_of(100_000, 1008, 1, usize::MAX), 1);
    }
}
