//! A daemon without an async runtime: the core, driven by threads of the standard library and blocking sockets.
//!
//! It brings a small control plane of its own, over HTTP/1.1 on a free port of the loopback address, runs one task of it with `sh -c`, reports it, and
//! stops. What to look at is `run/driver.rs`: one thread owns the core; whatever blocks has a thread of its own and comes back as an event.
//!
//! ```sh
//! cargo run -p longshore-core --example std_threads
//! ```
#![expect(
    clippy::disallowed_macros,
    reason = "the bans are the core's; an adapter does what the core must not"
)]

mod run;

fn main() -> std::io::Result<()> {
    let told = run::run("echo hello; echo from a shell", &mut |line| println!("{line}"))?;
    println!("{} requests; the server has: {} {:?}", told.requests.len(), told.state, told.transcript);
    println!("{} is gone: {}", told.dir.display(), !told.dir.exists());
    Ok(())
}
