//! Cells of two sorted sets: as they are, and of every replicate.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::resampling::Resampling;
use super::sorted::{Direction, Rest, Sorted};
use super::sweep::{sweep, sweep_groups};
use super::tally::{Counted, Tally, key};
use crate::error::Error;
use crate::pool::each;

/// Queries that a thread sweeps at a time where there are no replicates to share out.
const SLICE: usize = 1 << 16;

/// Two sorted sets, and how to resample them.
pub(super) struct Replicates<'a> {
    pub(super) sorted: &'a [Sorted; 2],
    pub(super) directions: &'a [Direction<'a>; 2],
    pub(super) resampling: Resampling<'a>,
}

/// Which rows of one set are present.
#[derive(Clone, Copy)]
enum Present<'a> {
    All,
    Without(u32),
    Times(&'a [u32]),
}

/// What a thread has counted, and its room.
#[derive(Default)]
struct Room {
    tally: Tally,
    values: [Vec<f64>; 2],
    done: Vec<(usize, usize, Counted)>,
    /// For each direction the cells of the replicates that lack one group of the numerator.
    groups: [Vec<Tally>; 2],
}

/// What a thread does at a time.
enum Item {
    /// A replicate and a direction.
    One(usize, usize),
    /// A direction and where a slice of the numerator's rows begins.
    Groups(usize, usize),
}

impl Replicates<'_> {
    /// The cells of the sets as they are, for each direction.
    pub(super) fn base(&self, threads: usize, stop: &AtomicBool) -> Result<[Counted; 2], Error> {
        let slices: Vec<(usize, usize)> = (0..2)
            .flat_map(|own| {
                let rows = self.directions[own].rest[own].0.len();
                (0..rows.max(1)).step_by(SLICE).map(move |start| (own, start))
            })
            .collect();
        let work = |tallies: &mut [Tally; 2], (own, start): (usize, usize)| {
            let direction = &self.directions[own];
            let (x, z) = (&direction.rest[own].0, &direction.rest[1 - own].0);
            let tally = &mut tallies[own];
            if start == 0 {
                self.atoms(direction, [Present::All; 2], tally);
            }
            balls(x, start..(start + SLICE).min(x.len()), z, direction.depth, tally);
        };
        let merge = |all: &mut [Tally; 2], own: [Tally; 2]| {
            for (all, own) in all.iter_mut().zip(&own) {
                all.merge(own);
            }
        };
        let mut tallies = each(slices.into_iter(), threads, stop, work, merge)?;
        Ok([0, 1].map(|own| {
            let sizes = [0, 1].map(|set: usize| self.sorted[set].values.len() as u64);
            Counted { cells: tallies[own].take(), own: sizes[own], other: sizes[1 - own] }
        }))
    }

    /// The cells of some replicates, for each direction.
    pub(super) fn count(
        &self,
        range: Range<usize>,
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<[Vec<Counted>; 2], Error> {
        let work = |room: &mut Room, item: Item| match item {
            Item::One(i, own) => {
                let counted = self.one(i, own, room);
                room.done.push((i, own, counted));
            }
            Item::Groups(own, start) => self.groups(own, start, room),
        };
        let merge = |all: &mut Room, mut own: Room| {
            all.done.append(&mut own.done);
            for (all, own) in all.groups.iter_mut().zip(own.groups) {
                all.resize_with(own.len().max(all.len()), Tally::default);
                for (all, own) in all.iter_mut().zip(&own) {
                    all.merge(own);
                }
            }
        };
        let items = self.items(range.clone());
        let mut room = each(items.into_iter(), threads, stop, work, merge)?;
        for own in 0..2 {
            let mut tallies = std::mem::take(&mut room.groups[own]);
            for i in range.clone().filter(|&i| self.shares(i, own)) {
                // None where no row of the numerator is off the atoms.
                let tally = tallies.get_mut(self.group(i));
                let counted = self.finished(i, own, tally.unwrap_or(&mut Tally::default()));
                room.done.push((i, own, counted));
            }
        }
        let mut done = room.done;
        done.sort_by_key(|&(i, own, _)| (own, i));
        let second = done.split_off(range.len());
        Ok([done, second].map(|done| done.into_iter().map(|(_, _, counted)| counted).collect()))
    }

    /// What there is to do for some replicates, in both directions.
    fn items(&self, range: Range<usize>) -> Vec<Item> {
        let mut items = Vec::new();
        for own in 0..2 {
            let shared = |i: &usize| self.shares(*i, own);
            if range.clone().any(|i| shared(&i)) {
                let rows = self.directions[own].rest[own].0.len();
                items.extend((0..rows).step_by(SLICE).map(|start| Item::Groups(own, start)));
            }
            items.extend(range.clone().filter(|i| !shared(i)).map(|i| Item::One(i, own)));
        }
        items
    }

    /// Whether a replicate lacks rows of the numerator only, so that the balls stay as they are.
    fn shares(&self, i: usize, own: usize) -> bool {
        let Resampling::Groups(_, units) = self.resampling else { return false };
        let direction = &self.directions[own];
        let enough = direction.rest[1 - own].0.len() as u64 >= direction.depth;
        enough && (i < units[0]) == (own == 0)
    }

    /// Which group of its set replicate i lacks.
    fn group(&self, i: usize) -> usize {
        match self.resampling {
            Resampling::Groups(_, units) if i >= units[0] => i - units[0],
            _ => i,
        }
    }

    /// Sweeps a slice of the numerator's rows for all its groups at once.
    fn groups(&self, own: usize, start: usize, room: &mut Room) {
        let Resampling::Groups(_, units) = self.resampling else { return };
        let (direction, tallies) = (&self.directions[own], &mut room.groups[own]);
        tallies.resize_with(units[own], Tally::default);
        let (values, marks) = &direction.rest[own];
        let range = start..(start + SLICE).min(values.len());
        let other = &direction.rest[1 - own].0;
        sweep_groups((values, marks), range, other, direction.depth as usize, tallies);
    }

    /// Which rows of each set replicate i has.
    fn present(&self, i: usize) -> [Present<'_>; 2] {
        match self.resampling {
            Resampling::None => [Present::All; 2],
            Resampling::Groups(_, units) => {
                let without = Present::Without(self.group(i) as u32);
                if i < units[0] { [without, Present::All] } else { [Present::All, without] }
            }
            Resampling::Weights(weights) => [0, 1].map(|set: usize| {
                let rows = self.sorted[set].values.len();
                Present::Times(&weights[set][i * rows..(i + 1) * rows])
            }),
        }
    }

    fn one(&self, i: usize, own: usize, room: &mut Room) -> Counted {
        let (present, direction) = (self.present(i), &self.directions[own]);
        let Room { tally, values: [first, second], .. } = room;
        let x = present[own].rows(&direction.rest[own], first);
        let z = present[1 - own].rows(&direction.rest[1 - own], second);
        balls(x, 0..x.len(), z, direction.depth, tally);
        self.finished(i, own, tally)
    }

    /// Adds the atoms of a replicate to its other cells.
    fn finished(&self, i: usize, own: usize, tally: &mut Tally) -> Counted {
        let present = self.present(i);
        self.atoms(&self.directions[own], present, tally);
        let sizes = [0, 1].map(|set: usize| {
            let Sorted { values, marks } = &self.sorted[set];
            present[set].count(0..values.len(), marks)
        });
        Counted { cells: tally.take(), own: sizes[own], other: sizes[1 - own] }
    }

    fn atoms(&self, direction: &Direction<'_>, present: [Present<'_>; 2], tally: &mut Tally) {
        for run in direction.atoms {
            let rows = [0, 1]
                .map(|set: usize| present[set].count(run[set].clone(), &self.sorted[set].marks));
            let (own, other) = (rows[direction.own], rows[1 - direction.own]);
            if own > 0 {
                tally.add(key(own - 1, other, other == 0), own);
            }
        }
    }
}

