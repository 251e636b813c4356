//! The nearest points of every query, whole tie shells kept.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bytes::codes::{About, Coded, Codes, EncodePoints, EncodeQueries, stride};
use super::bytes::{Products as ByteProducts, Sink as ByteSink, WIDTH, fast};
use super::distance::Coordinate;
use super::exact::{Chosen, Distances, STRIP, Strip};
use super::frame::clouds::{Cloud, Clouds};
use super::frame::{Frame, down, up};
use super::panel::{Block, Panel, most_of, panel_of};
use super::products::{Products, Sink, width};
use super::search::{Method, Search, block_of, blocks};
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
    let codes = match clouds {
        Some(clouds) if in_bytes(&search, depth, cpu) => {
            Some(encoded(&search, clouds, (cpu, threads), stop)?)
        }
        _ => None,
    };
    let task = Task { search: &search, clouds, codes, tree, depth, cpu, stop, pays: true.into() };
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

/// Whether to try bytes. Measured: below 64 coordinates, or for a few hundred rows, encoding and
/// deciding cost more than the products save, and so do many neighbours.
fn in_bytes<T: Coordinate>(search: &Search<'_, T>, depth: usize, cpu: Cpu) -> bool {
    let (queries, points) = (search.queries.len(), search.points.len());
    let large = search.sets.dim >= 64 && queries >= 256 && points >= 1024;
    match search.method {
        Method::Bytes => true,
        Method::Faster => large && 32 * depth <= points && fast(cpu),
        _ => false,
    }
}

/// The points of every cloud in bytes.
fn encoded<T: Coordinate>(
    search: &Search<'_, T>,
    clouds: &Clouds,
    (cpu, threads): (Cpu, usize),
    stop: &AtomicBool,
) -> Result<Vec<Codes>, Error> {
    let one = |Cloud { frame, range, .. }: &Cloud| {
        let own = &clouds.order[range.clone()];
        let work = |parts: &mut Vec<(usize, Codes)>, (first, last): (usize, usize)| {
            let places = &own[first..last];
            parts.push((first, dispatch(cpu, EncodePoints { frame, search, places })));
        };
        let merge = |all: &mut Vec<_>, mut own: Vec<_>| all.append(&mut own);
        let mut parts = each(blocks(own.len(), 512), threads, stop, work, merge)?;
        parts.sort_unstable_by_key(|part| part.0);
        let mut codes = Codes::default();
        for (_, part) in parts {
            codes.rows.extend(part.rows);
            codes.about.extend(part.about);
        }
        Ok(codes)
    };
    clouds.each.iter().map(one).collect()
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
    coded: Coded,
    block: Block,
    panel: Panel,
    strip: Strip,
    sieves: Vec<Sieve>,
    tops: Vec<Top>,
}

