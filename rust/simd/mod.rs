//! Instruction sets: which there are, the numerical code's vectors on each, and the dispatch.

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
mod avx512;
pub mod cpu;
pub(crate) mod kernel;
mod plain;
mod vectors;

pub(crate) use plain::Plain;
pub(crate) use vectors::{SIDE, Simd, WIDEST, integer};
