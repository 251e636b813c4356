//! The native mechanisms: output = (centre + noise) * factor, entry by entry.
//!
//! A noise is a function of random words, written once over all instruction sets. A *monotone*
//! noise is a nondecreasing function of one word, which is what the integer route needs (see
//! [`crate::run`]).
//! [`Noise`] is the one table: the enum, the names that Python uses, and the dispatch.

// Every unsafe block below is made of operations of an instruction set `S`, sound exactly when the
// CPU has it; each function passes that condition on to its caller in its own `# Safety`.
#![allow(clippy::undocumented_unsafe_blocks)]

mod bits;
mod clip;
mod dptext;
mod draw;
mod exponential;
mod gaussian;
mod identity;
mod laplace;
mod uniform;

pub use bits::RandomBits;
pub use clip::{Clip, Norm};
pub use dptext::{DpText, DpTextKeep, DpTextResample};
pub use draw::LARGEST;
pub(crate) use draw::{Draw, Monotone, positive};
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use identity::Identity;
pub use laplace::Laplace;
pub use uniform::Uniform;

use crate::error::Error;

/// A native noise: what a description from Python names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Nothing is added.
    Identity(Identity),
    /// Fair bits, whatever the input.
    RandomBits(RandomBits),
    /// Laplace.
    Laplace(Laplace),
    /// Normal.
    Gaussian(Gaussian),
    /// Exponential.
    Exponential(Exponential),
    /// Uniform.
    Uniform(Uniform),
    /// The faulty sampler of `DPText`, NaN replaced by 0.
    DpText(DpText),
    /// The faulty sampler of `DPText`, drawn again until it is a number.
    DpTextResample(DpTextResample),
    /// The faulty sampler of `DPText` as printed.
    DpTextKeep(DpTextKeep),
}

/// Runs an expression with the concrete noise behind a [`Noise`].
macro_rules! with_noise {
    ($noise:expr, $concrete:ident => $body:expr) => {
        match $noise {
            $crate::mechanisms::Noise::Gaussian($concrete) => $body,
            other => $crate::mechanisms::with_monotone!(other, $concrete => $body, unreachable!()),
        }
    };
}

/// Runs an expression with the concrete noise where it is monotone, another where it is not.
macro_rules! with_monotone {
    ($noise:expr, $concrete:ident => $body:expr, $otherwise:expr) => {
        match $noise {
            $crate::mechanisms::Noise::Identity($concrete) => $body,
            $crate::mechanisms::Noise::RandomBits($concrete) => $body,
            $crate::mechanisms::Noise::Laplace($concrete) => $body,
            $crate::mechanisms::Noise::Exponential($concrete) => $body,
            $crate::mechanisms::Noise::Uniform($concrete) => $body,
            $crate::mechanisms::Noise::DpText($concrete) => $body,
            $crate::mechanisms::Noise::DpTextResample($concrete) => $body,
            $crate::mechanisms::Noise::DpTextKeep($concrete) => $body,
            $crate::mechanisms::Noise::Gaussian(_) => $otherwise,
        }
    };
}

pub(crate) use with_monotone;
pub(crate) use with_noise;

impl Noise {
    /// Class names that Python may use.
    pub const NAMES: [&'static str; 7] =
        ["Identity", "RandomBits", "Laplace", "Gaussian", "Exponential", "Uniform", "DPTextNoise"];

    /// The noise of a description: its class name, its numbers in the order of the fields, and
    /// the mode where the class has one (`DPTextNoise`: what happens to NaN; `Laplace`: which of
    /// three equal formulas).
    ///
    /// # Errors
    ///
    /// An unknown name or mode, the wrong number of parameters, or one out of range.
    pub fn new(name: &str, parameters: &[f64], mode: &str) -> Result<Self, Error> {
        match (name, parameters) {
            ("Identity", []) => Ok(Self::Identity(Identity)),
            ("RandomBits", []) => Ok(Self::RandomBits(RandomBits)),
            ("Laplace", &[scale]) => match mode {
                "two_branch" | "sign" | "centred" => Laplace::new(scale).map(Self::Laplace),
                _ => Err(Error::invalid("variant", "two_branch, sign or centred", mode)),
            },
            ("Gaussian", &[sigma]) => Gaussian::new(sigma).map(Self::Gaussian),
            ("Exponential", &[scale]) => Exponential::new(scale).map(Self::Exponential),
            ("Uniform", &[low, high]) => Uniform::new(low, high).map(Self::Uniform),
            ("DPTextNoise", &[scale]) => match mode {
                "zero" => DpText::new(scale).map(Self::DpText),
                "resample" => DpTextResample::new(scale).map(Self::DpTextResample),
                "keep" => DpTextKeep::new(scale).map(Self::DpTextKeep),
                _ => Err(Error::invalid("nan", "zero, resample or keep", mode)),
            },
            _ => Err(Error::invalid(
                "noise",
                format!("one of {} with its own parameters", Self::NAMES.join(", ")),
                (name, parameters),
            )),
        }
    }

    /// Why the noise has no integer route, or `None` where it has one.
    #[must_use]
    pub fn no_integer_route(self) -> Option<&'static str> {
        with_monotone!(self, _noise => None, Some(
            "Gaussian noise is not a monotone function of one random integer (Box-Muller uses two)"
        ))
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mechanism {
    /// The noise of one entry.
    pub noise: Noise,
    /// How the input is clipped first.
    pub clip: Option<Clip>,
    /// What the sum is multiplied by.
    pub factor: f64,
}

impl Mechanism {
    /// A mechanism of its parts.
    ///
    /// # Errors
    ///
    /// A factor that is not a finite number above 0 (a negative one would turn the order of
    /// outputs round, which the integer route relies on).
    pub fn new(noise: Noise, clip: Option<Clip>, factor: f64) -> Result<Self, Error> {
        positive("factor", factor)?;
        Ok(Self { noise, clip, factor })
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
