//! How an agent starts, and how it does not.

use crate::bench::{Bench, LIMIT, exists, listen, listen_for, of_run, stat};
use longshore_io_tokio::supervise::LaunchError;
use longshore_io_tokio::supervise::record::EndedBy;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

#[tokio::test]
async fn a_run_gives_what_the_agent_wrote_and_its_exit_code() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("echo out; echo err >&2; exit 3")).await;
    let said = listen(&mut run).await;
    assert_eq!((said.stdout.as_slice(), said.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!((said.record.code, said.record.signal), (Some(3), None));
    assert_eq!((said.record.ended_by, said.record.leftovers.len()), (EndedBy::Itself, 0));
    assert!(!said.record.success());
    let again = listen(&mut run).await;
    assert_eq!(again.record, said.record);
}

#[tokio::test]
async fn the_agent_gets_its_environment_its_directory_and_nothing_else() {
    let bench = Bench::new();
    let mut spec = bench.program("/usr/bin/env");
    spec.env = vec![("ONE".into(), "1 \"x\"".into()), ("EMPTY".into(), "".into())];
    spec.args = vec!["/bin/sh".into(), "-c".into(), "/usr/bin/env; pwd -P; ls /proc/self/fd".into()];
    let mut run = bench.launch(spec).await;
    let said = String::from_utf8(listen(&mut run).await.stdout).expect("text");
    let mut lines: Vec<&str> = said.lines().collect();
    // The three standard descriptors, and the one that lists them.
    assert_eq!(lines.split_off(lines.len() - 4), ["0", "1", "2", "3"]);
    let cwd = bench.dir.path().canonicalize().expect("there");
    assert_eq!(lines.pop(), cwd.to_str());
    let marker = format!("LONGSHORE_RUN={}", run.dir().status().expect("a status").marker);
    lines.retain(|line| !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL="));
    lines.sort_unstable();
    assert_eq!(lines, ["EMPTY=", marker.as_str(), "ONE=1 \"x\""]);
}

#[tokio::test]
async fn bug_20_no_signal_is_blocked_or_ignored_apart_from_what_the_daemon_was_started_with() {
    let bench = Bench::new();
    let mut spec = bench.program("/bin/cat");
    spec.args = vec!["/proc/self/status".into()];
    let said = String::from_utf8(listen(&mut bench.launch(spec).await).await.stdout).expect("text");
    let ours = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
        u64::from_str_radix(line.trim(), 16).expect("hexadecimal")
    };
    assert_eq!(mask(&said, "SigBlk:"), 0);
    assert_eq!(mask(&said, "SigCgt:"), 0);
    // Signals above 31 belong to thread libraries.
    let classic = (1_u64 << 31) - 1;
    let pipe = 1 << (rustix::process::Signal::PIPE.as_raw() - 1);
    assert_eq!(mask(&said, "SigIgn:") & classic, mask(&ours, "SigIgn:") & classic & !pipe);
}

#[tokio::test]
async fn the_agent_leads_a_session_of_its_own_and_its_pid_was_known_before() {
    let bench = Bench::new();
    let ready = bench.launcher.take().await.expect("a pair").skip_preparation();
    let expected = ready.helper_pid();
    let mut spec = bench.shell("echo up; read line");
    spec.keep_stdin_open = true;
    let mut run = ready.launch(spec).await.expect("launched");
    assert_eq!(run.pid(), Some(expected));
    listen_for(&mut run, "up").await;
    let fields = stat(expected).expect("it runs");
    let (group, session) = (&fields[2], &fields[3]);
    assert_eq!([group, session], [&expected.to_string(), &expected.to_string()]);
    let status = run.dir().status().expect("a status");
    assert_eq!((status.task.as_str(), status.attempt), ("task", 1));
    assert_eq!(status.agent.pid, expected);
    assert_eq!(status.agent.started.map(|ticks| ticks.to_string()).as_ref(), Some(&fields[19]));
    assert!(run.dir().is_supervised().expect("locked"));
    run.close_stdin();
    listen(&mut run).await;
    assert!(!run.dir().is_supervised().expect("free"));
    assert!(!exists(expected) && !exists(status.supervisor.pid), "a zombie is left");
}

#[tokio::test]
async fn the_run_directory_is_for_its_owner_only() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("echo x")).await;
    listen(&mut run).await;
    let mode = |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(run.dir().path()), 0o700);
    assert_eq!(mode(&bench.dir.path().join("runs")), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(run.dir().path()).expect("there").flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().expect("text"));
    }
    names.sort_unstable();
    let all =
        ["alive", "control", "exit.json", "owner.json", "prompt", "status.json", "stderr", "stdin", "stdout"];
    assert_eq!(names, all);
    assert!(run.dir().file("control").metadata().expect("there").file_type().is_fifo());
    run.dir().remove().expect("removed");
    run.dir().remove().expect("nothing to remove");
}

