//! The Rust core of dpcore: samplers of differential-privacy mechanisms and the loop that audits
//! them.
//!
//! [`run::sample`] fills arrays, [`run::count`] counts the reconstruction attack's votes without
//! ever making one; both run the same samplers on the same random streams. Everything is a pure
//! function of (seed, purpose, side, block), so neither the number of threads nor the slicing
//! nor the CPU changes a bit of any result.

pub mod audit;
pub mod bounds;
pub mod divergence;
pub mod error;
pub mod events;
mod math;
pub mod mechanisms;
pub mod neighbours;
mod options;
mod pool;
#[cfg(any(feature = "python", test))]
mod probe;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod run;
pub mod score;
pub mod sensitivity;
mod simd;
mod words;

pub use error::Error;
pub use events::{Counted, Vote};
pub use mechanisms::{Clip, Mechanism, Noise, Norm};
pub use mechanisms::{DpText, DpTextKeep, DpTextResample};
pub use mechanisms::{Exponential, Gaussian, Identity, Laplace, RandomBits, Uniform};
pub use options::{Options, Route};
pub use pool::{MOST_THREADS, default_threads};
pub use random::{Purpose, Side};
pub use run::Job;
pub use simd::cpu::{self, Cpu};
pub use words::Words;
