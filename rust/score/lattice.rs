//! Whether numbers are multiples of a power of two: the trace of floating-point arithmetic.

use super::checks::check_rows;
use crate::error::Error;

const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
/// Exponent of the lowest bit of a number whose biased exponent is 0.
const BIAS: i32 = 1075;

/// Numbers in a window that are no multiples of 2^-exponent.
#[derive(Clone, Copy, Debug)]
pub struct Finer {
    /// The exponent, from -1023 to 1074.
    pub exponent: i32,
    /// The lower end of the window.
    pub low: f64,
    /// The upper end, which is outside.
    pub high: f64,
    /// True if every entry of a row must be such a number, false if one is enough.
    pub every: bool,
}

impl Finer {
    /// Scores every row of `outputs`, of `dim` entries each: 1 where its entries are such numbers.
    ///
    /// # Errors
    ///
    /// Lengths that do not fit.
    pub fn score(&self, outputs: &[f64], dim: usize, out: &mut [f64]) -> Result<(), Error> {
        check_rows(outputs, dim, out.len())?;
        for (row, score) in outputs.chunks_exact(dim.max(1)).zip(out) {
            let hits = row.iter().map(|value| usize::from(self.holds(*value))).sum::<usize>();
            let holds = if self.every { hits == dim } else { hits > 0 };
            *score = f64::from(u8::from(holds));
        }
        Ok(())
    }

    /// True for a number y in the window such that y 2^exponent is no integer.
    // A branch would be mispredicted for half of the numbers.
    #[allow(clippy::needless_bitwise_bool)]
    fn holds(&self, value: f64) -> bool {
        let bits = value.to_bits();
        let power = (bits >> MANTISSA_BITS & 0x7FF) as i32;
        // The leading 1 of a normal number is not stored; a subnormal has none.
        let odd = bits & MANTISSA | u64::from(power > 0) << MANTISSA_BITS;
        let lowest = (odd | 1 << 63).trailing_zeros() as i32 + power.max(1) - BIAS;
        // Zero is a multiple of everything; NaN and infinities lie in no window.
        (value >= self.low) & (value < self.high) & (odd != 0) & (lowest < -self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(exponent: i32, every: bool, outputs: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; outputs.len() / 2];
        let finer = Finer { exponent, low: -4.0, high: 4.0, every };
        finer.score(outputs, 2, &mut out).unwrap();
        out
    }

    #[test]
    fn multiples_of_the_power_are_no_hits() {
        let outputs = [0.75, 0.5, 0.5, 0.0, f64::NAN, 0.25, 0.25, -0.75, 4.25, 4.25];
        assert_eq!(score(1, false, &outputs), [1.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(score(1, true, &outputs), [0.0, 0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn ends_of_the_range_are_exact() {
        let least = f64::from_bits(1);
        assert_eq!(score(1074, false, &[least, 3.0 * least]), [0.0]);
        assert_eq!(score(1073, false, &[least, 0.0]), [1.0]);
        assert_eq!(score(-1, true, &[1.0, 3.0, 2.0, 2.0]), [1.0, 0.0]);
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let finer = Finer { exponent: 0, low: 0.0, high: 1.0, every: false };
        assert!(finer.score(&[0.5, 0.5, 0.5], 2, &mut [0.0]).is_err());
    }
}
