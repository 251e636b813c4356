//! The random words of a stream, one after the other: for whoever draws a value at a time.
//!
//! With the feature `rand` they are a generator of that crate, and the noises its distributions.

#[cfg(feature = "rand")]
mod distributions;

use std::fmt;

use crate::random::{LANES, Purpose, Side, Stream};
use crate::simd::Simd;
use crate::simd::cpu::Cpu;
use crate::simd::kernel::{Kernel, dispatch};

/// Words of a block of [`Words::new`]: those of a fill's block, where its dimension divides this.
const BLOCK_WORDS: usize = 1 << 17;

/// Words made at once: eight steps of all lanes.
const ROOM: usize = 8 * LANES;

/// Random words, 64 bits each, in the order in which a fill uses them.
///
/// Word i of a block is what its output number i is made of (a Gaussian one takes two, 32 apart,
/// and [`DpTextResample`](crate::DpTextResample) takes words of one lane until one will do).
/// xoshiro256+ (Blackman and Vigna, 2021): fast, good for simulation, of no use for secrets, and
/// its three lowest bits are weaker than the others.
///
/// ```
/// use dpcore::{Error, Job, Mechanism, Options, RandomBits, Words, run};
///
/// let job = Job::new(Mechanism::new(RandomBits), &[0.0])?.seed(7);
/// let mut coins = [0.0; 100];
/// run::sample(&job, &mut coins, 0, &Options::new())?;
/// let mut words = Words::new(7);
/// // A fair bit is the word's highest.
/// assert!(coins.iter().all(|&coin| coin == (words.word() >> 63) as f64));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Words {
    name: (u64, Purpose, Side, u64),
    /// Words until the next block; of a single block's words there is no end.
    left: Option<usize>,
    stream: Stream,
    room: [u64; ROOM],
    used: usize,
}

impl Words {
    /// The words of a seed as [`run::sample`](crate::run::sample) uses them: for
    /// [`Purpose::Sample`], on [`Side::X`], block after block of 2^17.
    ///
    /// These are the blocks of a [`Job`](crate::Job) whose dimension divides 2^17, unless it was
    /// given others; of any other fill the first block's words are the same.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = Self::of_block(seed, Purpose::Sample, Side::X, 0);
        Self { left: Some(BLOCK_WORDS), ..words }
    }

    /// The words of one block, without an end.
    #[must_use]
    pub fn of_block(seed: u64, purpose: Purpose, side: Side, block: u64) -> Self {
        Self {
            name: (seed, purpose, side, block),
            left: None,
            stream: Stream::new(seed, purpose, side as u8, block),
            room: [0; ROOM],
            used: ROOM,
        }
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        if self.used == ROOM {
            self.refill();
        }
        let word = self.room[self.used];
        self.used += 1;
        word
    }

    /// The next words, as many as `to` has.
    pub(crate) fn fill(&mut self, mut to: &mut [u64]) {
        while !to.is_empty() {
            if self.used == ROOM {
                self.refill();
            }
            let (now, later) = to.split_at_mut(to.len().min(ROOM - self.used));
            now.copy_from_slice(&self.room[self.used..self.used + now.len()]);
            self.used += now.len();
            to = later;
        }
    }

    #[cold]
    fn refill(&mut self) {
        if self.left == Some(0) {
            let (seed, purpose, side, block) = self.name;
            *self = Self::of_block(seed, purpose, side, block.wrapping_add(1));
            self.left = Some(BLOCK_WORDS);
        }
        // A path that is misnamed by the environment is an error elsewhere; the words are the same.
        let cpu = Cpu::current().unwrap_or(Cpu::Baseline);
        dispatch(cpu, Refill { stream: &mut self.stream, room: &mut self.room });
        self.left = self.left.map(|left| left - ROOM);
        self.used = 0;
    }
}

/// Which words, not what they are.
impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, purpose, side, block) = self.name;
        write!(f, "Words of seed {seed}, {purpose:?}, {side:?}, block {block}")
    }
}

/// The next words of every lane.
struct Refill<'a> {
    stream: &'a mut Stream,
    room: &'a mut [u64; ROOM],
}

impl Kernel for Refill<'_> {
    type Result = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for first in (0..LANES).step_by(S::WIDTH) {
            let mut lanes = self.stream.load(simd, first);
            for step in self.room.chunks_exact_mut(LANES) {
                let to = &mut step[first..first + S::WIDTH];
                // SAFETY: `to` has as many words.
                unsafe { simd.store(to.as_mut_ptr(), lanes.next()) };
            }
            self.stream.store(first, lanes);
        }
    }
}
