//! Counts of pairs that are too far apart: the same on every path, thread and unit.

use std::sync::atomic::AtomicBool;

use dpcore::sensitivity::{Law, Pairs, beyond};
use dpcore::{Cpu, Error, Norm, Options};

const LAWS: [(&str, f64); 3] = [("uniform", 10.0), ("normal", 1.0), ("normal", 0.1)];

fn pairs(law: (&str, f64), norm: Norm, dim: usize, seed: u64) -> Pairs {
    let law = if law.0 == "normal" { Law::normal(law.1) } else { Law::uniform(law.1) };
    Pairs::new(law.unwrap(), (norm, 10.0), dim, seed).unwrap()
}

fn count(pairs: &Pairs, count: u64, cpu: Cpu, threads: usize) -> u64 {
    beyond(pairs, count, &Options::new().cpu(cpu).threads(threads)).unwrap()
}

#[test]
fn neither_threads_nor_paths_change_a_count() {
    for (law, dim) in [(LAWS[0], 3), (LAWS[1], 16), (LAWS[2], 170)] {
        let pairs = pairs(law, Norm::L2, dim, 3);
        let expected = count(&pairs, 5000, Cpu::Baseline, 1);
        assert!(expected > 500 && expected < 4500, "{expected}");
        for cpu in Cpu::present() {
            for threads in [1, 2, 5] {
                assert_eq!(count(&pairs, 5000, cpu, threads), expected);
            }
        }
    }
}

/// A stored count may only change with the label "value-breaking" in the changelog.
#[test]
fn counts_are_stable() {
    let cases = [(LAWS[0], 3), (LAWS[1], 16), (LAWS[2], 170)];
    let counts = cases.map(|(law, dim)| {
        let pairs = pairs(law, Norm::L2, dim, 7);
        beyond(&pairs, 100_000, &Options::new()).unwrap()
    });
    assert_eq!(counts, [37_756, 27_552, 23_228]);
}

#[test]
fn a_change_of_unit_changes_nothing() {
    let law = |unit: f64| Law::normal(0.125 * unit).unwrap();
    let at = |unit| Pairs::new(law(unit), (Norm::L2, unit), 12, 9).unwrap();
    let expected = count(&at(1.0), 2000, Cpu::Baseline, 1);
    assert!(expected > 0 && expected < 2000);
    for power in [-300, -7, 4, 300] {
        assert_eq!(count(&at(2.0_f64.powi(power)), 2000, Cpu::Baseline, 1), expected);
    }
}

#[test]
fn bad_arguments_are_named_and_a_stop_is_an_error() {
    let refused = |law: fn(f64) -> Result<Law, Error>, spread| law(spread).unwrap_err().to_string();
    for spread in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e101] {
        assert!(refused(Law::normal, spread).starts_with("spread must be a number from"));
    }
    let law = Law::uniform(1.0).unwrap();
    for (radius, dim, text) in [
        (0.0, 1, "radius must be"),
        (-1.0, 1, "radius must be"),
        (f64::NAN, 1, "radius must be"),
        (1.0, 0, "dim must be from 1 to 4096"),
        (1.0, 4097, "dim must be from 1 to 4096"),
        (f64::INFINITY, 1, "radius must be"),
        (1.0, usize::MAX, "dim must be from 1 to 4096"),
    ] {
        let error = Pairs::new(law, (Norm::L2, radius), dim, 1).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
    let pairs = Pairs::new(law, (Norm::L2, 1.0), 2, 1).unwrap();
    let stopped = beyond(&pairs, 10, &Options::new().stop(&AtomicBool::new(true)));
    assert_eq!(stopped, Err(Error::Interrupted));
    assert_eq!(beyond(&pairs, 0, &Options::new()), Ok(0));
}
