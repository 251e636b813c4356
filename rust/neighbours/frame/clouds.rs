//! Which points share a frame.
//!
//! The guard grows with the squared distances from the centre. So the centre is a median, which a
//! few rows far away do not move, and points in clouds far from each other have a centre for each.
//! Both come from a sample of the points: the answers do not depend on them, only the time does.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::distance::{Coordinate, squared};
use super::super::search::{Search, blocks};
use super::{Frame, LARGEST_DIM, exponent};
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Points that a frame is chosen from.
const SAMPLE: usize = 256;

/// The most clouds: the queries are packed anew for each.
const MOST: usize = 8;

/// A cloud is parted where a squared distance is so many times the next smaller one: below, the
/// guard of the whole is good enough.
const GAP: f64 = 16.0;

/// Points with a frame of their own.
pub(in super::super) struct Cloud {
    pub frame: Frame,
    /// Where they are in the order of the clouds.
    pub range: Range<usize>,
    /// The norm of a packed row, within which `depth` of the points are; none if there are fewer.
    pub within: Option<f64>,
}

/// The points of a search, cloud by cloud.
pub(in super::super) struct Clouds {
    /// Places, ascending in every cloud.
    pub order: Vec<u32>,
    pub each: Vec<Cloud>,
    /// Points that no frame fits: infinite, or more than about 2^40 medians away.
    pub far: Vec<u32>,
    /// Points with a NaN.
    pub void: Vec<u32>,
}

impl Clouds {
    /// The clouds of a search; None where only f64 will do.
    pub fn new<T: Coordinate>(
        (search, depth): (&Search<'_, T>, usize),
        cpu: Cpu,
        stop: &AtomicBool,
    ) -> Option<Self> {
        let dim = search.sets.dim;
        if dim > LARGEST_DIM {
            return None;
        }
        let sample = sample(search);
        let parts = parted(&sample);
        let centres: Vec<Vec<f64>> = parts.iter().map(|part| middle(part)).collect();
        let scale = scale(&parts, &centres)?;
        let frames: Vec<Frame> =
            centres.into_iter().map(|centre| Frame::new(centre, scale)).collect();
        let mut homes = Vec::with_capacity(search.points.len());
        for places in blocks(search.points.len(), SAMPLE) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            dispatch(cpu, Settle { search, frames: &frames, places, homes: &mut homes });
        }
        let all = || (0..).zip(&homes);
        let of = |home: Home| all().filter(move |(_, own)| own.0 == home).map(|(place, _)| place);
        let (far, void) = (of(Home::Far).collect(), of(Home::Void).collect());
        let (mut order, mut each) = (Vec::with_capacity(homes.len()), Vec::new());
        for (i, frame) in frames.into_iter().enumerate() {
            let start = order.len();
            order.extend(of(Home::Cloud(i)));
            let mut norms: Vec<f64> =
                order[start..].iter().map(|&place: &u32| homes[place as usize].1).collect();
            let within = (depth <= norms.len() && depth > 0)
                .then(|| *norms.select_nth_unstable_by(depth - 1, f64::total_cmp).1);
            each.push(Cloud { frame, range: start..order.len(), within });
        }
        Some(Self { order, each, far, void })
    }

    /// Whether the clouds give all points in the order of their places.
    pub fn in_order(&self) -> bool {
        self.each.len() == 1 && self.far.is_empty() && self.void.is_empty()
    }
}

/// Finite points, evenly spread over the places.
fn sample<T: Coordinate>(search: &Search<'_, T>) -> Vec<Vec<f64>> {
    let step = (search.points.len() / SAMPLE).max(1);
    (0..search.points.len())
        .step_by(step)
        .map(|place| search.point(place).iter().map(|value| value.wide()).collect())
        .filter(|row: &Vec<f64>| row.iter().all(|value| value.is_finite()))
        .collect()
}

/// Parts a sample into clouds, as long as one has a wide gap.
fn parted(sample: &[Vec<f64>]) -> Vec<Vec<&[f64]>> {
    let mut done = Vec::new();
    let mut open: Vec<Vec<&[f64]>> = vec![sample.iter().map(Vec::as_slice).collect()];
    while let Some(part) = open.pop() {
        match (done.len() + open.len() + 1 < MOST).then(|| halves(&part)).flatten() {
            Some(both) => open.extend(both),
            None => done.push(part),
        }
    }
    done.retain(|part| !part.is_empty());
    done
}

