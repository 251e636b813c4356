//! The native mechanisms: output = (centre + noise) * factor, entry by entry.
//!
//! A noise is a function of random words, written once over all instruction sets. A *monotone*
//! noise is a nondecreasing function of one word, which is what the integer route needs (see
//! [`crate::run`]).
//!
//! A new noise is a file that implements `Draw`, and one line of the table below: from it come
//! the module, the public name, the enum [`Noise`], the names that Python uses, and the dispatch.

mod clip;
mod draw;

pub use clip::{Clip, Norm};
pub use draw::LARGEST;
pub(crate) use draw::{Draw, Monotone};

use crate::error::Error;
use draw::positive;

/// Makes of the table all that names every noise. (Its `$` is handed on to the macros it makes.)
macro_rules! noises {
    ($d:tt $($class:literal $file:ident $kind:ident $($noise:ident)+;)+) => {
        $(mod $file;)+

        /// The noises.
        pub mod noises {
            $($(pub use crate::mechanisms::$file::$noise;)+)+
        }
        pub use noises::*;

        /// A native noise; each is made by its own constructor.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Noise {
            $($(#[doc = concat!("[`", stringify!($noise), "`].")] $noise($noise),)+)+
        }

        $($(impl From<$noise> for Noise {
            fn from(noise: $noise) -> Self {
                Self::$noise(noise)
            }
        })+)+

        #[cfg_attr(not(feature = "python"), allow(dead_code, reason = "only Python uses it"))]
        impl Noise {
            /// Class names that Python may use.
            pub(crate) const NAMES: [&'static str; [$($class),+].len()] = [$($class),+];

            /// The noise of a description: its class name, its numbers in the order of the
            /// fields, and the mode where the class has one (`DPTextNoise`: what happens to NaN;
            /// `Laplace`: which of three equal formulas).
            ///
            /// # Errors
            ///
            /// An unknown name or mode, the wrong number of parameters, or one out of range.
            pub(crate) fn named(name: &str, parameters: &[f64], mode: &str) -> Result<Self, Error> {
                $($(if name == $class && let Some(noise) = $noise::read(parameters, mode) {
                    return noise.map(Self::$noise);
                })+)+
                let names = Self::NAMES.join(", ");
                let requirement = format!("one of {names} with its own parameters");
                Err(Error::invalid("noise", requirement, (name, parameters)))
            }
        }

        // Who has no integer route says why, and nobody else does.
        $($(const _: () = {
            let reason = <$noise as Draw>::NO_INTEGER_ROUTE;
            assert!(reason.is_none() == when_monotone!($kind, true, false));
        };)+)+

        /// Runs an expression with the concrete noise behind a [`Noise`].
        macro_rules! with_noise {
            ($d noise:expr, $d concrete:ident => $d body:expr) => {
                match $d noise {
                    $($($crate::mechanisms::Noise::$noise($d concrete) => $d body,)+)+
                }
            };
        }

        /// Runs an expression with the concrete noise where it is monotone, another where it is
        /// not.
        macro_rules! with_monotone {
            ($d noise:expr, $d concrete:ident => $d body:expr, $d otherwise:expr) => {
                match $d noise {
                    $($($crate::mechanisms::Noise::$noise($d concrete) => {
                        $crate::mechanisms::when_monotone!($kind, $d body, {
                            let _ = $d concrete;
                            $d otherwise
                        })
                    })+)+
                }
            };
        }
    };
}

/// The first expression for the noises marked `monotone`, the second for the `other` ones.
macro_rules! when_monotone {
    (monotone, $body:expr, $otherwise:expr) => {
        $body
    };
    (other, $body:expr, $otherwise:expr) => {
        $otherwise
    };
}

// The table. A class's name in Python, its file, whether it is monotone, its samplers.
noises! { $
    "Identity" identity monotone Identity;
    "RandomBits" bits monotone RandomBits;
    "Laplace" laplace monotone Laplace;
    "Gaussian" gaussian other Gaussian;
    "Exponential" exponential monotone Exponential;
    "Uniform" uniform monotone Uniform;
    "DPTextNoise" dptext monotone DpText DpTextResample DpTextKeep;
    "Cauchy" cauchy monotone Cauchy;
    "Staircase" staircase monotone Staircase;
}

pub(crate) use when_monotone;
pub(crate) use with_monotone;
pub(crate) use with_noise;

impl Noise {
    /// Why the noise has no integer route, or `None` where it has one.
    #[must_use]
    pub fn no_integer_route(self) -> Option<&'static str> {
        fn of<N: Draw>(_: &N) -> Option<&'static str> {
            N::NO_INTEGER_ROUTE
        }
        with_noise!(self, noise => of(&noise))
    }

    /// The largest magnitude of a value.
    pub(crate) fn reach(self) -> f64 {
        with_noise!(self, noise => noise.reach())
    }

    /// Whether the output ignores the input.
    pub(crate) fn blind(self) -> bool {
        fn of<N: Draw>(_: &N) -> bool {
            N::BLIND
        }
        with_noise!(self, noise => of(&noise))
    }
}

