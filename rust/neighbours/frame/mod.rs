//! From rows to f32, and how wrong products in f32 can be.
//!
//! # The guard
//!
//! Let u = 2^-24, s the scale (a power of two), m the centre as rounded; for rows x, y let
//! X = s (x - m) and Y = s (y - m) in real numbers, D = |X - Y|^2 = s^2 |x - y|^2. Packing rounds
//! X to X' in f32, coordinate by coordinate: a subtraction in f64, then one rounding to f32, so
//! `|X'_i - X_i| <= u' |X_i|` with u' = u + 2^-52, apart from underflow (below). With
//! a = |X'|^2, b = |Y'|^2, p = X'.Y':
//!
//! 1. Rounding of the input. | |X' - Y'| - |X - Y| | <= u' (|X| + |Y|), and both distances are at
//!    most (1 + u') (|X| + |Y|); hence | |X' - Y'|^2 - D | <= 2 (1 + u') u' (|X| + |Y|)^2
//!    <= 4 (1 + u') u' (|X|^2 + |Y|^2) <= (4 + 2^-20) u (a + b).
//! 2. Rounding of the product. In whatever order d products are added, with or without fused
//!    multiply-add and from partial sums that begin at zero, a term meets at most d roundings:
//!    the error is at most du/(1 - du) times the sum of |X'i Y'i|, which is at most (a + b)/2.
//!    Distances have twice the product: du/(1 - du) (a + b).
//! 3. Rounding of w = low - 2p, low being at most b: |w| <= b + 2|p| <= (2 + 2^-7) (a + b), so one
//!    rounding is at most (2 + 2^-6) u (a + b).
//! 4. Norms in f64, and the f64 distance that w is compared to (`distance::squared`, relative
//!    error at most (d/8 + 6) 2^-53, and D <= (2 + 2^-20) (a + b)): for d <= 2^16 together below
//!    2^-10 u (a + b).
//!
//! All in all at most G (a + b), G = (d + 8) u / (1 - (d + 8) u). Hence, up to `TINY`,
//!
//! a (1 - G) + b (1 - G) - 2p <= s^2 squared(x, y) <= a (1 + G) + b (1 + G) - 2p.
//!
//! Underflow. The scale brings the median of the rows' largest coordinates to about 1, and only rows
//! with |X'| <= 2^40 are searched here, so nothing overflows: sums of squares stay below 2^80. A
//! coordinate below 2^-126 may lose all of itself (some libraries flush subnormal numbers to zero),
//! and so may every product and partial sum: at most 2^-126 each, times 2^41 where a coordinate is
//! multiplied by another one. The sum of all of them is at most d 2^-80 = `TINY`. In `squared`
//! itself every square may lose 2^-1074: as that median is at least 2^-400 (or the search is left
//! to f64), that is d 2^-1074 s^2 <= d 2^-272.
//!
//! Nothing above asks where the centre is: which one a point has ([`clouds`]) decides a and b, and
//! so how much the guard leaves in doubt, but not whether it holds.

pub(super) mod clouds;

use super::distance::Coordinate;

/// The largest dimension the guard is proven for; beyond, everything is f64.
const LARGEST_DIM: usize = 1 << 16;

/// The squared norms of packed rows that the guard is proven for.
const LARGEST_NORM: f64 = 1.208_925_819_614_629_2e24;

/// How rows become f32, and how wrong their products may then be.
pub(super) struct Frame {
    centre: Vec<f64>,
    scale: f64,
    // G and TINY above.
    pub guard: f64,
    pub tiny: f64,
}

impl Frame {
    pub fn new(centre: Vec<f64>, scale: f64) -> Self {
        let share = (centre.len() + 8) as f64 * 2.0_f64.powi(-24);
        let tiny = centre.len() as f64 * 2.0_f64.powi(-80);
        Self { centre, scale, guard: share / (1.0 - share), tiny }
    }

    /// Whether the guard holds for a row with this squared norm; false for NaN.
    pub fn fits(norm: f64) -> bool {
        norm <= LARGEST_NORM
    }

    /// Entries of a row.
    pub fn dim(&self) -> usize {
        self.centre.len()
    }

    /// A squared distance in the units of the products.
    pub fn scaled(&self, squared: f64) -> f64 {
        squared * self.scale * self.scale
    }

    /// Centres and scales a row, without rounding to f32.
    #[inline(always)]
    pub fn place<T: Coordinate>(&self, row: &[T], out: &mut [f64]) {
        for ((&value, centre), out) in row.iter().zip(&self.centre).zip(out) {
            *out = (value.wide() - centre) * self.scale;
        }
    }

    /// Centres, scales and rounds a row; its squared norm.
    #[inline(always)]
    pub fn pack<T: Coordinate>(&self, row: &[T], out: &mut [f32]) -> f64 {
        for ((&value, centre), out) in row.iter().zip(&self.centre).zip(&mut *out) {
            *out = ((value.wide() - centre) * self.scale) as f32;
        }
        norm(out)
    }
}

/// Sum of squares, in two sums that need not wait for each other.
#[inline(always)]
fn norm(row: &[f32]) -> f64 {
    let (mut even, mut odd) = ([0.0; 8], [0.0; 8]);
    let parts = row.chunks_exact(16);
    let rest = parts.remainder();
    for part in parts {
        even = squares(even, &part[..8]);
        odd = squares(odd, &part[8..]);
    }
    let sum = even.iter().sum::<f64>() + odd.iter().sum::<f64>();
    rest.iter().fold(sum, |sum, &value| sum + f64::from(value) * f64::from(value))
}

#[inline(always)]
fn squares(mut sums: [f64; 8], row: &[f32]) -> [f64; 8] {
    for lane in 0..8 {
        let value = f64::from(row[lane]);
        sums[lane] += value * value;
    }
    sums
}

/// floor(log2 of a normal positive number).
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1023
}

/// The least f32 that is not below.
pub(super) fn up(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The greatest f32 that is not above.
pub(super) fn down(value: f64) -> f32 {
    -up(-value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_outwards_and_no_further_than_they_must() {
        for value in [0.0, 1.0, -1.0, 0.1, -0.1, 1e-50, -1e-50, 1e30 / 7.0, f64::MAX, f64::INFINITY]
        {
            let (low, high) = (down(value), up(value));
            assert!(f64::from(low) <= value && value <= f64::from(high), "{value}");
            // An f32 is itself, all else between two neighbours.
            assert!(low == high || low.next_up() == high, "{value}");
        }
        assert_eq!([up(1.0), down(1.0), up(-0.5), down(-0.5)], [1.0, 1.0, -0.5, -0.5]);
        assert!(up(f64::NAN).is_nan() && down(f64::NAN).is_nan());
    }
    #[test]
    fn the_exponent_is_that_of_the_largest_power_of_two_below() {
        let all = [1.0, 1.999, 2.0, 0.75, 1e-300, f64::MAX];
        assert_eq!(all.map(exponent), [0, 0, 1, -1, -997, 1023]);
    }
}
