//! What the tests of the samplers share.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::sync::atomic::AtomicBool;

use dpcore::{Counted, Cpu, Error, Job, Mechanism, Noise, Purpose, Route, Vote, run};

/// A row of the table of noises: class name, number of scales, mode.
pub type Row = (&'static str, &'static [f64], &'static str);

/// Every noise, with parameters.
pub const NOISES: [Row; 11] = [
    ("Identity", &[], ""),
    ("RandomBits", &[], ""),
    ("Laplace", &[2.0], "two_branch"),
    ("Laplace", &[2.0], "sign"),
    ("Laplace", &[2.0], "centred"),
    ("Gaussian", &[1.5], ""),
    ("Exponential", &[3.0], ""),
    ("Uniform", &[-1.0, 2.5], ""),
    ("DPTextNoise", &[2.0], "zero"),
    ("DPTextNoise", &[2.0], "resample"),
    ("DPTextNoise", &[2.0], "keep"),
];

/// The noise of a row of the table.
pub fn noise((name, parameters, mode): Row) -> Noise {
    Noise::new(name, parameters, mode).unwrap()
}

/// A mechanism that adds a noise and nothing else.
pub fn plain(noise: Noise) -> Mechanism {
    Mechanism::new(noise, None, 1.0).unwrap()
}

/// A counting job on side 0 with seed 1.
pub fn job(mechanism: Mechanism, x: &[f64], block: u64) -> Job {
    Job::new(mechanism, x, (1, Purpose::Count, 0), block).unwrap()
}

/// Outputs of the trials `start..stop`.
pub fn rows(job: &Job, (start, stop): (u64, u64), cpu: Cpu, threads: usize) -> Vec<f64> {
    let mut out = vec![0.0; (stop - start) as usize * job.dim()];
    run::sample(job, &mut out, start, (cpu, threads), &AtomicBool::new(false)).unwrap();
    out
}

/// Counts of the trials `start..stop`.
pub fn count(
    job: &Job,
    vote: &Vote<'_>,
    trials: (u64, u64),
    route: Route,
    (cpu, threads): (Cpu, usize),
) -> Result<Counted, Error> {
    run::count(job, vote, trials, route, (cpu, threads), &AtomicBool::new(false))
}

/// Bit patterns: what "the same" means here, for NaN and -0 too.
pub fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
