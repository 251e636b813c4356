//! Instruction sets: which there are, the numerical code's vectors on each, and the dispatch.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod cpu;
pub(crate) mod kernel;
mod portable;
mod vectors;

pub(crate) use portable::Portable;
pub(crate) use vectors::{Simd, WIDEST, integer};
