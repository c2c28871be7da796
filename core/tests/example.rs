//! The example of an adapter without an async runtime does what it says.

#[path = "../examples/std_threads/run/mod.rs"]
mod run;

#[test]
fn the_example_runs_a_task_over_real_sockets_and_leaves_nothing_behind() {
    let mut log = Vec::new();
    let told = run::run("echo one; echo two; exit 0", &mut |line| log.push(line))
        .expect("the loopback address works");
    let story = log.join("\n");
    assert_eq!(told.state, "completed", "{story}");
    assert_eq!(told.transcript, ["one", "two"], "{story}");
    assert!(!told.dir.exists());
    let asked = |what: &str| told.requests.iter().filter(|request| request.ends_with(what)).count();
    assert_eq!((asked("/start"), asked("/complete"), asked("/deregister")), (1, 1, 1), "{:?}", told.requests);
    assert!(log.last().is_some_and(|last| last.starts_with("exit")), "{story}");
}

#[test]
fn the_example_reports_an_agent_that_fails() {
    let told = run::run("echo oops; exit 3", &mut |_| {}).expect("the loopback address works");
    assert_eq!((told.state, told.transcript), ("failed", vec!["oops".to_owned()]));
}
