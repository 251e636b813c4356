//! The rounding budget of the logarithm: the table beside it, made again.
//!
//! `ln_grid` is cut into pieces of (k, m). In each the largest value of every intermediate
//! result bounds the rounding that makes it, half a unit in its last place, and the derivative of
//! all that follows says what becomes of it. The bounds are evaluated in double precision, whose
//! own errors (1e-13 of them) are far below the digit to which they are rounded up.
//!
//! A result that earlier roundings carry over a power of two needs no wider bound: it is rounded to
//! that power, which lies between it and what it should be. So the last place is that of the true
//! value.

use super::double_double::{Double, LN_2};
use crate::math::{LN2_HIGH, LN2_LOW, LOG, SQRT_HALF};

/// Half a unit in the last place of numbers up to `x`; 1e-12 so that a piece which ends at a power
/// of two, as computed, does not belong to the numbers beyond.
fn half(x: f64) -> f64 {
    let below = x * (1.0 - 1e-12);
    f64::from_bits(below.to_bits() & (0x7ff << 52)) * f64::EPSILON / 2.0
}

fn horner(coefficients: &[f64], z: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * z + c)
}

/// All roundings of Estrin's scheme at `z`: coefficients and sums are positive.
fn polynomial(z: f64) -> f64 {
    let (square, fourth) = (z * z, z * z * z * z);
    let pair = |i: usize| LOG[i] + LOG[i + 1] * z;
    let of_pair = |i: usize| half(LOG[i + 1] * z) + half(pair(i));
    let of_square = half(square);
    let of_fourth = half(fourth) + 2.0 * square * of_square;
    let middle = square * pair(2);
    let low = pair(0) + middle;
    let of_middle = square * of_pair(2) + of_square * pair(2) + half(middle);
    let of_low = of_pair(0) + of_middle + half(low);
    let high = pair(4) + square * LOG[6];
    let of_high = of_pair(4) + of_square * LOG[6] + half(square * LOG[6]) + half(high);
    let of_upper = fourth * of_high + of_fourth * high + half(fourth * high);
    of_low + of_upper + half(low + fourth * high)
}

/// The largest difference between z times the polynomial and z R for z from 0 to `most`.
///
/// R has the coefficients 2/(2i + 3), so that the difference is a series of its own; between
/// neighbours of a fine mesh its second derivative bounds what it does.
fn fit(most: f64) -> f64 {
    let difference: Vec<f64> = (0..40_usize)
        .map(|i| {
            let exact = Double::from(2.0) / ((2 * i + 3) as f64).into();
            let own = LOG.get(i).copied().unwrap_or(0.0);
            (Double::from(own) - exact).high
        })
        .collect();
    let difference = [&[0.0], &difference[..]].concat();
    let second = (2..=40).map(|i| (i * (i - 1)) as f64 * difference[i].abs());
    let curvature = horner(&second.collect::<Vec<_>>(), most);
    let step = most / 60_000.0;
    let at_mesh = (0..=60_000).map(|i| horner(&difference, f64::from(i) * step).abs());
    at_mesh.fold(0.0, f64::max) + curvature * step * step / 8.0
}

const ROWS: [&str; 9] = [
    "s = f/(m + 1)",
    "z = s s",
    "R(z), its fit",
    "z R",
    "f - z R",
    "s (f - z R)",
    "k `LN2_LOW`, subtracted",
    "f - tail",
    "k `LN2_HIGH`, added",
];

/// Powers of two between which the magnitudes of each column's logarithms lie, and the exponents.
const COLUMNS: [(f64, f64, std::ops::RangeInclusive<i32>); 5] = [
    (0.0, 0.5, 0..=0),
    (0.25, 0.5, -1..=-1),
    (0.5, 1.0, -1..=-1),
    (1.0, 2.0, -3..=-1),
    (2.0, 64.0, -52..=-3),
];

/// What each rounding can do to k ln 2 + ln m for m from `a` to `b`, both on one side of 1.
fn roundings(k: i32, (a, b): (f64, f64), fit: f64) -> [f64; 9] {
    let above = b > 1.0;
    let m = if above { b } else { a };
    let (f, s) = ((m - 1.0).abs(), (m - 1.0).abs() / (m + 1.0));
    let z = s * s;
    let r = z * horner(&LOG, z);
    let derivative: Vec<f64> = (1..7_u8).map(|i| f64::from(i) * LOG[usize::from(i)]).collect();
    let slope = horner(&LOG, z) + z * horner(&derivative, z);
    // Both have the same sign above 1, where the difference still rises with m.
    let difference = if above { f - r } else { f + r };
    let low = f64::from(k.abs()) * LN2_LOW;
    let of_low = f64::from(k.abs()) * half(LN2_LOW) + half(low) + half(s * difference + low);
    let (inner, sum) = (magnitudes(0, (a, b)), magnitudes(k, (a, b)));
    // Where ln m >= 1/4 and |ln v| <= 1/2 all are multiples of the sum's last place.
    let exact = k == 0 || (above && inner.0 > 0.249_999 && sum.1 < 0.500_001);
    [
        half(s) * (difference + 2.0 * z * slope),
        half(z) * s * slope,
        (polynomial(z) * z + fit) * s,
        half(r) * s,
        half(difference) * s,
        half(s * difference),
        if k == 0 { 0.0 } else { of_low },
        // With k = 0 this is the result.
        half(if k == 0 { f64::midpoint(sum.0, sum.1) } else { inner.1 + low }),
        if exact { 0.0 } else { half(sum.1) },
    ]
}

