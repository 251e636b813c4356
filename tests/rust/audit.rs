//! Audits: Python's counts for the crate's mechanisms, and functions of one's own.

use std::sync::atomic::AtomicBool;

use dpcore::bounds::{Counts, clopper_pearson};
use dpcore::{
    Cpu, Error, Exponential, Gaussian, Identity, Laplace, Mechanism, Noise, Options, RandomBits,
    Side, Words, audit,
};

fn named(name: &str, scale: f64) -> Noise {
    match name {
        "Laplace" => Laplace::new(scale).unwrap().into(),
        "Gaussian" => Gaussian::new(scale).unwrap().into(),
        "Exponential" => Exponential::new(scale).unwrap().into(),
        "RandomBits" => RandomBits.into(),
        _ => Identity.into(),
    }
}

/// The table is made by Python (`tests/reference/make_audits.py`), and held by a test there.
#[test]
fn counts_and_bounds_are_those_of_python() {
    for line in include_str!("../reference/audits.csv").lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let number = |i: usize| -> f64 { row[i].parse().unwrap() };
        let whole = |i: usize| -> u64 { row[i].parse().unwrap() };
        let dim = whole(2) as usize;
        let found = audit::of(
            Mechanism::new(named(row[0], number(1))),
            &vec![0.0; dim],
            &vec![number(3); dim],
        );
        let request = found.unwrap().seed(whole(5)).delta(number(6)).unwrap();
        let found = request.run(whole(4), &Options::new().threads(2)).unwrap();
        let counts = Counts { k: whole(7), n: whole(4), k_prime: whole(8), n_prime: whole(4) };
        assert_eq!(found.counts, counts, "{line}");
        assert_eq!(found.opposite, row[9] == "x", "{line}");
        assert_eq!(found.direction == Side::X, row[10] == "x", "{line}");
        assert_eq!(found.pilot, whole(11), "{line}");
        assert!((found.epsilon_lower() - number(12)).abs() < 1e-12, "{line}");
    }
}

