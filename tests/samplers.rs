//! The samplers: the same bits on every path, however the work is cut.

mod tools;

use std::sync::atomic::AtomicBool;

use dpcore::{Cpu, Error, Job, Noise, Purpose, probe, run};
use tools::{NOISES, bits, job, noise, plain, rows};

/// An input whose entries differ, with both zeros in it.
fn input(dim: usize) -> Vec<f64> {
    (0..dim)
        .map(|i| if i % 5 == 3 { -0.0 } else { (i % 7) as f64 - 0.25 * (i % 2) as f64 })
        .collect()
}

#[test]
fn every_path_gives_the_same_bytes() {
    for row in NOISES {
        for dim in [1, 3, 7, 31, 32, 33, 128] {
            let job = job(plain(noise(row)), &input(dim), 5000 / dim as u64 + 1);
            let trials = (3, 3 + 2_000_000 / 7 / dim as u64);
            let expected = bits(&rows(&job, trials, Cpu::Baseline, 1));
            for cpu in Cpu::present() {
                assert!(expected == bits(&rows(&job, trials, cpu, 1)), "{row:?} {dim} {cpu:?}");
            }
        }
    }
}

/// As [`every_path_gives_the_same_bytes`], with all coordinates alike (another kernel).
#[test]
fn every_path_gives_the_same_bytes_where_coordinates_are_alike() {
    for row in NOISES {
        let job = job(plain(noise(row)), &[0.5; 32], 1 << 12);
        let expected = bits(&rows(&job, (0, 1 << 14), Cpu::Baseline, 1));
        for cpu in Cpu::present() {
            assert!(expected == bits(&rows(&job, (0, 1 << 14), cpu, 1)), "{row:?} {cpu:?}");
        }
    }
}

#[test]
#[ignore = "long: run with --release"]
fn a_hundred_million_laplace_draws_are_the_same_on_every_path() {
    let job = job(plain(noise(NOISES[2])), &[0.0; 100], 1 << 10);
    for start in (0..1_000_000).step_by(50_000) {
        let expected = bits(&rows(&job, (start, start + 50_000), Cpu::Baseline, 2));
        for cpu in Cpu::present() {
            assert!(expected == bits(&rows(&job, (start, start + 50_000), cpu, 2)), "{cpu:?}");
        }
    }
}

#[test]
fn alike_and_different_coordinates_give_the_same_bits() {
    // The same centre in all entries but the last, so that two kernels meet on the others.
    for row in NOISES {
        let mut other = vec![0.25; 33];
        let alike = rows(&job(plain(noise(row)), &other, 100), (0, 1000), Cpu::Baseline, 1);
        other[32] = 0.5;
        let differs = rows(&job(plain(noise(row)), &other, 100), (0, 1000), Cpu::Baseline, 1);
        for (a, b) in alike.chunks(33).zip(differs.chunks(33)) {
            assert_eq!(bits(&a[..32]), bits(&b[..32]), "{row:?}");
        }
    }
}

#[test]
fn single_precision_is_double_rounded() {
    for row in NOISES {
        for cpu in Cpu::present() {
            let job = job(plain(noise(row)), &input(31), 64);
            let double = rows(&job, (5, 500), cpu, 1);
            let mut single = vec![0.0_f32; double.len()];
            run::sample(&job, &mut single, 5, (cpu, 2), &AtomicBool::new(false)).unwrap();
            let same =
                double.iter().zip(&single).all(|(a, b)| (*a as f32).to_bits() == b.to_bits());
            assert!(same, "{row:?} {cpu:?}");
        }
    }
}

#[test]
fn a_slice_is_part_of_the_whole() {
    for row in NOISES {
        for (dim, block) in [(1, 5000), (3, 700), (7, 1), (33, 63), (128, 16), (128, 17)] {
            let job = job(plain(noise(row)), &input(dim), block);
            let whole = bits(&rows(&job, (0, 3 * block + 11), Cpu::Baseline, 1));
            let mut cuts =
                vec![0, 1, block - 1, block, block + 1, 2 * block, 2 * block + block / 2];
            cuts.push(3 * block + 11);
            cuts.sort_unstable();
            for cpu in Cpu::present() {
                let mut parts = Vec::new();
                for cut in cuts.windows(2) {
                    parts.extend(bits(&rows(&job, (cut[0], cut[1]), cpu, 1)));
                }
                assert!(parts == whole, "{row:?} {dim} {block} {cpu:?}");
            }
        }
    }
}

