//! Balls from lists of neighbours, for any number of copies of every point.
//!
//! Points that a replicate lacks do not change the order of those it has. So the nearest `depth`
//! rows of the other set are found by walking a list in order until that many copies are passed,
//! and the rows of the own set by adding the copies of the points listed inside. A list that ends
//! before, and a ball too large to be listed, are searched again by distances to every point, once
//! for all replicates that need it.

use super::MOST_ROWS;
use super::ball::{Ball, Sample, Search, all};
use super::cells::{Values, check_alphas, evaluate};
use super::lists::{Lists, Rows};
use super::tally::{Counted, Tally, gather, key};
use crate::error::Error;
use crate::neighbours::distance::Coordinate;
use crate::options::Options;
use crate::pool::each;
use std::ops::Range;

/// Queries that a thread counts at a time where there is one sample.
const SLICE: usize = 256;

/// Counts of every query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the own set in the ball but one copy of the query.
    pub n: Vec<i64>,
    /// Rows of the other set in the ball but one; all of them where `whole`.
    pub j: Vec<i64>,
    /// Whether the other set has fewer rows than the depth, so that the ball is everything.
    pub whole: Vec<bool>,
    /// What had to be searched again.
    pub again: Again,
}

/// How many balls of how many samples had to be searched again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Because the list ended before `depth` rows, although there are more points.
    pub run_outs: u64,
    /// Because the list of the own set had been cut off.
    pub rescans: u64,
}

impl Again {
    fn add(&mut self, other: Self) {
        self.run_outs += other.run_outs;
        self.rescans += other.rescans;
    }
}

fn check_depth(depth: u64) -> Result<(), Error> {
    if (1..MOST_ROWS).contains(&depth) {
        return Ok(());
    }
    Err(Error::invalid("depth", "from 1 to 2^31 - 1", depth))
}

/// Checks copies of every point, sample after sample; how many samples there are.
fn check_copies(name: &'static str, copies: &[u32], points: usize) -> Result<usize, Error> {
    if points == 0 || !copies.len().is_multiple_of(points) {
        return Err(Error::invalid(name, format!("{points} to a sample"), copies.len()));
    }
    match copies.chunks_exact(points).map(all).find(|&rows| rows >= MOST_ROWS) {
        Some(rows) => Err(Error::invalid(name, "below 2^31 in sum", rows)),
        None => Ok(copies.len() / points),
    }
}

/// Counts the ball of every query in one sample: `copies` are those of every point in the own and
/// the other set.
///
/// # Errors
///
/// Lists that do not fit ([`Lists::check`]); a depth of 0; copies for another number of points, or
/// none of a query; options out of range; [`Error::Interrupted`].
pub fn ball_counts<T: Coordinate>(
    lists: &Lists<'_>,
    copies: (&[u32], &[u32]),
    depth: u64,
    rows: &Rows<'_, T>,
    options: &Options<'_>,
) -> Result<Counts, Error> {
    let (_, threads, stop) = options.settle()?;
    check_depth(depth)?;
    let points = rows.points();
    lists.check(points)?;
    for (name, copies) in [("w_own", copies.0), ("w_other", copies.1)] {
        if check_copies(name, copies, points)? != 1 {
            return Err(Error::invalid(name, "of one sample", copies.len()));
        }
    }
    if lists.queries.iter().any(|&query| copies.0[query as usize] == 0) {
        return Err(Error::invalid("w_own", "positive at every query", 0));
    }
    let sample = Sample::new(lists, copies, depth);
    let work = |parts: &mut Vec<(usize, Counts)>, start: usize| {
        let end = (start + SLICE).min(lists.queries.len());
        parts.push((start, count_some(lists, &sample, rows, start..end)));
    };
    let merge = |all: &mut Vec<_>, mut own: Vec<_>| all.append(&mut own);
    let starts = (0..lists.queries.len()).step_by(SLICE);
    let mut parts = each(starts, threads, stop, work, merge)?;
    parts.sort_by_key(|(start, _)| *start);
    let mut counts = Counts::default();
    for (_, part) in parts {
        counts.n.extend(part.n);
        counts.j.extend(part.j);
        counts.whole.extend(part.whole);
        counts.again.add(part.again);
    }
    Ok(counts)
}

fn count_some<T: Coordinate>(
    lists: &Lists<'_>,
    sample: &Sample<'_>,
    rows: &Rows<'_, T>,
    queries: Range<usize>,
) -> Counts {
    let mut counts = Counts::default();
    for query in queries {
        let ball = sample.ball(lists, query);
        let (n, j) = match ball {
            Ball::Counted { n, j } => (n, j),
            Ball::Whole => sample.whole(),
            Ball::RunOut | Ball::Capped => Search::new(lists, rows, query).count(sample),
        };
        counts.again.run_outs += u64::from(matches!(ball, Ball::RunOut));
        counts.again.rescans += u64::from(matches!(ball, Ball::Capped));
        counts.n.push(n.cast_signed());
        counts.j.push(j.cast_signed());
        counts.whole.push(matches!(ball, Ball::Whole));
    }
    counts
}

