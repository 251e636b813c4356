//! Audits two pieces of code that claim epsilon 1: noise of this crate, which keeps it, and a
//! function of one's own, which does not.
//!
//! `cargo run --release --example audit`

use dpcore::{Error, Laplace, Mechanism, Options, Words, audit};

/// Laplace noise for epsilon 1 at sensitivity 1, by somebody who halved the scale.
fn release(x: &[f64], words: &mut Words, out: &mut [f64]) {
    let scale = 0.5;
    // u is uniform on the 2^53 midpoints of (-1/2, 1/2).
    let u = ((words.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64 - 0.5;
    out[0] = x[0] - scale * u.signum() * (1.0 - 2.0 * u.abs()).ln();
}

fn main() -> Result<(), Error> {
    let options = Options::new();

    println!("Laplace noise of scale 3 on (0, 0, 0) and (1, 1, 1)");
    let mechanism = Mechanism::new(Laplace::new(3.0)?);
    let sound = audit::of(mechanism, &[0.0; 3], &[1.0; 3])?.claim(1.0)?.seed(7);
    let sound = sound.run(1_000_000, &options)?;
    println!("{sound}\n");

    println!("a function of one's own on 0 and 1");
    let broken = audit::of_function(release, &[0.0], &[1.0])?.claim(1.0)?.seed(7);
    let broken = broken.run(1_000_000, &options)?;
    println!("{broken}");

    assert_eq!((sound.refuted(), broken.refuted()), (Some(false), Some(true)));
    Ok(())
}
