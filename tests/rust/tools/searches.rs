//! Searches and what they must find, by all distances in f64.

// Starts and first places are not negative.
#![allow(clippy::cast_sign_loss)]

use dpcore::neighbours::distance::{Coordinate, squared};
use dpcore::neighbours::{Inside, Method, Nearest, Search, Sets, Shells, inside, nearest};
use dpcore::{Cpu, Options};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

/// A path and a number of threads.
pub fn on((cpu, threads): (Cpu, usize)) -> Options<'static> {
    Options::new().cpu(cpu).threads(threads)
}

pub fn normal(rows: usize, dim: usize, scale: f64, seed: u64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..rows * dim).map(|_| scale * rng.sample::<f64, _>(StandardNormal)).collect()
}

pub fn single(rows: &[f64]) -> Vec<f32> {
    rows.iter().map(|&value| value as f32).collect()
}

/// False for NaN.
fn within(value: f64, radius: f64) -> bool {
    value <= radius
}

/// Rows split in two; queries are the first set, points the second and some of the first.
pub struct Case<T> {
    pub rows: Vec<T>,
    pub dim: usize,
    pub queries: Vec<i64>,
    pub points: Vec<i64>,
}

impl<T: Coordinate> Case<T> {
    pub fn new(rows: Vec<T>, dim: usize, queries: usize) -> Self {
        let all = (rows.len() / dim) as i64;
        let points = (queries as i64..all).rev().chain(0..queries as i64 / 3).collect();
        Self { rows, dim, queries: (0..queries as i64).collect(), points }
    }

    pub fn sets(&self) -> Sets<'_, T> {
        let (first, second) = self.rows.split_at(self.queries.len() * self.dim);
        Sets::new(first, second, self.dim).unwrap()
    }

    pub fn search(&self) -> Search<'_, T> {
        Search::new(self.sets(), &self.queries, &self.points).unwrap()
    }

    pub fn own(&self) -> Search<'_, T> {
        Search::new(self.sets(), &self.queries, &self.queries).unwrap()
    }

    pub fn distances(&self, query: i64, points: &[i64]) -> Vec<f64> {
        let row = |i: i64| self.sets().row(i as usize);
        points.iter().map(|&point| squared(row(query), row(point))).collect()
    }

    pub fn by(&self, method: Method, depth: usize, cpu: Cpu, threads: usize) -> Nearest {
        nearest(self.search().by(method), depth, &on((cpu, threads))).unwrap()
    }

    pub fn nearest(&self, depth: usize, cpu: Cpu, threads: usize) -> Nearest {
        self.by(Method::Faster, depth, cpu, threads)
    }

    /// What `nearest` must find.
    pub fn brute(&self, depth: usize) -> Nearest {
        let mut found = Nearest { starts: vec![0], ..Nearest::default() };
        for &query in &self.queries {
            let all = self.distances(query, &self.points);
            // What is NaN is nobody's neighbour.
            let known = all.into_iter().zip(0..).filter(|entry| !entry.0.is_nan());
            let mut order: Vec<(f64, u32)> = known.collect();
            order.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let last = order.len().min(depth).checked_sub(1).map(|i| order[i].0);
            let kept = order.into_iter().filter(|entry| Some(entry.0) <= last);
            let kept: Vec<(f64, u32)> = kept.collect();
            found.squared.extend(kept.iter().map(|entry| entry.0));
            found.places.extend(kept.iter().map(|entry| entry.1));
            found.starts.push(found.places.len() as i64);
        }
        found
    }

    /// What `inside` must find among the queries themselves.
    pub fn balls(&self, shells: &Nearest, cap: usize) -> Inside {
        let mut found = Inside { own_starts: vec![0], ..Inside::default() };
        for (i, &query) in self.queries.iter().enumerate() {
            let all = self.distances(query, &self.queries);
            let ends = [shells.starts[i], shells.starts[i + 1]].map(|i| i as usize);
            let radii = &shells.squared[ends[0]..ends[1]];
            let rank = |value: f64| radii.iter().filter(|&&radius| !within(value, radius)).count();
            let mut order: Vec<(usize, u32)> = all.into_iter().map(rank).zip(0..).collect();
            order.sort_unstable();
            let upto = |rank| order.partition_point(|entry| entry.0 <= rank);
            let (first, within) = (upto(0), order.partition_point(|entry| entry.0 < radii.len()));
            let inverted = 2 * first > order.len() && order.len() - first < within;
            let list = if inverted { &order[first..] } else { &order[..within] };
            let capped = list.len() > cap;
            found.inverted.push(inverted && !capped);
            found.capped.push(capped);
            let less = if inverted { first } else { 0 };
            // Equal radii: the rank of none of them but the first.
            found.upto.extend(
                radii.iter().map(
                    |&radius| {
                        if capped { 0 } else { (upto(rank(radius)) - less) as i64 }
                    },
                ),
            );
            found.places.extend(list.iter().filter(|_| !capped).map(|entry| entry.1));
            found.own_starts.push(found.places.len() as i64);
        }
        found
    }

    /// Checks both searches on every path.
    pub fn check(&self, depth: usize, cap: usize) -> u64 {
        let expected = self.brute(depth);
        let balls = self.balls(&expected, cap);
        let mut rescans = 0;
        for cpu in Cpu::present() {
            for threads in [1, 2] {
                let found = self.nearest(depth, cpu, threads);
                rescans = found.rescans;
                assert!(Nearest { rescans: 0, ..found } == expected, "{cpu:?}");
                let found = self.by(Method::Bytes, depth, cpu, threads);
                assert!(Nearest { rescans: 0, ..found } == expected, "{cpu:?}, bytes");
                let (starts, radii) = (&expected.starts, &expected.squared);
                let shells = Shells::new(starts, radii, self.queries.len()).unwrap();
                let found = inside(self.own(), shells, cap, &on((cpu, threads))).unwrap();
                assert!(Inside { rescans: 0, ..found } == balls, "{cpu:?} {cap}");
            }
        }
        rescans
    }
}
