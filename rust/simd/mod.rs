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

/// Asks for a row that is soon read.
#[inline(always)]
pub(crate) fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks((64 / size_of::<T>()).max(1)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 has the instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    let _ = row;
}
