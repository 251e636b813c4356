//! Accuracy of the samplers' elementary functions, in units in the last place.

use super::double_double::{Double, HALF_PI, LN_2, ulps};
use super::{cos_sin as found, ln as ln_of};

const TOP: u64 = 1 << 52;
/// The worst error that is promised (`rust/math.rs`); the integer route needs 1.35.
const LN_ULPS: f64 = 1.0;

/// ln(j / 2^52) as k ln 2 + 2 artanh((m - 1)/(m + 1)), with relative error below 2^-68.
fn ln(j: u64) -> Double {
    let v = j as f64;
    // m in [1, 2), then in [sqrt(1/2), sqrt(2)).
    let mut k = (v.to_bits() >> 52) as i32 - 1023;
    let mut m = f64::from_bits((v.to_bits() & ((1 << 52) - 1)) | 1.0_f64.to_bits());
    if m > std::f64::consts::SQRT_2 {
        (k, m) = (k + 1, m / 2.0);
    }
    let s = Double::from(m - 1.0) / (Double::from(m) + 1.0.into());
    let z = s * s;
    // Terms from z^6 on carry less than 2^-30 of the sum: a double is enough for them.
    let tail = (6..24).rev().fold(0.0, |sum, i| sum * z.high + 1.0 / f64::from(2 * i + 1));
    let series = (0..6).rev().fold(Double::from(tail), |sum, i| {
        sum * z + Double::from(1.0) / f64::from(2 * i + 1).into()
    });
    LN_2 * f64::from(k - 52).into() + s * series * 2.0.into()
}

/// The worst error over some points, and where it is.
fn worst(points: impl Iterator<Item = u64>) -> (f64, u64) {
    let mut worst = (0.0, 0);
    let mut points = points.filter(|j| (1..=TOP).contains(j)).peekable();
    while points.peek().is_some() {
        let some: Vec<u64> = points.by_ref().take(4096).collect();
        for (j, value) in some.iter().zip(ln_of(&some)) {
            let error = if *j == TOP { value.abs() } else { ulps(value, ln(*j)) };
            if error > worst.0 {
                worst = (error, *j);
            }
        }
    }
    worst
}

/// Random words: `SplitMix64`.
fn words(seed: u64) -> impl Iterator<Item = u64> {
    (1_u64..).map(move |i| {
        let mut z = seed.wrapping_add(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Points spread over every binade: its first and last, and random ones.
fn every_binade(each: usize) -> impl Iterator<Item = u64> {
    (0..52).flat_map(move |k| {
        let (low, size) = (1_u64 << k, 1_u64 << k);
        let ends = (0..1000).flat_map(move |i| [low + i % size, low + size - 1 - i % size]);
        ends.chain(words(k).take(each).map(move |word| low + word % size))
    })
}

#[test]
fn the_reference_agrees_with_mpmath() {
    let table = include_str!("../../tests/reference/ln.csv");
    for line in table.lines().skip(1) {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap();
        let j: u64 = next().parse().unwrap();
        let (high, low): (f64, f64) = (next().parse().unwrap(), next().parse().unwrap());
        let found = ln(j);
        let difference = (found - Double { high, low }).high.abs();
        assert!(difference <= 2.0_f64.powi(-68) * high.abs(), "{j}: {difference:e}");
    }
}

#[test]
fn the_logarithm_is_accurate_in_every_binade_and_around_one() {
    let near_one = (0..=100_000).map(|i| TOP - i);
    let spread = words(99).take(1_000_000).map(|word| (word >> 12) + 1);
    let known = [WORST - 1, WORST, WORST + 1];
    let found = worst(every_binade(20_000).chain(near_one).chain(spread).chain(known));
    assert!(found.0 < LN_ULPS, "{found:?}");
}

/// The worst point found: 0.903 ulp (of 3.6e8 points in the six worst of 768 slices of [1/4, 1)).
const WORST: u64 = 3_183_926_522_332_101;

#[test]
#[ignore = "long: run with --release"]
fn the_logarithm_is_accurate_at_a_hundred_million_points() {
    let small = worst(1..1 << 24);
    let binades = worst(every_binade(1_000_000));
    let upper = worst(words(7).take(40_000_000).map(|word| (word >> 13) + TOP / 2));
    println!("below 2^24 {small:?}, every binade {binades:?}, upper half {upper:?}");
    for found in [small, binades, upper] {
        assert!(found.0 < LN_ULPS, "{found:?}");
    }
}

/// Cosine and sine of pi x/2 by their series.
fn cos_sin(x: f64) -> (Double, Double) {
    let t = HALF_PI * x.into();
    let square = -(t * t);
    let series = |first: u32| {
        (0..13).rev().fold(Double::from(0.0), |sum, i| {
            let next = f64::from((2 * i + 1 + first) * (2 * i + 2 + first));
            Double::from(1.0) + square * sum / next.into()
        })
    };
    (series(0), t * series(1))
}

#[test]
fn cosine_and_sine_are_accurate() {
    let ends = [0.5, -0.5, 1e-16, -2.0_f64.powi(-52), 0.25];
    let random = words(3).take(300_000).map(|word| (word >> 12) as f64 / TOP as f64 - 0.5);
    let points: Vec<f64> = ends.into_iter().chain(random).filter(|x| *x != 0.0).collect();
    let (mut cos_worst, mut sin_worst) = (0.0_f64, 0.0_f64);
    for (&x, (cos, sin)) in points.iter().zip(found(&points)) {
        let (true_cos, true_sin) = cos_sin(x);
        cos_worst = cos_worst.max(ulps(cos, true_cos));
        sin_worst = sin_worst.max(ulps(sin, true_sin));
    }
    println!("cosine {cos_worst}, sine {sin_worst}");
    assert!(cos_worst < 2.0 && sin_worst < 2.0, "{cos_worst} {sin_worst}");
}
