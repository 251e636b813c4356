//! Nearest neighbours and balls against all distances in f64.

// Starts and first places are not negative.
#![allow(clippy::cast_sign_loss)]

use std::sync::atomic::AtomicBool;

use dpcore::neighbours::distance::{Coordinate, squared};
use dpcore::neighbours::{
    Inside, Method, Nearest, Search, Sets, Shells, inside, nearest, pool_rows,
};
use dpcore::{Cpu, Error, Options};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

/// A path and a number of threads.
fn on((cpu, threads): (Cpu, usize)) -> Options<'static> {
    Options::new().cpu(cpu).threads(threads)
}

fn normal(rows: usize, dim: usize, scale: f64, seed: u64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..rows * dim).map(|_| scale * rng.sample::<f64, _>(StandardNormal)).collect()
}

fn single(rows: &[f64]) -> Vec<f32> {
    rows.iter().map(|&value| value as f32).collect()
}

/// False for NaN.
fn within(value: f64, radius: f64) -> bool {
    value <= radius
}

/// Rows split in two; queries are the first set, points the second and some of the first.
struct Case<T> {
    rows: Vec<T>,
    dim: usize,
    queries: Vec<i64>,
    points: Vec<i64>,
}

impl<T: Coordinate> Case<T> {
    fn new(rows: Vec<T>, dim: usize, queries: usize) -> Self {
        let all = (rows.len() / dim) as i64;
        let points = (queries as i64..all).rev().chain(0..queries as i64 / 3).collect();
        Self { rows, dim, queries: (0..queries as i64).collect(), points }
    }

    fn sets(&self) -> Sets<'_, T> {
        let (first, second) = self.rows.split_at(self.queries.len() * self.dim);
        Sets::new(first, second, self.dim).unwrap()
    }

    fn search(&self) -> Search<'_, T> {
        Search::new(self.sets(), &self.queries, &self.points).unwrap()
    }

    fn own(&self) -> Search<'_, T> {
        Search::new(self.sets(), &self.queries, &self.queries).unwrap()
    }

    fn distances(&self, query: i64, points: &[i64]) -> Vec<f64> {
        let row = |i: i64| self.sets().row(i as usize);
        points.iter().map(|&point| squared(row(query), row(point))).collect()
    }

    fn by(&self, method: Method, depth: usize, cpu: Cpu, threads: usize) -> Nearest {
        nearest(self.search().by(method), depth, &on((cpu, threads))).unwrap()
    }

    fn nearest(&self, depth: usize, cpu: Cpu, threads: usize) -> Nearest {
        self.by(Method::Faster, depth, cpu, threads)
    }

    /// What `nearest` must find.
    fn brute(&self, depth: usize) -> Nearest {
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
    fn balls(&self, shells: &Nearest, cap: usize) -> Inside {
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
    fn check(&self, depth: usize, cap: usize) -> u64 {
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
                let how = (cpu, threads);
                let found = inside(self.own(), shells, cap, &on(how)).unwrap();
                assert!(Inside { rescans: 0, ..found } == balls, "{cpu:?} {cap}");
            }
        }
        rescans
    }
}

#[test]
fn random_rows_in_any_dimension() {
    for (dim, depth) in [(1, 3), (2, 20), (3, 1), (8, 32), (9, 5), (17, 20), (384, 20), (1000, 9)] {
        let mut rows = normal(90, dim, 1.0, 1);
        rows.extend(normal(300, dim, 1.5, 2));
        Case::new(single(&rows), dim, 90).check(depth, usize::MAX);
        Case::new(rows, dim, 90).check(depth, 40);
    }
}

#[test]
fn balls_that_hold_nearly_all_points_are_inverted() {
    for dim in [4, 60] {
        let mut rows = normal(150, dim, 1.0, 3);
        rows.extend(normal(200, dim, 2.0, 4));
        let queries = (0..150).collect();
        let case = Case { rows, dim, queries, points: (150..350).collect() };
        let balls = case.balls(&case.brute(20), usize::MAX);
        assert!(dim < 60 || balls.inverted.iter().filter(|&&inverted| inverted).count() > 100);
        for cap in [0, 3, 40, usize::MAX] {
            case.check(20, cap);
        }
    }
}

