//! The integration tests of the crate in one program, so that its kernels are compiled once.

mod audit;
mod bounds;
mod counts;
mod divergence;
mod layers;
mod neighbours;
mod neighbours_rows;
mod neighbours_tree;
mod samplers;
mod score;
mod sensitivity;
mod tools;
mod words;
