//! The counts: two routes and a plain loop over the sampled rows agree on every seed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::tools::{bits, count, job, laplace, noises, rows};
use dpcore::run::{self, count_outputs};
use dpcore::{
    Clip, Counted, Cpu, Error, Gaussian, Identity, Job, Mechanism, Noise, Norm, Options, Route,
    Vote,
};
use dpcore::{DpText, DpTextKeep, DpTextResample, Exponential, Laplace, RandomBits, Side, Uniform};
use proptest::prelude::*;

/// Scales over six decades, and extremes.
fn scale() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-3.0..3.0_f64).prop_map(|e| 10.0_f64.powf(e)),
        1 => Just(1e-300),
        1 => Just(1e300),
        1 => Just(5e-324),
    ]
}

fn any_noise() -> impl Strategy<Value = Noise> {
    (0..noises().len(), scale(), -2.0..2.0_f64).prop_map(|(row, scale, low)| {
        let high = if low + scale > low { low + scale } else { 3.0 };
        match noises()[row] {
            Noise::Laplace(_) => Laplace::new(scale).unwrap().into(),
            Noise::Gaussian(_) => Gaussian::new(scale).unwrap().into(),
            Noise::Exponential(_) => Exponential::new(scale).unwrap().into(),
            Noise::Uniform(_) => Uniform::new(low, high).unwrap().into(),
            Noise::DpText(_) => DpText::new(scale).unwrap().into(),
            Noise::DpTextResample(_) => DpTextResample::new(scale).unwrap().into(),
            Noise::DpTextKeep(_) => DpTextKeep::new(scale).unwrap().into(),
            other => other,
        }
    })
}

fn clip() -> impl Strategy<Value = Option<Clip>> {
    (0..4, scale()).prop_map(|(kind, radius)| match kind {
        0 => Clip::new(Norm::L1, radius).ok(),
        1 => Clip::new(Norm::L2, radius).ok(),
        _ => None,
    })
}

/// Centres, thresholds and directions of each entry: all alike, few values, or all different.
fn entries() -> impl Strategy<Value = Vec<(f64, f64, i8)>> {
    let number = || {
        prop_oneof![
            4 => -2.0..2.0_f64,
            2 => (-2..3_i32).prop_map(f64::from),
            1 => Just(-0.0),
            1 => Just(1e308),
            1 => Just(-1e-310),
        ]
    };
    let threshold = || {
        prop_oneof![
            6 => number(),
            2 => Just(0.5),
            1 => Just(f64::INFINITY),
            1 => Just(f64::NEG_INFINITY),
        ]
    };
    let entry = || (number(), threshold(), -1..=1_i8);
    let alike = (entry(), 1..200_usize).prop_map(|(entry, dim)| vec![entry; dim]);
    let few = (proptest::collection::vec(entry(), 1..4), 1..200_usize)
        .prop_map(|(some, dim)| some.into_iter().cycle().take(dim).collect());
    let single = (proptest::collection::vec(entry(), 1..200), -1..=1_i8).prop_map(|(some, way)| {
        some.into_iter().map(|(x, t, towards)| (x, t, if towards == 0 { 0 } else { way })).collect()
    });
    let different = proptest::collection::vec(entry(), 1..200);
    prop_oneof![alike, few, single, different]
        .prop_filter("somebody votes", |entries: &Vec<_>| entries.iter().any(|e| e.2 != 0))
}

/// What the event says of each row that `sample` makes.
fn naive(job: &Job, vote: &Vote<'_>, trials: (u64, u64), cpu: Cpu) -> Counted {
    let rows = rows(job, trials, cpu, 1);
    let votes = rows.chunks(job.dim()).filter(|row| vote.contains(row)).count() as u64;
    Counted { votes, nan: rows.iter().filter(|value| value.is_nan()).count() as u64 }
}

