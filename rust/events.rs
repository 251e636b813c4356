//! The majority vote of the reconstruction attack, and how trials are counted from bits.

use crate::error::Error;

/// The event "the vote is for x'" of the reconstruction attack (Habernal, 2022, section 4).
///
/// Entry i votes for x' when its output lies on the x' side of `threshold[i]`: at or above it
/// where `towards[i] = 1`, at or below it where `towards[i] = -1`. Entries with `towards[i] = 0`
/// do not vote, and NaN never votes for x'. The vote is for x' when strictly more than half of
/// the voting entries are.
#[derive(Clone, Copy, Debug)]
pub struct Vote<'a> {
    threshold: &'a [f64],
    towards: &'a [i8],
    voters: usize,
}

impl<'a> Vote<'a> {
    /// A vote among the entries of an output.
    ///
    /// # Errors
    ///
    /// Different lengths, thresholds that are NaN, directions other than -1, 0 and 1, or no
    /// entry that votes.
    pub fn new(threshold: &'a [f64], towards: &'a [i8]) -> Result<Self, Error> {
        if threshold.len() != towards.len() {
            let lengths = (threshold.len(), towards.len());
            return Err(Error::invalid("towards", "as long as threshold", lengths));
        }
        if let Some(value) = threshold.iter().find(|value| value.is_nan()) {
            return Err(Error::invalid("threshold", "a number in every entry", value));
        }
        if let Some(value) = towards.iter().find(|value| value.abs() > 1) {
            return Err(Error::invalid("towards", "-1, 0 or 1 in every entry", value));
        }
        let voters = towards.iter().filter(|&&towards| towards != 0).count();
        if voters == 0 {
            return Err(Error::invalid("towards", "different from 0 in some entry", towards));
        }
        Ok(Self { threshold, towards, voters })
    }

    /// Entries of an output.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.towards.len()
    }

    /// Votes for x' that make a strict majority.
    #[must_use]
    pub fn majority(&self) -> i64 {
        (self.voters / 2 + 1) as i64
    }

    /// Where entry i votes: its threshold, and on which side of it x' lies (-1, 0 or 1).
    #[must_use]
    pub fn entry(&self, i: usize) -> (f64, i8) {
        (self.threshold[i], self.towards[i])
    }

    /// Whether the vote of one output is for x'.
    #[must_use]
    pub fn contains(&self, output: &[f64]) -> bool {
        let votes = output.iter().zip(self.threshold).zip(self.towards);
        let ones = votes.filter(|&((value, threshold), &towards)| match towards {
            1 => value >= threshold,
            -1 => value <= threshold,
            _ => false,
        });
        ones.count() as i64 >= self.majority()
    }
}

/// What was counted on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Trials whose vote was for x'.
    pub votes: u64,
    /// Output entries that were NaN.
    pub nan: u64,
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.votes += other.votes;
        self.nan += other.nan;
    }
}

/// Words of bits that one tile of draws fills.
pub(crate) const TILE_WORDS: usize = 32;

/// Counts the trials with at least `need` ones in a stream of bits, `dim` bits a trial.
///
/// The stream comes in tiles of up to [`TILE_WORDS`] words and need not end with a trial. All is
/// inlined into the kernels, for the sake of the population-count instruction.
pub(crate) struct Tally {
    dim: usize,
    need: i64,
    /// Trials seen to their end, and those with at least `need` ones.
    pub(crate) trials: u64,
    pub(crate) hits: u64,
    short: Short,
    long: Long,
}

/// State for trials of at most 64 bits: bits that wait for the rest of their trial, at the top
/// of the word that precedes the tile.
struct Short {
    carry: u64,
    waiting: usize,
}

/// State for longer trials: ones so far, and bits still to come.
#[derive(Clone, Copy)]
struct Long {
    ones: i64,
    left: usize,
}

/// Up to this many bits a trial, all trials in a word are added up side by side.
const SIDE_BY_SIDE: usize = 12;

impl Tally {
    pub(crate) fn new(dim: usize, need: i64) -> Self {
        let short = Short { carry: 0, waiting: 0 };
        Self { dim, need, trials: 0, hits: 0, short, long: Long { ones: 0, left: dim } }
    }

    /// Takes the bits `from..to` of a tile. `from` is above 0 only in the first tile.
    ///
    /// `tile` has a spare word in front and one behind.
    #[inline(always)]
    pub(crate) fn take(&mut self, tile: &mut [u64; TILE_WORDS + 2], from: usize, to: usize) {
        if self.dim > 64 {
            self.take_long(&tile[1..=TILE_WORDS], from, to);
        } else if from < to {
            self.take_short(tile, from, to);
        }
    }

