//! The points inside closed balls around every query: one ball for each of its shells.

use std::sync::atomic::{AtomicBool, Ordering};

use super::distance::{Coordinate, squared};
use super::exact::{Distances, STRIP, Strip};
use super::frame::Frame;
use super::frame::clouds::{Cloud, Clouds};
use super::lists::{List, Shells, rank};
use super::panel::{Block, Panel, most_of, panel_of};
use super::products::{Products, Sink, width};
use super::search::{Search, block_of, blocks};
use super::tree::Tree;
use super::walks::ascend;
use crate::error::Error;
use crate::options::Options;
use crate::pool::each;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::dispatch;

/// Points by shell; a row with a NaN is in no ball. Query i has the shells `starts[i]..starts[i + 1]` that were asked for and the
/// places `list = own_starts[i]..own_starts[i + 1]`.
///
/// Not inverted: the first `upto[s]` places of the list are within shell s. Inverted: the list
/// holds the points outside the first shell, and those beyond the first `upto[s]` of them are
/// outside shell s. Capped: nothing is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// One more than there are queries.
    pub own_starts: Vec<i64>,
    /// Positions in `points`, in the order of (shell, position).
    pub places: Vec<u32>,
    /// For every shell.
    pub upto: Vec<i64>,
    /// For every query: the points outside are listed, which are fewer.
    pub inverted: Vec<bool>,
    /// For every query: the list would have been longer than the cap.
    pub capped: Vec<bool>,
    /// Queries that were searched a second time, for the points on the other side.
    pub rescans: u64,
}

/// The points within every shell of every query, or outside the first one where that holds more
/// than half of the points and the list is shorter; at most `cap` of them for a query.
///
/// # Errors
///
/// Radii for another number of queries; options out of range; [`Error::Interrupted`].
pub fn inside<T: Coordinate>(
    search: Search<'_, T>,
    shells: Shells<'_>,
    cap: usize,
    options: &Options<'_>,
) -> Result<Inside, Error> {
    let (cpu, threads, stop) = options.settle()?;
    let (queries, points) = (search.queries.len(), search.points.len());
    if shells.starts.len() != queries + 1 {
        return Err(Error::invalid(
            "starts",
            format!("{} numbers", queries + 1),
            shells.starts.len(),
        ));
    }
    let few = queries.min(points) < 16;
    let tree = Tree::of(&search, 1, stop);
    let few = few || tree.is_some();
    let clouds = if few { None } else { Clouds::new((&search, 0), cpu, stop) };
    let (clouds, tree) = (clouds.as_ref(), tree.as_ref());
    let task = Task { search: &search, shells, clouds, tree, cap, cpu, stop };
    let block = block_of(
        queries,
        most_of(search.sets.dim),
        threads,
        cap.min(points) * size_of::<(u32, u32)>(),
    );
    let work = |own: &mut Own, block: (usize, usize)| {
        let found = task.block(&mut own.room, block);
        own.found.push((block.0, found));
    };
    let merge = |total: &mut Own, mut own: Own| total.found.append(&mut own.found);
    let mut found = each(blocks(queries, block), threads, stop, work, merge)?.found;
    found.sort_unstable_by_key(|&(first, _)| first);
    let mut all = Inside { own_starts: vec![0], ..Inside::default() };
    for (_, part) in found {
        let before = all.places.len() as i64;
        all.own_starts.extend(part.own_starts.iter().map(|&end| before + end));
        all.places.extend_from_slice(&part.places);
        all.upto.extend_from_slice(&part.upto);
        all.inverted.extend_from_slice(&part.inverted);
        all.capped.extend_from_slice(&part.capped);
        all.rescans += part.rescans;
    }
    Ok(all)
}

/// A thread's blocks and its room.
#[derive(Default)]
struct Own {
    found: Vec<(usize, Inside)>,
    room: Room,
}

#[derive(Default)]
struct Room {
    block: Block,
    panel: Panel,
    strip: Strip,
    lists: Vec<List>,
    bounds: Vec<f32>,
    flip: Vec<u64>,
    marks: Vec<u64>,
}

struct Task<'a, T> {
    search: &'a Search<'a, T>,
    shells: Shells<'a>,
    clouds: Option<&'a Clouds>,
    tree: Option<&'a Tree>,
    cap: usize,
    cpu: Cpu,
    stop: &'a AtomicBool,
}