/// Checks that all ways of counting agree, and gives the counts.
fn agreed(job: &Job, vote: &Vote<'_>, trials: (u64, u64), monotone: bool) -> Counted {
    let expected = naive(job, vote, trials, Cpu::Baseline);
    let outputs = rows(job, trials, Cpu::Baseline, 1);
    for cpu in Cpu::present() {
        assert_eq!(
            count_outputs(vote, &outputs, &Options::new().cpu(cpu)),
            Ok(expected),
            "rows, {cpu:?}"
        );
        for threads in [1, 3] {
            let sampled = count(job, vote, trials, Route::Sampled, (cpu, threads));
            assert_eq!(sampled, Ok(expected), "sampled, {cpu:?}, {threads}");
            let integer = count(job, vote, trials, Route::Integer, (cpu, threads));
            if monotone {
                assert_eq!(integer, Ok(expected), "integer, {cpu:?}, {threads}");
            } else {
                assert!(integer.is_err());
            }
        }
    }
    expected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn all_ways_of_counting_agree(
        noise in any_noise(),
        clip in clip(),
        factor in prop_oneof![Just(0.5), Just(1.0), Just(2.0)],
        entries in entries(),
        seed in any::<u64>(),
        (x_prime, block) in (any::<bool>(), 1..90_u64),
        (start, length) in (0..200_u64, 0..150_u64),
    ) {
        let x: Vec<f64> = entries.iter().map(|entry| entry.0).collect();
        let threshold: Vec<f64> = entries.iter().map(|entry| entry.1).collect();
        let towards: Vec<i8> = entries.iter().map(|entry| entry.2).collect();
        let mechanism = Mechanism::new(noise).scaled(factor).unwrap();
        let mechanism = clip.map_or(mechanism, |clip| mechanism.clipped(clip));
        let side = if x_prime { Side::XPrime } else { Side::X };
        let job = job(mechanism, &x, block).seed(seed).side(side);
        let vote = Vote::new(&threshold, &towards).unwrap();
        agreed(&job, &vote, (start, start + length), noise.no_integer_route().is_none());
    }

    #[test]
    fn thresholds_met_exactly_are_counted_alike(
        row in 0..noises().len(),
        dim in 1..40_usize,
        seed in any::<u64>(),
        towards in -1..=1_i8,
    ) {
        // Thresholds that are outputs of the very trials that are counted.
        let noise = noises()[row];
        let job = job(Mechanism::new(noise), &vec![0.25; dim], 8).seed(seed);
        let outputs = rows(&job, (0, 3), Cpu::Baseline, 1);
        let threshold: Vec<f64> =
            outputs[..dim].iter().map(|t| if t.is_nan() { 0.25 } else { *t }).collect();
        let towards: Vec<i8> =
            (0..dim).map(|i| if towards == 0 { 1 - 2 * (i % 2) as i8 } else { towards }).collect();
        let vote = Vote::new(&threshold, &towards).unwrap();
        agreed(&job, &vote, (0, 20), noise.no_integer_route().is_none());
    }

    /// The event of the reversed pair on the reversed streams: what was x is now x'. Odd numbers
    /// of voters and thresholds that are not met, so that nobody abstains.
    #[test]
    fn swapping_sides_and_streams_swaps_the_counts(
        half in 0..40_usize, seed in any::<u64>(), scale in 0.1..10.0_f64,
    ) {
        let dim = 2 * half + 1;
        let of = |x: f64, side| job(laplace(scale), &vec![x; dim], 64).seed(seed).side(side);
        let threshold = vec![0.5; dim];
        let (up, down) = (vec![1; dim], vec![-1; dim]);
        let up = Vote::new(&threshold, &up).unwrap();
        let down = Vote::new(&threshold, &down).unwrap();
        // The pair (0, 1) has streams 0 and 1; the pair (1, 0), streams exchanged, the same draws.
        let counts = |pair: [f64; 2], streams: [Side; 2], vote: &Vote<'_>| {
            [0, 1].map(|side| agreed(&of(pair[side], streams[side]), vote, (0, 500), true).votes)
        };
        let [k, k_prime] = counts([0.0, 1.0], [Side::X, Side::XPrime], &up);
        let exchanged = [Side::XPrime, Side::X];
        prop_assert_eq!(counts([1.0, 0.0], exchanged, &up), [k_prime, k]);
        prop_assert_eq!(counts([1.0, 0.0], exchanged, &down), [500 - k_prime, 500 - k]);
    }
}

