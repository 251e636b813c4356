//! Scores of outputs, and the histograms they are fitted on.
//!
//! A score is one number for each output, higher where the output looks more like x; an audit
//! counts how often it passes a threshold. Everything here reads outputs that somebody else drew,
//! runs on one thread, and adds in one fixed order, so that a score is the same bits whatever the
//! machine and however the outputs are cut into blocks.

mod additive;
mod bins;
mod checks;
mod closer;
mod compare;
mod grid;
mod lattice;
mod pass;
mod sorting;

pub use additive::{Layout, Patterns, Transform, Weights};
pub use bins::{bin_counts, count_below};
pub use closer::closer;
pub use compare::{Comparison, compare_columns, compare_remainders};
pub use lattice::Finer;
pub use pass::{count_additive, pattern_keys, score_additive};
