//! Any event at any time: the daemon neither panics nor loses a token, and goes on after a checkpoint as it did before.
//!
//! Each line is a number of milliseconds, a blank, and an event as traces have it. What is no event is skipped.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longshore_core::{
    config::Config,
    daemon::Daemon,
    effect::Effects,
    event::Event,
    rng::Seed,
    time::{Instant, Now, UnixMillis},
};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut effects = Effects::new();
    let mut daemon =
        Daemon::new(Config::default(), Seed(1), Now::default(), &mut effects).expect("within bounds");
    let mut ms = 0_u64;
    for line in text.lines() {
        let Some((wait, event)) = line.split_once(' ') else { continue };
        let (Ok(wait), Ok(event)) = (wait.parse::<u32>(), serde_json::from_str::<Event>(event)) else {
            continue;
        };
        ms += u64::from(wait);
        let now = Now::new(Instant::from_millis(ms), UnixMillis(0));
        effects.clear();
        daemon.handle(now, &event, &mut effects);
        daemon.self_check().expect("every token is where it belongs");
    }

    let mut twin =
        Daemon::restore(&daemon.checkpoint().expect("plain data")).expect("it reads what it wrote");
    assert_eq!(daemon.digest(), twin.digest());
    let now = Now::new(Instant::from_millis(ms + 60_000), UnixMillis(0));
    let mut others = Effects::new();
    effects.clear();
    daemon.handle(now, &Event::stop(), &mut effects);
    twin.handle(now, &Event::stop(), &mut others);
    assert_eq!((effects.as_slice(), daemon.digest()), (others.as_slice(), twin.digest()));
});
