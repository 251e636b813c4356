//! Which instruction set runs: found once, or forced by the environment variable `DPCORE_CPU`.

use std::sync::OnceLock;

#[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
use super::{avx2::Avx2, avx512::Avx512};
use crate::error::Error;

/// The instruction sets the kernels are compiled for. Results are the same bits on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cpu {
    /// Plain Rust: SSE2 on x86-64, whatever the target guarantees elsewhere.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512 F, DQ, VL and BW.
    Avx512,
}

impl Cpu {
    /// Every path, slowest first.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// The name used by `DPCORE_CPU`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this machine can run the path.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
            Self::Avx2 => Avx2::new().is_some(),
            #[cfg(all(target_arch = "x86_64", not(dpcore_portable)))]
            Self::Avx512 => Avx512::new().is_some(),
            #[cfg(not(all(target_arch = "x86_64", not(dpcore_portable))))]
            _ => false,
        }
    }

    /// The paths that this machine can run, slowest first.
    #[must_use]
    pub fn present() -> Vec<Self> {
        Self::ALL.into_iter().filter(|cpu| cpu.available()).collect()
    }

    /// The path of the process: `DPCORE_CPU` where set, else the fastest present.
    ///
    /// # Errors
    ///
    /// `DPCORE_CPU` names no path, or one that this CPU lacks.
    pub fn current() -> Result<Self, Error> {
        static CHOICE: OnceLock<Result<Cpu, Error>> = OnceLock::new();
        CHOICE.get_or_init(|| Self::choose(std::env::var_os("DPCORE_CPU"))).clone()
    }

    fn choose(forced: Option<std::ffi::OsString>) -> Result<Self, Error> {
        let present = Self::present();
        let Some(name) = forced.filter(|name| !name.is_empty()) else {
            return Ok(present.last().copied().unwrap_or(Self::Baseline));
        };
        present.iter().copied().find(|cpu| name == cpu.name()).ok_or_else(|| {
            let names: Vec<_> = present.iter().map(|cpu| cpu.name()).collect();
            Error::invalid("DPCORE_CPU", format!("one of {} on this CPU", names.join(", ")), name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_path_is_refused_and_named() {
        let error = Cpu::choose(Some("sse9".into())).unwrap_err().to_string();
        assert!(error.starts_with("DPCORE_CPU must be one of baseline"), "{error}");
        assert!(error.ends_with("got \"sse9\""), "{error}");
        assert_eq!(Cpu::choose(Some("baseline".into())), Ok(Cpu::Baseline));
        assert_eq!(Cpu::choose(None), Ok(*Cpu::present().last().unwrap()));
    }
}
