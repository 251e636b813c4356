//! Samplers of differential-privacy mechanisms, and audits of code that claims to be one.
//!
//! | To | use |
//! | --- | --- |
//! | fill an array with a mechanism's outputs | [`run::sample`] |
//! | count the reconstruction attack's votes without making an output | [`run::count`] |
//! | bound the epsilon of a mechanism, or of a function of one's own, from below | [`audit`] |
//! | turn counts into that bound | [`bounds`] |
//! | draw one value at a time, with the crate `rand` where wanted | [`Words`] |
//! | count pairs that clipping leaves too far apart | [`sensitivity`] |
//! | find nearest neighbours exactly | [`neighbours`] |
//! | compare all rows of a finite mechanism's table | [`tables`] |
//! | replace words by rows of probabilities or noise on vectors | [`replacement`] |
//! | estimate divergences from them; score outputs | [`divergence`], [`score`] |
//!
//! Everything is a pure function of (seed, purpose, side, block), so neither the number of threads
//! nor the slicing nor the CPU changes a bit of any result. Equal seeds mean equal words for every
//! noise.
//!
//! ```
//! use dpcore::{Job, Laplace, Mechanism, Options, run};
//!
//! let job = Job::new(Mechanism::new(Laplace::new(2.0)?), &[0.0, 1.0])?.seed(7);
//! let mut outputs = [[0.0; 2]; 1000];
//! run::sample(&job, outputs.as_flattened_mut(), 0, &Options::new())?;
//! let mean = outputs.iter().map(|[_, second]| second).sum::<f64>() / 1000.0;
//! assert!((mean - 1.0).abs() < 0.5);
//! # Ok::<(), dpcore::Error>(())
//! ```
//!
//! # Features
//!
//! `rand`: [`Words`] is a generator of the crate `rand` 0.10, the noises are its distributions.
//! `python`: the extension module of the Python package; it is of no use to a Rust program.

pub mod audit;
pub mod bounds;
#[cfg(any(feature = "python", test))]
mod cells;
#[cfg(any(feature = "python", test))]
mod columns;
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
pub mod replacement;
pub mod run;
pub mod score;
pub mod sensitivity;
mod simd;
pub mod tables;
mod words;

pub use error::Error;
pub use events::{Counted, Vote};
pub use mechanisms::noises::*;
pub use mechanisms::{Clip, Mechanism, Noise, Norm};
pub use options::{Options, Route};
pub use pool::{MOST_THREADS, default_threads};
pub use random::{Purpose, Side};
pub use run::Job;
pub use simd::cpu::{self, Cpu};
pub use words::Words;

/// The readme's examples are run as the others are.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
mod readme {}
