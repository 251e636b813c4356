//! Divergences from counts: no panic, no difference between threads, stops that are errors.

use std::sync::atomic::AtomicBool;

use dpcore::divergence::cells::ball_values;
use dpcore::divergence::line::{Line, Resampling, line_ball};
use dpcore::divergence::lists::{Lists, Rows};
use dpcore::divergence::walk::{Again, ball_counts, ball_replicates};
use dpcore::{Error, Options};
use proptest::prelude::*;

const ALPHAS: [f64; 5] = [0.5, 1.0, 1.1, 2.0, 3.5];

fn run(sets: [&[f64]; 2], k: u64, how: Resampling<'_>, threads: usize) -> Result<Line, Error> {
    line_ball(sets, &ALPHAS, k, how, &Options::new().threads(threads))
}

/// Numbers with ties, zeros of both signs, and magnitudes at which distances round or overflow.
fn numbers() -> impl Strategy<Value = Vec<f64>> {
    let number = prop_oneof![
        4 => (-8..8_i32).prop_map(f64::from),
        4 => -1.0..1.0,
        1 => Just(-0.0),
        1 => Just(1e308),
        1 => Just(-1e308),
        1 => Just(1e17),
        1 => Just(5e-324),
    ];
    prop::collection::vec(number, 1..40)
}

proptest! {
    #[test]
    fn a_line_never_panics_and_threads_change_nothing(
        x in numbers(),
        y in numbers(),
        k in 1..50_u64,
        units in 1..5_usize,
        weight in 0..4_u32,
    ) {
        let labels = [&x, &y].map(|set| (0..set.len()).map(|i| (i % units) as i64));
        let labels = labels.map(Iterator::collect::<Vec<i64>>);
        let weights = [&x, &y].map(|set| (0..2 * set.len()).map(|i| i as u32 % 3 * weight));
        let weights = weights.map(Iterator::collect::<Vec<u32>>);
        let units = [units.min(x.len()), units.min(y.len())];
        let groups = Resampling::Groups([&labels[0], &labels[1]], units);
        for how in [Resampling::None, groups, Resampling::Weights([&weights[0], &weights[1]])] {
            let one = run([&x, &y], k, how, 1).unwrap();
            let three = run([&x, &y], k, how, 3).unwrap();
            // NaN is equal to nothing: compare as text.
            prop_assert_eq!(format!("{one:?}"), format!("{three:?}"));
            let swapped = run([&y, &x], k, Resampling::None, 1).unwrap();
            let values = (format!("{:?}", one.values[0]), format!("{:?}", swapped.values[1]));
            prop_assert_eq!(values.0, values.1);
        }
    }
}

#[test]
fn a_group_left_out_is_the_data_without_it() {
    let x: Vec<f64> = (0..90).map(|i| f64::from(i * i % 89) / 7.0).collect();
    let y: Vec<f64> = (0..70).map(|i| f64::from(i * i % 71) / 5.0).collect();
    let labels = [&x, &y].map(|set| (0..set.len()).map(|i| (i % 4) as i64).collect::<Vec<_>>());
    let how = Resampling::Groups([&labels[0], &labels[1]], [4, 4]);
    let line = run([&x, &y], 4, how, 2).unwrap();
    assert_eq!(line.replicates.len(), 8 * 2 * ALPHAS.len());
    let weights = [&x, &y].map(|set| vec![1_u32; set.len()]);
    for i in 0..8 {
        let mut weights = weights.clone();
        for (weight, label) in weights[i / 4].iter_mut().zip(&labels[i / 4]) {
            *weight = u32::from(*label != i as i64 % 4);
        }
        let how = Resampling::Weights([&weights[0], &weights[1]]);
        let alone = run([&x, &y], 4, how, 1).unwrap();
        let size = 2 * ALPHAS.len();
        assert_eq!(line.replicates[i * size..(i + 1) * size], alone.replicates);
    }
}

#[test]
fn a_stop_is_an_error() {
    let x = [0.0, 1.0, 2.0];
    let stop = AtomicBool::new(true);
    let stopped = line_ball([&x, &x], &ALPHAS, 1, Resampling::None, &Options::new().stop(&stop));
    assert_eq!(stopped, Err(Error::Interrupted));
}

