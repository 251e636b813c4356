//! The nearest points of every query, whole tie shells kept.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::distance::Coordinate;
use super::exact::{Chosen, Distances, STRIP, Strip};
use super::frame::clouds::Clouds;
use super::frame::up;
use super::panel::most_of;
use super::search::{Search, block_of, blocks};
use super::sift::{Sifter, Sifting, most};
use super::top::{Candidate, Sieve, Top};
use super::tree::Tree;
use crate::error::Error;
use crate::options::Options;
use crate::pool::each;
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Neighbours of every query: those of query i are entries `starts[i]..starts[i + 1]`, in the
/// order of (squared, place). A row with a NaN has no neighbours and is nobody's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    /// One more than there are queries.
    pub starts: Vec<i64>,
    /// Positions in `points`.
    pub places: Vec<u32>,
    /// Squared distances, by [`super::distance::squared`].
    pub squared: Vec<f64>,
    /// Queries for which the products in f32 left more candidates than there was room for, so that
    /// all distances were computed in f64. The one number here that may depend on the CPU.
    pub rescans: u64,
}

/// The `depth` nearest points of every query, and all that are as far as the last of them.
///
/// # Errors
///
/// A depth of 0; options out of range; [`Error::Interrupted`].
pub fn nearest<T: Coordinate>(
    search: Search<'_, T>,
    depth: usize,
    options: &Options<'_>,
) -> Result<Nearest, Error> {
    let (cpu, threads, stop) = options.settle()?;
    if depth == 0 {
        return Err(Error::invalid("depth", "at least 1", depth));
    }
    let (queries, points) = (search.queries.len(), search.points.len());
    // Few queries or points are not worth their packing, many neighbours not the sifting.
    let few = queries.min(points) < 16 || depth.saturating_mul(4) >= points;
    let depth = depth.min(points);
    let tree = Tree::of(&search, depth, stop);
    let few = few || tree.is_some();
    let clouds = if few { None } else { Clouds::new((&search, depth), cpu, stop) };
    let (clouds, tree) = (clouds.as_ref(), tree.as_ref());
    let sifter = match clouds {
        Some(clouds) => Some(Sifter::new((&search, clouds, depth), (cpu, threads), stop)?),
        None => None,
    };
    let task = Task { search: &search, sifter, tree, depth, cpu, stop };
    let bytes = (most(depth) + depth) * size_of::<Candidate>();
    let block = block_of(queries, most_of(search.sets.dim), threads, bytes);
    let work = |own: &mut Own, block: (usize, usize)| {
        let found = task.block(&mut own.room, block);
        own.found.push((block.0, found));
    };
    let merge = |total: &mut Own, mut own: Own| total.found.append(&mut own.found);
    let mut found = each(blocks(queries, block), threads, stop, work, merge)?.found;
    found.sort_unstable_by_key(|&(first, _)| first);
    Ok(joined(found.into_iter().map(|(_, found)| found), queries))
}

fn joined(parts: impl Iterator<Item = Nearest>, queries: usize) -> Nearest {
    let mut all = Nearest::default();
    all.starts.reserve_exact(queries + 1);
    all.starts.push(0);
    for part in parts {
        let before = all.places.len() as i64;
        all.starts.extend(part.starts.iter().map(|&end| before + end));
        all.places.extend_from_slice(&part.places);
        all.squared.extend_from_slice(&part.squared);
        all.rescans += part.rescans;
    }
    all
}

/// A thread's blocks and its room.
#[derive(Default)]
struct Own {
    found: Vec<(usize, Nearest)>,
    room: Room,
}

#[derive(Default)]
struct Room {
    sifting: Sifting,
    strip: Strip,
    sieves: Vec<Sieve>,
    tops: Vec<Top>,
}

struct Task<'a, T> {
    search: &'a Search<'a, T>,
    sifter: Option<Sifter<'a, T>>,
    tree: Option<&'a Tree>,
    depth: usize,
    cpu: Cpu,
    stop: &'a AtomicBool,
}

