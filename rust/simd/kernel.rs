//! Work on one block, compiled once for each instruction set.

use super::cpu::Cpu;
use super::portable::Portable;
use super::vectors::Simd;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// Work on one block, compiled once for each instruction set.
pub(crate) trait Kernel: Sync {
    type Result: Send;
    /// # Safety
    ///
    /// The CPU must have the instruction set `S`.
    unsafe fn run<S: Simd>(self) -> Self::Result;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,popcnt")]
unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Result {
    // SAFETY: this function's features are the instruction set's.
    unsafe { kernel.run::<Avx512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Result {
    // SAFETY: this function's features are the instruction set's.
    unsafe { kernel.run::<Avx2>() }
}

/// Runs a kernel on a path; one that this CPU lacks becomes the baseline, which gives the same.
pub(crate) fn dispatch<K: Kernel>(cpu: Cpu, kernel: K) -> K::Result {
    match cpu {
        // SAFETY: the CPU has just been asked (the answer is kept; it costs some loads).
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx512 if cpu.available() => unsafe { run_avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 if cpu.available() => unsafe { run_avx2(kernel) },
        // SAFETY: plain Rust runs everywhere.
        _ => unsafe { kernel.run::<Portable>() },
    }
}