/// Divergences of replicates, and what had to be searched again.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicates {
    /// Of every replicate.
    pub values: Vec<Values>,
    /// Over all replicates.
    pub again: Again,
}

/// What a thread has counted.
#[derive(Default)]
struct Room {
    tally: Tally,
    done: Vec<(usize, Counted)>,
    again: Vec<(u32, u32)>,
    counted: Again,
}

/// Divergences of replicates at all orders.
///
/// `copies` has those of every point in the own and in the other set, replicate after replicate;
/// `atoms` are the points of the own set that are no queries: with n and j the copies there, but
/// one of the own set.
///
/// # Errors
///
/// As [`ball_counts`], but for queries that a replicate lacks; orders that are not positive.
pub fn ball_replicates<T: Coordinate>(
    lists: &Lists<'_>,
    atoms: &[u32],
    copies: (&[u32], &[u32]),
    (depth, alphas): (u64, &[f64]),
    rows: &Rows<'_, T>,
    options: &Options<'_>,
) -> Result<Replicates, Error> {
    let (_, threads, stop) = options.settle()?;
    check_depth(depth)?;
    check_alphas(alphas)?;
    let points = rows.points();
    lists.check(points)?;
    super::lists::check_ids("atoms", atoms, points)?;
    let replicates = check_copies("w_own", copies.0, points)?;
    if check_copies("w_other", copies.1, points)? != replicates {
        return Err(Error::invalid("w_other", "as many as w_own", copies.1.len()));
    }
    let sample = |i: usize| {
        let range = i * points..(i + 1) * points;
        Sample::new(lists, (&copies.0[range.clone()], &copies.1[range]), depth)
    };
    let work = |room: &mut Room, i: usize| one(lists, atoms, &sample(i), i, room);
    let merge = |all: &mut Room, mut own: Room| {
        all.done.append(&mut own.done);
        all.again.append(&mut own.again);
        all.counted.add(own.counted);
    };
    let mut room = each(0..replicates, threads, stop, work, merge)?;
    room.done.sort_by_key(|(i, _)| *i);
    let mut counted: Vec<Counted> = room.done.into_iter().map(|(_, counted)| counted).collect();
    room.again.sort_unstable();
    let queries: Vec<&[(u32, u32)]> = room.again.chunk_by(|a, b| a.0 == b.0).collect();
    let search = |found: &mut Vec<(usize, (u64, f64))>, these: &[(u32, u32)]| {
        let query = these[0].0 as usize;
        let search = Search::new(lists, rows, query);
        for &(_, i) in these {
            let sample = sample(i as usize);
            let (n, j) = search.count(&sample);
            let rows = sample.own[lists.queries[query] as usize];
            found.push((i as usize, (key(n, j, false), f64::from(rows))));
        }
    };
    let append = |all: &mut Vec<_>, mut own: Vec<_>| all.append(&mut own);
    for (i, cell) in each(queries.into_iter(), threads, stop, search, append)? {
        counted[i].cells.push(cell);
    }
    for set in &mut counted {
        gather(&mut set.cells);
    }
    let values = evaluate(&counted, alphas, threads, stop)?;
    Ok(Replicates { values, again: room.counted })
}

/// Counts replicate `i` but for the balls that must be searched again.
fn one(lists: &Lists<'_>, atoms: &[u32], sample: &Sample<'_>, i: usize, room: &mut Room) {
    for &id in atoms {
        let (own, other) = (sample.own[id as usize], u64::from(sample.other[id as usize]));
        if own > 0 {
            room.tally.add(key(u64::from(own) - 1, other, other == 0), own.into());
        }
    }
    for (query, &id) in lists.queries.iter().enumerate() {
        let rows = sample.own[id as usize];
        if rows == 0 {
            continue;
        }
        let key = match sample.ball(lists, query) {
            Ball::Counted { n, j } => key(n, j, false),
            Ball::Whole => {
                let (n, j) = sample.whole();
                key(n, j, j == 0)
            }
            Ball::RunOut => {
                room.counted.run_outs += 1;
                room.again.push((query as u32, i as u32));
                continue;
            }
            Ball::Capped => {
                room.counted.rescans += 1;
                room.again.push((query as u32, i as u32));
                continue;
            }
        };
        room.tally.add(key, rows.into());
    }
    let cells = room.tally.take();
    room.done.push((i, Counted { cells, own: all(sample.own), other: all(sample.other) }));
}
