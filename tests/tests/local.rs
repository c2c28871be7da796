//! `longshore local` as a user runs it, with the agent double as the claude of the machine.

mod run;

use longshore_io_tokio::trace_sink::segments;
use run::{Bench, after, texts};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A bench whose `PATH` has a `claude`, which is the double.
fn bench() -> Bench {
    let bench = Bench::new();
    let bin = bench.path().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    // The link is followed when it is found, so it leads to a file of the name that makes the program the double.
    let double = bench.path().join("agent-double");
    std::fs::hard_link(bench.program(), &double).expect("a link");
    symlink(double, bin.join("claude")).expect("a link");
    bench
}

fn local(bench: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(&[&["local"], args].concat());
    // Root needs the word that this is a sandbox.
    command.env("PATH", bench.path().join("bin")).env("IS_SANDBOX", "1");
    command
}

fn ran(bench: &Bench, script: &str) -> Output {
    local(bench, &[&format!("Do it. longshore-double: {script}")]).output().expect("it ran")
}

/// The directories of runs in the place that is taken without `--dir`.
fn places(bench: &Bench) -> Vec<PathBuf> {
    let places = std::fs::read_dir(bench.path().join(".multica/longshore/local"));
    places.map(|places| places.flatten().map(|it| it.path()).collect()).unwrap_or_default()
}

