//! Sets of numbers in order, and the values that are atoms.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::resampling::Resampling;
use crate::error::Error;
use crate::pool::each;

/// A value with this many other rows of the numerator's set, or rows of the denominator's, is an
/// atom.
pub const KAPPA: usize = 5;

/// One set: its numbers in order, and the group or the place of each.
pub(super) struct Sorted {
    pub(super) values: Vec<f64>,
    pub(super) marks: Vec<u32>,
}

/// Where the rows of one value are in both sets.
pub(super) type Run = [Range<usize>; 2];

/// Values and marks of rows that are no atoms.
pub(super) type Rest<'a> = (Cow<'a, [f64]>, Cow<'a, [u32]>);

/// One direction: `own` is the numerator's set.
pub(super) struct Direction<'a> {
    pub(super) own: usize,
    pub(super) depth: u64,
    pub(super) atoms: &'a [Run],
    /// The values and marks that are left, of both sets.
    pub(super) rest: [Rest<'a>; 2],
}

/// k rows of the smaller set, or as many of the larger as there are for k of the smaller.
#[must_use]
pub fn depth(k: u64, own: u64, other: u64) -> u64 {
    if other <= own { k } else { (u128::from(k) * u128::from(other)).div_ceil(own.into()) as u64 }
}

/// A number with the order of the float, -0 as 0.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn value(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

pub(super) fn sort_both(
    sets: [&[f64]; 2],
    resampling: Resampling<'_>,
    threads: usize,
    stop: &AtomicBool,
) -> Result<[Sorted; 2], Error> {
    let work = |done: &mut Vec<(usize, Sorted)>, set: usize| {
        let marked = |mark: &dyn Fn(usize) -> u32| {
            let pairs = sets[set].iter().enumerate();
            let mut pairs: Vec<_> = pairs.map(|(i, &value)| (ordered(value), mark(i))).collect();
            pairs.sort_unstable_by_key(|pair| pair.0);
            let values = pairs.iter().map(|pair| value(pair.0)).collect();
            Sorted { values, marks: pairs.into_iter().map(|pair| pair.1).collect() }
        };
        let sorted = match resampling {
            Resampling::None => {
                let mut keys: Vec<_> = sets[set].iter().copied().map(ordered).collect();
                keys.sort_unstable();
                Sorted { values: keys.into_iter().map(value).collect(), marks: Vec::new() }
            }
            Resampling::Groups(labels, _) => marked(&|i| labels[set][i].cast_unsigned() as u32),
            Resampling::Weights(_) => marked(&|i| i as u32),
        };
        done.push((set, sorted));
    };
    let merge = |all: &mut Vec<_>, mut own: Vec<_>| all.append(&mut own);
    let mut done = each(0..2, threads, stop, work, merge)?;
    done.sort_by_key(|(set, _)| *set);
    let mut done = done.into_iter().map(|(_, sorted)| sorted);
    match (done.next(), done.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err(Error::Interrupted),
    }
}

/// The runs of equal values of both sets: all of them, or those of at least two rows.
fn runs(sorted: &[Sorted; 2], single: bool) -> Vec<Run> {
    let (a, b) = (&sorted[0].values, &sorted[1].values);
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let value = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => break,
        };
        let begin = (i, j);
        while i < a.len() && a[i] == value {
            i += 1;
        }
        while j < b.len() && b[j] == value {
            j += 1;
        }
        if single || i - begin.0 + j - begin.1 > 1 {
            found.push([begin.0..i, begin.1..j]);
        }
    }
    found
}

/// Whether a value is an atom for the direction whose numerator is `own`.
fn is_atom(run: &Run, own: usize) -> bool {
    run[own].len() > KAPPA || run[1 - own].len() >= KAPPA
}

/// Values that occur more than once in both sets together.
pub(super) struct Repeats {
    /// The atoms of each direction: all values if 99 % of all rows are on atoms.
    pub(super) atoms: [Vec<Run>; 2],
    /// Share of each set's rows on atoms of either direction.
    pub(super) share: [f64; 2],
    /// Rows on repeated values over such values; NaN if fewer than 1 % of all rows are.
    pub(super) rows_per_atom: f64,
}

impl Repeats {
    pub(super) fn of(sorted: &[Sorted; 2]) -> Self {
        let repeated = runs(sorted, false);
        let both = |run: &&Run| is_atom(run, 0) || is_atom(run, 1);
        let either: Vec<Run> = repeated.iter().filter(both).cloned().collect();
        let sizes = [0, 1].map(|set: usize| sorted[set].values.len());
        let pooled = sizes[0] + sizes[1];
        let rows = |runs: &[Run], set: usize| runs.iter().map(|run| run[set].len()).sum::<usize>();
        let discrete = 100 * (rows(&either, 0) + rows(&either, 1)) >= 99 * pooled;
        let atoms = if discrete {
            let all = runs(sorted, true);
            [all.clone(), all]
        } else {
            [0, 1].map(|own| either.iter().filter(|run| is_atom(run, own)).cloned().collect())
        };
        let on = if discrete { &repeated } else { &either };
        let share = [0, 1].map(|set: usize| rows(on, set) as f64 / sizes[set] as f64);
        let on_repeated = rows(&repeated, 0) + rows(&repeated, 1);
        let few = 100 * on_repeated < pooled;
        let each = on_repeated as f64 / repeated.len() as f64;
        Self { atoms, share, rows_per_atom: if few { f64::NAN } else { each } }
    }
}

impl<'a> Direction<'a> {
    pub(super) fn new(sorted: &'a [Sorted; 2], own: usize, atoms: &'a [Run], k: u64) -> Self {
        let sizes = [0, 1].map(|set: usize| sorted[set].values.len() as u64);
        let rest = [0, 1].map(|set| {
            let Sorted { values, marks } = &sorted[set];
            (without(values, atoms, set), without(marks, atoms, set))
        });
        Self { own, depth: depth(k, sizes[own], sizes[1 - own]), atoms, rest }
    }
}

/// What is left of a set without the atoms.
fn without<'a, T: Copy>(all: &'a [T], atoms: &[Run], set: usize) -> Cow<'a, [T]> {
    if atoms.is_empty() || all.is_empty() {
        return Cow::Borrowed(all);
    }
    let mut rest = Vec::new();
    let mut from = 0;
    for run in atoms {
        rest.extend_from_slice(&all[from..run[set].start]);
        from = run[set].end;
    }
    rest.extend_from_slice(&all[from..]);
    Cow::Owned(rest)
}
