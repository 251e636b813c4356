//! The Rust core of dpcore: samplers of differential-privacy mechanisms and the loop that audits
//! them.
//!
//! [`run::sample`] fills arrays, [`run::count`] counts the reconstruction attack's votes without
//! ever making one; both run the same samplers on the same random streams. Everything is a pure
//! function of (seed, purpose, side, block), so neither the number of threads nor the slicing
//! nor the CPU changes a bit of any result.

pub mod divergence;
pub mod error;
pub mod events;
mod math;
pub mod mechanisms;
pub mod neighbours;
pub mod pool;
pub mod probe;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod run;
pub mod score;
pub mod sensitivity;
mod simd;

pub use error::Error;
pub use events::{Counted, Vote};
pub use mechanisms::{Clip, Mechanism, Noise, Norm};
pub use random::Purpose;
pub use run::{Job, Route};
pub use simd::cpu::{self, Cpu};
