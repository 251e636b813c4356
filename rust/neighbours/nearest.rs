//! The nearest points of every query, whole tie shells kept.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::distance::Coordinate;
use super::exact::{Chosen, Distances, STRIP, Strip};
use super::frame::{Frame, up};
use super::panel::{Block, Panel, most_of, panel_of};
use super::products::{Products, Sink, width};
use super::search::{Search, block_of, blocks};
use super::top::Top;
use super::tree::Tree;
use crate::error::Error;
use crate::pool::each;
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Neighbours of every query: those of query i are entries `starts[i]..starts[i + 1]`, in the
/// order of (squared, place).
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
/// A depth of 0; [`Error::Interrupted`].
pub fn nearest<T: Coordinate>(
    search: Search<'_, T>,
    depth: usize,
    (cpu, threads): (Cpu, usize),
    stop: &AtomicBool,
) -> Result<Nearest, Error> {
    if depth == 0 {
        return Err(Error::invalid("depth", "at least 1", depth));
    }
    let (queries, points) = (search.queries.len(), search.points.len());
    // Few queries or points are not worth their packing, many neighbours not the sifting.
    let few = queries.min(points) < 16 || depth.saturating_mul(4) >= points;
    let depth = depth.min(points);
    let tree = Tree::of(&search, depth, stop);
    let few = few || tree.is_some();
    let frame = if few { None } else { Frame::new(&search) };
    let (frame, tree) = (frame.as_ref(), tree.as_ref());
    let task = Task { search: &search, frame, tree, depth, cpu, stop };
    let bytes = (task.most() + depth) * size_of::<Candidate>();
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
    block: Block,
    panel: Panel,
    strip: Strip,
    sieves: Vec<Sieve>,
    tops: Vec<Top>,
}

struct Task<'a, T> {
    search: &'a Search<'a, T>,
    frame: Option<&'a Frame>,
    tree: Option<&'a Tree>,
    depth: usize,
    cpu: Cpu,
    stop: &'a AtomicBool,
}

impl<T: Coordinate> Task<'_, T> {
    /// Candidates of a query beyond which it is left to f64.
    fn most(&self) -> usize {
        4 * self.depth + 4096
    }

    /// The neighbours of a block; `starts` without the leading 0.
    fn block(&self, room: &mut Room, (first, last): (usize, usize)) -> Nearest {
        let mut found = Nearest::default();
        let Some(frame) = self.frame else {
            self.exactly(room, first..last);
            for top in &mut room.tops {
                top.finish(&mut found);
            }
            return found;
        };
        self.sift(frame, room, first..last);
        for i in first..last {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let sieve = &mut room.sieves[i - first];
            if sieve.full {
                found.rescans += 1;
                let mut sieves = std::mem::take(&mut room.sieves);
                self.exactly(room, i..i + 1);
                std::mem::swap(&mut room.sieves, &mut sieves);
                room.tops[0].finish(&mut found);
                continue;
            }
            sieve.prune(self.depth);
            let places: Vec<u32> = sieve.kept.iter().map(|candidate| candidate.place).collect();
            let mut top = Top::new(self.depth);
            let (query, out) = (self.search.query(i), &mut top.kept);
            dispatch(self.cpu, Chosen { search: self.search, query, places: &places, out });
            top.finish(&mut found);
        }
        found
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

    /// Leaves in `room.sieves` all points that may be among the queries' nearest.
    fn sift(&self, frame: &Frame, room: &mut Room, queries: Range<usize>) {
        let (size, dim, width) = (queries.len(), self.search.sets.dim, width(self.cpu));
        let Room { block, panel, sieves, .. } = room;
        block.fill((frame, self.search, self.cpu), queries, width);
        sieves.resize_with(size, Sieve::default);
        for (sieve, &more) in sieves.iter_mut().zip(&block.more) {
            sieve.start(self.depth, more);
        }
        let flip = vec![0; size.div_ceil(width)];
        // Nothing is below NaN, and everything below infinity.
        let mut bounds = vec![f32::NAN; size.next_multiple_of(width)];
        bounds[..size].fill(f32::INFINITY);
        for part in blocks(self.search.points.len(), panel_of(dim)) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            panel.fill((frame, self.search, self.cpu), part);
            let mut sift = Sift { panel, sieves, depth: self.depth, most: self.most() };
            let (queries, points, low) = (block.tiles(), &panel.rows[..], &panel.low[..]);
            let (bounds, flip, sink) = (&mut bounds[..], &flip[..], &mut sift);
            Products { dim, queries, points, low, bounds, flip, sink }.run(self.cpu);
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

/// A point that may be among the nearest: bounds on its distance, in the panel's units.
#[derive(Clone, Copy)]
struct Candidate {
    low: f32,
    high: f32,
    place: u32,
}

/// All points that may be among the nearest of a query, by f32.
#[derive(Default)]
struct Sieve {
    kept: Vec<Candidate>,
    // Of the query: `more` of its block.
    more: f64,
    limit: usize,
    full: bool,
}

impl Sieve {
    fn start(&mut self, depth: usize, more: f64) {
        self.kept.clear();
        (self.more, self.limit, self.full) = (more, 2 * depth + 64, false);
    }

    /// Drops what is certainly not among the nearest: what has a `low` above the bound that is
    /// returned.
    fn prune(&mut self, depth: usize) -> f32 {
        if self.kept.len() <= depth {
            return f32::INFINITY;
        }
        self.kept.select_nth_unstable_by(depth - 1, |a, b| a.high.total_cmp(&b.high));
        let bound = up(f64::from(self.kept[depth - 1].high) + self.more);
        self.kept.retain(|candidate| candidate.low <= bound);
        bound
    }

    /// Prunes; with more than `most` / 2 left the query is given up, and the bound below all.
    #[cold]
    fn make_room(&mut self, depth: usize, most: usize) -> f32 {
        let bound = self.prune(depth);
        self.limit = self.limit.max(2 * self.kept.len());
        if self.kept.len() <= most / 2 {
            return bound;
        }
        (self.full, self.kept) = (true, Vec::new());
        f32::NEG_INFINITY
    }
}

/// Sifts a panel for all queries of a block.
struct Sift<'a> {
    panel: &'a Panel,
    sieves: &'a mut [Sieve],
    depth: usize,
    most: usize,
}

impl Sink for Sift<'_> {
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: f32, bounds: &mut [f32]) {
        let low = self.panel.low[j] - 2.0 * product;
        let high = up(f64::from(low) + self.panel.width(j));
        let sieve = &mut self.sieves[i];
        sieve.kept.push(Candidate { low, high, place: (self.panel.start + j) as u32 });
        if sieve.kept.len() >= sieve.limit {
            bounds[i] = sieve.make_room(self.depth, self.most);
        }
    }
}
