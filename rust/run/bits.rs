//! One bit a draw, counted tile by tile.

use super::sweep::{Part, TILE};
use crate::events::{Counted, TILE_WORDS, Tally, ones};
use crate::simd::Simd;

/// One bit a draw, with a spare word in front and one behind (see [`Tally`]).
pub(super) type Bits = [u64; TILE_WORDS + 2];

/// Puts the bits of one vector of a tile. Bytes, little end first, so that bit i is draw i.
///
/// # Safety
///
/// `draw + S::WIDTH` is at most [`TILE`].
#[inline(always)]
pub(super) unsafe fn put_bits<S: Simd>(bits: &mut Bits, draw: usize, mask: u32) {
    debug_assert!(draw + S::WIDTH <= TILE);
    // SAFETY: a tile has TILE bits, from the second word on; the caller's draw lies in it.
    unsafe {
        let to = bits.as_mut_ptr().add(1).cast::<u8>().add(draw / 8);
        if S::WIDTH < 8 {
            // Vectors of one step come in order, so that the first of a byte replaces what it had.
            let before = if draw.is_multiple_of(8) { 0 } else { *to };
            to.write(before | ((mask as u8) << (draw % 8)));
        }
        for byte in 0..S::WIDTH / 8 {
            to.add(byte).write((mask >> (8 * byte)) as u8);
        }
    }
}

/// The bytes written by [`put_bits`] as words.
fn as_words(bits: &mut Bits) {
    if cfg!(target_endian = "big") {
        for word in bits.iter_mut() {
            *word = word.swap_bytes();
        }
    }
}

/// Bits of the current tile and the trials counted so far.
pub(super) struct Counter {
    pub(super) bits: Bits,
    pub(super) nan_bits: Bits,
    tally: Tally,
    nan: Option<u64>,
}

impl Counter {
    pub(super) fn new(dim: usize, need: i64, nan: bool) -> Self {
        let bits = [0; TILE_WORDS + 2];
        Self { bits, nan_bits: bits, tally: Tally::new(dim, need), nan: nan.then_some(0) }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, part: Part) {
        as_words(&mut self.bits);
        self.tally.take(&mut self.bits, part.from, part.to);
        if let Some(nan) = &mut self.nan {
            as_words(&mut self.nan_bits);
            *nan += ones(&self.nan_bits[1..=TILE_WORDS], part.from, part.to);
        }
    }

    pub(super) fn counted(&self) -> Counted {
        Counted { votes: self.tally.hits, nan: self.nan.unwrap_or(0) }
    }
}
