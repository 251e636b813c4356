//! What the tests of the samplers share.

pub mod searches;

use dpcore::{
    Cauchy, Counted, Cpu, DpText, DpTextKeep, DpTextResample, Error, Exponential, Gaussian,
    Identity, Job, Laplace, Mechanism, Noise, Options, Purpose, RandomBits, Route, Staircase,
    Uniform, Vote, run,
};

/// Every noise, with parameters.
pub fn noises() -> Vec<Noise> {
    vec![
        Identity.into(),
        RandomBits.into(),
        Laplace::new(2.0).unwrap().into(),
        Gaussian::new(1.5).unwrap().into(),
        Exponential::new(3.0).unwrap().into(),
        Uniform::new(-1.0, 2.5).unwrap().into(),
        DpText::new(2.0).unwrap().into(),
        DpTextResample::new(2.0).unwrap().into(),
        DpTextKeep::new(2.0).unwrap().into(),
        Cauchy::new(2.0).unwrap().into(),
        Staircase::new(1.5, 0.7, 0.4).unwrap().into(),
    ]
}

/// A mechanism that adds Laplace noise and nothing else.
pub fn laplace(scale: f64) -> Mechanism {
    Mechanism::new(Laplace::new(scale).unwrap())
}

/// A counting job on side x with seed 1.
pub fn job(mechanism: Mechanism, x: &[f64], block: u64) -> Job {
    Job::new(mechanism, x).unwrap().seed(1).purpose(Purpose::Count).block(block).unwrap()
}

/// Outputs of the trials `start..stop`.
pub fn rows(job: &Job, (start, stop): (u64, u64), cpu: Cpu, threads: usize) -> Vec<f64> {
    let mut out = vec![0.0; (stop - start) as usize * job.dim()];
    run::sample(job, &mut out, start, &Options::new().cpu(cpu).threads(threads)).unwrap();
    out
}

/// Counts of the trials `start..stop`.
pub fn count(
    job: &Job,
    vote: &Vote<'_>,
    (start, stop): (u64, u64),
    route: Route,
    (cpu, threads): (Cpu, usize),
) -> Result<Counted, Error> {
    run::count(job, vote, start..stop, &Options::new().cpu(cpu).threads(threads).route(route))
}

/// Bit patterns: what "the same" means here, for NaN and -0 too.
pub fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