#[test]
fn nan_is_counted_and_votes_for_x() {
    let keep = Mechanism::new(DpTextKeep::new(2.0).unwrap());
    for dim in [1, 3, 8, 65, 128] {
        let job = job(keep, &vec![0.0; dim], 100);
        let threshold = vec![f64::NEG_INFINITY; dim];
        for way in [1, -1] {
            // Every number votes for x' when the threshold is infinitely far on the other side.
            let threshold: Vec<f64> = threshold.iter().map(|t| t * f64::from(way)).collect();
            let towards = vec![way; dim];
            let counted = agreed(&job, &Vote::new(&threshold, &towards).unwrap(), (0, 999), true);
            let share = counted.nan as f64 / (999 * dim) as f64;
            assert!((share - 0.5).abs() < 0.07, "{dim} {share}");
            if dim == 1 {
                assert_eq!(counted.votes, 999 - counted.nan);
            }
        }
    }
}

#[test]
fn slices_of_trials_add_up() {
    for row in noises() {
        let job = job(Mechanism::new(row), &[0.0, 1.0, 0.5], 37);
        let vote = Vote::new(&[0.5, 0.25, 0.75], &[1, 1, -1]).unwrap();
        for cpu in Cpu::present() {
            let of =
                |start, stop| count(&job, &vote, (start, stop), Route::Sampled, (cpu, 2)).unwrap();
            let whole = of(0, 1000);
            for cut in [0, 1, 36, 37, 38, 74, 500, 999, 1000] {
                let mut sum = of(0, cut);
                sum += of(cut, 1000);
                assert_eq!(sum, whole, "{row:?} {cut}");
            }
        }
    }
}

#[test]
fn a_stop_is_heard_within_a_block_and_before_its_first_row() {
    // Either would take centuries: a block of 2^55 rows from its first or from its last row on.
    let vote = Vote::new(&[0.5; 2], &[1, 1]).unwrap();
    let block = 1 << 55;
    for row in noises() {
        let job = job(Mechanism::new(row), &[0.0, 1.0], block);
        let routes =
            [Some(Route::Sampled), row.no_integer_route().is_none().then_some(Route::Integer)];
        for route in routes.into_iter().flatten() {
            for trials in [0..block, block - 3..block] {
                let stop = AtomicBool::new(false);
                let options = Options::new().threads(1).route(route).stop(&stop);
                let counted = thread::scope(|scope| {
                    let counting = scope.spawn(|| run::count(&job, &vote, trials, &options));
                    thread::sleep(Duration::from_millis(2));
                    stop.store(true, Ordering::Relaxed);
                    counting.join().unwrap()
                });
                assert_eq!(counted, Err(Error::Interrupted), "{row:?}");
            }
        }
        let stop = AtomicBool::new(false);
        let options = Options::new().threads(1).stop(&stop);
        let filled = thread::scope(|scope| {
            let filling = scope.spawn(|| run::sample(&job, &mut [0.0; 6], block - 3, &options));
            thread::sleep(Duration::from_millis(2));
            stop.store(true, Ordering::Relaxed);
            filling.join().unwrap()
        });
        assert_eq!(filled, Err(Error::Interrupted), "{row:?}");
    }
    let stop = AtomicBool::new(true);
    let counted = count_outputs(&vote, &[0.0; 2], &Options::new().stop(&stop));
    assert_eq!(counted, Err(Error::Interrupted));
}

#[test]
fn rows_far_into_a_block_are_those_of_the_whole_block() {
    for row in noises() {
        for dim in [1, 3, 100] {
            let job = job(Mechanism::new(row), &vec![0.25; dim], 9000);
            for cpu in Cpu::present() {
                let whole = rows(&job, (0, 9000), cpu, 1);
                for first in [1, 2047, 2048, 2049, 4096, 8999] {
                    let late = rows(&job, (first, 9000), cpu, 1);
                    assert!(bits(&late) == bits(&whole[first as usize * dim..]), "{row:?} {first}");
                }
            }
        }
    }
}

#[test]
fn limits_that_are_kept_are_those_of_the_same_vote_alone() {
    // More coordinates than the least that are kept, and more votes than are kept at once.
    let x: Vec<f64> = (0..40).map(f64::from).collect();
    let thresholds: Vec<Vec<f64>> =
        (0..6).map(|k| x.iter().map(|x| x + 0.1 * f64::from(k)).collect()).collect();
    let towards: Vec<i8> = (0..40).map(|i| if i % 2 == 0 { 1 } else { -1 }).collect();
    for round in 0..3 {
        for (k, threshold) in thresholds.iter().enumerate() {
            for scale in [1.0, 1.0 + 1e-15] {
                let job = job(laplace(scale), &x, 100);
                let vote = Vote::new(threshold, &towards).unwrap();
                let of = |route| count(&job, &vote, (0, 300), route, (Cpu::Baseline, 2)).unwrap();
                assert_eq!(of(Route::Integer), of(Route::Sampled), "{round} {k} {scale}");
            }
        }
    }
}

