//! Nearest neighbours and balls of rows that are bad, far away, many or few.

use std::sync::atomic::AtomicBool;

use crate::tools::searches::{Case, normal, on, single};
use dpcore::neighbours::{Method, nearest};
use dpcore::{Cpu, Error};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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
    for (dim, bad) in
        [(2, 0..1), (2, 150..160), (24, 0..200), (24, 0..60), (24, 60..200), (24, 5..200)]
    {
        let mut rows = normal(200, dim, 1.0, 17);
        for row in bad {
            rows[row * dim] = f64::NAN;
        }
        Case::new(rows, dim, 60).check(7, usize::MAX);
    }
}

#[test]
fn a_row_with_a_nan_is_outside_of_balls_that_hold_nearly_all() {
    let dim = 60;
    let mut rows = normal(150, dim, 1.0, 3);
    rows.extend(normal(200, dim, 2.0, 4));
    for row in [10, 20, 140] {
        rows[row * dim + row % dim] = f64::NAN;
    }
    let queries = (0..150).collect();
    let case = Case { rows, dim, queries, points: (150..350).collect() };
    let balls = case.balls(&case.brute(20), usize::MAX);
    assert!(balls.inverted.iter().filter(|&&inverted| inverted).count() > 90);
    case.check(20, usize::MAX);
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

#[test]
fn more_columns_than_the_products_are_proven_for() {
    // Products of bytes could pass 2^31 here.
    let dim = 66_400;
    let mut rows = vec![1.0_f32; 45 * dim];
    for (i, row) in rows.chunks_exact_mut(dim).enumerate() {
        row[..i * 7].fill(-1.0);
    }
    Case::new(rows, dim, 20).check(3, usize::MAX);
}

#[test]
fn one_row_and_more_neighbours_than_points() {
    for dim in [3, 24, 100] {
        for (rows, queries) in [(2, 1), (2, 2), (40, 1), (40, 39)] {
            let case = Case::new(normal(rows, dim, 1.0, 20), dim, queries);
            for depth in [1, 2, 50, usize::MAX / 8] {
                case.check(depth, usize::MAX);
            }
        }
    }
}

#[test]
fn a_stop_before_the_first_block_is_an_error() {
    let case = Case::new(normal(600, 70, 1.0, 21), 70, 100);
    for method in [Method::Faster, Method::Pairs, Method::Bytes] {
        for cpu in Cpu::present() {
            let stop = AtomicBool::new(true);
            let found = nearest(case.search().by(method), 5, &on((cpu, 2)).stop(&stop));
            assert_eq!(found, Err(Error::Interrupted));
        }
    }
}

/// Rows of one of many kinds, some of them bad.
fn any_rows(rng: &mut StdRng, rows: usize, dim: usize) -> Vec<f64> {
    let unit = 10f64.powi(rng.random_range(-20..20));
    let mut all = normal(rows, dim, unit, rng.random());
    match rng.random_range(0..6) {
        // Lattices, near-duplicates, clouds, columns of different magnitude.
        0 => all.iter_mut().for_each(|value| *value = (2.0 * *value / unit).round()),
        1 => {
            for i in dim..all.len() {
                all[i] = all[i % (5 * dim).min(i / dim * dim)] + 1e-6 * all[i];
            }
        }
        2 => (0..all.len()).for_each(|i| all[i] += 3e3 * unit * f64::from((i / dim) as u32 % 3)),
        3 => (0..all.len()).for_each(|i| all[i] *= 10f64.powi((i % dim) as i32 % 12 - 6)),
        _ => {}
    }
    let bad = [f64::NAN, f64::INFINITY, 1e300, 0.0, 1e6 * unit, -1e20 * unit, 1e-300];
    for _ in 0..rng.random_range(0..4) {
        let (place, value) = (rng.random_range(0..all.len()), bad[rng.random_range(0..bad.len())]);
        all[place] = value;
    }
    all
}

#[test]
fn fuzzed_rounds_on_each_path() {
    // 1,000 rounds: DPCORE_ROUNDS=1000.
    let rounds = std::env::var("DPCORE_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let mut rng = StdRng::seed_from_u64(22);
    for round in 0..rounds {
        let (rows, dim) = (rng.random_range(2..260), rng.random_range(1..110));
        let all = any_rows(&mut rng, rows, dim);
        let (depth, queries) = (rng.random_range(1..40), rng.random_range(1..rows.min(80)));
        let cap = if round % 3 == 0 { rng.random_range(0..60) } else { usize::MAX };
        if round % 2 == 0 {
            Case::new(single(&all), dim, queries).check(depth, cap);
        } else {
            Case::new(all, dim, queries).check(depth, cap);
        }
    }
}
