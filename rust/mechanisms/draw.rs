//! What a noise is: a function of random words.

use crate::error::Error;
use crate::random::Lanes;
use crate::simd::Simd;

/// Largest magnitude of a parameter: 36.04 times it, and sums of two, are still finite.
pub const LARGEST: f64 = 1e300;

/// 2^52, the resolution of the logarithm's arguments.
pub(crate) const GRID: f64 = 4_503_599_627_370_496.0;

/// -ln of the smallest argument of the logarithm, 52 ln 2 = 36.04, rounded up.
pub(crate) const DEEPEST: f64 = 36.05;

/// A noise distribution as a function of random words.
pub(crate) trait Draw: Copy + Sync {
    /// Words that give as many values: 1 or 2.
    const STEPS: usize = 1;
    /// Whether a value can be NaN.
    const NAN: bool = false;
    /// Whether the output ignores the input.
    const BLIND: bool = false;
    /// Whether words can be passed over, for the lane's next one: see [`Draw::takes`].
    const PASSES: bool = false;
    /// Why the noise is not [`Monotone`]; `None` where it is.
    const NO_INTEGER_ROUTE: Option<&'static str> = None;

    /// The noise of a description's numbers, in the order of the class's fields, and its mode;
    /// `None` where they are not of this noise.
    fn read(parameters: &[f64], mode: &str) -> Option<Result<Self, Error>>;

    /// The next word of each lane.
    #[inline(always)]
    fn word<S: Simd>(&self, lanes: &mut Lanes<S>) -> S::U {
        lanes.next()
    }

    /// Lanes whose word the noise can use, asked where it `PASSES` over others.
    #[inline(always)]
    fn takes<S: Simd>(&self, simd: S, _word: S::U) -> S::M {
        simd.top(simd.splat(u64::MAX))
    }

    /// The values of `STEPS` successive words of each lane (where it is 1, the second of both is
    /// ignored).
    fn values<S: Simd>(&self, simd: S, words: [S::U; 2]) -> [S::F; 2];

    /// The largest magnitude of a value.
    fn reach(&self) -> f64;
}

/// A noise that is a nondecreasing function of one integer, the *key* of a word.
pub(crate) trait Monotone: Draw {
    /// A key is the word's bits from this one up.
    const SHIFT: u32 = 11;
    /// The largest key.
    const LAST: u64 = (1 << 53) - 1;

    /// Words in whose order, as integers, their values are; and, where values can be NaN, the
    /// lanes that are numbers.
    #[inline(always)]
    fn ordered<S: Simd>(&self, simd: S, word: S::U) -> (S::U, S::M) {
        (word, simd.top(simd.splat(u64::MAX)))
    }

    /// The key from which on the noise is about `value` or more: where a search begins. One that
    /// is far away costs time and changes nothing.
    fn key_near(&self, value: f64) -> f64;

    /// The value of a word that is a number's.
    fn value<S: Simd>(&self, simd: S, word: S::U) -> S::F;
}

/// Checks a scale.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, Error> {
    if value > 0.0 && value <= LARGEST {
        Ok(value)
    } else {
        Err(Error::invalid(name, format!("a finite number above 0 and at most {LARGEST:e}"), value))
    }
}
