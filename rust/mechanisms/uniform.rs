//! Uniform noise.

use super::draw::{Draw, GRID, LARGEST, Monotone};
use crate::error::Error;
use crate::simd::Simd;

/// low + (high - low) u, u = k/2^52 with k the top 52 bits of one word. The sum is rounded, and may so
/// reach `high` itself where low is large against the width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform {
    low: f64,
    width: f64,
}

impl Uniform {
    /// Noise on [low, high), in the units of the input.
    ///
    /// # Errors
    ///
    /// Ends that are not finite, above 1e300 in magnitude, or not in order.
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        for (name, end) in [("low", low), ("high", high)] {
            if end.is_nan() || end.abs() > LARGEST {
                return Err(Error::invalid(name, format!("finite and at most {LARGEST:e}"), end));
            }
        }
        if low < high {
            Ok(Self { low, width: high - low })
        } else {
            Err(Error::invalid("low", format!("below high = {high:?}"), low))
        }
    }
}

impl Draw for Uniform {
    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        let &[low, high] = parameters else { return None };
        Some(Self::new(low, high))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        // The sum may be rounded up to `high`.
        self.low.abs().max((self.low + self.width).abs().next_up())
    }
}

impl Monotone for Uniform {
    const SHIFT: u32 = 12;
    const LAST: u64 = (1 << 52) - 1;

    fn key_near(&self, value: f64) -> f64 {
        (value - self.low) / self.width * GRID
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F {
        // The top 52 bits as the fraction of a number in [1, 2).
        let one_to_two = simd.float(simd.or(simd.shr::<12>(word), simd.splat(0x3ff0 << 48)));
        let u = simd.subf(one_to_two, simd.splatf(1.0));
        simd.addf(simd.mulf(u, simd.splatf(self.width)), simd.splatf(self.low))
    }
}