#[tokio::test]
async fn inv_i25_neither_environment_nor_arguments_reach_the_disk_or_another_command_line() {
    let bench = Bench::new();
    let mut spec = bench.shell("echo up; read line");
    spec.keep_stdin_open = true;
    spec.env.push(("TOKEN".into(), "hunter2-in-env".into()));
    spec.args.push("hunter2-in-args".into());
    assert!(!format!("{spec:?}").contains("hunter2"));
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    for entry in std::fs::read_dir(run.dir().path()).expect("there").flatten() {
        if entry.file_type().expect("known").is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path()).expect("readable")).into_owned();
            assert!(!text.contains("hunter2"), "{entry:?}");
        }
    }
    let supervisor = run.dir().status().expect("a status").supervisor.pid;
    for file in ["cmdline", "environ"] {
        let bytes = std::fs::read(format!("/proc/{supervisor}/{file}")).expect("it runs");
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "{file}");
    }
    run.close_stdin();
    listen(&mut run).await;
}

/// Launches, expects a failure, and checks that nothing of the attempt is left.
async fn failure(
    bench: &Bench,
    change: impl FnOnce(&mut longshore_io_tokio::supervise::LaunchSpec),
) -> LaunchError {
    let mut spec = bench.shell("true");
    change(&mut spec);
    let ready = bench.launcher.take().await.expect("a pair").skip_preparation();
    let helper = ready.helper_pid();
    let launched = tokio::time::timeout(LIMIT, ready.launch(spec)).await.expect("an answer");
    assert!(!exists(helper), "the helper is left");
    assert!(!bench.dir.path().join("runs/task-1").exists(), "the run directory is left");
    launched.err().expect("a failure")
}

/// Made by another process: a descriptor of ours that is open for writing, inherited by a fork of a test that runs
/// beside this one, would make the file busy.
fn make_file(path: &std::path::Path, mode: &str, text: &str) {
    let made = std::process::Command::new("/bin/sh")
        .args(["-c", "printf '%s' \"$2\" >\"$1\" && chmod \"$3\" \"$1\"", "sh"])
        .arg(path)
        .args([text, mode])
        .status();
    assert!(made.expect("sh runs").success());
}

#[tokio::test]
async fn bug_36_a_vanished_workdir_is_not_taken_for_a_missing_program() {
    let bench = Bench::new();
    let gone = bench.dir.path().join("gone");
    let error = failure(&bench, |spec| spec.cwd.clone_from(&gone)).await;
    assert!(matches!(&error, LaunchError::WorkdirMissing { path } if *path == gone), "{error}");
    let error = failure(&bench, |spec| spec.cwd = "/dev/null".into()).await;
    assert!(matches!(error, LaunchError::WorkdirUnusable { .. }), "{error}");
}

#[tokio::test]
async fn each_way_in_which_a_program_does_not_start_has_its_own_error() {
    let bench = Bench::new();
    let at = |name: &str| bench.dir.path().join(name);
    for name in [at("nothing"), "no-such-program-anywhere".into()] {
        let error = failure(&bench, |spec| spec.program = name).await;
        assert!(matches!(error, LaunchError::ProgramMissing { .. }), "{error}");
    }
    make_file(&at("plain"), "644", "#!/bin/sh\n");
    for name in [at("plain"), bench.dir.path().to_owned()] {
        let error = failure(&bench, |spec| spec.program = name).await;
        assert!(matches!(error, LaunchError::NotExecutable { .. }), "{error}");
    }
    make_file(&at("orphan"), "755", "#!/no/such/interpreter\n");
    let error = failure(&bench, |spec| spec.program = at("orphan")).await;
    assert!(matches!(error, LaunchError::InterpreterMissing { .. }), "{error}");
    let error = failure(&bench, |spec| {
        spec.env.push(("PATH".into(), bench.dir.path().into()));
        spec.program = "orphan".into();
    })
    .await;
    assert!(matches!(error, LaunchError::InterpreterMissing { .. }), "{error}");
    let error = failure(&bench, |spec| spec.args.push("x".repeat(200_000).into())).await;
    assert!(matches!(error, LaunchError::TooLarge { .. }), "{error}");
    let error = failure(&bench, |spec| spec.task = "../x".into()).await;
    assert!(matches!(error, LaunchError::UnsafeTask(_)), "{error}");

    let mut run = bench.launch(bench.shell("echo fine")).await;
    assert_eq!(listen(&mut run).await.stdout, b"fine\n");
}

#[tokio::test]
async fn a_pair_of_task_and_attempt_is_launched_once() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("echo first")).await;
    let error = bench.try_launch(bench.shell("echo second")).await.err().expect("refused");
    assert!(matches!(error, LaunchError::RunDir { .. }), "{error}");
    assert_eq!(listen(&mut run).await.stdout, b"first\n", "the first one is not touched");
    let mut spec = bench.shell("echo second");
    spec.attempt = 2;
    assert_eq!(listen(&mut bench.launch(spec).await).await.stdout, b"second\n");
}

#[tokio::test]
async fn many_runs_at_once_do_not_share_anything() {
    let bench = Bench::new();
    let mut runs = Vec::new();
    for attempt in 0..6 {
        let mut spec = bench.shell("cat");
        spec.attempt = attempt;
        spec.keep_stdin_open = true;
        runs.push(bench.launch(spec).await);
    }
    for (number, run) in runs.iter_mut().enumerate() {
        run.write_stdin(format!("I am {number}\n").as_bytes()).expect("taken");
    }
    // Closed in turn: a run that held another one's pipe would keep it from ending.
    for (number, run) in runs.iter_mut().enumerate() {
        run.close_stdin();
        let said = listen(run).await;
        assert_eq!(said.stdout, format!("I am {number}\n").as_bytes());
        assert!(said.record.success());
        assert!(of_run(run.dir()).is_empty());
    }
}