#[test]
fn texts_go_to_stdout_and_tools_to_stderr_and_the_answer_comes_last() {
    let bench = bench();
    let script = r#"[{"say":"I count."},{"tool":{"name":"Bash","input":{"command":"seq 4"},"output":"1 2 3 4"}},
        {"write":{"path":"count.txt","text":"4"}},{"say":"Nearly there."},{"result":"Four."}]"#;
    let output = ran(&bench, script);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(out, "I count.\nNearly there.\nFour.\n");
    assert!(err.contains("· Bash seq 4\n"), "{err}");
    let place = places(&bench).pop().expect("a place");
    let work_dir = after(&err, "work directory:");
    assert!(work_dir.starts_with(&place), "{err}");
    assert_eq!(std::fs::read_to_string(work_dir.join("count.txt")).expect("written"), "4");
    assert!(std::fs::read_to_string(after(&err, "log:")).expect("a log").contains("task completed"));
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn an_answer_that_was_just_said_is_printed_once_and_the_prompt_arrives_as_typed() {
    let bench = bench();
    let (out, _) = texts(&ran(&bench, r#"[{"say":"Four."}]"#));
    assert_eq!(out, "Four.\n");
    let (out, _) = texts(&ran(&bench, r#"["say_prompt"]"#));
    assert!(out.contains("\nDo it. longshore-double: [\"say_prompt\"]\n"), "{out}");
    assert_eq!(places(&bench).len(), 2, "each run has its own place");
}

#[test]
fn a_failure_is_told_with_its_words_and_exit_1() {
    let bench = bench();
    let output = ran(&bench, r#"[{"say":"I try."},{"error":"there is no Makefile"}]"#);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(out, "I try.\n");
    assert!(err.contains("error: the task failed: there is no Makefile"), "{err}");
    assert!(after(&err, "work directory:").is_dir(), "{err}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn ctrl_c_cancels_the_task_and_waits_until_its_agent_is_gone() {
    let bench = bench();
    let mut command = local(&bench, &[r#"longshore-double: [{"say":"This takes all day."},"hang"]"#]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut out = BufReader::new(running.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("read");
    assert_eq!(line, "This takes all day.\n", "it comes while the agent runs");
    kill_process(Pid::from_child(&running), Signal::INT).expect("it is there");
    let mut more = String::new();
    out.read_to_string(&mut more).expect("read");
    let output = running.wait_with_output().expect("it ran");
    let (_, err) = texts(&output);
    assert_eq!((output.status.code(), more.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("error: the task was cancelled"), "{err}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_machine_without_claude_is_told_what_to_do_and_nothing_is_left() {
    let bench = bench();
    let output = local(&bench, &["Do it."]).env("PATH", bench.path()).output().expect("it ran");
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(1), ""));
    assert!(err.starts_with("error: claude was not found") && err.contains("MULTICA_CLAUDE_PATH"), "{err}");
    let output = local(&bench, &["Do it."]).env("MULTICA_CLAUDE_PATH", "/missing/claude").output();
    let (_, err) = texts(&output.expect("it ran"));
    assert!(err.contains("/missing/claude is no program"), "{err}");
    // What would have been recorded is in nobody's way when there is one.
    for _ in 0..2 {
        let output = local(&bench, &["Do it.", "--record", "run.jsonl"]).env("PATH", bench.path()).output();
        let (_, err) = texts(&output.expect("it ran"));
        assert!(err.starts_with("error: claude was not found"), "{err}");
        assert!(!bench.path().join("run.jsonl").exists());
    }
    // Nothing of somebody else is removed.
    std::fs::write(bench.path().join("mine"), "mine").expect("written");
    let output = local(&bench, &["Do it.", "--record", "mine"]).env("PATH", bench.path()).output();
    assert!(texts(&output.expect("it ran")).1.starts_with("error: mine exists already"));
    assert_eq!(std::fs::read(bench.path().join("mine")).expect("there"), b"mine");
    assert_eq!(bench.processes(), [""; 0]);
    assert!(places(&bench).is_empty());
}

#[test]
fn a_project_without_claude_is_left_as_it_was() {
    let bench = bench();
    let dir = bench.path().join("project");
    std::fs::create_dir(&dir).expect("a directory");
    let run = |claude: &str| {
        let mut command = local(&bench, &[r#"longshore-double: [{"say":"Done."}]"#, "--dir", "project"]);
        if !claude.is_empty() {
            command.env("MULTICA_CLAUDE_PATH", claude);
        }
        command.output().expect("it ran")
    };
    let names = || std::fs::read_dir(&dir).expect("listed").count();
    assert_eq!(run("/missing/claude").status.code(), Some(1));
    assert_eq!(names(), 0, "nothing of ours");
    assert!(run("").status.success());
    assert_eq!(run("/missing/claude").status.code(), Some(1));
    let left = std::fs::read_dir(dir.join(".longshore")).expect("listed").count();
    assert_eq!(left, 2, "the run before, and what keeps it from git");
}

/// Lets the agent of a run go on, and waits for the run's end.
fn let_go_on(gate: &Path, running: Child) -> Output {
    std::fs::write(gate, "").expect("written");
    running.wait_with_output().expect("it ran")
}

#[test]
fn a_run_whose_directory_is_moved_meanwhile_says_where_it_is_and_makes_nothing_in_the_old_place() {
    let bench = bench();
    let gate = bench.path().join("gate");
    let script = json!([
        { "say": "Begun." },
        { "count": { "until": gate.display().to_string(), "every": 20 } },
        { "say": "Moved." },
        { "write": { "path": "done.txt", "text": "once" } },
        { "result": "All done." },
    ]);
    let mut command = local(&bench, &[&format!("Do it. longshore-double: {script}")]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut line = [0; 7];
    running.stdout.as_mut().expect("piped").read_exact(&mut line).expect("read");
    assert_eq!(&line, b"Begun.\n");
    let place = places(&bench).pop().expect("a place");
    let moved = bench.path().join("moved");
    std::fs::rename(&place, &moved).expect("moved");
    let output = let_go_on(&gate, running);
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("All done.\n"), "{out}\n{err}");
    assert!(after(&err, "work directory:").starts_with(&moved), "{err}");
    assert_eq!(
        std::fs::read_to_string(after(&err, "work directory:").join("done.txt")).expect("there"),
        "once"
    );
    assert_eq!(after(&err, "log:"), moved.join("daemon.log"));
    assert!(!place.exists(), "{err}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_run_that_was_moved_before_it_goes_on_names_its_directory_as_it_is_now() {
    let bench = bench();
    let output = ran(&bench, r#"[{"write":{"path":"done.txt","text":"once"}},{"result":"All done."}]"#);
    assert!(output.status.success(), "{}", texts(&output).1);
    let place = places(&bench).pop().expect("a place");
    for name in ["moved", "workspaces"] {
        let earlier = if name == "moved" { place.clone() } else { bench.path().join("moved") };
        let moved = bench.path().join(name);
        std::fs::rename(earlier, &moved).expect("moved");
        let output = local(&bench, &["--resume", name]).output().expect("it ran");
        let (out, err) = texts(&output);
        assert!(output.status.success() && out.ends_with("All done.\n"), "{out}\n{err}");
        let work_dir = after(&err, "work directory:");
        assert!(work_dir.starts_with(&moved) && work_dir.join("done.txt").is_file(), "{err}");
    }
}

#[test]
fn a_restored_copy_and_what_is_no_file_of_ours_are_told_as_what_they_are() {
    let bench = bench();
    assert!(ran(&bench, r#"[{"result":"All done."}]"#).status.success());
    let place = places(&bench).pop().expect("a place");
    let backup = bench.path().join("backup");
    let copied = Command::new("cp").args(["-a", "--"]).arg(&place).arg(&backup).status();
    assert!(copied.expect("it ran").success());
    std::fs::remove_dir_all(&place).expect("lost");
    std::fs::rename(&backup, &place).expect("restored");
    let resumed = || {
        let output = local(&bench, &["--resume", place.to_str().expect("text")]).output().expect("it ran");
        let (out, err) = texts(&output);
        (output.status.code(), out, err)
    };
    let (code, _, err) = resumed();
    let told =
        err.contains("such as one that was restored from a backup") && err.contains("/origin and try again");
    assert!(code == Some(1) && told && !err.contains("go on with that one"), "{err}");
    let origin = place.join("origin");
    std::fs::remove_file(&origin).expect("as it is told");
    let (code, out, err) = resumed();
    assert_eq!((code, out.as_str()), (Some(0), "All done.\n"), "{err}");

    // What would be waited for without an end.
    std::fs::remove_file(&origin).expect("removed");
    assert!(Command::new("mkfifo").arg(&origin).status().expect("it ran").success());
    let (code, _, err) = resumed();
    assert!(code == Some(1) && err.contains("origin: it is no regular file"), "{err}");
    std::fs::remove_file(&origin).expect("removed");
    let log = place.join("daemon.log");
    std::fs::remove_file(&log).expect("removed");
    assert!(Command::new("mkfifo").arg(&log).status().expect("it ran").success());
    let (code, _, err) = resumed();
    assert!(code == Some(1) && err.contains("daemon.log cannot be written: it is no regular file"), "{err}");
}

/// The binary in a shell that lets it have so many files open at a time.
fn with_files(bench: &Bench, files: u32, args: &[&str]) -> Output {
    let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
    let whole = local(bench, args);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).arg(whole.get_program()).args(whole.get_args());
    command.env_clear().envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(bench.path()).stdin(Stdio::null()).output().expect("it ran")
}

#[test]
fn with_few_open_files_all_goes_well_or_it_is_told_what_is_needed_and_nothing_is_left() {
    let bench = bench();
    let prompt = r#"longshore-double: [{"say":"Hi."}]"#;
    let left = || std::fs::read_dir(bench.path()).expect("listed").count();
    let before = left();
    for files in (3..=26).chain([32, 40, 48, 63, 64]) {
        let output = with_files(&bench, files, &[prompt]);
        let (_, err) = texts(&output);
        assert!(!output.status.success() && !err.contains("panicked"), "{files}: {err}");
        // With fewer the program is not even loaded, which the system tells.
        if files > 5 {
            assert!(
                err.contains(&format!("no more than {files} files")) && err.contains("`ulimit -n 128`"),
                "{err}"
            );
        }
    }
    assert_eq!((left(), bench.processes().len()), (before, 0), "nothing was begun");
    let output = with_files(&bench, 128, &[prompt]);
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(0), "Hi.\n"), "{err}");
}

#[test]
fn with_dir_the_work_directory_is_made_below_it_out_of_the_sight_of_git() {
    let bench = bench();
    let dir = bench.path().join("project");
    std::fs::create_dir(&dir).expect("a directory");
    let prompt = r#"longshore-double: [{"say":"Done."}]"#;
    let output = local(&bench, &[prompt, "--dir", "project"]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(0), "Done.\n"), "{err}");
    assert!(after(&err, "work directory:").starts_with(dir.join(".longshore")), "{err}");
    assert_eq!(std::fs::read_to_string(dir.join(".longshore/.gitignore")).expect("written"), "*\n");
    let brief = std::fs::read_to_string(after(&err, "work directory:").join("CLAUDE.md")).expect("a brief");
    assert!(brief.contains(&format!("lies below {}", dir.display())), "{brief}");
    assert!(places(&bench).is_empty());
    let missing = local(&bench, &[prompt, "--dir", "missing"]).output().expect("it ran");
    let (_, err) = texts(&missing);
    assert_eq!(missing.status.code(), Some(1));
    assert!(err.contains("missing: it is no directory"), "{err}");
}

/// Runs the prompt, and kills the program once its agent has said "Begun.".
fn killed_once_begun(bench: &Bench, prompt: &str) {
    let mut running =
        local(bench, &[prompt]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut out = BufReader::new(running.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("read");
    assert_eq!(line, "Begun.\n");
    kill_process(Pid::from_child(&running), Signal::KILL).expect("it is there");
    running.wait().expect("ended");
}

#[test]
fn a_run_that_was_killed_goes_on_with_the_agent_that_ran_on_and_is_done_once() {
    let bench = bench();
    let gate = bench.path().join("gate");
    let script = json!([
        { "say": "Begun." },
        { "count": { "until": gate.display().to_string(), "every": 20 } },
        { "write": { "path": "done.txt", "text": "once" } },
        { "result": "All done." },
    ]);
    killed_once_begun(&bench, &format!("Do it. longshore-double: {script}"));
    let place = places(&bench).pop().expect("a place");
    let place = place.to_str().expect("text");
    std::fs::write(&gate, "").expect("written");
    let output = local(&bench, &["--resume", place]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.starts_with("Begun.\n") && out.ends_with("\nAll done.\n"), "{out}");
    assert_eq!(out.matches("Begun.").count(), 1, "one agent ran, and what it said is told once: {out}");
    assert_eq!(
        std::fs::read_to_string(after(&err, "work directory:").join("done.txt")).expect("written"),
        "once"
    );
    assert_eq!(bench.processes(), [""; 0]);
    let again = local(&bench, &["--resume", place])
        .env("MULTICA_CLAUDE_PATH", "/missing/claude")
        .output()
        .expect("it ran");
    let (out, err) = texts(&again);
    assert!(
        again.status.success() && out.ends_with("All done.\n"),
        "what is over is told again, and needs no agent: {out}\n{err}"
    );
    assert_eq!(places(&bench).len(), 1);
    let none = local(&bench, &["--resume", "nowhere"]).output().expect("it ran");
    assert!(
        texts(&none).1.starts_with("error: --resume nowhere: this is no directory of a run"),
        "{}",
        texts(&none).1
    );
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_copy_of_a_run_is_refused_and_its_original_goes_on() {
    let bench = bench();
    let gate = bench.path().join("gate");
    let script = json!([
        { "say": "Begun." },
        { "count": { "until": gate.display().to_string(), "every": 20 } },
        { "result": "All done." },
    ]);
    killed_once_begun(&bench, &format!("Do it. longshore-double: {script}"));
    let place = places(&bench).pop().expect("a place");
    let copy = bench.path().join("copy");
    let copied = Command::new("cp").args(["-a", "--"]).arg(&place).arg(&copy).status();
    assert!(copied.expect("it ran").success());
    let output = local(&bench, &["--resume", "copy"]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{err}");
    let told = format!("error: --resume copy: this is a copy of {}", place.display());
    assert!(err.starts_with(&told) && err.contains(" remove copy/origin and"), "{err}");
    std::fs::write(&gate, "").expect("written");
    let output = local(&bench, &["--resume", place.to_str().expect("text")]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.ends_with("\nAll done.\n"), "{out}\n{err}");
    assert_eq!(out.matches("Begun.").count(), 1, "the agent that was there went on: {out}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_run_is_recorded_where_that_is_wanted_and_nothing_is_written_over() {
    let bench = bench();
    let prompt = r#"longshore-double: [{"say":"Done."}]"#;
    let recorded = || local(&bench, &[prompt, "--record", "run.jsonl"]).output().expect("it ran");
    let output = recorded();
    assert!(output.status.success(), "{}", texts(&output).1);
    let replay = bench.command(&["trace", "replay", "run.jsonl"]).output().expect("it ran");
    let (out, err) = texts(&replay);
    assert!(replay.status.success() && out.contains("ended       clean"), "{out}\n{err}");
    let before = std::fs::read(bench.path().join("run.jsonl")).expect("a trace");
    let refused = recorded();
    assert_eq!(refused.status.code(), Some(1));
    assert!(texts(&refused).1.starts_with("error: run.jsonl exists already"), "{}", texts(&refused).1);
    assert_eq!(std::fs::read(bench.path().join("run.jsonl")).expect("a trace"), before);
    assert_eq!((bench.processes().len(), places(&bench).len()), (0, 1));
}

/// A recording can be given away as it is: what was asked, said and done is the user's own, and so are the names of directories.
#[test]
fn no_recording_of_a_run_and_of_its_resumption_has_a_word_of_it() {
    const MARK: &str = "zzq7c1e";
    let bench = bench();
    let (gate, project) = (bench.path().join("gate"), bench.path().join(format!("project-{MARK}")));
    std::fs::create_dir(&project).expect("a directory");
    let script = json!([
        { "say": "Begun." },
        { "tool": { "name": "Bash", "input": { "command": format!("echo {MARK}") }, "output": MARK } },
        { "count": { "until": gate.display().to_string(), "every": 20 } },
        { "result": format!("All done with {MARK}.") },
    ]);
    let furnished = |args: &[&str]| {
        let mut command = local(&bench, args);
        command
            .args(["--profile", &format!("profile-{MARK}")])
            .env("ANTHROPIC_API_KEY", MARK)
            .env("MULTICA_CLAUDE_MODEL", format!("model-{MARK}"))
            .env("HTTPS_PROXY", format!("http://{MARK}:{MARK}@proxy.invalid:3128"));
        command
    };
    let prompt = format!("Tell nobody of {MARK}. longshore-double: {script}");
    let dir = project.to_str().expect("text");
    let mut running = furnished(&[&prompt, "--dir", dir, "--record", "first.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut line = String::new();
    BufReader::new(running.stdout.take().expect("piped")).read_line(&mut line).expect("read");
    assert_eq!(line, "Begun.\n");
    kill_process(Pid::from_child(&running), Signal::KILL).expect("it is there");
    running.wait().expect("ended");
    std::fs::write(&gate, "").expect("written");
    let place =
        std::fs::read_dir(project.join(".longshore")).expect("a folder").flatten().map(|it| it.path());
    let place = place.into_iter().find(|path| path.is_dir()).expect("a place");
    let resumed =
        furnished(&["--resume", place.to_str().expect("text"), "--record", "second.jsonl"]).output();
    let (out, err) = texts(&resumed.expect("it ran"));
    assert!(out.ends_with(&format!("\nAll done with {MARK}.\n")), "{out}\n{err}");

    let flight = segments(&place.join("state/longshore/trace")).expect("a flight recorder");
    assert_eq!(flight.len(), 2, "one for each life");
    let own = ["first.jsonl", "second.jsonl"].map(|name| bench.path().join(name));
    for path in flight.iter().chain(&own) {
        let text = std::fs::read_to_string(path).expect("a trace");
        assert!(text.contains("\"rec\":\"step\""), "{}", path.display());
        let home = bench.path().display().to_string();
        for (what, found) in
            [("a secret", MARK), ("a path", &home), ("the script", "All done"), ("a name", "local-")]
        {
            let line = text.lines().find(|line| line.contains(found));
            assert_eq!(line, None, "{} has {what}", path.display());
        }
    }
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_recording_that_is_incomplete_is_told_at_the_end() {
    let bench = bench();
    let file = bench.path().join("run.jsonl");
    let prompt = format!(
        "longshore-double: {}",
        json!([{ "shell": format!("/bin/rm '{}'", file.display()) }, { "say": "Done." }])
    );
    let output = local(&bench, &[&prompt, "--record", "run.jsonl"]).output().expect("it ran");
    let (out, err) = texts(&output);
    assert_eq!(
        (output.status.code(), out.as_str()),
        (Some(0), "Done.\n"),
        "what was asked for is done: {err}"
    );
    assert!(
        err.contains("warning: the recording run.jsonl is incomplete: ")
            && err.contains("(the file was removed while it was recorded to)\n"),
        "{err}"
    );
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_run_whose_file_is_damaged_is_told_so_and_its_agent_is_ended() {
    for damage in ["", "no database at all"] {
        let bench = bench();
        killed_once_begun(&bench, r#"longshore-double: [{"say":"Begun."},"hang"]"#);
        let place = places(&bench).pop().expect("a place");
        std::fs::write(place.join("queue.redb"), damage).expect("written");
        let place = place.to_str().expect("text");
        let output = local(&bench, &["--resume", place]).output().expect("it ran");
        let (out, err) = texts(&output);
        assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("queue.redb was damaged") && err.contains(place), "{err}");
        assert_eq!(bench.processes(), [""; 0]);
    }
}
