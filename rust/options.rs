//! How work is run: on which path, on how many threads, what stops it, by which route.

use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::pool::{MOST_THREADS, default_threads};
use crate::simd::cpu::Cpu;

/// How votes are counted; the counts are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// Outputs are computed and compared.
    Sampled,
    /// The random integers themselves are compared.
    Integer,
}

/// How work is run; no choice changes a bit of any result.
///
/// Without any choice: the path of [`Cpu::current`], one thread a core, nothing to stop it, and
/// for [`run::count`](crate::run::count) the integer route where the noise has one. What was
/// chosen is checked by the function that runs.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use dpcore::{Cpu, Error, Job, Laplace, Mechanism, Options, run};
///
/// let job = Job::new(Mechanism::new(Laplace::new(2.0)?), &[0.0])?;
/// let mut out = [0.0; 3];
/// run::sample(&job, &mut out, 0, &Options::new().threads(2).cpu(Cpu::Baseline))?;
/// let error = run::sample(&job, &mut out, 0, &Options::new().threads(2_000)).unwrap_err();
/// assert_eq!(error.to_string(), "threads must be from 1 to 1024, got 2000");
///
/// let stop = AtomicBool::new(false);
/// let options = Options::new().stop(&stop);
/// stop.store(true, Ordering::Relaxed); // from another thread, as a rule
/// assert_eq!(run::sample(&job, &mut out, 0, &options), Err(Error::Interrupted));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Options<'a> {
    cpu: Option<Cpu>,
    threads: Option<usize>,
    stop: Option<&'a AtomicBool>,
    pub(crate) route: Option<Route>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Options<'a> {
    /// No choice yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A path; it must be one that this machine has.
    pub fn cpu(self, cpu: Cpu) -> Self {
        Self { cpu: Some(cpu), ..self }
    }

    /// At most so many threads, from 1 to [`MOST_THREADS`].
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// A flag that ends the work with [`Error::Interrupted`] once it is set.
    pub fn stop(self, stop: &'a AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// How votes are counted (nothing else has a route).
    pub fn route(self, route: Route) -> Self {
        Self { route: Some(route), ..self }
    }

    /// What was chosen, checked, and what is usual where nothing was.
    pub(crate) fn settle(&self) -> Result<(Cpu, usize, &'a AtomicBool), Error> {
        let cpu = match self.cpu {
            Some(cpu) if !cpu.available() => {
                return Err(Error::invalid("cpu", "a path that this machine has", cpu));
            }
            Some(cpu) => cpu,
            None => Cpu::current()?,
        };
        let threads = self.threads.unwrap_or_else(|| default_threads().min(MOST_THREADS));
        if !(1..=MOST_THREADS).contains(&threads) {
            return Err(Error::invalid("threads", format!("from 1 to {MOST_THREADS}"), threads));
        }
        Ok((cpu, threads, self.stop.unwrap_or(&NEVER)))
    }
}
