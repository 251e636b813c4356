//! No noise: the mechanism that tells everything.

use super::draw::{Draw, Monotone};
use crate::error::Error;
use crate::random::Lanes;
use crate::simd::Simd;

/// The output is the input. It takes no random words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity;

impl Draw for Identity {
    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        parameters.is_empty().then_some(Ok(Self))
    }

    #[inline(always)]
    fn word<S: Simd>(&self, lanes: &mut Lanes<S>) -> S::U {
        lanes.simd.splat(0)
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2] {
        [self.value(simd, words[0]); 2]
    }

    fn reach(&self) -> f64 {
        0.0
    }
}

impl Monotone for Identity {
    fn key_near(&self, _: f64) -> f64 {
        0.0
    }

    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, _: S::U) -> S::F {
        // -0.0 is the one number that changes nothing when it is added, not even -0.0 itself.
        simd.splatf(-0.0)
    }
}