/// The rows near one of them and the others, with a gap between; a sixteenth at least in each, so
/// that a few rows far away are no cloud.
fn halves<'a>(part: &[&'a [f64]]) -> Option<[Vec<&'a [f64]>; 2]> {
    let (size, least) = (part.len(), part.len().div_ceil(16));
    let mut best = (GAP, None);
    // One of four will be a row among others.
    for seed in (0..4).map(|quarter| quarter * size / 4).filter(|_| size >= 16) {
        let mut order: Vec<(f64, usize)> =
            part.iter().map(|row| squared(part[seed], row)).zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for cut in least..=size - least {
            let ratio = order[cut].0 / order[cut - 1].0;
            if ratio > best.0 {
                best = (ratio, Some((order.clone(), cut)));
            }
        }
    }
    let (order, cut) = best.1?;
    let rows = |own: &[(f64, usize)]| own.iter().map(|&(_, i)| part[i]).collect();
    Some([rows(&order[..cut]), rows(&order[cut..])])
}

/// The median of every coordinate.
fn middle(part: &[&[f64]]) -> Vec<f64> {
    let mut column = Vec::with_capacity(part.len());
    let median = |c: usize| {
        column.clear();
        column.extend(part.iter().map(|row| row[c]));
        *column.select_nth_unstable_by(part.len() / 2, f64::total_cmp).1
    };
    (0..part[0].len()).map(median).collect()
}

/// A power of two that brings the median of the rows' largest coordinates to about 1.
fn scale(parts: &[Vec<&[f64]>], centres: &[Vec<f64>]) -> Option<f64> {
    let reach = |row: &[f64], centre: &[f64]| {
        row.iter().zip(centre).map(|(value, centre)| (value - centre).abs()).fold(0.0, f64::max)
    };
    let own = |(part, centre): (&Vec<&[f64]>, &Vec<f64>)| -> Vec<f64> {
        part.iter().map(|row| reach(row, centre)).collect()
    };
    let mut reaches: Vec<f64> = parts.iter().zip(centres).flat_map(own).collect();
    // Rows that are their centre say nothing.
    reaches.retain(|&reach| reach > 0.0);
    if reaches.is_empty() {
        return Some(1.0).filter(|_| !parts.is_empty());
    }
    let half = reaches.len() / 2;
    let median = *reaches.select_nth_unstable_by(half, f64::total_cmp).1;
    let known = (2.0_f64.powi(-400)..=2.0_f64.powi(400)).contains(&median);
    known.then(|| 2.0_f64.powi(-exponent(median)))
}

/// Where a point is searched.
#[derive(Clone, Copy, PartialEq)]
enum Home {
    Cloud(usize),
    Far,
    Void,
}

/// Finds the nearest centre of points, and their norms there.
struct Settle<'a, T> {
    search: &'a Search<'a, T>,
    frames: &'a [Frame],
    places: (usize, usize),
    homes: &'a mut Vec<(Home, f64)>,
}

impl<T: Coordinate> Kernel for Settle<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let mut packed = vec![0.0; self.search.sets.dim];
        for place in self.places.0..self.places.1 {
            let mut best = (Home::Far, f64::INFINITY);
            for (i, frame) in self.frames.iter().enumerate() {
                let norm = frame.pack(self.search.point(place), &mut packed);
                if norm.is_nan() {
                    best.0 = Home::Void;
                } else if norm < best.1 && Frame::fits(norm) {
                    best = (Home::Cloud(i), norm);
                }
            }
            self.homes.push(best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::search::Sets;
    use super::*;

    #[test]
    fn every_point_is_in_its_nearest_cloud_or_far_or_void() {
        // Two clouds on a line, one row on the way to each, and rows that no guard is proven for.
        let mut rows: Vec<f64> =
            (0..200).map(|i| f64::from(i % 100) + 1e5 * f64::from(i / 100)).collect();
        rows.extend([1e4, 1e20, f64::NEG_INFINITY, f64::NAN, 9e4]);
        let all: Vec<i64> = (0..rows.len() as i64).collect();
        let search = Search::new(Sets::new(&rows, &[], 1).unwrap(), &all, &all).unwrap();
        for cpu in Cpu::present() {
            let clouds = Clouds::new((&search, 101), cpu, &AtomicBool::new(false)).unwrap();
            assert_eq!((&clouds.far[..], &clouds.void[..]), (&[201, 202][..], &[203][..]));
            let mut found = Vec::new();
            for cloud in &clouds.each {
                found.push(clouds.order[cloud.range.clone()].to_vec());
                let farthest = cloud.frame.scaled(1e8);
                assert!((cloud.within.unwrap() / farthest - 1.0).abs() < 0.02);
            }
            found.sort_unstable();
            assert_eq!(
                found,
                [[0..100, 200..201], [100..200, 204..205]]
                    .map(|own| own.into_iter().flatten().collect::<Vec<u32>>())
            );
            assert!(!clouds.in_order());
        }
    }
}
