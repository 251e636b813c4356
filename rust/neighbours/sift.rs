//! Sifting: which points of the clouds may be among the nearest of a block of queries.

use std::sync::atomic::{AtomicBool, Ordering};

use super::bytes::codes::{Coded, Codes, EncodePoints, EncodeQueries, WIDTH, stride};
use super::bytes::{Products as ByteProducts, Sink as ByteSink, fast};
use super::distance::Coordinate;
use super::frame::clouds::{Cloud, Clouds};
use super::frame::{Frame, up};
use super::panel::{Block, Panel, panel_of};
use super::products::{Products, Sink, width};
use super::search::{Method, Search, blocks};
use super::top::{Candidate, Sieve};
use crate::error::Error;
use crate::pool::each;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::dispatch;

/// Candidates of a query beyond which it is left to f64.
pub(super) fn most(depth: usize) -> usize {
    4 * depth + 4096
}

/// A thread's room.
#[derive(Default)]
pub(super) struct Sifting {
    keys: Vec<i32>,
    coded: Coded,
    block: Block,
    panel: Panel,
}

/// Finds candidates, by bytes where they pay, and by f32.
pub(super) struct Sifter<'a, T> {
    search: &'a Search<'a, T>,
    pub clouds: &'a Clouds,
    /// The points of every cloud in bytes, and whether that has paid so far.
    codes: Option<Vec<Codes>>,
    pays: AtomicBool,
    depth: usize,
    cpu: Cpu,
    stop: &'a AtomicBool,
}

impl<'a, T: Coordinate> Sifter<'a, T> {
    pub fn new(
        (search, clouds, depth): (&'a Search<'a, T>, &'a Clouds, usize),
        (cpu, threads): (Cpu, usize),
        stop: &'a AtomicBool,
    ) -> Result<Self, Error> {
        let worth = worth_bytes(search, depth, cpu);
        let codes = worth.then(|| encoded(search, clouds, (cpu, threads), stop)).transpose()?;
        Ok(Self { search, clouds, codes, pays: true.into(), depth, cpu, stop })
    }

    /// Leaves in the sieves the points of the clouds that may be among the queries' nearest.
    pub fn sift(&self, room: &mut Sifting, queries: &[usize], sieves: &mut [Sieve]) {
        match &self.codes {
            Some(codes) if self.pays.load(Ordering::Relaxed) => {
                self.in_bytes(codes, room, queries, sieves);
                self.again(room, queries, sieves);
            }
            _ => self.in_floats(room, queries, sieves),
        }
        for sieve in sieves {
            sieve.prune(self.depth, &mut room.keys);
        }
    }

    /// By f32.
    fn in_floats(&self, room: &mut Sifting, queries: &[usize], sieves: &mut [Sieve]) {
        let (size, dim, width) = (queries.len(), self.search.sets.dim, width(self.cpu));
        let Sifting { block, panel, keys, .. } = room;
        self.start(block, queries, sieves);
        let flip = vec![0; size.div_ceil(width)];
        for Cloud { frame, range, .. } in &self.clouds.each {
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
                let places = &self.clouds.order[range.start + first..range.start + last];
                panel.fill((frame, self.search, self.cpu), places);
                let (depth, most) = (self.depth, most(self.depth));
                let mut sift = Sift { block, panel, sieves, keys, depth, most };
                let (queries, points, low) = (block.tiles(), &panel.rows[..], &panel.low[..]);
                let (bounds, flip, sink) = (&mut bounds[..], &flip[..], &mut sift);
                Products { dim, queries, points, low, bounds, flip, sink }.run(self.cpu);
            }
        }
    }

    /// As [`Self::in_floats`], by bytes; a query that is given up is left to f32.
    fn in_bytes(
        &self,
        codes: &[Codes],
        room: &mut Sifting,
        queries: &[usize],
        sieves: &mut [Sieve],
    ) {
        let (dim, search) = (self.search.sets.dim, self.search);
        self.start(&mut room.block, queries, sieves);
        let coded = &mut room.coded;
        for (Cloud { frame, range, .. }, codes) in self.clouds.each.iter().zip(codes) {
            dispatch(self.cpu, EncodeQueries { frame, search, queries, out: coded });
            let mut bounds = vec![f32::NAN; queries.len().next_multiple_of(WIDTH)];
            for (i, sieve) in sieves.iter_mut().enumerate() {
                if !Frame::fits(coded.norms[i]) {
                    sieve.give_up();
                }
                bounds[i] = up(f64::from(sieve.bound) - coded.less[i]);
            }
            // A candidate's f64 costs about as much as the f32 products of 20 points.
            let most = (8 * self.depth + search.points.len() / 12).min(most(self.depth));
            let (places, depth) = (&self.clouds.order[range.clone()], self.depth);
            let (first, keys) = (0, &mut room.keys);
            let mut sift = SiftBytes { coded, codes, places, first, sieves, keys, depth, most };
            for (first, last) in blocks(range.len(), panel_of(stride(dim) / 4)) {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                sift.first = first;
                let points = &codes.rows[first * stride(dim)..last * stride(dim)];
                let about = &codes.about[first..last];
                let (queries, bounds, sink) = (&*coded, &mut bounds[..], &mut sift);
                ByteProducts { dim, queries, points, about, bounds, sink }.run(self.cpu);
            }
            (0..queries.len()).for_each(|i| sift.settle(i));
        }
    }