struct Task<'a, T> {
    search: &'a Search<'a, T>,
    clouds: Option<&'a Clouds>,
    /// The points of every cloud in bytes, and whether that has paid so far.
    codes: Option<Vec<Codes>>,
    pays: AtomicBool,
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
        let Some(clouds) = self.clouds else {
            self.exactly(room, first..last);
            for top in &mut room.tops {
                top.finish(&mut found);
            }
            return found;
        };
        let queries: Vec<usize> = (first..last).collect();
        let mut sieves = std::mem::take(&mut room.sieves);
        sieves.resize_with(queries.len(), Sieve::default);
        match &self.codes {
            Some(codes) if self.pays.load(Ordering::Relaxed) => {
                self.sift_bytes((clouds, codes), room, &queries, &mut sieves);
                self.sift_again(clouds, room, &queries, &mut sieves);
            }
            _ => self.sift(clouds, room, &queries, &mut sieves),
        }
        for (&i, sieve) in queries.iter().zip(&mut sieves) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if sieve.full {
                found.rescans += 1;
                self.exactly(room, i..i + 1);
                room.tops[0].finish(&mut found);
                continue;
            }
            self.decide(clouds, i, sieve).finish(&mut found);
        }
        room.sieves = sieves;
        found
    }

    /// The nearest of a sieve's candidates, by f64.
    fn decide(&self, clouds: &Clouds, i: usize, sieve: &mut Sieve) -> Top {
        sieve.prune(self.depth);
        let mut top = Top::new(self.depth);
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
        let mut rest = sieve.kept.split_off(seem);
        rest.retain(|candidate| candidate.low <= sieve.bound);
        choose(&rest, &mut top.kept);
        dispatch(self.cpu, Chosen { search, query, places: &clouds.far, out: &mut top.kept });
        top
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

    /// Leaves in the sieves all points of the clouds that may be among the queries' nearest.
    fn sift(&self, clouds: &Clouds, room: &mut Room, queries: &[usize], sieves: &mut [Sieve]) {
        let (size, dim, width) = (queries.len(), self.search.sets.dim, width(self.cpu));
        let Room { block, panel, .. } = room;
        self.start(clouds, block, queries, sieves);
        let flip = vec![0; size.div_ceil(width)];
        for Cloud { frame, range, .. } in &clouds.each {
            block.fill((frame, self.search, self.cpu), queries.iter().copied(), width);
            // Nothing is below NaN.
            let mut bounds = vec![f32::NAN; size.next_multiple_of(width)];
            for (i, sieve) in sieves.iter_mut().enumerate() {
                if !Frame::fits(block.norms[i]) {
                    sieve.give_up();
                }
                bounds[i] = up(f64::from(sieve.bound) - block.less[i]);
            }
            for (first, last) in blocks(range.len(), panel_of(dim)) {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let places = &clouds.order[range.start + first..range.start + last];
                panel.fill((frame, self.search, self.cpu), places);
                let (depth, most) = (self.depth, self.most());
                let mut sift = Sift { block, panel, sieves, depth, most };
                let (queries, points, low) = (block.tiles(), &panel.rows[..], &panel.low[..]);
                let (bounds, flip, sink) = (&mut bounds[..], &flip[..], &mut sift);
                Products { dim, queries, points, low, bounds, flip, sink }.run(self.cpu);
            }
        }
    }

    /// [`Self::sift`] by bytes; a query that is given up is left to f32.
    fn sift_bytes(
        &self,
        (clouds, codes): (&Clouds, &[Codes]),
        room: &mut Room,
        queries: &[usize],
        sieves: &mut [Sieve],
    ) {
        let (dim, search) = (self.search.sets.dim, self.search);
        self.start(clouds, &mut room.block, queries, sieves);
        let coded = &mut room.coded;
        for (Cloud { frame, range, .. }, codes) in clouds.each.iter().zip(codes) {
            dispatch(self.cpu, EncodeQueries { frame, search, queries, out: coded });
            let mut bounds = vec![f32::NAN; queries.len().next_multiple_of(WIDTH)];
            for (i, sieve) in sieves.iter_mut().enumerate() {
                if !Frame::fits(coded.norms[i]) {
                    sieve.give_up();
                }
                bounds[i] = up(f64::from(sieve.bound) - coded.less[i]);
            }
            for (first, last) in blocks(range.len(), panel_of(stride(dim) / 4)) {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let places = &clouds.order[range.start + first..range.start + last];
                let points = &codes.rows[first * stride(dim)..last * stride(dim)];
                let about = &codes.about[first..last];
                // A candidate's f64 costs about as much as the f32 products of 20 points.
                let most = 8 * self.depth + search.points.len() / 12;
                let sink = &mut SiftBytes { coded, about, places, sieves, depth: self.depth, most };
                let (queries, bounds) = (&*coded, &mut bounds[..]);
                ByteProducts { dim, queries, points, about, bounds, sink }.run(self.cpu);
            }
        }
    }

    /// Sifts by f32 what bytes have given up; where that is half of a block, they do not pay.
    fn sift_again(
        &self,
        clouds: &Clouds,
        room: &mut Room,
        queries: &[usize],
        sieves: &mut [Sieve],
    ) {
        let places: Vec<usize> = (0..queries.len()).filter(|&i| sieves[i].full).collect();
        if 2 * places.len() > queries.len() {
            self.pays.store(false, Ordering::Relaxed);
        }
        let again: Vec<usize> = places.iter().map(|&i| queries[i]).collect();
        let mut own: Vec<Sieve> = again.iter().map(|_| Sieve::default()).collect();
        if !again.is_empty() {
            self.sift(clouds, room, &again, &mut own);
        }
        for (i, sieve) in places.into_iter().zip(own) {
            sieves[i] = sieve;
        }
    }

    /// Empties the sieves.
    fn start(&self, clouds: &Clouds, block: &mut Block, queries: &[usize], sieves: &mut [Sieve]) {
        for sieve in &mut *sieves {
            sieve.start(self.depth, f32::INFINITY);
        }
        if clouds.each.len() > 1 {
            self.surround(clouds, block, queries, sieves);
        }
    }

    /// Bounds the sieves by the triangle's inequality: `depth` points are as near as their centre
    /// and the ball around it. Otherwise a cloud far away, with a wide guard, would fill the sieve
    /// before the query's own cloud is searched.
    fn surround(
        &self,
        clouds: &Clouds,
        block: &mut Block,
        queries: &[usize],
        sieves: &mut [Sieve],
    ) {
        for Cloud { frame, within, .. } in &clouds.each {
            let Some(within) = within else { continue };
            block.fill((frame, self.search, self.cpu), queries.iter().copied(), width(self.cpu));
            for (sieve, norm) in sieves.iter_mut().zip(&block.norms) {
                // The factor is for all roundings, those of the rows to f32 included.
                let reach = (norm.sqrt() + within.sqrt()) * (1.0 + 2.0_f64.powi(-20));
                let bound = up(reach * reach + frame.tiny);
                sieve.bound = if bound < sieve.bound { bound } else { sieve.bound };
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

/// Sifts a panel for all queries of a block.
struct Sift<'a> {
    block: &'a Block,
    panel: &'a Panel,
    sieves: &'a mut [Sieve],
    depth: usize,
    most: usize,
}

impl Sink for Sift<'_> {
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: f32, bounds: &mut [f32]) {
        let low = self.block.less[i] + f64::from(self.panel.low[j] - 2.0 * product);
        let high = low + self.panel.width(j) + self.block.more[i];
        let place = self.panel.places[j];
        if self.sieves[i].put(Candidate { low: down(low), high: up(high), place }) {
            self.sieves[i].make_room(self.depth, self.most);
            bounds[i] = up(f64::from(self.sieves[i].bound) - self.block.less[i]);
        }
    }
}

/// [`Sift`] for bytes.
struct SiftBytes<'a> {
    coded: &'a Coded,
    about: &'a [About],
    places: &'a [u32],
    sieves: &'a mut [Sieve],
    depth: usize,
    most: usize,
}

impl ByteSink for SiftBytes<'_> {
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: i32, bounds: &mut [f32]) {
        let (low, high) = self.coded.bounds(i, &self.about[j], product);
        let place = self.places[j];
        if self.sieves[i].put(Candidate { low: down(low), high: up(high), place }) {
            self.sieves[i].make_room(self.depth, self.most);
            bounds[i] = up(f64::from(self.sieves[i].bound) - self.coded.less[i]);
        }
    }
}