#[test]
fn bad_arguments_are_named() {
    let good = [0.0, 1.0, 2.0];
    let text = |sets, k, how| run(sets, k, how, 1).unwrap_err().to_string();
    let label = [0, 1, 2];
    for (sets, k, how, expected) in [
        ([&[][..], &good], 1, Resampling::None, "values0 must be from 1"),
        ([&good, &[f64::INFINITY]], 1, Resampling::None, "values1 must be finite"),
        ([&good, &good], 0, Resampling::None, "k must be"),
        ([&good, &good], 1 << 31, Resampling::None, "k must be"),
        ([&good, &good], 1, Resampling::Groups([&label; 2], [4, 3]), "labels0 must be of at most"),
        ([&good, &good], 1, Resampling::Groups([&label; 2], [3, 2]), "labels1 must be from 0"),
        ([&good, &good], 1, Resampling::Weights([&[1; 3], &[1; 4]]), "weights1 must be rows of"),
        ([&good, &good], 1, Resampling::Weights([&[1; 3], &[1; 6]]), "weights1 must be for 1"),
        ([&good, &good], 1, Resampling::Weights([&[1 << 30; 3], &[1; 3]]), "weights0 must be bel"),
    ] {
        let text = text(sets, k, how);
        assert!(text.starts_with(expected), "{text}");
    }
    let error = ball_values((&[3], &[1]), &[false], &[4.0], (3, 3), &ALPHAS).unwrap_err();
    assert!(error.to_string().starts_with("n must be from 0 to 2"));
}

/// Four points on a line in each set, at 0, 1, 2, 3 and 0.5, 1.5, 2.5, 3.5; lists of two.
#[test]
fn a_list_that_runs_out_is_searched_again() {
    let rows = ([0.0_f32, 1.0, 2.0, 3.0], [0.5_f32, 1.5, 2.5, 3.5]);
    let first: Vec<i64> = (0..8).collect();
    let rows = Rows::new([&rows.0, &rows.1], 1, &first).unwrap();
    let lists = Lists {
        queries: &[0, 1, 2, 3],
        starts: &[0, 2, 4, 6, 8],
        ids: &[4, 5, 4, 5, 5, 6, 6, 7],
        squared: &[0.25, 2.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25],
        own_starts: &[0, 2, 3, 4, 4],
        own_ids: &[0, 1, 1, 2],
        upto: &[1, 2, 1, 1, 1, 1, 0, 0],
        inverted: &[false; 4],
        capped: &[false, false, false, true],
        own_points: &[0, 1, 2, 3],
        other_points: &[4, 5, 6, 7],
    };
    lists.check(8).unwrap();
    let copies = ([1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]);
    let count = |depth, other: &[u32]| {
        ball_counts(&lists, (&copies.0, other), depth, &rows, &Options::new().threads(2)).unwrap()
    };
    let all = count(2, &copies.1);
    assert_eq!((all.n, all.j), (vec![1, 0, 0, 0], vec![1; 4]));
    assert_eq!(all.again, Again { run_outs: 0, rescans: 1 });
    let deeper = count(3, &copies.1);
    assert_eq!((deeper.n, deeper.j), (vec![2, 2, 2, 1], vec![2, 2, 3, 2]));
    assert_eq!(deeper.again, Again { run_outs: 4, rescans: 0 });
    // Without the point at 0.5, and with the one at 3.5 twice.
    let changed = count(2, &[0, 0, 0, 0, 0, 1, 1, 2]);
    assert_eq!((changed.n, changed.j), (vec![2, 2, 0, 0], vec![1, 1, 1, 2]));
    assert_eq!(changed.again, Again { run_outs: 2, rescans: 1 });
    assert!(count(5, &copies.1).whole.iter().all(|&whole| whole));
    let replicates = |threads| {
        let (own, other) = (copies.0.repeat(5), [copies.1, [0, 0, 0, 0, 0, 1, 1, 2]].concat());
        let copies = (&own[..16], &other[..]);
        ball_replicates(&lists, &[], copies, (2, &ALPHAS), &rows, &Options::new().threads(threads))
            .unwrap()
    };
    assert_eq!(replicates(1), replicates(4));
    assert_eq!(replicates(1).again, Again { run_outs: 2, rescans: 2 });
}