    /// Sifts by f32 what bytes have given up; where that is half of a block, they do not pay.
    fn again(&self, room: &mut Sifting, queries: &[usize], sieves: &mut [Sieve]) {
        let places: Vec<usize> = (0..queries.len()).filter(|&i| sieves[i].full).collect();
        if 2 * places.len() > queries.len() {
            self.pays.store(false, Ordering::Relaxed);
        }
        let again: Vec<usize> = places.iter().map(|&i| queries[i]).collect();
        let mut own: Vec<Sieve> = again.iter().map(|_| Sieve::default()).collect();
        if !again.is_empty() {
            self.in_floats(room, &again, &mut own);
        }
        for (i, sieve) in places.into_iter().zip(own) {
            sieves[i] = sieve;
        }
    }

    /// Empties the sieves.
    fn start(&self, block: &mut Block, queries: &[usize], sieves: &mut [Sieve]) {
        for sieve in &mut *sieves {
            sieve.start(self.depth, f32::INFINITY);
        }
        if self.clouds.each.len() > 1 {
            self.surround(block, queries, sieves);
        }
    }

    /// Bounds the sieves by the triangle's inequality: `depth` points are as near as their centre
    /// and the ball around it. Otherwise a cloud far away, with a wide guard, would fill the sieve
    /// before the query's own cloud is searched.
    fn surround(&self, block: &mut Block, queries: &[usize], sieves: &mut [Sieve]) {
        for Cloud { frame, within, .. } in &self.clouds.each {
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

/// Whether to try bytes. Measured: below 64 coordinates, or for a few hundred rows, encoding and
/// deciding cost more than the products save, and so do many neighbours.
fn worth_bytes<T: Coordinate>(search: &Search<'_, T>, depth: usize, cpu: Cpu) -> bool {
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
        // From the last block to the first, so that parts that are not sorted are wrong in every
        // run, on one thread too, and not only where one thread overtakes another.
        let mut parts = each(blocks(own.len(), 512).rev(), threads, stop, work, merge)?;
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

/// Sifts a panel for all queries of a block.
struct Sift<'a> {
    block: &'a Block,
    panel: &'a Panel,
    sieves: &'a mut [Sieve],
    keys: &'a mut Vec<i32>,
    depth: usize,
    most: usize,
}

impl Sink for Sift<'_> {
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: f32, bounds: &mut [f32]) {
        let (low, high) = self.panel.bounds(j, product, self.block.more[i]);
        let (less, place) = (self.block.less[i], self.panel.places[j]);
        if self.sieves[i].put(Candidate::new(less + low, less + high, place)) {
            self.sieves[i].make_room(self.depth, self.most, self.keys);
            bounds[i] = up(f64::from(self.sieves[i].bound) - self.block.less[i]);
        }
    }
}

/// [`Sift`] for bytes.
struct SiftBytes<'a> {
    coded: &'a Coded,
    codes: &'a Codes,
    places: &'a [u32],
    // The first point of the panel.
    first: usize,
    sieves: &'a mut [Sieve],
    keys: &'a mut Vec<i32>,
    depth: usize,
    most: usize,
}

impl SiftBytes<'_> {
    /// Turns products into candidates.
    fn settle(&mut self, i: usize) {
        let Sieve { kept, raw, .. } = &mut self.sieves[i];
        kept.extend(raw.drain(..).map(|(product, j)| {
            let (low, high) = self.coded.bounds(i, &self.codes.about[j as usize], product);
            Candidate::new(low, high, self.places[j as usize])
        }));
    }

    #[cold]
    fn make_room(&mut self, i: usize) -> f32 {
        self.settle(i);
        self.sieves[i].make_room(self.depth, self.most, self.keys);
        up(f64::from(self.sieves[i].bound) - self.coded.less[i])
    }
}

