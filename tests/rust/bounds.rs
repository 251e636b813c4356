//! The exact binomial limits against a table to 20 digits (tests/reference).

use dpcore::bounds::{Counts, clopper_pearson, limits};

/// Rows of a table without its head, split at commas.
fn table(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

fn near(found: f64, expected: f64) -> bool {
    found == expected || (found / expected - 1.0).abs() < 1e-12
}

#[test]
fn limits_are_those_of_the_table() {
    let (mut rows, mut worst) = (0, 0.0_f64);
    for row in table(include_str!("../reference/clopper_pearson.csv")) {
        let (k, n) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        let (low, high) = limits(k, n, row[2].parse().unwrap()).unwrap();
        for (found, expected) in [(low, row[3]), (high, row[4])] {
            let expected: f64 = expected.parse().unwrap();
            worst = worst.max((found / expected - 1.0).abs());
            assert!(near(found, expected), "{row:?}: {found:e}");
        }
        rows += 1;
    }
    println!("worst relative error {worst:e} in {rows} rows");
    assert!(rows > 50, "{rows}");
}

#[test]
fn the_bound_is_the_quotient_of_two_limits() {
    let counts = Counts { k: 900, n: 1000, k_prime: 100, n_prime: 2000 };
    let (low, high) = (limits(900, 1000, 0.025).unwrap().0, limits(100, 2000, 0.025).unwrap().1);
    let epsilon = |delta| clopper_pearson(counts, delta, 0.95).unwrap();
    assert!(near(epsilon(0.0), (low / high).ln()) && near(epsilon(0.5), ((low - 0.5) / high).ln()));
    assert_eq!(epsilon(low), 0.0);
    assert_eq!(clopper_pearson(counts.swapped(), 0.0, 0.95), Ok(0.0));
    assert_eq!(counts.complement().k_prime, 1900);
    // No event on x' leaves a bound, every event on both none.
    let ends = Counts { k: 10, n: 10, k_prime: 0, n_prime: 10 };
    assert!(near(clopper_pearson(ends, 0.0, 0.95).unwrap(), {
        let end = 0.025_f64.ln() / 10.0;
        end - (-end.exp_m1()).ln()
    }));
    assert_eq!(clopper_pearson(Counts { k_prime: 10, ..ends }, 0.0, 0.95), Ok(0.0));
}
