//! Nanoseconds a draw, on every instruction set of this machine, beside the usual crates.
//!
//! `cargo bench` measures; `cargo bench -- --test` runs each once. Every bench checks its answer.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use dpcore::sensitivity::{Law, Pairs};
use dpcore::{
    Counted, Cpu, DpText, DpTextResample, Exponential, Gaussian, Identity, Job, Laplace, Mechanism,
    Noise, Norm, Options, Purpose, RandomBits, Route, Uniform, Vote, run, sensitivity,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, Normal};

/// Draws of one measurement: a mebibyte of outputs, as an audit's slices have in cache.
const DRAWS: usize = 1 << 17;

/// Name of the bench, noise, mean of a value.
fn noises() -> [(&'static str, Noise, f64); 8] {
    [
        ("identity", Identity.into(), 0.0),
        ("bits", RandomBits.into(), 0.5),
        ("uniform", Uniform::new(0.0, 1.0).unwrap().into(), 0.5),
        ("laplace", Laplace::new(1.0).unwrap().into(), 0.0),
        ("exponential", Exponential::new(1.0).unwrap().into(), 1.0),
        ("gaussian", Gaussian::new(1.0).unwrap().into(), 0.0),
        ("dptext zero", DpText::new(1.0).unwrap().into(), 0.5),
        ("dptext resample", DpTextResample::new(1.0).unwrap().into(), 1.0),
    ]
}

fn job(noise: impl Into<Noise>, dim: usize) -> Job {
    let job = Job::new(Mechanism::new(noise), &vec![0.0; dim]).unwrap();
    job.seed(1).purpose(Purpose::Count).block((DRAWS / dim) as u64).unwrap()
}

fn expect_mean(values: &[f64], mean: f64) {
    let found = values.iter().sum::<f64>() / values.len() as f64;
    // Eight standard errors of a value of variance 2.
    assert!((found - mean).abs() < 8.0 * (2.0 / values.len() as f64).sqrt(), "{found} {mean}");
}

fn fill(c: &mut Criterion) {
    let mut out = vec![0.0; DRAWS];
    for (name, noise, mean) in noises() {
        let mut group = c.benchmark_group(format!("fill/{name}"));
        group.throughput(Throughput::Elements(DRAWS as u64));
        for cpu in Cpu::present() {
            let (job, options) = (job(noise, 128), Options::new().cpu(cpu).threads(1));
            group.bench_function(cpu.name(), |b| {
                b.iter(|| run::sample(&job, black_box(&mut out), 0, &options).unwrap());
            });
            run::sample(&job, &mut out, 0, &options).unwrap();
            expect_mean(&out, mean);
        }
        group.finish();
    }
}

fn laplace(rng: &mut StdRng) -> f64 {
    let u = rng.random::<f64>() - 0.5;
    -u.signum() * (1.0 - 2.0 * u.abs()).ln()
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// One loop over values, and once more for its answer: a filter leaves out the measurement alone.
fn values(group: &mut Group<'_>, name: &str, mean: f64, mut fill: impl FnMut(&mut [f64])) {
    let mut out = vec![0.0; DRAWS];
    group.bench_function(name, |b| b.iter(|| fill(black_box(&mut out))));
    fill(&mut out);
    expect_mean(&out, mean);
}

/// What a program without this crate would write.
fn rivals(c: &mut Criterion) {
    let mut rng = StdRng::seed_from_u64(1);
    let (exp, normal) = (Exp::new(1.0).unwrap(), Normal::new(0.0, 1.0).unwrap());
    let mut group = c.benchmark_group("rival");
    let group = group.throughput(Throughput::Elements(DRAWS as u64));
    values(group, "laplace by inversion, rand", 0.0, |out| out.fill_with(|| laplace(&mut rng)));
    values(group, "exponential, rand_distr", 1.0, |out| out.fill_with(|| exp.sample(&mut rng)));
    values(group, "normal, rand_distr", 0.0, |out| out.fill_with(|| normal.sample(&mut rng)));
}

/// The noises one value at a time, beside the same crate's own.
#[cfg(feature = "rand")]
fn single(c: &mut Criterion) {
    let mut words = dpcore::Words::seed_from_u64(1);
    let (laplace, exponential) = (Laplace::new(1.0).unwrap(), Exponential::new(1.0).unwrap());
    let gaussian = Gaussian::new(1.0).unwrap();
    let (exp, normal) = (Exp::new(1.0).unwrap(), Normal::new(0.0, 1.0).unwrap());
    let mut group = c.benchmark_group("single");
    let group = group.throughput(Throughput::Elements(DRAWS as u64));
    group.bench_function("word", |b| {
        b.iter(|| black_box((0..DRAWS).fold(0, |sum, _| sum ^ words.word())));
    });
    values(group, "laplace", 0.0, |out| out.fill_with(|| laplace.sample(&mut words)));
    values(group, "exponential", 1.0, |out| out.fill_with(|| exponential.sample(&mut words)));
    values(group, "gaussian, pairs", 0.0, |out| {
        out.as_chunks_mut().0.fill_with(|| gaussian.sample(&mut words));
    });
    values(group, "exponential of rand_distr", 1.0, |out| {
        out.fill_with(|| exp.sample(&mut words));
    });
    values(group, "normal of rand_distr", 0.0, |out| out.fill_with(|| normal.sample(&mut words)));
}

#[cfg(not(feature = "rand"))]
fn single(_: &mut Criterion) {}

fn count(c: &mut Criterion) {
    for dim in [3, 7, 127, 128, 129] {
        let job = job(Laplace::new(dim as f64).unwrap(), dim);
        let (threshold, towards) = (vec![0.5; dim], vec![1; dim]);
        let vote = Vote::new(&threshold, &towards).unwrap();
        let trials = 4 * job.trials_per_block();
        let mut group = c.benchmark_group(format!("count/{dim}"));
        group.throughput(Throughput::Elements(trials * dim as u64));
        let mut answers: Vec<Counted> = Vec::new();
        for cpu in Cpu::present() {
            for route in [Route::Sampled, Route::Integer] {
                let options = Options::new().cpu(cpu).threads(1).route(route);
                let count = || run::count(&job, &vote, 0..trials, &options);
                group.bench_function(format!("{route:?}/{}", cpu.name()), |b| {
                    b.iter(|| black_box(count()));
                });
                answers.push(count().unwrap());
            }
        }
        group.finish();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert!(answers[0].votes > 0 && answers[0].votes < trials / 2, "{answers:?}");
    }
}

/// Pairs of random vectors that are too far apart after clipping.
fn beyond(c: &mut Criterion) {
    let (dim, count) = (32, DRAWS as u64 / 64);
    let (wide, narrow) = (Law::uniform(10.0).unwrap(), Law::normal(0.1).unwrap());
    for (name, law, spread, norm) in [
        ("uniform", wide, 10.0, Norm::L2),
        ("normal", narrow, 0.1, Norm::L2),
        ("uniform", wide, 10.0, Norm::L1),
    ] {
        let pairs = Pairs::new(law, (norm, 10.0), dim, 1).unwrap();
        let mut group = c.benchmark_group(format!("beyond/{name} {norm:?}"));
        group.throughput(Throughput::Elements(DRAWS as u64));
        let mut answers = Vec::new();
        for cpu in Cpu::present() {
            let beyond =
                || sensitivity::beyond(&pairs, count, &Options::new().cpu(cpu).threads(1)).unwrap();
            group.bench_function(cpu.name(), |b| b.iter(|| black_box(beyond())));
            answers.push(beyond());
        }
        group.finish();
        // All pairs of long vectors, and hardly any of the short ones or in L1.
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert!(answers[0] == if spread > 1.0 && norm == Norm::L2 { count } else { 0 });
    }
}

criterion_group!(
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = fill, rivals, single, count, beyond
);
criterion_main!(benches);