/// A mechanism: clip the input, add noise to each entry, multiply by a factor.
///
/// ```
/// use dpcore::{Clip, Laplace, Mechanism, Norm};
///
/// let mechanism = Mechanism::new(Laplace::new(2.0)?)
///     .clipped(Clip::new(Norm::L1, 1.0)?)
///     .scaled(0.5)?;
/// assert_eq!(mechanism.centre(&[3.0, -1.0])?, [0.75, -0.25]);
/// # Ok::<(), dpcore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Mechanism {
    noise: Noise,
    clip: Option<Clip>,
    factor: f64,
}

impl Mechanism {
    /// A mechanism that adds a noise, and does nothing else.
    pub fn new(noise: impl Into<Noise>) -> Self {
        Self { noise: noise.into(), clip: None, factor: 1.0 }
    }

    /// With the input clipped first.
    pub fn clipped(self, clip: Clip) -> Self {
        Self { clip: Some(clip), ..self }
    }

    /// With the sum multiplied by a factor.
    ///
    /// # Errors
    ///
    /// A factor that is not a finite number above 0 and at most 1e300 (a negative one would turn
    /// the order of outputs round, which the integer route relies on).
    pub fn scaled(self, factor: f64) -> Result<Self, Error> {
        Ok(Self { factor: positive("factor", factor)?, ..self })
    }

    /// The noise of one entry.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// What the sum is multiplied by.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// What the noise is added to: the clipped input (zeros where the output ignores it).
    ///
    /// # Errors
    ///
    /// An empty input, or one with entries that are not finite.
    pub fn centre(&self, x: &[f64]) -> Result<Vec<f64>, Error> {
        if x.is_empty() {
            return Err(Error::invalid("x", "of at least one entry", x));
        }
        if let Some(entry) = x.iter().find(|entry| !entry.is_finite()) {
            return Err(Error::invalid("x", "finite in every entry", entry));
        }
        let mut centre = x.to_vec();
        if self.noise.blind() {
            centre.fill(0.0);
        } else if let Some(clip) = self.clip {
            clip.apply(&mut centre);
        }
        Ok(centre)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Plain;

    /// The largest magnitude at either end of a grid, and where rounding passes `high`.
    #[test]
    fn no_value_is_beyond_its_reach_and_the_largest_is_near_it() {
        fn largest<N: Monotone>(noise: &N) -> f64 {
            let words = [0, 1 << 63, (1 << 63) | 0x7ff, u64::MAX];
            let at = |word| noise.value(Plain::<1>, [word])[0].abs();
            words.map(at).into_iter().fold(0.0, f64::max)
        }
        let noises: [Noise; 8] = [
            Identity.into(),
            RandomBits.into(),
            Laplace::new(3.0).unwrap().into(),
            Exponential::new(0.3).unwrap().into(),
            Uniform::new(-5.0, 2.5).unwrap().into(),
            Uniform::new(1.0, 1.0 + f64::EPSILON).unwrap().into(),
            DpText::new(7.0).unwrap().into(),
            DpTextKeep::new(1e300).unwrap().into(),
        ];
        for noise in noises {
            let largest = with_monotone!(noise, noise => largest(&noise), unreachable!());
            let reach = noise.reach();
            assert!(largest <= reach && reach <= 1.001 * largest, "{noise:?} {largest} {reach}");
        }
        // Box-Muller: the radius is largest at the first word, whatever the angle.
        let gaussian = Gaussian::new(2.0).unwrap();
        let [cos, sin] = gaussian.values(Plain::<1>, [[0], [1 << 61]]);
        let radius = cos[0].hypot(sin[0]);
        assert!(radius <= gaussian.reach() && gaussian.reach() <= 1.002 * radius, "{radius}");
    }
}
