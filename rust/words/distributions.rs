//! [`Words`] as a generator of the crate `rand`, and the noises as its distributions.

use rand::Rng;
use rand::distr::Distribution;
use rand::rand_core::{Infallible, SeedableRng, TryRng, utils};

use super::Words;
use crate::mechanisms::{
    DpText, DpTextKeep, DpTextResample, Draw, Exponential, Gaussian, Identity, Laplace, RandomBits,
    Uniform,
};
use crate::simd::{Plain, Simd};

/// An endless generator that never fails. 32 bits are the upper half of a word.
///
/// ```
/// use dpcore::{Laplace, Words};
/// use rand::distr::Distribution;
/// use rand::seq::SliceRandom;
/// use rand::{RngExt, SeedableRng};
///
/// let mut words = Words::seed_from_u64(7);
/// let mut deck = [1, 2, 3, 4, 5];
/// deck.shuffle(&mut words);
/// assert!((1..7).contains(&words.random_range(1..7)));
/// let laplace = Laplace::new(2.0)?;
/// let noise: Vec<f64> = laplace.sample_iter(&mut words).take(1000).collect();
/// assert!(noise.iter().sum::<f64>().abs() < 500.0);
/// # Ok::<(), dpcore::Error>(())
/// ```
impl TryRng for Words {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.word() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.word())
    }

    #[inline]
    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(to, || self.try_next_u64())
    }
}

/// [`Words::new`]; eight bytes are a seed, the lowest first.
impl SeedableRng for Words {
    type Seed = [u8; 8];

    fn from_seed(seed: [u8; 8]) -> Self {
        Self::new(u64::from_le_bytes(seed))
    }

    fn seed_from_u64(seed: u64) -> Self {
        Self::new(seed)
    }
}

/// What a fill on x = 0 makes of a word: a noise of -0 is 0 there.
#[inline]
fn value<N: Draw>(noise: &N, words: [u64; 2]) -> [f64; 2] {
    noise.values(Plain::<1>, words.map(|word| [word])).map(|[value]| 0.0 + value)
}

macro_rules! one_word {
    ($($noise:ident: $doc:literal;)+) => {
        $(#[doc = $doc]
        impl Distribution<f64> for $noise {
            #[inline]
            fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
                let word = rng.next_u64();
                value(self, [word; 2])[0]
            }
        })+
    };
}

one_word! {
    RandomBits: "One word a value; the bits of a fill on x = 0 for the same word.";
    Laplace: "One word a value; the bits of a fill on x = 0 for the same word.";
    Exponential: "One word a value; the bits of a fill on x = 0 for the same word.";
    Uniform: "One word a value; the bits of a fill on x = 0 for the same word.";
    DpText: "One word a value; the bits of a fill on x = 0 for the same word.";
    DpTextKeep: "One word a value; the bits of a fill on x = 0 for the same word.";
}

/// No word: 0, always.
impl Distribution<f64> for Identity {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, _: &mut R) -> f64 {
        0.0
    }
}

/// Words until one will do, on average two; the bits of a fill on x = 0 for the same word. A fill
/// takes them from the same lane, a generator the next one: the values agree up to the first that
/// is drawn again.
impl Distribution<f64> for DpTextResample {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        loop {
            let word = rng.next_u64();
            if Plain::<1>.mask(self.takes(Plain::<1>, [word])) == 1 {
                return value(self, [word; 2])[0];
            }
        }
    }
}

/// Two words, two values; the bits of a fill on x = 0 for the same two words. A fill pairs words i
/// and i + 32 of a block (i mod 64 below 32), a generator neighbours.
impl Distribution<[f64; 2]> for Gaussian {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> [f64; 2] {
        value(self, [rng.next_u64(), rng.next_u64()])
    }
}