#[test]
fn one_thread_gives_what_four_do() {
    for row in NOISES {
        let job = job(plain(noise(row)), &input(13), 50);
        let one = bits(&rows(&job, (7, 2000), Cpu::Baseline, 1));
        assert!(one == bits(&rows(&job, (7, 2000), Cpu::Baseline, 4)), "{row:?}");
    }
}

#[test]
fn the_three_laplace_formulas_are_one_function() {
    let draws = |mode| {
        let noise = Noise::new("Laplace", &[0.7], mode).unwrap();
        bits(&rows(&job(plain(noise), &[1.0, 2.0], 1000), (0, 10_000), Cpu::Baseline, 1))
    };
    assert_eq!(draws("two_branch"), draws("sign"));
    assert_eq!(draws("two_branch"), draws("centred"));
}

#[test]
fn signed_zeros_are_kept() {
    let identity = job(plain(noise(NOISES[0])), &[0.0, -0.0], 10);
    for cpu in Cpu::present() {
        let out = rows(&identity, (0, 1), cpu, 1);
        assert_eq!(bits(&out), bits(&[0.0, -0.0]));
    }
}

/// A stored stream may only change with the label "value-breaking" in the changelog.
#[test]
fn values_are_stable() {
    for (row, golden) in NOISES.into_iter().zip(GOLDEN) {
        for cpu in Cpu::present() {
            let values = rows(&job(plain(noise(row)), &[0.0; 4], 1 << 10), (0, 1), cpu, 1);
            assert_eq!(bits(&values), golden, "{row:?} {cpu:?}: {:#x?}", bits(&values));
        }
    }
}

