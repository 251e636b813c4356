//! The samplers: the same bits on every path, however the work is cut.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::tools::{bits, count, job, laplace, noises, rows};
use dpcore::run::{self, Real};
use dpcore::{Cpu, DpText, DpTextKeep, DpTextResample, Error, Identity, Job, Laplace, Mechanism};
use dpcore::{Noise, Options, Purpose, RandomBits, Route, Side, Uniform, Vote};

/// An input whose entries differ, with both zeros in it.
fn input(dim: usize) -> Vec<f64> {
    (0..dim)
        .map(|i| if i % 5 == 3 { -0.0 } else { (i % 7) as f64 - 0.25 * (i % 2) as f64 })
        .collect()
}

#[test]
fn every_path_gives_the_same_bytes() {
    for row in noises() {
        for dim in [1, 3, 7, 31, 32, 33, 128] {
            let job = job(Mechanism::new(row), &input(dim), 5000 / dim as u64 + 1);
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
    for row in noises() {
        let job = job(Mechanism::new(row), &[0.5; 32], 1 << 12);
        let expected = bits(&rows(&job, (0, 1 << 14), Cpu::Baseline, 1));
        for cpu in Cpu::present() {
            assert!(expected == bits(&rows(&job, (0, 1 << 14), cpu, 1)), "{row:?} {cpu:?}");
        }
    }
}

#[test]
#[ignore = "long: run with --release"]
fn a_hundred_million_laplace_draws_are_the_same_on_every_path() {
    let job = job(laplace(2.0), &[0.0; 100], 1 << 10);
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
    for row in noises() {
        let mut other = vec![0.25; 33];
        let alike = rows(&job(Mechanism::new(row), &other, 100), (0, 1000), Cpu::Baseline, 1);
        other[32] = 0.5;
        let differs = rows(&job(Mechanism::new(row), &other, 100), (0, 1000), Cpu::Baseline, 1);
        for (a, b) in alike.chunks(33).zip(differs.chunks(33)) {
            assert_eq!(bits(&a[..32]), bits(&b[..32]), "{row:?}");
        }
    }
}

#[test]
fn single_precision_is_double_rounded() {
    for row in noises() {
        for cpu in Cpu::present() {
            let job = job(Mechanism::new(row), &input(31), 64);
            let double = rows(&job, (5, 500), cpu, 1);
            let mut single = vec![0.0_f32; double.len()];
            let options = Options::new().cpu(cpu).threads(2);
            run::sample(&job, &mut single, 5, &options).unwrap();
            let same =
                double.iter().zip(&single).all(|(a, b)| (*a as f32).to_bits() == b.to_bits());
            assert!(same, "{row:?} {cpu:?}");
        }
    }
}

#[test]
fn a_slice_is_part_of_the_whole() {
    for row in noises() {
        for (dim, block) in [(1, 5000), (3, 700), (7, 1), (33, 63), (128, 16), (128, 17)] {
            let job = job(Mechanism::new(row), &input(dim), block);
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
    for row in noises() {
        let job = job(Mechanism::new(row), &input(13), 50);
        let one = bits(&rows(&job, (7, 2000), Cpu::Baseline, 1));
        assert!(one == bits(&rows(&job, (7, 2000), Cpu::Baseline, 4)), "{row:?}");
    }
}

#[test]
fn signed_zeros_are_kept() {
    let identity = job(Mechanism::new(Identity), &[0.0, -0.0], 10);
    for cpu in Cpu::present() {
        let out = rows(&identity, (0, 1), cpu, 1);
        assert_eq!(bits(&out), bits(&[0.0, -0.0]));
    }
}

/// A stored stream may only change with the label "value-breaking" in the changelog.
#[test]
fn values_are_stable() {
    for (row, golden) in noises().into_iter().zip(GOLDEN) {
        for cpu in Cpu::present() {
            let values = rows(&job(Mechanism::new(row), &[0.0; 4], 1 << 10), (0, 1), cpu, 1);
            assert_eq!(bits(&values), golden, "{row:?} {cpu:?}: {:#x?}", bits(&values));
        }
    }
}

/// The first four values of each noise at seed 1, purpose count, side 0, block 0. The words and the
/// formulas were checked once against a separate program in Python with mpmath.
const GOLDEN: [[u64; 4]; 9] = [
    [0, 0, 0, 0],
    [0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0000, 0, 0],
    [0x3fe5_b98a_f253_5e23, 0x3fe8_6474_112f_1086, 0xbfcc_5913_ab2e_1038, 0xbfd4_e11c_9138_d162],
    [0xbff6_7cb6_736f_2317, 0x3ff5_add7_8bf5_1475, 0xbfef_abef_fd77_5184, 0xbffd_2359_a64a_b588],
    [0x4008_c846_5a1a_eebe, 0x4009_c85d_c5ad_51a4, 0x3ffc_7c75_293f_789b, 0x3ffa_8a8a_f105_f612],
    [0x3ff4_0f38_ba15_f940, 0x3ff4_df9f_8f05_ef30, 0x3fe2_2140_a1f4_2e0c, 0x3fdf_248f_19dd_0fcc],
    [0, 0, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
    [0x3fea_1801_bc6c_060a, 0x3fdc_b271_9c23_dca6, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
    [0x7ff8_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x4012_0b38_6fbc_1232, 0x400e_4cae_edec_9f71],
];

/// Takes words into a hash: each is a bijection of it, and the turn lets no two bits meet again.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    })
}

/// The hash of 2^22 outputs, one half on coordinates that are alike.
fn hashed<T: Real + Default>(noise: Noise, cpu: Cpu, word: impl Fn(T) -> u64 + Copy) -> u64 {
    let mut out = vec![T::default(); 1 << 21];
    let [alike, different] = [&[0.0; 4], &[0.0, -0.0, 0.0, 0.5]].map(|x| {
        let job = job(Mechanism::new(noise), x, 30_000);
        run::sample(&job, &mut out, 5, &Options::new().cpu(cpu).threads(1)).unwrap();
        hash(out.iter().map(|&value| word(value)))
    });
    hash([alike, different].into_iter())
}

/// The hash of counts of 2^22 outputs: one threshold after the other, either way.
fn counted(noise: Noise, cpu: Cpu, route: Route) -> u64 {
    let job = job(Mechanism::new(noise), &[0.0, 0.125], 10_000);
    let counts = (0..64).map(|k| {
        let (threshold, towards) = (k as f64 / 8.0 - 3.0, if k % 2 == 0 { 1 } else { -1 });
        let (threshold, towards) = ([threshold, threshold], [towards, 1]);
        let vote = Vote::new(&threshold, &towards).unwrap();
        let counted = count(&job, &vote, (k << 15, (k + 1) << 15), route, (cpu, 1)).unwrap();
        counted.votes << 32 | counted.nan
    });
    hash(counts)
}

/// What ties machines to each other, beyond the first values: every output of a long run. The
/// hashes may change as [`GOLDEN`] may.
#[test]
fn long_runs_are_stable() {
    for (noise, golden) in noises().into_iter().zip(HASHES) {
        for cpu in Cpu::present() {
            let found = [
                hashed(noise, cpu, f64::to_bits),
                hashed(noise, cpu, |value: f32| value.to_bits().into()),
                counted(noise, cpu, Route::Sampled),
            ];
            assert_eq!(found, golden, "{noise:?} {cpu:?}: {found:#x?}");
            if noise.no_integer_route().is_none() {
                assert_eq!(counted(noise, cpu, Route::Integer), golden[2], "{noise:?} {cpu:?}");
            }
        }
    }
}

/// Hashes of 2^22 outputs as f64, as f32, and of counts.
const HASHES: [[u64; 3]; 9] = [
    [0xd2e5_78af_cc13_98df, 0x4860_c545_0215_8842, 0x7cc5_d2cd_21d3_33a0],
    [0xf868_93d9_46c8_dcdb, 0x1a17_cb63_86d2_0049, 0xcf84_b0b8_3144_cb13],
    [0xf009_f45a_4c37_8d03, 0x6902_2763_78d1_4d15, 0x8b72_2fe6_b127_0a38],
    [0x2f34_4743_c2a8_e29c, 0x76b3_2e30_98f7_3055, 0xf878_264a_6ecb_96c7],
    [0xee9a_6a4a_f746_cdc1, 0xcaa3_f42e_1abf_bef1, 0x5c13_69cc_f53a_b4d5],
    [0x12a5_6efe_c77e_7acd, 0x6e75_f916_8043_a889, 0x2918_d7e6_66df_cce7],
    [0x1ad8_3c87_ef17_89c7, 0x6e42_15ed_d1fd_2024, 0xf105_0561_8eeb_8726],
    [0xcff7_a38f_52c7_c3b2, 0x8252_133c_f3dd_8c9a, 0xbc38_90e3_204a_86ee],
    [0xbb1c_b4d4_64fb_69b0, 0x796b_8df3_6821_7b77, 0xfeac_674a_9b49_07c1],
];

#[test]
fn dptext_does_with_nan_what_its_name_says() {
    let draws = |noise: Noise| {
        rows(&job(Mechanism::new(noise), &[0.0; 8], 1000), (0, 5000), Cpu::Baseline, 1)
    };
    let zero = draws(DpText::new(1.0).unwrap().into());
    let resample = draws(DpTextResample::new(1.0).unwrap().into());
    let keep = draws(DpTextKeep::new(1.0).unwrap().into());
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
    let coin = Mechanism::new(RandomBits);
    let draws = |x: &[f64]| rows(&job(coin, x, 100), (0, 100), Cpu::Baseline, 1);
    assert_eq!(draws(&[5.0, -3.0]), draws(&[0.0, 0.0]));
    let halved = laplace(2.0).scaled(0.5).unwrap();
    let x = input(9);
    let (whole, half) = (job(laplace(2.0), &x, 50), job(halved, &x, 50));
    for cpu in Cpu::present() {
        let expected: Vec<f64> = rows(&whole, (0, 120), cpu, 1).iter().map(|y| y * 0.5).collect();
        assert_eq!(bits(&rows(&half, (0, 120), cpu, 1)), bits(&expected));
    }
}

#[test]
fn other_streams_give_other_values() {
    let draws = |seed, purpose, side| {
        let job = job(laplace(2.0), &[0.0; 4], 10).seed(seed).purpose(purpose).side(side);
        rows(&job, (0, 20), Cpu::Baseline, 1)
    };
    let base = draws(1, Purpose::Count, Side::X);
    for other in [
        draws(2, Purpose::Count, Side::X),
        draws(1, Purpose::Pilot, Side::X),
        draws(1, Purpose::Selection, Side::X),
        draws(1, Purpose::Sample, Side::X),
        draws(1, Purpose::Count, Side::XPrime),
    ] {
        assert!(base.iter().zip(&other).all(|(a, b)| a != b));
    }
    assert_ne!(base[..40], base[40..], "two blocks are two streams");
}

#[test]
fn bad_requests_are_errors() {
    let of = |x: &[f64]| Job::new(laplace(2.0), x).map(|_| ()).unwrap_err();
    let block = |block| Job::new(laplace(2.0), &[1.0]).unwrap().block(block).unwrap_err();
    let starts = |error: Error, text: &str| assert!(error.to_string().starts_with(text), "{error}");
    starts(of(&[]), "x must be of at least one entry");
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        starts(of(&[1.0, value]), "x must be finite");
        starts(Laplace::new(value).unwrap_err(), "scale must be a finite number above 0");
        starts(laplace(1.0).scaled(value).unwrap_err(), "factor must be a finite number above 0");
    }
    for (low, high) in [(1.0, 1.0), (2.0, 1.0)] {
        starts(Uniform::new(low, high).unwrap_err(), "low must be below high = 1.0, got");
    }
    starts(laplace(1.0).scaled(-1.0).unwrap_err(), "factor must be a finite number above 0");
    starts(block(0), "block must be from 1");
    starts(block(u64::MAX), "block must be from 1");
    let job = job(laplace(2.0), &[0.0; 3], 10);
    let mut out = [0.0; 4];
    let mut fill = |rows: usize, start, options: &Options<'_>| {
        run::sample(&job, &mut out[..rows], start, options).unwrap_err()
    };
    starts(fill(4, 0, &Options::new()), "out must be");
    starts(fill(3, u64::MAX, &Options::new()), "start must be small enough");
    for threads in [0, 2000, usize::MAX] {
        let error = fill(3, 0, &Options::new().threads(threads)).to_string();
        assert_eq!(error, format!("threads must be from 1 to 1024, got {threads}"));
    }
    for cpu in Cpu::ALL.into_iter().filter(|cpu| !cpu.available()) {
        starts(fill(3, 0, &Options::new().cpu(cpu)), "cpu must be a path");
    }
    let stop = AtomicBool::new(true);
    assert_eq!(fill(3, 0, &Options::new().stop(&stop)), Error::Interrupted);
    stop.store(false, Ordering::Relaxed);
    assert_eq!(run::sample(&job, &mut out[..3], 0, &Options::new().stop(&stop)), Ok(()));
}
