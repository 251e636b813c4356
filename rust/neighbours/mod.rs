//! Exact nearest neighbours: blocked products in bytes or f32 find who may matter, f64 decides.
//!
//! [`nearest`] and [`inside`] answer by [`distance::squared`], which gives the same bits on every
//! CPU; products only rule points out, and only where a bound on their error (proved in `frame`,
//! and in `bytes::codes` for bytes) shows that they may. So neither the CPU, nor the number of
//! threads, nor the blocks change a bit of an answer. A row with a NaN is nobody's neighbour and in
//! no ball.
//!
//! # Memory
//!
//! Input is read in place; what is kept of the points is 4 bytes for each and, where bytes are
//! multiplied, dim + 28 more. A thread holds a block of at most 1008 queries in f32, twice while it
//! is packed, or in bytes, and a panel of at most 240 points: about 2^20 and 2^17 numbers, or 48 and
//! 24 rows where those are more. The candidates of a block take at most 2^26 bytes (12 a candidate
//! and up to 4 depth + 4096 of them a query in [`nearest`], 8 an entry and up to the cap in
//! [`inside`]), unless a single query needs more. So a thread has about 80 MiB at worst. Answers take
//! 12 bytes an entry from [`nearest`] and 4 from [`inside`], with 8 for every shell, and are there
//! twice while the blocks are joined.

// Numbers of rows are checked to be such before they are used.
#![allow(clippy::cast_sign_loss)]

mod bytes;
pub mod distance;
mod exact;
mod frame;
mod inside;
mod lists;
mod nearest;
mod panel;
mod pooling;
mod products;
mod search;
mod sift;
mod top;
mod tree;
mod walks;

pub use inside::{Inside, inside};
pub use lists::Shells;
pub use nearest::{Nearest, nearest};
pub use pooling::{Pooled, pool_rows};
pub use search::{Method, Search, Sets};