impl<T: Coordinate> Task<'_, T> {
    /// A block of queries; `own_starts` without the leading 0.
    fn block(&self, room: &mut Room, (first, last): (usize, usize)) -> Inside {
        room.lists.resize_with(last - first, List::default);
        for (query, list) in (first..last).zip(&mut room.lists) {
            list.start(query, false);
        }
        let mut lists = std::mem::take(&mut room.lists);
        self.search_all(room, &mut lists, true);
        let points = self.search.points.len();
        let wrong = |list: &&mut List| {
            let (outside, length) = list.better_outside(points);
            outside != list.outside && length <= self.cap
        };
        let mut again: Vec<&mut List> = lists.iter_mut().filter(wrong).collect();
        let mut second: Vec<List> = again.iter_mut().map(|list| std::mem::take(*list)).collect();
        for list in &mut second {
            list.turn();
        }
        if !second.is_empty() {
            self.search_all(room, &mut second, false);
        }
        let rescans = second.len() as u64;
        for (list, new) in again.into_iter().zip(second) {
            *list = new;
        }
        let mut found = Inside { rescans, ..Inside::default() };
        for list in &mut lists {
            self.finish(list, &mut room.marks, &mut found);
        }
        room.lists = lists;
        found
    }

    /// Ranks the points for all lists; `choose`: the first panel shows which side to list.
    fn search_all(&self, room: &mut Room, lists: &mut [List], choose: bool) {
        let Some(clouds) = self.clouds else {
            return self.exactly(room, lists);
        };
        for (i, cloud) in clouds.each.iter().enumerate() {
            self.search_cloud((clouds, cloud), room, lists, choose && i == 0);
        }
        for list in lists {
            if list.fits {
                self.rank_others(clouds, list);
            } else {
                list.start(list.query, list.outside);
                self.exactly(room, std::slice::from_mut(list));
            }
        }
    }

    fn search_cloud(
        &self,
        (clouds, cloud): (&Clouds, &Cloud),
        room: &mut Room,
        lists: &mut [List],
        choose: bool,
    ) {
        let (dim, width) = (self.search.sets.dim, width(self.cpu));
        let Room { block, panel, bounds, flip, .. } = room;
        let Cloud { frame, range, .. } = cloud;
        block.fill((frame, self.search, self.cpu), lists.iter().map(|list| list.query), width);
        for (i, list) in lists.iter_mut().enumerate() {
            list.fits &= Frame::fits(block.norms[i]);
            let shells = self.shells.of(list.query).iter().filter(|_| list.fits);
            list.scaled.clear();
            list.scaled.extend(shells.map(|&radius| frame.scaled(radius) - block.less[i]));
            list.more = block.more[i];
        }
        for (start, end) in blocks(range.len(), panel_of(dim)) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let places = &clouds.order[range.start + start..range.start + end];
            panel.fill((frame, self.search, self.cpu), places);
            let mut run = |lists: &mut [List], chosen: &dyn Fn(&List) -> bool| {
                bounds.clear();
                bounds.resize(lists.len().next_multiple_of(width), f32::NAN);
                flip.clear();
                flip.resize(lists.len().div_ceil(width), 0);
                for (i, list) in lists.iter().enumerate().filter(|(_, list)| chosen(list)) {
                    let Some((bound, outside)) = list.bound(panel.widest) else { continue };
                    bounds[i] = bound;
                    flip[i / width] |= u64::from(outside) << (i % width);
                }
                let (search, shells, cap) = (self.search, self.shells, self.cap);
                let sink = &mut Rank { search, shells, cap, panel, lists };
                let (queries, points, low) = (block.tiles(), &panel.rows[..], &panel.low[..]);
                let (bounds, flip) = (&mut bounds[..], &flip[..]);
                Products { dim, queries, points, low, bounds, flip, sink }.run(self.cpu);
            };
            run(lists, &|_| true);
            if choose && start == 0 {
                let mut any = false;
                for list in &mut *lists {
                    if 2 * list.counts[0] > end {
                        list.turn();
                        any = true;
                    }
                }
                if any {
                    run(lists, &|list| list.outside);
                }
            }
        }
    }

    /// Ranks what no cloud has.
    fn rank_others(&self, clouds: &Clouds, list: &mut List) {
        let shells = self.shells.of(list.query);
        for &place in &clouds.far {
            let value = squared(self.search.query(list.query), self.search.point(place as usize));
            list.put(rank(shells, value), place, shells.len(), self.cap);
        }
        for &place in &clouds.void {
            list.put(shells.len(), place, shells.len(), self.cap);
        }
    }

    fn exactly(&self, room: &mut Room, lists: &mut [List]) {
        if let Some(tree) = self.tree {
            let on = (self.cpu, self.stop);
            return tree.rank(self.search, (self.shells, self.cap), lists, on);
        }
        let mut out = [0.0; STRIP];
        for (first, last) in blocks(self.search.points.len(), STRIP) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            room.strip.fill(self.search, (first, last));
            for list in &mut *lists {
                let (search, strip) = (self.search, &room.strip);
                let query = search.query(list.query);
                dispatch(self.cpu, Distances { search, strip, query, out: &mut out });
                let shells = self.shells.of(list.query);
                if shells.is_empty() {
                    continue;
                }
                let end = shells[shells.len() - 1];
                for (place, &value) in (first..last).zip(&out) {
                    if list.outside || value <= end {
                        list.put(rank(shells, value), place as u32, shells.len(), self.cap);
                    }
                }
            }
        }
    }

    /// Appends the sorted list.
    fn finish(&self, list: &mut List, marks: &mut Vec<u64>, found: &mut Inside) {
        let shells = self.shells.of(list.query).len();
        let (outside, length) = list.better_outside(self.search.points.len());
        let capped = length > self.cap || outside != list.outside;
        let before = found.places.len();
        if capped || shells == 0 {
            found.upto.extend((0..shells).map(|_| 0));
        } else {
            if let Some(tree) = self.tree {
                tree.unfold(list);
            }
            // Counting sort: ranks of a list are from 0 or 1 to the last of a shell or beyond.
            let mut ends = vec![0usize; shells + 2];
            for &(rank, _) in &list.listed {
                ends[rank as usize + 1] += 1;
            }
            for rank in 0..=shells {
                ends[rank + 1] += ends[rank];
            }
            found.upto.extend(ends[1..=shells].iter().map(|&end| end as i64));
            found.places.resize(before + list.listed.len(), 0);
            for &(rank, place) in &list.listed {
                found.places[before + ends[rank as usize]] = place;
                ends[rank as usize] += 1;
            }
            if !self.clouds.is_none_or(Clouds::in_order) || self.tree.is_some() {
                // Trees and clouds list the points of a shell in another order.
                let (mut start, points) = (0, self.search.points.len());
                for end in ends {
                    ascend(&mut found.places[before + start..before + end], points, marks);
                    start = end;
                }
            }
        }
        found.own_starts.push(found.places.len() as i64);
        found.inverted.push(outside && !capped);
        found.capped.push(capped);
    }
}

