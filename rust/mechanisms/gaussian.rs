//! Normal noise by the Box-Muller transform.

use super::draw::{Draw, positive};
use crate::error::Error;
use crate::math::{cos_sin_quarter, ln_grid};
use crate::simd::{Simd, integer};

/// N(0, sigma^2) by Box and Muller (1958), two values from two words of the same lane:
/// r = sqrt(-2 ln u), u = (k + 1)/2^52, and a uniform angle; sigma r cos and sigma r sin.
///
/// Chosen over the ziggurat (what numpy uses) because it has no branch: no lane ever waits
/// for one. The angle's top two bits are its quadrant, the next 52 the place within it. The
/// largest noise is 8.49 sigma; the mass beyond it, 2e-17, is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    sigma: f64,
}

impl Gaussian {
    /// Noise of standard deviation sigma, in the units of the input.
    ///
    /// # Errors
    ///
    /// A sigma that is not a finite number above 0 and at most 1e300.
    pub fn new(sigma: f64) -> Result<Self, Error> {
        Ok(Self { sigma: positive("sigma", sigma)? })
    }
}

impl Draw for Gaussian {
    const STEPS: usize = 2;
    const NO_INTEGER_ROUTE: Option<&'static str> = Some(
        "Gaussian noise is not a monotone function of one random integer (Box-Muller uses two)",
    );

    fn read(parameters: &[f64], _: &str) -> Option<Result<Self, Error>> {
        let &[sigma] = parameters else { return None };
        Some(Self::new(sigma))
    }

    #[inline(always)]
    fn values<S: Simd>(&self, simd: S, [first, angle]: [S::U; 2]) -> [S::F; 2] {
        let k = integer(simd, simd.shr::<12>(first));
        let log = ln_grid(simd, simd.addf(k, simd.splatf(1.0)));
        let radius = simd.sqrtf(simd.mulf(log, simd.splatf(-2.0)));
        let radius = simd.mulf(radius, simd.splatf(self.sigma));

        let fraction = simd.and(simd.shr::<10>(angle), simd.splat((1 << 52) - 1));
        let one_to_two = simd.float(simd.or(fraction, simd.splat(0x3ff0 << 48)));
        let (cos, sin) = cos_sin_quarter(simd, simd.subf(one_to_two, simd.splatf(1.5)));

        // A turn by the quadrant: (c, s), (-s, c), (-c, -s), (s, -c).
        let odd = simd.shl::<1>(angle);
        let swap = simd.top(odd);
        let sign = simd.splat(1 << 63);
        let sign_first = simd.and(simd.xor(angle, odd), sign);
        let sign_second = simd.and(angle, sign);
        let turned = [simd.selectf(swap, sin, cos), simd.selectf(swap, cos, sin)];
        [
            simd.mulf(radius, simd.float(simd.xor(simd.bits(turned[0]), sign_first))),
            simd.mulf(radius, simd.float(simd.xor(simd.bits(turned[1]), sign_second))),
        ]
    }

    fn reach(&self) -> f64 {
        8.5 * self.sigma
    }
}
