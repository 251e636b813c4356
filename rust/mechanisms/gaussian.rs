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
    unsafe fn values<S: Simd>(&self, [first, angle]: [S::U; 2]) -> [S::F; 2] {
        // SAFETY: the caller vouches for the CPU.
        unsafe {
            let k = integer::<S>(S::shr::<12>(first));
            let log = ln_grid::<S>(S::addf(k, S::splatf(1.0)));
            let radius = S::sqrtf(S::mulf(log, S::splatf(-2.0)));
            let radius = S::mulf(radius, S::splatf(self.sigma));

            let fraction = S::and(S::shr::<10>(angle), S::splat((1 << 52) - 1));
            let one_to_two = S::float(S::or(fraction, S::splat(0x3ff0 << 48)));
            let (cos, sin) = cos_sin_quarter::<S>(S::subf(one_to_two, S::splatf(1.5)));

            // A turn by the quadrant: (c, s), (-s, c), (-c, -s), (s, -c).
            let odd = S::shl::<1>(angle);
            let swap = S::top(odd);
            let sign = S::splat(1 << 63);
            let sign_first = S::and(S::xor(angle, odd), sign);
            let sign_second = S::and(angle, sign);
            let turned = [S::selectf(swap, sin, cos), S::selectf(swap, cos, sin)];
            [
                S::mulf(radius, S::float(S::xor(S::bits(turned[0]), sign_first))),
                S::mulf(radius, S::float(S::xor(S::bits(turned[1]), sign_second))),
            ]
        }
    }
}