impl ByteSink for SiftBytes<'_> {
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: i32, bounds: &mut [f32]) {
        if self.sieves[i].put_raw(product, (self.first + j) as u32) {
            bounds[i] = self.make_room(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::Sets;
    use super::super::top::Candidate;
    use super::*;

    /// Two clouds of 35 rows each, so few that no sieve is ever pruned on the way.
    const DIM: usize = 8;
    fn rows() -> Vec<f64> {
        (0..70 * DIM)
            .map(|i| (0.37 * (i * i) as f64).sin() + 1e3 * f64::from((i / DIM % 2) as u32))
            .collect()
    }

    #[test]
    fn a_cloud_far_away_leaves_no_candidates() {
        let (rows, all, stop) = (rows(), (0..70).collect::<Vec<i64>>(), AtomicBool::new(false));
        let search = Search::new(Sets::new(&rows, &[], DIM).unwrap(), &all, &all).unwrap();
        let queries: Vec<usize> = (0..70).collect();
        for (cpu, bytes) in Cpu::present().into_iter().flat_map(|cpu| [(cpu, false), (cpu, true)]) {
            let search = search.by(if bytes { Method::Bytes } else { Method::Pairs });
            let clouds = Clouds::new((&search, 5), cpu, &stop).unwrap();
            assert_eq!(clouds.each.len(), 2);
            let sifter = Sifter::new((&search, &clouds, 5), (cpu, 1), &stop).unwrap();
            let (mut room, mut sieves) = (Sifting::default(), Vec::new());
            sieves.resize_with(70, Sieve::default);
            sifter.start(&mut room.block, &queries, &mut sieves);
            for (i, sieve) in sieves.iter().enumerate() {
                // As near as the centre of the own cloud and the ball of five around it.
                let reach = |cloud: &Cloud| {
                    let norm = cloud.frame.pack(search.query(i), &mut [0.0; DIM]);
                    (norm.sqrt() + cloud.within.unwrap().sqrt()).powi(2)
                };
                let least = clouds.each.iter().map(reach).fold(f64::INFINITY, f64::min);
                // The factor for all roundings, and one more.
                let excess = (f64::from(sieve.bound) / least - 1.0) * 2.0_f64.powi(19);
                assert!((1.0..1.1).contains(&excess), "{excess}");
            }
            match &sifter.codes {
                Some(codes) => sifter.in_bytes(codes, &mut room, &queries, &mut sieves),
                None => sifter.in_floats(&mut room, &queries, &mut sieves),
            }
            for (i, sieve) in sieves.iter().enumerate() {
                assert!(!sieve.full && (5..=35).contains(&sieve.kept.len()));
                assert!(sieve.kept.iter().all(|candidate| candidate.place as usize % 2 == i % 2));
            }
        }
    }

    #[test]
    fn a_sieve_with_room_again_has_the_bound_of_its_query() {
        let (mut coded, codes, mut sieve) = (Coded::default(), Codes::default(), Sieve::default());
        coded.less.push(3.0);
        sieve.start(1, 10.0);
        sieve.put(Candidate { low: 1.0, high: 2.0, place: 0 });
        let (sieves, keys) = (std::slice::from_mut(&mut sieve), &mut Vec::new());
        let (coded, codes, places, first) = (&coded, &codes, &[0][..], 0);
        let mut sift = SiftBytes { coded, codes, places, first, sieves, keys, depth: 1, most: 9 };
        assert_eq!(sift.make_room(0), 7.0);
        sift.sieves[0].put(Candidate { low: 3.0, high: 5.0, place: 0 });
        assert_eq!(sift.make_room(0), -1.0);
    }
    #[test]
    fn a_candidate_has_the_errors_of_point_and_query() {
        let (mut block, mut panel, mut sieve) =
            (Block::default(), Panel::default(), Sieve::default());
        block.less.push(3.0);
        block.more.push(2.0);
        panel.low.push(1.0);
        panel.high.push(1.5);
        panel.places.push(0);
        sieve.start(1, f32::INFINITY);
        let (block, panel, keys) = (&block, &panel, &mut Vec::new());
        let sieves = std::slice::from_mut(&mut sieve);
        Sift { block, panel, sieves, keys, depth: 1, most: 9 }.hit(0, 0, 0.25, &mut []);
        let Candidate { low, high, .. } = sieve.kept[0];
        assert!((3.49..=3.5).contains(&low) && (6.0..6.01).contains(&high), "{low} {high}");
    }

    #[test]
    fn coordinates_that_vanish_keep_a_bound_above_zero() {
        // Every row is the centre, as far as f32 knows.
        let (rows, all, stop) =
            (vec![0.25; 40], (0..40).collect::<Vec<i64>>(), AtomicBool::new(false));
        let search = Search::new(Sets::new(&rows, &[], 1).unwrap(), &all, &all).unwrap();
        let clouds = Clouds::new((&search, 5), Cpu::Baseline, &stop).unwrap();
        let on = (Cpu::Baseline, 1);
        let sifter = Sifter::new((&search, &clouds, 5), on, &stop).unwrap();
        let mut sieve = Sieve::default();
        sieve.start(5, f32::INFINITY);
        sifter.surround(&mut Block::default(), &[0], std::slice::from_mut(&mut sieve));
        assert_eq!(sieve.bound, up(clouds.each[0].frame.tiny));
    }
}