/// Rows that are no atoms: each with its ball, or all in one where there are too few.
fn balls(x: &[f64], range: Range<usize>, z: &[f64], depth: u64, tally: &mut Tally) {
    if z.len() as u64 >= depth {
        sweep(x, range, z, depth as usize, tally);
    } else if !range.is_empty() {
        let (n, j) = (x.len() as u64 - 1, z.len() as u64);
        tally.add(key(n, j, j == 0), range.len() as u64);
    }
}

impl Present<'_> {
    /// How many of the rows in a range of the sorted set there are.
    fn count(self, range: Range<usize>, marks: &[u32]) -> u64 {
        match self {
            Self::All => range.len() as u64,
            Self::Without(label) => marks[range].iter().map(|&mark| u64::from(mark != label)).sum(),
            Self::Times(weights) => {
                marks[range].iter().map(|&mark| u64::from(weights[mark as usize])).sum()
            }
        }
    }

    /// The values of the rows that there are.
    fn rows<'r>(self, (values, marks): &'r Rest<'_>, room: &'r mut Vec<f64>) -> &'r [f64] {
        let rows = values.iter().zip(marks.iter());
        match self {
            Self::All => return values,
            Self::Without(label) => {
                room.clear();
                room.resize(values.len(), 0.0);
                let mut length = 0;
                for (&value, &mark) in rows {
                    // Written in any case: no branch that the CPU would have to guess.
                    room[length] = value;
                    length += usize::from(mark != label);
                }
                room.truncate(length);
            }
            Self::Times(weights) => {
                room.clear();
                for (&value, &mark) in rows {
                    room.extend(std::iter::repeat_n(value, weights[mark as usize] as usize));
                }
            }
        }
        room
    }
}
