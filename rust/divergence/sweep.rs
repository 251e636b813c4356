//! Balls around sorted numbers by two pointers.
//!
//! Distances are |y - a| rounded to f64. Rounding is monotone, so that to the left of y, and to
//! the right, they are sorted as the numbers are: every ball is a run of neighbours in the sorted
//! order. Its radius grows by at most as much as y does, so both ends move to the right with y,
//! but for rounding, which loops in both directions mend: the ends are always those that a look
//! at every number would find.

use std::ops::Range;

use super::tally::{Tally, key};

fn distance(y: f64, a: f64) -> f64 {
    (y - a).abs()
}

/// Added to a count that wraps around, takes one away.
const LEAVES: u64 = u64::MAX;

/// The first and one past the last of the numbers within a distance of y.
#[derive(Clone, Copy)]
struct Ends {
    low: usize,
    high: usize,
}

impl Ends {
    /// Around the first of some increasing y.
    fn new(sorted: &[f64], y: f64, radius: f64) -> Self {
        Self {
            low: sorted.partition_point(|&a| before(a, y, radius)),
            high: sorted.partition_point(|&a| !after(a, y, radius)),
        }
    }

    /// Moves to the ball around a larger y; tells which numbers enter or leave, and how often.
    #[inline(always)]
    fn slide(&mut self, sorted: &[f64], y: f64, radius: f64, mut moved: impl FnMut(usize, u64)) {
        while self.high < sorted.len() && !after(sorted[self.high], y, radius) {
            moved(self.high, 1);
            self.high += 1;
        }
        while self.low < sorted.len() && before(sorted[self.low], y, radius) {
            moved(self.low, LEAVES);
            self.low += 1;
        }
        while self.low > 0 && !before(sorted[self.low - 1], y, radius) {
            self.low -= 1;
            moved(self.low, 1);
        }
        while self.high > 0 && after(sorted[self.high - 1], y, radius) {
            self.high -= 1;
            moved(self.high, LEAVES);
        }
    }

    fn count(self) -> u64 {
        (self.high - self.low) as u64
    }
}

/// Whether a is to the left of the closed ball.
#[inline(always)]
fn before(a: f64, y: f64, radius: f64) -> bool {
    a < y && distance(y, a) > radius
}

/// Whether a is to the right of the closed ball.
#[inline(always)]
fn after(a: f64, y: f64, radius: f64) -> bool {
    a > y && distance(y, a) > radius
}

/// Whether the `depth` nearest of `sorted` may begin after `first`.
///
/// If the number after the window is no further from y than its first, to the left of y, then a
/// step makes the window's radius no larger; else no later window has a smaller one. What holds
/// for y then holds for every larger y, so that the window never steps back.
#[inline(always)]
fn steps(sorted: &[f64], first: usize, depth: usize, y: f64) -> bool {
    let (a, next) = (sorted[first], sorted[first + depth]);
    a < y && distance(y, next) <= distance(y, a)
}

/// The windows of the `depth` nearest numbers around increasing y.
struct Window<'a> {
    sorted: &'a [f64],
    depth: usize,
    first: usize,
}

impl<'a> Window<'a> {
    fn new(sorted: &'a [f64], depth: usize, y: f64) -> Self {
        let (mut low, mut high) = (0, sorted.len() - depth);
        while low < high {
            let middle = low.midpoint(high);
            if steps(sorted, middle, depth, y) { low = middle + 1 } else { high = middle }
        }
        Self { sorted, depth, first: low }
    }

    #[inline(always)]
    fn slide(&mut self, y: f64) {
        let last = self.sorted.len() - self.depth;
        while self.first < last && steps(self.sorted, self.first, self.depth, y) {
            self.first += 1;
        }
    }

    fn radius(&self, y: f64) -> f64 {
        let (first, last) = (self.sorted[self.first], self.sorted[self.first + self.depth - 1]);
        distance(y, first).max(distance(y, last))
    }

    /// Numbers within a radius: the window and ties with its furthest, to the left and the right.
    ///
    /// Numbers before the window are below y, those after it are not.
    #[inline(always)]
    fn count(&self, y: f64, radius: f64) -> u64 {
        let end = self.first + self.depth;
        let inside = |place: usize| distance(y, self.sorted[place]) <= radius;
        let mut count = self.depth;
        if self.first > 0 && inside(self.first - 1) {
            count += run(self.first, |i| inside(self.first - 1 - i));
        }
        if end < self.sorted.len() && inside(end) {
            count += run(self.sorted.len() - end, |i| inside(end + i));
        }
        count as u64
    }
}

/// How many of 0..length fulfil a condition that the first does and none after one that does not.
#[cold]
fn run(length: usize, holds: impl Fn(usize) -> bool) -> usize {
    let mut step = 1;
    while step < length && holds(step) {
        step *= 2;
    }
    let (mut low, mut high) = (step / 2 + 1, step.min(length));
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Counts the balls around `own[range]`, each up to the `depth` nearest of `other`.
///
/// Both are sorted, and `other` has at least `depth` >= 1 numbers. n leaves the number itself out,
/// j one of the other set's.
pub(super) fn sweep(
    own: &[f64],
    range: Range<usize>,
    other: &[f64],
    depth: usize,
    tally: &mut Tally,
) {
    let Some(&y) = own[range.clone()].first() else { return };
    let mut window = Window::new(other, depth, y);
    let mut inside = Ends::new(own, y, window.radius(y));
    for &y in &own[range] {
        window.slide(y);
        let radius = window.radius(y);
        inside.slide(own, y, radius, |_, _| ());
        tally.add(key(inside.count() - 1, window.count(y, radius) - 1, false), 1);
    }
}

/// The same for each group of `own` left out: the balls stay, but for its rows.
///
/// `marks` are the groups, in the order of `own`; `tallies` has one for each group.
pub(super) fn sweep_groups(
    (own, marks): (&[f64], &[u32]),
    range: Range<usize>,
    other: &[f64],
    depth: usize,
    tallies: &mut [Tally],
) {
    let Some(&y) = own[range.clone()].first() else { return };
    let mut window = Window::new(other, depth, y);
    let mut inside = Ends::new(own, y, window.radius(y));
    let mut counts = vec![0_u64; tallies.len()];
    for &mark in &marks[inside.low..inside.high] {
        counts[mark as usize] += 1;
    }
    for at in range {
        let y = own[at];
        window.slide(y);
        let radius = window.radius(y);
        inside.slide(own, y, radius, |place, change| {
            let count = &mut counts[marks[place] as usize];
            *count = count.wrapping_add(change);
        });
        let (n, j) = (inside.count() - 1, window.count(y, radius) - 1);
        for (group, (tally, count)) in tallies.iter_mut().zip(&counts).enumerate() {
            if group != marks[at] as usize {
                tally.add(key(n - count, j, false), 1);
            }
        }
    }
}
