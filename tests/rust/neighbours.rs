//! Nearest neighbours and balls against all distances in f64.

// Starts and first places are not negative.
#![allow(clippy::cast_sign_loss)]

use std::sync::atomic::AtomicBool;

use crate::tools::searches::{Case, normal, on, single};
use dpcore::neighbours::{
    Inside, Method, Nearest, Search, Sets, Shells, inside, nearest, pool_rows,
};
use dpcore::{Cpu, Error, Options};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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
    // The last are one cloud, where bytes cannot tell the members of a cluster apart.
    let cases = [
        (1e-2, 0.0, 384),
        (1e-3, 0.0, 384),
        (1e-4, 0.0, 384),
        (1e-6, 0.0, 384),
        (0.1, 1e4, 16),
        (0.3, 0.0, 384),
    ];
    for (spread, offset, dim) in cases {
        let case = Case::new(clusters(spread, offset, dim), dim, 200);
        let expected = case.brute(20);
        for cpu in Cpu::present() {
            let found = case.nearest(20, cpu, 2);
            assert_eq!(found.rescans, 0);
            assert_eq!(found, expected, "{spread} {offset} {cpu:?}");
            // What bytes give up is found by f32.
            assert_eq!(case.by(Method::Bytes, 20, cpu, 2), expected, "{spread} {cpu:?}, bytes");
        }
        // The control: this is not what a shortlist does.
        let recall = recall_of_a_shortlist(&case, &expected, 20);
        assert!((spread >= 1e-2 && offset == 0.0) || recall < 0.9, "{spread}: {recall}");
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