#[test]
fn more_coordinates_than_a_thread_takes_at_once() {
    // Every coordinate has a limit of its own.
    let x: Vec<f64> = (0..2500).map(|i| f64::from(i) * 0.25).collect();
    let threshold: Vec<f64> = (0..2500).map(|i| x[i] + (i as f64).sin()).collect();
    let towards: Vec<i8> = (0..2500).map(|i| [1, -1, 1, 0][i % 4]).collect();
    let vote = Vote::new(&threshold, &towards).unwrap();
    let counted = agreed(&job(laplace(1.0), &x, 50), &vote, (0, 200), true);
    assert!((20..180).contains(&counted.votes), "{counted:?}");
}

#[test]
fn neighbours_that_differ_in_direction_alone_have_limits_of_their_own() {
    // The output is the threshold: one coordinate votes upwards, the next downwards.
    let job = job(Mechanism::new(Identity), &[0.5; 2], 10);
    let vote = Vote::new(&[0.5; 2], &[1, -1]).unwrap();
    assert_eq!(agreed(&job, &vote, (0, 30), true).votes, 30);
}

#[test]
fn float32_that_could_overflow_is_refused_before_a_draw() {
    let fill = |mechanism: Mechanism, x: f64| {
        let job = Job::new(mechanism, &[x]).unwrap();
        run::sample(&job, &mut [0.0_f32; 4], 0, &Options::new().threads(1))
    };
    let error = fill(laplace(1e37), 0.0).unwrap_err().to_string();
    assert_eq!(error, "out must be of float64 where outputs can reach 3.605e38, got \"float32\"");
    assert!(fill(laplace(1.0), -3.5e38).is_err());
    assert!(fill(laplace(1.0).scaled(1e38).unwrap(), 0.0).is_err());
    assert_eq!(fill(laplace(9e36), 0.0), Ok(()));
    let reach = |x: f64| fill(Mechanism::new(RandomBits), x);
    assert_eq!(reach(1e300), Ok(()), "the input is not used");
}

#[test]
fn a_block_is_of_131072_numbers_where_nothing_else_is_asked_for() {
    for (dim, trials) in [(1, 131_072), (3, 43_690), (100_000, 1), (200_000, 1)] {
        assert_eq!(Job::new(laplace(1.0), &vec![0.0; dim]).unwrap().trials_per_block(), trials);
    }
}

#[test]
fn bad_requests_are_errors() {
    let name = |error: Result<Counted, Error>| error.unwrap_err().to_string();
    let vote = Vote::new(&[0.5, 0.5], &[1, 1]).unwrap();
    let how = (Cpu::Baseline, 1);
    let other = count(&job(laplace(2.0), &[0.0; 3], 10), &vote, (0, 1), Route::Sampled, how);
    assert!(name(other).starts_with("vote must be of the mechanism's dimension 3"));
    let gaussian = job(Mechanism::new(Gaussian::new(1.5).unwrap()), &[0.0; 2], 10);
    let refused = name(count(&gaussian, &vote, (0, 1), Route::Integer, how));
    assert!(refused.starts_with("route must be"), "{refused}");
    // Nothing asked for, nothing counted.
    let nothing = count(&gaussian, &vote, (5, 5), Route::Sampled, how);
    assert_eq!(nothing, Ok(Counted::default()));
    for threads in [0, 2000] {
        let counted = count(&gaussian, &vote, (0, 1), Route::Sampled, (Cpu::Baseline, threads));
        assert_eq!(name(counted), format!("threads must be from 1 to 1024, got {threads}"));
    }
    // Without a route the noise's own is taken, and the counts are the same.
    for (job, route) in
        [(gaussian, Route::Sampled), (job(laplace(2.0), &[0.0; 2], 10), Route::Integer)]
    {
        let usual = dpcore::run::count(&job, &vote, 0..999, &Options::new());
        assert_eq!(usual, count(&job, &vote, (0, 999), route, how));
    }
}
