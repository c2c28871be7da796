//! The same history gives the same digest on every machine and in every build: what scripted seeds end with is written down.
//!
//! A change of what the daemon does, of what its state holds or of how its world draws changes the digests, and that is fine; a difference
//! between two builds of one version is not. To write them anew after such a change:
//!
//! ```sh
//! LONGSHORE_DIGESTS=write cargo test -p longshore-core --test digests
//! ```

use longshore_core::rng::Seed;
use longshore_core::script::{Runner, Seeded, World};
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/digests.txt");
const WRITTEN: &str = include_str!("digests.txt");
const SEEDS: u64 = 64;
const STEPS: usize = 400;

/// What the daemon of a seed ends with, and how many steps it took.
fn digest(seed: u64) -> (u64, usize) {
    let mut choose = Seeded::new(seed);
    let cfg = World::config(&mut choose);
    let mut runner = Runner::new(cfg, Seed(seed)).expect("a world's settings are in bounds");
    runner.world.swarm(&mut choose);
    runner.play(&mut choose, STEPS);
    (runner.daemon.digest(), runner.script.len())
}

#[test]
fn digests_are_the_same_in_every_build() {
    let mut found = String::new();
    for seed in 0..SEEDS {
        let (digest, steps) = digest(seed);
        assert_eq!((digest, steps), self::digest(seed), "seed {seed} differs from itself");
        writeln!(found, "{seed} {steps} {digest:016x}").expect("a String takes everything");
    }
    #[expect(clippy::disallowed_methods, reason = "a test's settings and its own file, not the core's")]
    if std::env::var_os("LONGSHORE_DIGESTS").is_some_and(|what| what == "write") {
        std::fs::write(FILE, &found).expect("the file is here");
        return;
    }
    let same = found.lines().zip(WRITTEN.lines()).filter(|(found, written)| found == written).count();
    assert_eq!(WRITTEN.lines().count(), SEEDS as usize, "{FILE} is not complete");
    assert_eq!(
        same, SEEDS as usize,
        "the digests differ from {FILE}; if the daemon was changed, write them anew:\n{found}"
    );
}