/// Laplace noise of a word, by the textbook.
fn laplace(scale: f64) -> impl Fn(&[f64], &mut Words, &mut [f64]) + Sync {
    move |x, words, out| {
        for (x, out) in x.iter().zip(out) {
            let u = ((words.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64 - 0.5;
            *out = x - scale * u.signum() * (1.0 - 2.0 * u.abs()).ln();
        }
    }
}

fn of_scale<'a>(scale: f64) -> audit::Request<'a> {
    audit::of_function(laplace(scale), &[0.0], &[1.0]).unwrap().claim(1.0).unwrap()
}

#[test]
fn a_function_that_breaks_its_claim_is_refuted_and_one_that_keeps_it_is_not() {
    let broken = of_scale(0.7).run(20_000, &Options::new()).unwrap();
    assert_eq!(broken.refuted(), Some(true), "{broken}");
    assert!(broken.epsilon_lower() < 1.0 / 0.7, "{broken}");
    assert!(broken.to_string().starts_with("verdict    refuted\nclaim      epsilon <= 1"));
    // At its exact epsilon: of 200 audits at 90 % few overclaim. P(more than 36) is 2e-4 at most.
    let wrong = (0..200).filter(|&seed| {
        let request = of_scale(1.0).confidence(0.9).unwrap().seed(seed);
        request.run(500, &Options::new().threads(1)).unwrap().refuted() == Some(true)
    });
    assert!(wrong.count() <= 36);
}

#[test]
fn a_bound_that_equals_the_claim_does_not_refute_it() {
    let run = |claim| of_scale(0.7).claim(claim).unwrap().run(2_000, &Options::new()).unwrap();
    let bound = run(1.0).epsilon_lower();
    assert_eq!(run(bound).refuted(), Some(false));
    assert_eq!(run(bound.next_down()).refuted(), Some(true));
}

#[test]
fn neither_threads_nor_cpus_change_a_count_and_seeds_do() {
    let run = |seed, options: &Options<'_>| of_scale(1.0).seed(seed).run(9_000, options).unwrap();
    let one = run(1, &Options::new().threads(1));
    assert_eq!(one.counts.n, 9_000);
    for cpu in Cpu::present() {
        assert_eq!(run(1, &Options::new().threads(3).cpu(cpu)), one);
    }
    assert_ne!(run(2, &Options::new()).counts, one.counts);
}

#[test]
fn an_event_of_ones_own_is_counted() {
    let far = |output: &[f64]| output[0] > 3.0;
    let own = of_scale(0.5).event(1, far).unwrap().run(50_000, &Options::new()).unwrap();
    assert!(!own.opposite && own.direction == Side::XPrime && own.refuted() == Some(true), "{own}");
    // Likelier on x by a factor of 3; the opposite, on x' by 6, is another event.
    let low = of_scale(0.5).event(1, |out| out[0] < 0.75).unwrap();
    let low = low.run(50_000, &Options::new()).unwrap();
    assert!(!low.opposite && low.direction == Side::X && low.counts.k > low.counts.k_prime);
    // Outputs of another length, NaN among them.
    let two = |_: &[f64], words: &mut Words, out: &mut [f64]| {
        out.copy_from_slice(&[words.word() as f64, f64::NAN]);
    };
    let request = audit::of_function(two, &[0.0], &[1.0]).unwrap();
    let found = request.event(2, |out| out[1] > 0.0).unwrap().run(1000, &Options::new()).unwrap();
    assert_eq!((found.counts.k, found.nan, found.refuted()), (0, [1000, 1000], None));
    // A mechanism's event and its vote count the same outputs.
    let native = || audit::of(Mechanism::new(Laplace::new(0.5).unwrap()), &[0.0], &[1.0]).unwrap();
    let vote = native().seed(5).run(300_000, &Options::new()).unwrap();
    let own = native().seed(5).event(1, |out| out[0] >= 0.5).unwrap();
    let own = own.run(300_000, &Options::new().threads(2)).unwrap();
    assert!(!vote.opposite && own.counts == vote.counts);
    assert_eq!(clopper_pearson(own.counts.swapped(), 0.0, 0.95), Ok(own.epsilon_lower()));
}

#[test]
fn bad_requests_are_errors() {
    let refused = |x: &[f64], x_prime: &[f64]| {
        audit::of_function(laplace(1.0), x, x_prime).err().unwrap().to_string()
    };
    assert!(refused(&[], &[]).starts_with("x must be of at least one entry"));
    assert!(refused(&[f64::NAN], &[0.0]).starts_with("x must be finite"));
    assert!(refused(&[0.0], &[f64::INFINITY]).starts_with("x_prime must be finite"));
    assert!(refused(&[0.0], &[0.0, 1.0]).starts_with("x_prime must be as long as x"));
    assert!(refused(&[0.5], &[0.5]).starts_with("x_prime must be different"));
    let told = |found: Result<audit::Request<'_>, Error>| found.err().unwrap().to_string();
    assert!(told(of_scale(1.0).claim(f64::NAN)).starts_with("claim must be"));
    assert!(told(of_scale(1.0).claim(-1.0)).starts_with("claim must be"));
    assert!(told(of_scale(1.0).delta(1.0)).starts_with("delta must be"));
    assert!(told(of_scale(1.0).confidence(0.0)).starts_with("confidence must be"));
    assert!(told(of_scale(1.0).event(0, |_| true)).starts_with("dim must be at least 1"));
    let run = |trials, options: &Options<'_>| of_scale(1.0).run(trials, options).unwrap_err();
    assert!(run(0, &Options::new()).to_string().starts_with("trials must be from 1"));
    for threads in [0, 2000] {
        let error = run(10, &Options::new().threads(threads)).to_string();
        assert!(error.starts_with("threads must be from 1 to 1024"), "{error}");
    }
    let stop = AtomicBool::new(true);
    assert_eq!(run(10, &Options::new().stop(&stop)), Error::Interrupted);
}
