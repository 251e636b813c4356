//! The values at the ends of the grids, and that they never fall in between.

use super::noise_at;
use crate::mechanisms::Noise;

/// Class name, scales and mode of every monotone noise.
const NOISES: [(&str, &[f64], &str); 8] = [
    ("Identity", &[], ""),
    ("RandomBits", &[], ""),
    ("Laplace", &[2.0], "sign"),
    ("Exponential", &[3.0], ""),
    ("Uniform", &[-1.0, 2.5], ""),
    ("DPTextNoise", &[2.0], "zero"),
    ("DPTextNoise", &[2.0], "resample"),
    ("DPTextNoise", &[2.0], "keep"),
];

fn at(noise: Noise, words: &[u64]) -> Vec<f64> {
    noise_at(noise, words).unwrap()
}

#[test]
fn laplace_at_the_ends() {
    for mode in ["two_branch", "sign", "centred"] {
        let noise = Noise::named("Laplace", &[3.0], mode).unwrap();
        // k = 0 takes the value of k = 1, whatever the lower bits.
        let words = [0, 0x7ff, 1 << 11, (1 << 11) | 0x7ff, 2 << 11, u64::MAX, u64::MAX << 11];
        let values = at(noise, &words);
        let least = -3.0 * 52.0 * 2.0_f64.ln();
        assert!((values[0] - least).abs() < 1e-13, "{values:?}");
        assert!(values[..4].iter().all(|value| *value == values[0]), "{values:?}");
        assert!(values[4] > values[0]);
        // The other end: k = 2^53 - 1.
        assert_eq!(values[5], -values[0]);
        assert_eq!(values[6], values[5]);
        assert!(values[5] / 3.0 > 36.04 && values[5] / 3.0 < 36.05);
        // The middle: u = 1/2 is 0, and its neighbours lie on both sides.
        let middle = 1_u64 << 63;
        let values = at(noise, &[middle - (1 << 11), middle, middle + (1 << 11)]);
        assert!(values[0] < 0.0 && values[1] == 0.0 && values[2] > 0.0, "{values:?}");
        assert_eq!(values[0], -values[2]);
    }
}

#[test]
fn dptext_at_the_ends() {
    for mode in ["zero", "resample", "keep"] {
        let noise = Noise::named("DPTextNoise", &[3.0], mode).unwrap();
        let half = 1_u64 << 63;
        // u = 1/2 takes the value of its neighbour below.
        let values = at(noise, &[0, half - (1 << 11), half, half | 0x7ff]);
        assert_eq!(values[0], 0.0);
        assert_eq!(values[2], values[1]);
        assert_eq!(values[3], values[1]);
        assert!((values[1] - 3.0 * 52.0 * 2.0_f64.ln()).abs() < 1e-13, "{values:?}");
    }
}

#[test]
fn the_other_noises_at_the_ends() {
    let exponential = Noise::named("Exponential", &[3.0], "").unwrap();
    let values = at(exponential, &[0, u64::MAX]);
    assert_eq!(values[0], 0.0);
    assert!((values[1] - 3.0 * 52.0 * 2.0_f64.ln()).abs() < 1e-13, "{values:?}");
    let uniform = Noise::named("Uniform", &[-1.0, 1.0], "").unwrap();
    assert_eq!(at(uniform, &[0, 1 << 63, u64::MAX]), [-1.0, 0.0, 1.0 - 2.0_f64.powi(-51)]);
    let coin = Noise::named("RandomBits", &[], "").unwrap();
    assert_eq!(at(coin, &[0, (1 << 63) - 1, 1 << 63, u64::MAX]), [0.0, 0.0, 1.0, 1.0]);
    let gaussian = Noise::named("Gaussian", &[1.0], "").unwrap();
    assert_eq!(noise_at(gaussian, &[1]), None);
    assert!(gaussian.no_integer_route().is_some());
}

#[test]
fn the_three_laplace_formulas_are_one_function() {
    let of = |mode| Noise::named("Laplace", &[0.7], mode).unwrap();
    assert_eq!(of("two_branch"), of("sign"));
    assert_eq!(of("two_branch"), of("centred"));
}

/// Windows of neighbouring grid points: values never fall, and those of the logarithm rise.
#[test]
fn values_are_monotone_on_the_grid() {
    const WINDOW: u64 = 3000;
    for row in NOISES {
        let noise = Noise::named(row.0, row.1, row.2).unwrap();
        let (shift, last, strict) = match row.0 {
            "Laplace" => (11, (1_u64 << 53) - 1, true),
            "Exponential" => (12, (1 << 52) - 1, true),
            "Uniform" => (12, (1 << 52) - 1, false),
            "DPTextNoise" => (11, 1 << 52, true),
            _ => (11, (1 << 53) - 1, false),
        };
        let middle = 1 << 52;
        let mut starts = vec![0, 1, last - WINDOW, middle.min(last) - WINDOW / 2];
        // Around every power of two from either end and from the middle, and at random.
        for power in 12..52 {
            let near = (1_u64 << power) - WINDOW / 2;
            starts.extend([near, last - near, middle - near, (middle + near).min(last)]);
        }
        let mut state = 9_u64;
        for _ in 0..60 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            starts.push(state % last);
        }
        for start in starts {
            let end = last.min(start + WINDOW);
            let words: Vec<u64> = (start..=end).map(|key| key << shift).collect();
            let values = at(noise, &words);
            for (i, pair) in values.windows(2).enumerate() {
                let key = start + i as u64;
                assert!(pair[0] <= pair[1], "{row:?} falls at {key}");
                // k = 0, and for dptext k = 2^52, share their neighbour's value on purpose.
                let shared =
                    (row.0 == "Laplace" && key == 0) || (row.0 == "DPTextNoise" && key + 1 == last);
                assert!(!strict || shared || pair[0] < pair[1], "{row:?} does not rise at {key}");
            }
        }
    }
}
