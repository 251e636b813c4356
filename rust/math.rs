//! The two elementary functions of the samplers, branch-free and without fused multiply-add.
//!
//! The coefficients are minimax fits made for this crate (Remez exchange in 50 digits, then
//! rounded to double); the reductions are the classical ones (Tang, 1990; Muller, *Elementary
//! Functions*, 3rd ed. 2016, chapter 11).

use std::f64::consts::FRAC_PI_2;

use crate::simd::Simd;

/// `R(z) = (ln((1 + s)/(1 - s))/s - 2)/z` with `z = s^2 <= 0.0295`: relative error of the
/// logarithm 1.9e-18, so that rounding, not the polynomial, decides the last digit.
pub(crate) const LOG: [f64; 7] = [
    0.666_666_666_666_673_4,
    0.399_999_999_994_143_4,
    0.285_714_287_424_724_75,
    0.222_221_985_636_436_75,
    0.181_835_648_617_604_37,
    0.153_140_358_984_168_94,
    0.147_961_052_873_799_8,
];
/// ln 2 split so that k * `LN2_HIGH` is exact for every exponent k (its last 11 bits are zero).
pub(crate) const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
pub(crate) const LN2_LOW: f64 = 5.497_923_018_708_371e-14;
/// The least m: a little less than sqrt(1/2).
pub(crate) const SQRT_HALF: u64 = 0x3fe6_a09e_0000_0000;

/// Natural logarithm of `|j| / 2^52` for whole numbers `1 <= |j| <= 2^52`.
///
/// With v = 2^k m, m in [sqrt(1/2), sqrt(2)), f = m - 1 and s = f/(m + 1):
/// ln v = k ln 2 + f - s (f - z R(z)), z = s^2, tail = s (f - z R) - k `LN2_LOW`.
///
/// What each rounding can do to the result, in units of its last place, by k and the magnitude
/// of ln v (`probe/budget.rs` makes the table; f and, on this grid, m + 1 are exact, and so is
/// the last sum for k = -1 as long as |f - tail| >= 1/4):
///
/// | rounding of | k = 0 | k = -1, below 1/2 | k = -1, below 1 | 1 to 2 | above 2 |
/// | --- | --- | --- | --- | --- | --- |
/// | s = f/(m + 1) | 0.089 | 0.109 | 0.039 | 0.028 | 0.014 |
/// | z = s s | 0.004 | 0.004 | 0.002 | 0.001 | 0.001 |
/// | R(z), its fit | 0.034 | 0.027 | 0.011 | 0.007 | 0.004 |
/// | z R | 0.006 | 0.006 | 0.003 | 0.002 | 0.001 |
/// | f - z R | 0.086 | 0.086 | 0.039 | 0.022 | 0.011 |
/// | s (f - z R) | 0.063 | 0.125 | 0.032 | 0.032 | 0.016 |
/// | k `LN2_LOW`, subtracted | 0.000 | 0.126 | 0.032 | 0.032 | 0.016 |
/// | f - tail | 0.500 | 0.500 | 0.250 | 0.125 | 0.063 |
/// | k `LN2_HIGH`, added | 0.000 | 0.500 | 0.500 | 0.500 | 0.500 |
/// | all at one place | 0.773 | 1.242 | 0.904 | 0.746 | 0.623 |
/// | may be | 2.568 | 2.828 | 1.648 | 1.359 | 1.847 |
///
/// The last row is half the distance of neighbours on the grid, ln(1 + 1/j) > 1/(j + 1), at its
/// least: e/2 just above |ln v| = 1. Each error is below it, so the logarithm is *strictly*
/// increasing in |j|. The integer route needs less, that outputs never fall: a product with a
/// scale or a factor above 0 and a sum with the centre, each rounded to nearest, keep that. The
/// worst error found is 0.903 ulp, at 0.70696 (`probe/accuracy.rs`: all j below 2^24, 1e6 in every
/// other binade, the neighbourhood of 1, 4e8 points around the worst places).
#[inline(always)]
pub(crate) fn ln_grid<S: Simd>(simd: S, j: S::F) -> S::F {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const FRACTION: u64 = (1 << 52) - 1;
    // Dividing by 2^52 is part of the same addition.
    let shift = (ONE - SQRT_HALF).wrapping_sub(52 << 52);
    let shifted = simd.add(simd.bits(j), simd.splat(shift));
    let k = simd.exponent(simd.float(shifted));
    let m = simd.float(simd.add(simd.and(shifted, simd.splat(FRACTION)), simd.splat(SQRT_HALF)));
    let f = simd.subf(m, simd.splatf(1.0));
    let s = simd.divf(f, simd.addf(m, simd.splatf(1.0)));
    let z = simd.mulf(s, s);
    let r = simd.mulf(z, estrin(simd, &LOG, z));
    let tail = simd.subf(simd.mulf(s, simd.subf(f, r)), simd.mulf(k, simd.splatf(LN2_LOW)));
    simd.addf(simd.mulf(k, simd.splatf(LN2_HIGH)), simd.subf(f, tail))
}

/// A polynomial of degree 6 by Estrin's scheme: a third of Horner's chain for two more products.
#[inline(always)]
fn estrin<S: Simd>(simd: S, c: &[f64; 7], x: S::F) -> S::F {
    let x2 = simd.mulf(x, x);
    let x4 = simd.mulf(x2, x2);
    let low =
        simd.addf(horner(simd, &[c[0], c[1]], x), simd.mulf(x2, horner(simd, &[c[2], c[3]], x)));
    let high = simd.addf(horner(simd, &[c[4], c[5]], x), simd.mulf(x2, simd.splatf(c[6])));
    simd.addf(low, simd.mulf(x4, high))
}

/// sin(pi x/2)/x and (cos(pi x/2) - 1)/x^2 as polynomials in x^2 for |x| <= 1/2: errors 4e-18
/// and 6e-17.
const SIN: [f64; 7] = [
    FRAC_PI_2,
    -0.645_964_097_506_244_3,
    0.079_692_626_246_039_57,
    -0.004_681_754_132_282_397,
    0.000_160_441_150_291_410_55,
    -3.598_641_753_409_932_5e-6,
    5.633_720_856_452_633e-8,
];
const COS: [f64; 6] = [
    -1.233_700_550_136_157,
    0.253_669_507_900_052_9,
    -0.020_863_480_737_573_756,
    0.000_919_259_967_758_858_2,
    -2.520_019_244_160_807e-5,
    4.656_003_795_562_93e-7,
];

/// Cosine and sine of pi x/2 for |x| <= 1/2 (a quarter turn centred at 0); errors below 1.8 and
/// 1.5 ulp at 3e5 points (probe/accuracy.rs).
#[inline(always)]
pub(crate) fn cos_sin_quarter<S: Simd>(simd: S, x: S::F) -> (S::F, S::F) {
    let y = simd.mulf(x, x);
    let cos = simd.addf(simd.splatf(1.0), simd.mulf(y, horner(simd, &COS, y)));
    let sin = simd.mulf(x, horner(simd, &SIN, y));
    (cos, sin)
}

#[inline(always)]
fn horner<S: Simd, const N: usize>(simd: S, coefficients: &[f64; N], x: S::F) -> S::F {
    let mut sum = simd.splatf(coefficients[N - 1]);
    for &c in coefficients[..N - 1].iter().rev() {
        sum = simd.addf(simd.mulf(sum, x), simd.splatf(c));
    }
    sum
}