    #[inline(always)]
    fn take_short(&mut self, tile: &mut [u64; TILE_WORDS + 2], from: usize, to: usize) {
        tile[0] = self.short.carry;
        let mut at = 64 + from - self.short.waiting;
        let end = 64 + to;
        let trials = (end - at) / self.dim;
        self.trials += trials as u64;
        if self.need <= 0 || self.need > self.dim as i64 {
            self.hits += if self.need <= 0 { trials as u64 } else { 0 };
            at += trials * self.dim;
        } else if self.dim <= SIDE_BY_SIDE {
            at = self.side_by_side(tile, at, trials);
        } else {
            let mask = u64::MAX >> (64 - self.dim);
            for _ in 0..trials {
                let ones = (window(tile, at) & mask).count_ones();
                self.hits += u64::from(i64::from(ones) >= self.need);
                at += self.dim;
            }
        }
        self.short.waiting = end - at;
        // The waiting bits, moved to the top of a word (none: any word will do).
        self.short.carry = if at < end { window(tile, end - 64) } else { 0 };
    }

    /// All trials within 64 bits at once: their bits are added in fields as wide as a trial, then
    /// 2^(dim-1) - need is added, so that the top bit of a field says `ones >= need`.
    #[inline(always)]
    fn side_by_side(&mut self, tile: &[u64], mut at: usize, trials: usize) -> usize {
        let dim = self.dim;
        let fields = 64 / dim;
        let lowest = (0..fields).fold(0_u64, |mask, field| mask | (1 << (field * dim)));
        let offset = lowest * ((1 << (dim - 1)) - self.need.unsigned_abs());
        let mut left = trials;
        while left > 0 {
            let now = left.min(fields);
            let used = u64::MAX >> (64 - now * dim);
            let bits = window(tile, at) & used;
            let sums = (0..dim).fold(0, |sums, bit| sums + ((bits >> bit) & lowest));
            let reached = ((sums + offset) >> (dim - 1)) & lowest & used;
            self.hits += u64::from(reached.count_ones());
            at += now * dim;
            left -= now;
        }
        at
    }

    #[inline(always)]
    fn take_long(&mut self, tile: &[u64], from: usize, to: usize) {
        // Words at the ends that are used in part, and whole ones between them.
        let (first, last) = (from.div_ceil(64), to / 64);
        if first > last {
            self.take_bits(tile[last] >> (from % 64), to - from);
            return;
        }
        if !from.is_multiple_of(64) {
            self.take_bits(tile[first - 1] >> (from % 64), 64 - from % 64);
        }
        let words = &tile[first..last];
        match self.dim {
            // The dimensions whose trials are whole words and end with the tile.
            128 if self.long.left == 128 => self.take_whole::<2>(words),
            256 if self.long.left == 256 => self.take_whole::<4>(words),
            512 if self.long.left == 512 => self.take_whole::<8>(words),
            _ => self.take_words(words),
        }
        if !to.is_multiple_of(64) {
            self.take_bits(tile[last], to % 64);
        }
    }

    /// Takes words of which every `W` are a trial, the first of them at its beginning.
    #[inline(always)]
    fn take_whole<const W: usize>(&mut self, words: &[u64]) {
        let (trials, rest) = words.as_chunks::<W>();
        for trial in trials {
            let ones: u32 = trial.iter().map(|word| word.count_ones()).sum();
            self.hits += u64::from(i64::from(ones) >= self.need);
        }
        self.trials += trials.len() as u64;
        self.take_words(rest);
    }

    /// Takes whole words.
    #[inline(always)]
    fn take_words(&mut self, words: &[u64]) {
        let Long { mut ones, mut left } = self.long;
        for &word in words {
            if left > 64 {
                ones += i64::from(word.count_ones());
                left -= 64;
            } else {
                // The trial's last bits, then the next one's first; two shifts, because a shift
                // by 64 is not defined.
                let rest = (word >> (left - 1)) >> 1;
                let all = i64::from(word.count_ones());
                let next = i64::from(rest.count_ones());
                self.trials += 1;
                self.hits += u64::from(ones + all - next >= self.need);
                (ones, left) = (next, self.dim + left - 64);
            }
        }
        self.long = Long { ones, left };
    }

