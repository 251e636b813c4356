//! Work on one block, compiled once for each instruction set.

use super::cpu::Cpu;
use super::plain::Plain;
use super::vectors::Simd;
#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
use super::{avx2::Avx2, avx512::Avx512};

/// Work on one block, compiled once for each instruction set.
pub(crate) trait Kernel: Sync {
    type Result: Send;
    fn run<S: Simd>(self, simd: S) -> Self::Result;
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,popcnt")]
fn run_avx512<K: Kernel>(kernel: K, simd: Avx512) -> K::Result {
    kernel.run(simd)
}

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
#[target_feature(enable = "avx2,popcnt")]
fn run_avx2<K: Kernel>(kernel: K, simd: Avx2) -> K::Result {
    kernel.run(simd)
}

/// Runs a kernel on a path; one that this CPU lacks becomes the baseline, which gives the same.
pub(crate) fn dispatch<K: Kernel>(cpu: Cpu, kernel: K) -> K::Result {
    #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
    match cpu {
        Cpu::Avx512 => {
            if let Some(simd) = Avx512::new() {
                // SAFETY: `simd` only exists where the CPU has the function's features.
                return unsafe { run_avx512(kernel, simd) };
            }
        }
        Cpu::Avx2 => {
            if let Some(simd) = Avx2::new() {
                // SAFETY: as above.
                return unsafe { run_avx2(kernel, simd) };
            }
        }
        Cpu::Baseline => {}
    }
    let _ = cpu;
    kernel.run(Plain::<2>)
}
