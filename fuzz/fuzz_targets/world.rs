//! In a world that goes wrong as the bytes say, no rule is broken, and once everything works again the daemon comes to rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longshore_core::rng::Seed;
use longshore_core::script::{Bytes, Runner, World};

/// Events of one life at most.
const STEPS: usize = 400;

fuzz_target!(|data: &[u8]| {
    let mut choose = Bytes::new(data);
    let mut runner =
        Runner::new(World::config(&mut choose), Seed(1)).expect("a world's settings are in bounds");
    runner.play(&mut choose, STEPS);
    if runner.violations().is_empty() {
        runner.heal();
    }
    assert!(runner.violations().is_empty(), "{:#?}", runner.violations());
});