#[test]
fn the_first_points_may_mislead_about_the_side_to_list() {
    let dim = 40;
    for tight in [0..300, 500..1200] {
        let mut rows = normal(1200, dim, 3.0, 14);
        let own = tight.start * dim..tight.end * dim;
        for value in &mut rows[own] {
            *value *= 0.15;
        }
        rows.extend(normal(50, dim, 1.5, 15));
        let queries: Vec<i64> = (0..1200).collect();
        let case = Case { rows, dim, queries, points: (1200..1250).collect() };
        let radii = case.brute(8);
        let expected = case.balls(&radii, usize::MAX);
        assert_eq!(expected.inverted.contains(&true), tight.start > 0);
        for cpu in Cpu::present() {
            let shells = Shells::new(&radii.starts, &radii.squared, 1200).unwrap();
            let found = inside(case.own(), shells, usize::MAX, &on((cpu, 2))).unwrap();
            assert!(found.rescans > 100, "{}", found.rescans);
            assert_eq!(Inside { rescans: 0, ..found }, expected);
        }
    }
}

#[test]
fn whole_tie_shells_in_the_order_of_places() {
    let mut rng = StdRng::seed_from_u64(5);
    for (dim, depth) in [(1, 7), (3, 7), (9, 40), (40, 20)] {
        let rows: Vec<f64> = (0..400 * dim).map(|_| f64::from(rng.random_range(0..3u8))).collect();
        let case = Case::new(rows.clone(), dim, 60);
        assert!(case.brute(depth).places.len() > 60 * depth);
        case.check(depth, usize::MAX);
        Case::new(single(&rows), dim, 60).check(depth, 30);
    }
}

#[test]
fn as_deep_as_there_are_points() {
    for dim in [3, 20] {
        let case = Case::new(normal(120, dim, 1.0, 6), dim, 30);
        for depth in [99, 100, 101, 10_000] {
            case.check(depth, usize::MAX);
        }
    }
}

/// Unit vectors, each with near-duplicates of its own.
fn clusters(spread: f64, offset: f64, dim: usize) -> Vec<f32> {
    let centres = normal(8, dim, 1.0, 7);
    let mut rows = Vec::new();
    for (seed, centre) in (8..).zip(centres.chunks_exact(dim)) {
        let length = centre.iter().map(|value| value * value).sum::<f64>().sqrt();
        for near in normal(200, dim, spread / (dim as f64).sqrt(), seed).chunks_exact(dim) {
            rows.extend(near.iter().zip(centre).map(|(a, b)| (a + b / length + offset) as f32));
        }
    }
    rows
}

/// The share of true neighbours among the depth + 8 nearest by f32 products of rows as they are.
fn recall_of_a_shortlist(case: &Case<f32>, expected: &Nearest, depth: usize) -> f64 {
    let row = |i: i64| case.sets().row(i as usize);
    let product = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f32>();
    let (mut hits, mut all) = (0, 0);
    for (i, &query) in case.queries.iter().enumerate() {
        let x = row(query);
        let by_f32 = |&point: &i64| {
            let y = row(point);
            product(x, x) + product(y, y) - 2.0 * product(x, y)
        };
        let mut order: Vec<(f32, u32)> = case.points.iter().map(by_f32).zip(0..).collect();
        order.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let shortlist: Vec<u32> = order[..depth + 8].iter().map(|entry| entry.1).collect();
        let ends = [expected.starts[i], expected.starts[i + 1]];
        let true_ones = &expected.places[ends[0] as usize..ends[1] as usize];
        hits += true_ones.iter().filter(|place| shortlist.contains(place)).count();
        all += true_ones.len();
    }
    f64::from(hits as u32) / f64::from(all as u32)
}

#[test]
fn no_neighbour_is_missed_among_near_duplicates() {
    let cases =
        [(1e-2, 0.0, 384), (1e-3, 0.0, 384), (1e-4, 0.0, 384), (1e-6, 0.0, 384), (0.1, 1e4, 16)];
    for (spread, offset, dim) in cases {
        let case = Case::new(clusters(spread, offset, dim), dim, 200);
        let expected = case.brute(20);
        for cpu in Cpu::present() {
            let found = case.nearest(20, cpu, 2);
            assert_eq!(found.rescans, 0);
            assert_eq!(found, expected, "{spread} {offset} {cpu:?}");
        }
        // The control: this is not what a shortlist does.
        let recall = recall_of_a_shortlist(&case, &expected, 20);
        assert!(spread == 1e-2 || recall < 0.9, "{spread}: {recall}");
    }
}

