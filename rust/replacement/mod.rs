//! Replacement of words: draws from rows of a table, and noise on vectors.
//!
//! A mechanism with finitely many inputs and outputs is a table with a row of probabilities for each
//! input word. [`prepare_rows`] turns rows into alias rows (Walker, 1977; Vose, 1991), of which
//! [`draw`] takes one entry a draw. A mechanism without a table adds noise to the word's vector
//! ([`add_noise`]) and looks for the nearest word ([`crate::neighbours`]).
//!
//! # Streams
//!
//! Draw i is made of random word i of its seed, whichever rows are prepared when it is drawn: rows
//! can be made on demand, some words at a time, and the draws are those of the whole table. Neither
//! the number of threads nor the CPU changes a draw of given rows.
//!
//! # Precision
//!
//! An output with a probability below 1/V has it to 2^-64, and one of probability 0 is never drawn.
//! Of the others rounding in the construction takes less than 1e-13 (tested up to V = 1,000).

// Numbers of words and of rows are checked to be such before they are used.
#![allow(clippy::cast_sign_loss)]

mod noise;
mod rows;

pub use noise::{Noisy, add_noise};
pub use rows::{MOST_OUTPUTS, Rows, draw, prepare_rows};
