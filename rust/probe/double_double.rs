//! Sums of two doubles, about 104 bits: the reference of the accuracy tests.
//!
//! Algorithms of Dekker (1971) and Knuth (TAOCP 2, section 4.2.2), without fused multiply-add.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// high + low, |low| at most half an ulp of high.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    pub high: f64,
    pub low: f64,
}

/// ln 2.
pub const LN_2: Double = Double { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
/// pi/2.
pub const HALF_PI: Double =
    Double { high: std::f64::consts::FRAC_PI_2, low: 6.123_233_995_736_766e-17 };

fn two_sum(a: f64, b: f64) -> Double {
    let high = a + b;
    let part = high - a;
    Double { high, low: (a - (high - part)) + (b - part) }
}

fn quick_two_sum(a: f64, b: f64) -> Double {
    let high = a + b;
    Double { high, low: b - (high - a) }
}

fn split(a: f64) -> (f64, f64) {
    let c = 134_217_729.0 * a;
    let high = c - (c - a);
    (high, a - high)
}

fn two_product(a: f64, b: f64) -> Double {
    let high = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    Double { high, low: ((ah * bh - high) + ah * bl + al * bh) + al * bl }
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Double {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, low) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let sum = quick_two_sum(high.high, high.low + low.high);
        quick_two_sum(sum.high, sum.low + low.low)
    }
}

impl Neg for Double {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = two_product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        quick_two_sum(product.high, product.low + cross)
    }
}

impl Div for Double {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        quick_two_sum(first, second) + Self::from(rest.high / other.high)
    }
}

/// Error of a value in ulps of the reference.
pub fn ulps(value: f64, reference: Double) -> f64 {
    let size = reference.high.abs();
    let ulp = f64::from_bits(size.to_bits() & (0x7ff << 52)) * f64::EPSILON;
    ((value - reference.high) - reference.low).abs() / ulp
}