#[test]
fn what_f32_cannot_tell_apart_is_searched_again() {
    let dim = 16;
    let mut rows = normal(3500, dim, 1e-9, 9);
    rows[..dim].fill(1.0);
    let case = Case::new(rows, dim, 20);
    assert!(case.check(4, usize::MAX) > 0);
}

#[test]
fn any_magnitude() {
    for unit in [1e-320, 1e-200, 1e-130, 1e-30, 1e30, 1e130, 1e200, 1e307] {
        for dim in [5, 20] {
            let mut rows = normal(150, dim, unit, 10);
            // A point far from the others, and two that are the same.
            rows[..dim].fill(10.0 * unit);
            rows.copy_within(40 * dim..41 * dim, 60 * dim);
            Case::new(rows, dim, 30).check(5, usize::MAX);
        }
    }
    let mut rows = normal(200, 24, 1.0, 11);
    for (power, row) in rows.chunks_exact_mut(24).enumerate() {
        for value in row {
            *value *= 10f64.powi(power as i32 % 60 - 30);
        }
    }
    Case::new(rows.clone(), 24, 40).check(6, usize::MAX);
    Case::new(single(&rows), 24, 40).check(6, usize::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_small_search(
        dim in 1usize..12,
        cells in prop::collection::vec(0u8..4, 12 * 70),
        queries in 1usize..40,
        depth in 1usize..30,
        cap in 0usize..60,
        fine in 1.0f64..1.000_001,
    ) {
        let rows: Vec<f64> = cells[..70 * dim]
            .iter()
            .map(|&cell| f64::from(cell) * fine)
            .collect();
        Case::new(rows, dim, queries).check(depth, cap);
    }
}

#[test]
fn distinct_rows_in_the_order_of_their_first_occurrence() {
    let first = [0.0, 1.0, 2.0, 3.0, -0.0, 1.0];
    let second = [5.0, 5.0, 2.0, 3.0, 5.0, 5.0, f64::NAN, 0.0, f64::NAN, 0.0];
    let pooled = pool_rows(Sets::new(&first, &second, 2).unwrap(), &Options::new()).unwrap();
    assert_eq!(pooled.ids, [0, 1, 0, 2, 1, 2, 3, 4]);
    assert_eq!(pooled.first, [0, 1, 3, 6, 7]);
    let rows: Vec<f32> = (0..30_000u16).map(|i| f32::from(i % 7919 / 3)).collect();
    let pooled = pool_rows(Sets::new(&rows, &[], 3).unwrap(), &Options::new()).unwrap();
    for (row, &id) in rows.chunks_exact(3).zip(&pooled.ids) {
        let first = 3 * pooled.first[id as usize] as usize;
        assert_eq!(row, &rows[first..first + 3]);
    }
    let mut distinct: Vec<&[f32]> = rows.chunks_exact(3).collect();
    distinct.sort_by(|a, b| a.partial_cmp(b).unwrap());
    distinct.dedup();
    assert_eq!(pooled.first.len(), distinct.len());
}

#[test]
fn bad_arguments_are_named_and_a_stop_is_an_error() {
    let rows = normal(40, 10, 1.0, 12);
    let text = |error: Error| error.to_string();
    assert!(text(Sets::new(&rows, &rows, 0).unwrap_err()).starts_with("dim must be at least 1"));
    assert!(text(Sets::new(&rows, &rows[1..], 10).unwrap_err()).starts_with("rows1 must be rows"));
    let sets = Sets::new(&rows, &[], 10).unwrap();
    for number in [-1, 40, i64::MIN] {
        let error = Search::new(sets, &[0], &[0, number]).unwrap_err();
        assert!(text(error).starts_with("points must be rows below 40, got"));
    }
    for (starts, squared) in [
        (vec![0, 1], vec![1.0]),
        (vec![0, 2, 1], vec![1.0]),
        (vec![1, 1, 1], vec![1.0]),
        (vec![0, -1, 1], vec![1.0]),
        (vec![0, 1, 2], vec![1.0]),
        (vec![0, 2, 2], vec![2.0, 1.0]),
        (vec![0, 1, 1], vec![f64::NAN]),
    ] {
        assert!(matches!(Shells::new(&starts, &squared, 2), Err(Error::Invalid { .. })));
    }
    let all: Vec<i64> = (0..40).collect();
    let search = Search::new(sets, &all, &all).unwrap();
    let go = on((Cpu::Baseline, 2));
    assert!(text(nearest(search, 0, &go).unwrap_err()).starts_with("depth must be"));
    assert!(inside(search, Shells::new(&[0], &[], 0).unwrap(), 9, &go).is_err());
    for threads in [0, 2000] {
        let error = text(nearest(search, 3, &go.threads(threads)).unwrap_err());
        assert_eq!(error, format!("threads must be from 1 to 1024, got {threads}"));
    }
    let stop = AtomicBool::new(true);
    let stop = go.stop(&stop);
    assert_eq!(nearest(search, 3, &stop), Err(Error::Interrupted));
    let starts = vec![0; 41];
    let shells = Shells::new(&starts, &[], 40).unwrap();
    assert_eq!(inside(search, shells, 9, &stop), Err(Error::Interrupted));
    assert_eq!(pool_rows(sets, &stop), Err(Error::Interrupted));
}

#[test]
fn nothing_to_search_is_no_panic() {
    let rows = normal(40, 12, 1.0, 13);
    let sets = Sets::new(&rows, &[], 12).unwrap();
    let all: Vec<i64> = (0..40).collect();
    for cpu in Cpu::present() {
        let none = Search::new(sets, &all, &[]).unwrap();
        assert_eq!(nearest(none, 3, &on((cpu, 1))).unwrap().starts, [0; 41]);
        let none = Search::new(sets, &[], &all).unwrap();
        assert_eq!(nearest(none, 3, &on((cpu, 1))).unwrap().starts, [0]);
    }
}

/// Rows of which some are bad, among 60 queries and 140 points, at dimension 24.
fn with(bad: &[(usize, f64)], unit: f64) -> Case<f64> {
    let mut rows = normal(200, 24, unit, 16);
    for &(row, value) in bad {
        rows[row * 24 + row % 24] = value;
    }
    Case::new(rows, 24, 60)
}

#[test]
fn a_row_with_a_nan_is_nobodys_neighbour_and_all_else_is_as_before() {
    let none = with(&[], 1.0).brute(7);
    for bad in [vec![3], vec![70], vec![3, 5, 70, 71, 199]] {
        let bad: Vec<(usize, f64)> = bad.into_iter().map(|row| (row, f64::NAN)).collect();
        let case = with(&bad, 1.0);
        let expected = case.brute(7);
        assert!(expected.places.len() >= 7 * 55 && (bad[0].0 == 70 || expected != none));
        case.check(7, usize::MAX);
        let case = Case::new(single(&case.rows), 24, 60);
        case.check(7, 20);
    }
    // Few coordinates, all rows, all queries, all points.
    for (dim, bad) in [(2, 0..1), (2, 150..160), (24, 0..200), (24, 0..60), (24, 60..200)] {
        let mut rows = normal(200, dim, 1.0, 17);
        for row in bad {
            rows[row * dim] = f64::NAN;
        }
        Case::new(rows, dim, 60).check(7, usize::MAX);
    }
}

#[test]
fn infinite_and_huge_rows_are_far_and_change_nothing_else() {
    for value in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e300, -1e300, 1e160, 1e20] {
        for bad in [vec![3], vec![70], vec![3, 4, 70, 71, 72, 199]] {
            let bad: Vec<(usize, f64)> = bad.into_iter().map(|row| (row, value)).collect();
            let case = with(&bad, 1.0);
            for cap in [20, usize::MAX] {
                case.check(7, cap);
            }
            // Fewer near than asked for: the far ones are neighbours too.
            let points = (60..75).collect();
            let case = Case { points, ..case };
            case.check(14, usize::MAX);
        }
    }
    let case = with(&[], 1e300);
    assert!(case.brute(7).squared.iter().any(|value| value.is_infinite()));
    case.check(7, usize::MAX);
}

#[test]
fn one_row_far_away_and_clouds_are_searched_once() {
    for dim in [20, 400] {
        let mut rows = normal(1500, dim, 1.0, 18);
        for value in &mut rows[700 * dim..701 * dim] {
            *value *= 1e6;
        }
        assert_eq!(Case::new(single(&rows), dim, 300).check(32, usize::MAX), 0);
        for apart in [3e3, 1e7, 1e10] {
            let mut rows = normal(1500, dim, 1.0, 19);
            for (i, row) in rows.chunks_exact_mut(dim).enumerate() {
                row[i % 3] += apart * f64::from(i as u32 % 3);
            }
            assert_eq!(Case::new(rows, dim, 300).check(32, usize::MAX), 0);
        }
    }
}