    /// Takes the lowest `count` bits of a word, fewer than 64 and so of at most two trials.
    #[inline(always)]
    fn take_bits(&mut self, word: u64, count: usize) {
        let mut bits = if count == 0 { 0 } else { word & (u64::MAX >> (64 - count)) };
        let mut count = count;
        if count >= self.long.left {
            let end = self.long.left;
            let last = bits & (u64::MAX >> (64 - end));
            self.trials += 1;
            self.hits += u64::from(self.long.ones + i64::from(last.count_ones()) >= self.need);
            self.long = Long { ones: 0, left: self.dim };
            bits >>= end;
            count -= end;
        }
        self.long.ones += i64::from(bits.count_ones());
        self.long.left -= count;
    }
}

/// 64 bits from bit `at` of the words.
#[inline(always)]
fn window(words: &[u64], at: usize) -> u64 {
    let (word, bit) = (at / 64, at % 64);
    // Two shifts, because a shift by 64 is not defined.
    (words[word] >> bit) | ((words[word + 1] << 1) << (63 - bit))
}

/// Ones among the bits `from..to` of a tile.
#[inline(always)]
pub(crate) fn ones(tile: &[u64], from: usize, to: usize) -> u64 {
    let mut tally = Tally::new(usize::MAX, 0);
    tally.take_long(tile, from, to);
    tally.long.ones.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits bits into tiles, the first of which may start late, and tallies them.
    fn tallied(bits: &[bool], dim: usize, need: i64, skip: usize) -> (u64, u64) {
        let mut tally = Tally::new(dim, need);
        let padded: Vec<bool> =
            std::iter::repeat_n(true, skip).chain(bits.iter().copied()).collect();
        for (index, part) in padded.chunks(64 * TILE_WORDS).enumerate() {
            let mut tile = [u64::MAX; TILE_WORDS + 2];
            for (i, &bit) in part.iter().enumerate() {
                let word = &mut tile[1 + i / 64];
                *word = (*word & !(1 << (i % 64))) | (u64::from(bit) << (i % 64));
            }
            tally.take(&mut tile, if index == 0 { skip } else { 0 }, part.len());
        }
        (tally.trials, tally.hits)
    }

    proptest! {
        #[test]
        fn a_tally_counts_as_a_plain_loop_does(
            seed in any::<u64>(), dim in 1_usize..300, trials in 1_usize..60,
            need in -1_i64..160, skip in 0_usize..2048,
        ) {
            let mut state = seed;
            let bits: Vec<bool> = (0..dim * trials).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 63 == 1
            }).collect();
            let hits = bits.chunks(dim)
                .filter(|trial| trial.iter().filter(|&&bit| bit).count() as i64 >= need)
                .count();
            prop_assert_eq!(tallied(&bits, dim, need, skip), (trials as u64, hits as u64));
        }
    }

    #[test]
    fn every_small_dimension_and_need() {
        for dim in 1..=66_usize {
            for need in 0..=dim as i64 + 1 {
                let bits: Vec<bool> = (0..dim * 100).map(|i| (i * i / 7) % 3 == 0).collect();
                let hits = bits
                    .chunks(dim)
                    .filter(|trial| trial.iter().filter(|&&bit| bit).count() as i64 >= need)
                    .count();
                assert_eq!(tallied(&bits, dim, need, 0), (100, hits as u64), "{dim} {need}");
            }
        }
    }

    #[test]
    fn ties_equal_entries_and_nan_vote_for_x() {
        let threshold = [0.5, 0.5, 0.5, 0.5];
        let vote = Vote::new(&threshold, &[1, 1, -1, 0]).unwrap();
        assert!(vote.contains(&[0.5, 0.0, 0.5, 9.0]));
        assert!(!vote.contains(&[0.5, f64::NAN, 0.6, 9.0]));
        let even = Vote::new(&threshold, &[1; 4]).unwrap();
        assert!(!even.contains(&[1.0, 1.0, 0.0, 0.0]));
        assert!(even.contains(&[1.0, 1.0, 1.0, f64::NAN]));
    }

    #[test]
    fn bad_votes_are_named() {
        for (threshold, towards, start) in [
            (&[0.5][..], &[1, 1][..], "towards must be as long"),
            (&[f64::NAN], &[1], "threshold must be a number"),
            (&[0.5], &[2], "towards must be -1, 0 or 1"),
            (&[0.5], &[0], "towards must be different from 0"),
        ] {
            let error = Vote::new(threshold, towards).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}