impl<T: Coordinate> Task<'_, T> {
    /// The neighbours of a block; `starts` without the leading 0.
    fn block(&self, room: &mut Room, (first, last): (usize, usize)) -> Nearest {
        let mut found = Nearest::default();
        let Some(sifter) = &self.sifter else {
            self.exactly(room, first..last);
            for top in &mut room.tops {
                top.finish(&mut found);
            }
            return found;
        };
        let queries: Vec<usize> = (first..last).collect();
        let mut sieves = std::mem::take(&mut room.sieves);
        sieves.resize_with(queries.len(), Sieve::default);
        sifter.sift(&mut room.sifting, &queries, &mut sieves);
        // Queries that share candidates one after the other: their rows are then in the cache.
        let mut order: Vec<usize> = (0..sieves.len()).collect();
        let least = |sieve: &Sieve| sieve.kept.iter().map(|candidate| candidate.place).min();
        order.sort_by_cached_key(|&i| least(&sieves[i]));
        let mut tops: Vec<Top> = queries.iter().map(|_| Top::new(self.depth)).collect();
        for i in order {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if sieves[i].full {
                found.rescans += 1;
                self.exactly(room, queries[i]..queries[i] + 1);
                std::mem::swap(&mut tops[i], &mut room.tops[0]);
            } else {
                self.decide(sifter.clouds, queries[i], &mut sieves[i], &mut tops[i]);
            }
        }
        for top in &mut tops {
            top.finish(&mut found);
        }
        room.sieves = sieves;
        found
    }

    /// The nearest of a sieve's candidates, by f64.
    fn decide(&self, clouds: &Clouds, i: usize, sieve: &mut Sieve, top: &mut Top) {
        let (search, query) = (self.search, self.search.query(i));
        let choose = |candidates: &[Candidate], out: &mut Vec<(f64, u32)>| {
            let places: Vec<u32> = candidates.iter().map(|candidate| candidate.place).collect();
            dispatch(self.cpu, Chosen { search, query, places: &places, out });
        };
        let mut seem = 0;
        if sieve.kept.len() > self.depth + 16 {
            // As many as are asked for, those that seem nearest, tell how far the last can be.
            seem = self.depth;
            sieve.kept.select_nth_unstable_by(seem - 1, |a, b| a.low.total_cmp(&b.low));
            choose(&sieve.kept[..seem], &mut top.kept);
            let last = top.kept.iter().fold(0.0, |last: f64, entry| last.max(entry.0));
            // Every cloud has the same scale.
            sieve.bound = up(clouds.each[0].frame.scaled(last));
        }
        sieve.drop_beyond(seem);
        choose(&sieve.kept[seem..], &mut top.kept);
        dispatch(self.cpu, Chosen { search, query, places: &clouds.far, out: &mut top.kept });
        top.prune();
        top.kept.shrink_to(2 * self.depth);
    }

    /// The queries' nearest by f64 alone, in `room.tops`.
    fn exactly(&self, room: &mut Room, queries: Range<usize>) {
        let mut out = [0.0; STRIP];
        room.tops.clear();
        room.tops.extend(queries.clone().map(|_| Top::new(self.depth)));
        if let Some(tree) = self.tree {
            return tree.nearest(self.search, queries, &mut room.tops, (self.cpu, self.stop));
        }
        for (first, last) in blocks(self.search.points.len(), STRIP) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            room.strip.fill(self.search, (first, last));
            for (i, top) in queries.clone().zip(&mut room.tops) {
                let (search, strip) = (self.search, &room.strip);
                let query = search.query(i);
                dispatch(self.cpu, Distances { search, strip, query, out: &mut out });
                dispatch(self.cpu, Add { top, values: &out[..last - first], first });
            }
        }
    }
}

impl Top {
    /// Adds what is left in the end to `found`.
    fn finish(&mut self, found: &mut Nearest) {
        self.prune();
        self.kept.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.squared.extend(self.kept.iter().map(|entry| entry.0));
        found.places.extend(self.kept.iter().map(|entry| entry.1));
        found.starts.push(found.places.len() as i64);
    }
}

/// Values looked at together.
const GROUP: usize = 16;

/// Adds the distances of a strip that are not beyond the bound.
struct Add<'a> {
    top: &'a mut Top,
    values: &'a [f64],
    first: usize,
}

impl Kernel for Add<'_> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { top, values, first } = self;
        for (group, values) in values.chunks(GROUP).enumerate() {
            let bound = top.bound;
            let mut near = false;
            for &value in values {
                near |= value <= bound;
            }
            if !near {
                continue;
            }
            for (j, &value) in values.iter().enumerate() {
                if value <= top.bound {
                    top.kept.push((value, (first + group * GROUP + j) as u32));
                }
            }
            if top.kept.len() >= top.limit {
                top.prune();
            }
        }
    }
}
