//! No noise: the mechanism that tells everything.

use super::{Draw, Monotone};
use crate::random::Lanes;
use crate::simd::Simd;

/// The output is the input. It takes no random words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity;

impl Draw for Identity {
    #[inline(always)]
    unsafe fn draw<S: Simd>(&self, _: &mut Lanes<S>) -> [S::F; 2] {
        // -0.0 is the one number that changes nothing when it is added, not even -0.0 itself.
        unsafe { [S::splatf(-0.0); 2] }
    }
}

impl Monotone for Identity {
    #[inline(always)]
    unsafe fn value<S: Simd>(&self, _: S::U) -> S::F {
        unsafe { S::splatf(-0.0) }
    }
}