/// The first four values of each noise at seed 1, purpose count, side 0, block 0. The words and the
/// formulas were checked once against a separate program in Python with mpmath.
const GOLDEN: [[u64; 4]; 11] = [
    [0, 0, 0, 0],
    [0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0000, 0, 0],
    [0x3fe5_b98a_f253_5e23, 0x3fe8_6474_112f_1086, 0xbfcc_5913_ab2e_1038, 0xbfd4_e11c_9138_d162],
    [0x3fe5_b98a_f253_5e23, 0x3fe8_6474_112f_1086, 0xbfcc_5913_ab2e_1038, 0xbfd4_e11c_9138_d162],
    [0x3fe5_b98a_f253_5e23, 0x3fe8_6474_112f_1086, 0xbfcc_5913_ab2e_1038, 0xbfd4_e11c_9138_d162],
    [0xbff6_7cb6_736f_2317, 0x3ff5_add7_8bf5_1475, 0xbfef_abef_fd77_5184, 0xbffd_2359_a64a_b588],
    [0x4008_c846_5a1a_eebe, 0x4009_c85d_c5ad_51a4, 0x3ffc_7c75_293f_789b, 0x3ffa_8a8a_f105_f612],
    [0x3ff4_0f38_ba15_f940, 0x3ff4_df9f_8f05_ef30, 0x3fe2_2140_a1f4_2e0c, 0x3fdf_248f_19dd_0fcc],
    [0, 0, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
    [0x3fea_1801_bc6c_060a, 0x3fdc_b271_9c23_dca6, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
    [0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
];

fn at(noise: Noise, words: &[u64]) -> Vec<f64> {
    probe::noise_at(noise, words).unwrap()
}

#[test]
fn laplace_at_the_ends() {
    for mode in ["two_branch", "sign", "centred"] {
        let noise = Noise::new("Laplace", &[3.0], mode).unwrap();
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
        let noise = Noise::new("DPTextNoise", &[3.0], mode).unwrap();
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
    let exponential = Noise::new("Exponential", &[3.0], "").unwrap();
    let values = at(exponential, &[0, u64::MAX]);
    assert_eq!(values[0], 0.0);
    assert!((values[1] - 3.0 * 52.0 * 2.0_f64.ln()).abs() < 1e-13, "{values:?}");
    let uniform = Noise::new("Uniform", &[-1.0, 1.0], "").unwrap();
    assert_eq!(at(uniform, &[0, 1 << 63, u64::MAX]), [-1.0, 0.0, 1.0 - 2.0_f64.powi(-51)]);
    let coin = Noise::new("RandomBits", &[], "").unwrap();
    assert_eq!(at(coin, &[0, (1 << 63) - 1, 1 << 63, u64::MAX]), [0.0, 0.0, 1.0, 1.0]);
    let gaussian = Noise::new("Gaussian", &[1.0], "").unwrap();
    assert_eq!(probe::noise_at(gaussian, &[1]), None);
    assert!(gaussian.no_integer_route().is_some());
}

#[test]
fn dptext_does_with_nan_what_its_name_says() {
    let draws = |mode| {
        let noise = Noise::new("DPTextNoise", &[1.0], mode).unwrap();
        rows(&job(plain(noise), &[0.0; 8], 1000), (0, 5000), Cpu::Baseline, 1)
    };
    let (zero, resample, keep) = (draws("zero"), draws("resample"), draws("keep"));
    let nan = keep.iter().filter(|value| value.is_nan()).count();
    assert!((19_000..21_000).contains(&nan), "{nan}");
    for (zero, keep) in zero.iter().zip(&keep) {
        assert!(if keep.is_nan() { *zero == 0.0 } else { zero == keep });
    }
    assert!(resample.iter().all(|value| *value >= 0.0 && value.is_finite()));
    assert!(resample.iter().filter(|value| **value == 0.0).count() < 2);
    // A lane whose first word is a number takes no other one.
    assert!(keep[..8].iter().zip(&resample[..8]).all(|(k, r)| k.is_nan() || k == r));
}

#[test]
fn a_blind_noise_ignores_the_input_and_a_factor_multiplies_the_sum() {
    let coin = plain(noise(NOISES[1]));
    let draws = |x: &[f64]| rows(&job(coin, x, 100), (0, 100), Cpu::Baseline, 1);
    assert_eq!(draws(&[5.0, -3.0]), draws(&[0.0, 0.0]));
    let laplace = plain(noise(NOISES[2]));
    let halved = dpcore::Mechanism::new(laplace.noise, None, 0.5).unwrap();
    let x = input(9);
    let (whole, half) = (job(laplace, &x, 50), job(halved, &x, 50));
    for cpu in Cpu::present() {
        let expected: Vec<f64> = rows(&whole, (0, 120), cpu, 1).iter().map(|y| y * 0.5).collect();
        assert_eq!(bits(&rows(&half, (0, 120), cpu, 1)), bits(&expected));
    }
}

#[test]
fn other_streams_give_other_values() {
    let mechanism = plain(noise(NOISES[2]));
    let draws = |seed, purpose, side| {
        let job = Job::new(mechanism, &[0.0; 4], (seed, purpose, side), 10).unwrap();
        rows(&job, (0, 20), Cpu::Baseline, 1)
    };
    let base = draws(1, Purpose::Count, 0);
    for other in [
        draws(2, Purpose::Count, 0),
        draws(1, Purpose::Pilot, 0),
        draws(1, Purpose::Selection, 0),
        draws(1, Purpose::Sample, 0),
        draws(1, Purpose::Count, 1),
    ] {
        assert!(base.iter().zip(&other).all(|(a, b)| a != b));
    }
    assert_ne!(base[..40], base[40..], "two blocks are two streams");
}

#[test]
fn bad_requests_are_errors() {
    let mechanism = plain(noise(NOISES[2]));
    let name = (1, Purpose::Count, 0);
    let of = |x: &[f64], block| Job::new(mechanism, x, name, block).map(|_| ()).unwrap_err();
    let starts = |error: Error, text: &str| assert!(error.to_string().starts_with(text), "{error}");
    starts(of(&[], 1), "x must be of at least one entry");
    starts(of(&[f64::NAN], 1), "x must be finite");
    starts(of(&[1.0], 0), "block must be from 1");
    starts(of(&[1.0], u64::MAX), "block must be from 1");
    let job = job(mechanism, &[0.0; 3], 10);
    let stop = AtomicBool::new(false);
    let mut out = [0.0; 4];
    starts(run::sample(&job, &mut out, 0, (Cpu::Baseline, 1), &stop).unwrap_err(), "out must be");
    let last = run::sample(&job, &mut out[..3], u64::MAX, (Cpu::Baseline, 1), &stop);
    starts(last.unwrap_err(), "start must be small enough");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = run::sample(&job, &mut out[..3], 0, (Cpu::Baseline, 1), &stop);
    assert_eq!(stopped, Err(Error::Interrupted));
}

/// Windows of neighbouring grid points: values never fall, and those of the logarithm rise.
#[test]
fn values_are_monotone_on_the_grid() {
    const WINDOW: u64 = 3000;
    for row in NOISES {
        let Some(_) = probe::noise_at(noise(row), &[]) else { continue };
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
            let values = at(noise(row), &words);
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