/// The least and the largest |k ln 2 + ln m| for m from `a` to `b`.
fn magnitudes(k: i32, (a, b): (f64, f64)) -> (f64, f64) {
    let of = |m: f64| (f64::from(k) * std::f64::consts::LN_2 + m.ln()).abs();
    (of(a).min(of(b)), of(a).max(of(b)))
}

/// Pieces of m for one exponent, cut where the logarithm passes a power of two, at 1, and finely
/// in each binade of |m - 1|.
fn pieces(k: i32) -> Vec<(f64, f64)> {
    const FINE: i32 = 256;
    let least = f64::from_bits(SQRT_HALF);
    let most = if k == 0 { 1.0 } else { 2.0 * least };
    let powers = (-52..6).map(|i| (-2.0_f64.powi(i) - f64::from(k) * std::f64::consts::LN_2).exp());
    let distances = (1..=52).flat_map(|binade| {
        (0..FINE).map(move |i| 2.0_f64.powi(-binade) * (1.0 + f64::from(i) / f64::from(FINE)))
    });
    let around = distances.flat_map(|distance| [1.0 - distance, 1.0 + distance]);
    let mut cuts: Vec<f64> = [least, 1.0, most].into_iter().chain(powers).chain(around).collect();
    cuts.retain(|m| (least..=most).contains(m));
    cuts.sort_unstable_by(f64::total_cmp);
    cuts.dedup();
    cuts.windows(2).map(|two| (two[0], two[1])).collect()
}

/// The column of a piece, if its logarithms lie in one.
fn column(k: i32, piece: (f64, f64)) -> Option<usize> {
    let (least, most) = magnitudes(k, piece);
    let middle = f64::midpoint(least, most);
    COLUMNS
        .iter()
        .position(|(from, to, exponents)| (*from..*to).contains(&middle) && exponents.contains(&k))
}

#[test]
fn the_table_beside_the_logarithm_is_right_and_no_two_neighbours_tie() {
    let exact = (LN_2 + Double::from(-LN2_HIGH) + Double::from(-LN2_LOW)).high.abs();
    assert!(exact <= half(LN2_LOW) && LN2_HIGH.to_bits().trailing_zeros() >= 11);
    let fit = {
        // The largest s is at either end of m.
        let end = f64::from_bits(SQRT_HALF);
        fit(((1.0 - end) / (1.0 + end)).max((2.0 * end - 1.0) / (2.0 * end + 1.0)).powi(2))
    };
    // ln m is s (2 + z R).
    assert!(fit / 2.0 < 1.9e-18, "{fit:e}");
    let mut worst = [[0.0_f64; 9]; COLUMNS.len()];
    let mut sum = [0.0_f64; COLUMNS.len()];
    let mut needed = [f64::INFINITY; COLUMNS.len()];
    for k in -52..=0 {
        for piece in pieces(k) {
            let column = column(k, piece).expect("every piece lies in a column");
            let (least, most) = magnitudes(k, piece);
            let ulp = 2.0 * half(f64::midpoint(least, most));
            let bounds = roundings(k, piece, fit).map(|bound| bound / ulp);
            for (row, bound) in worst[column].iter_mut().zip(bounds) {
                *row = row.max(bound);
            }
            sum[column] = sum[column].max(bounds.iter().sum());
            // Of v and the argument above it, ln differs by more than 2^-52/(v + 2^-52).
            let gap = f64::EPSILON / (piece.1 * 2.0_f64.powi(k) + f64::EPSILON);
            needed[column] = needed[column].min(gap / 2.0 / ulp);
        }
    }
    let up = |value: f64| format!("{:.3}", (value * 1000.0).ceil() / 1000.0);
    let row =
        |name: &str, values: [f64; 5]| format!("/// | {name} | {} |", values.map(up).join(" | "));
    let mut lines: Vec<String> =
        (0..9).map(|i| row(ROWS[i], worst.map(|column| column[i]))).collect();
    lines.push(row("all at one place", sum));
    lines.push(row("may be", needed.map(|needed| needed - 0.001)));
    let table = lines.join("\n");
    assert!(include_str!("../math.rs").contains(&table), "\n{table}");
    assert!(sum.iter().zip(needed).all(|(sum, needed)| *sum < 0.95 * needed));
}