/// Ranks the points of a panel for the queries of a block.
struct Rank<'a, T> {
    search: &'a Search<'a, T>,
    shells: Shells<'a>,
    cap: usize,
    panel: &'a Panel,
    lists: &'a mut [List],
}

impl<T: Coordinate> Sink for Rank<'_, T> {
    /// The rank is found by f64 where f32 leaves a doubt.
    #[inline(always)]
    fn hit(&mut self, i: usize, j: usize, product: f32, _: &mut [f32]) {
        let list = &mut self.lists[i];
        let (low, high) = self.panel.bounds(j, product, list.more);
        let scaled = &list.scaled[..];
        let mut rank = scaled.partition_point(|&radius| radius < low);
        let place = self.panel.places[j];
        if scaled.get(rank).is_some_and(|&radius| radius < high) {
            let point = self.search.point(place as usize);
            let value = squared(self.search.query(list.query), point);
            rank = super::lists::rank(self.shells.of(list.query), value);
        }
        list.put(rank, place, scaled.len(), self.cap);
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::Sets;
    use super::*;

    #[test]
    fn a_radius_at_the_edge_of_the_guard_is_left_to_f64() {
        // The point is the query, and products can say only that it is from 1 to 4 away.
        let sets = Sets::new(&[1.0, 1.0], &[], 1).unwrap();
        let search = &Search::new(sets, &[0], &[1]).unwrap();
        let mut panel = Panel::default();
        panel.low.push(1.0);
        panel.high.push(2.0);
        panel.places.push(0);
        // Shells in the units of products; the squared radius, by which f64 decides.
        for (scaled, squared, expected) in [
            (1.0, 0.0, [1, 0, 0]),
            (4.0_f64.next_down(), 0.0, [1, 0, 0]),
            (2.0, -1.0, [0, 0, 1]),
            (1.0_f64.next_down(), 0.0, [0, 0, 1]),
            (4.0, -1.0, [1, 0, 0]),
        ] {
            let shells = Shells::new(&[0, 1], std::slice::from_ref(&squared), 1).unwrap();
            let mut list = List { scaled: vec![scaled], more: 2.0, ..List::default() };
            let lists = std::slice::from_mut(&mut list);
            Rank { search, shells, cap: 9, panel: &panel, lists }.hit(0, 0, 0.0, &mut []);
            assert_eq!(list.counts, expected, "{scaled}");
        }
    }
}
