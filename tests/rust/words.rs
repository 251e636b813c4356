//! The words of a stream one at a time, and the crate `rand` on top of them.

use crate::tools::{noises, rows};
use dpcore::{Cpu, Job, Mechanism, Purpose, Side, Uniform, Words};

/// The uniform number of [0, 1) that a word becomes: its top 52 bits.
fn uniform(word: u64) -> f64 {
    (word >> 12) as f64 / (1_u64 << 52) as f64
}

fn filled(job: &Job, trials: u64) -> Vec<f64> {
    rows(job, (0, trials), Cpu::Baseline, 1)
}

#[test]
fn words_are_those_of_a_fill_block_after_block() {
    let mechanism = Mechanism::new(Uniform::new(0.0, 1.0).unwrap());
    for dim in [1, 4] {
        let job = Job::new(mechanism, &vec![0.0; dim]).unwrap().seed(7);
        let mut words = Words::new(7);
        let own = |words: &mut Words| uniform(words.word());
        assert!(filled(&job, 300_000 / dim as u64).iter().all(|&u| own(&mut words) == u));
        let other = job.purpose(Purpose::Pilot).side(Side::XPrime).block(1000).unwrap();
        for (number, block) in filled(&other, 3000).chunks(1000 * dim).enumerate() {
            let mut words = Words::of_block(7, Purpose::Pilot, Side::XPrime, number as u64);
            assert!(block.iter().all(|&u| own(&mut words) == u), "{dim} {number}");
        }
    }
    assert_eq!(format!("{:?}", Words::new(7)), "Words of seed 7, Sample, X, block 0");
    assert!(noises().len() >= 9);
}

#[cfg(feature = "rand")]
mod with_rand {
    use super::*;
    use crate::tools::bits;
    use dpcore::{
        DpText, DpTextKeep, DpTextResample, Exponential, Gaussian, Identity, Laplace, Noise,
        RandomBits,
    };
    use rand::distr::Distribution;
    use rand::rand_core::Infallible;
    use rand::seq::SliceRandom;
    use rand::{Rng, RngExt, SeedableRng, TryRng};

    /// Outputs of a fill on 0 with seed 7, longer than a block.
    fn fill(noise: impl Into<Noise>) -> Vec<f64> {
        let job = Job::new(Mechanism::new(noise), &[0.0]).unwrap().seed(7);
        rows(&job, (0, 140_000), Cpu::Baseline, 1)
    }

    fn agree(noise: impl Into<Noise> + Distribution<f64> + Copy) {
        let values: Vec<f64> = noise.sample_iter(Words::seed_from_u64(7)).take(140_000).collect();
        assert!(bits(&values) == bits(&fill(noise)));
    }

    #[test]
    fn noises_of_one_word_have_the_bits_of_a_fill() {
        agree(Identity);
        agree(RandomBits);
        agree(Laplace::new(2.0).unwrap());
        agree(Exponential::new(3.0).unwrap());
        agree(Uniform::new(-1.0, 2.5).unwrap());
        agree(DpText::new(2.0).unwrap());
        agree(DpTextKeep::new(2.0).unwrap());
    }

    #[test]
    fn what_is_drawn_again_comes_from_the_next_word_and_in_a_fill_from_the_lane() {
        let noise = DpTextResample::new(2.0).unwrap();
        let mut words = Words::seed_from_u64(7);
        let first = std::iter::repeat_with(|| words.word()).take_while(|word| word >> 63 == 0);
        let (first, filled) = (first.count(), fill(noise));
        let values: Vec<f64> = noise.sample_iter(Words::seed_from_u64(7)).take(1000).collect();
        assert_eq!(bits(&values[..first]), bits(&filled[..first]));
        assert_ne!(values[first], filled[first]);
        // Every value belongs to a word that is a number's.
        let keep = DpTextKeep::new(2.0).unwrap().sample_iter(Words::seed_from_u64(7));
        let kept: Vec<f64> = keep.filter(|value| !value.is_nan()).take(1000).collect();
        assert_eq!(bits(&kept), bits(&values));
    }

    /// A generator of given words.
    struct Given(std::vec::IntoIter<u64>);

    impl TryRng for Given {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unreachable!("a noise takes whole words")
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0.next().unwrap())
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!("a noise takes whole words")
        }
    }

    #[test]
    fn gaussian_pairs_are_those_of_a_fill_for_words_32_apart() {
        let (noise, mut words) = (Gaussian::new(1.5).unwrap(), Words::seed_from_u64(7));
        let filled = fill(noise);
        for filled in filled[..64 * 1000].chunks(64) {
            let own: Vec<u64> = (0..64).map(|_| words.word()).collect();
            for i in 0..32 {
                let [first, second] =
                    noise.sample(&mut Given(vec![own[i], own[i + 32]].into_iter()));
                assert_eq!(bits(&[first, second]), bits(&[filled[i], filled[i + 32]]));
            }
        }
        // From a generator the law is the same: mean and variance, five standard errors.
        let pairs: Vec<[f64; 2]> =
            noise.sample_iter(Words::seed_from_u64(7)).take(50_000).collect();
        let values = pairs.as_flattened();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / 1e5;
        assert!(mean.abs() < 5.0 * 1.5 / 1e5_f64.sqrt(), "{mean}");
        assert!((variance / 2.25 - 1.0).abs() < 5.0 * 2e-5_f64.sqrt(), "{variance}");
    }

    #[test]
    fn the_crate_rand_takes_the_words_as_a_generator() {
        let mut words = Words::seed_from_u64(7);
        let mut deck: Vec<u32> = (0..52).collect();
        deck.shuffle(&mut words);
        assert_ne!(deck, (0..52).collect::<Vec<_>>());
        deck.sort_unstable();
        assert_eq!(deck, (0..52).collect::<Vec<_>>());
        let faces = (0..60_000).fold([0; 6], |mut faces, _| {
            faces[words.random_range(0..6_usize)] += 1;
            faces
        });
        // Chi-square with five degrees of freedom: 25.7 is its 0.9999 quantile.
        let chi = faces.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum::<f64>();
        assert!(chi < 25.7, "{faces:?}");
        let (mut bytes, mut same) = ([0; 12], Words::from_seed(7_u64.to_le_bytes()));
        same.fill_bytes(&mut bytes);
        let mut again = Words::seed_from_u64(7);
        let (first, second) = (again.next_u64().to_le_bytes(), again.next_u64().to_le_bytes());
        assert_eq!((&bytes[..8], &bytes[8..]), (&first[..], &second[..4]));
        let upper = (Words::new(7).word() >> 32) as u32;
        assert_eq!(Words::seed_from_u64(7).next_u32(), upper);
    }
}
