//! Commands in a shell that lets them have few files open at a time.

use longshore_tests::Home;
use std::process::{Command, Output, Stdio};

fn with_files(home: &Home, files: u32, args: &[&str]) -> Output {
    let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
    let whole = home.command(args);
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).arg(whole.get_program()).args(whole.get_args());
    command.env_clear().envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(home.dir()).stdin(Stdio::null()).output().expect("it ran")
}

#[test]
fn each_command_works_or_says_what_it_needs() {
    let home = Home::at(env!("CARGO_BIN_EXE_longshore-under-test"), "http://127.0.0.1:1", "token");
    home.write_config();
    let started = ["daemon start", "daemon start --foreground", "daemon restart", "demo"];
    let asking = ["daemon stop", "daemon status", "daemon logs", "trace stats missing", "version"];
    for line in started.iter().chain(&asking) {
        let args: Vec<&str> = line.split(' ').collect();
        for files in [3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 23, 24, 25, 32, 48, 64] {
            let output = with_files(&home, files, &args);
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(!err.contains("panicked") && !err.contains("os error 24"), "{line}, {files}: {err}");
            let code = output.status.code();
            // With fewer the program may not even be loaded, which the system tells.
            if files <= 5 {
                assert!(code == Some(0) || !err.is_empty(), "{line}, {files}");
                continue;
            }
            let needed = if started.contains(line) { 128 } else { 24 };
            let told = err.contains(&format!("no more than {files} files"))
                && err.contains(&format!("`ulimit -n {needed}`"));
            let is_refused = files < needed && *line != "version";
            assert_eq!(told, is_refused, "{line}, {files}: {err}");
            if is_refused {
                let wrong = if line.starts_with("trace") { 2 } else { 1 };
                assert_eq!(code, Some(wrong), "{line}, {files}: {err}");
            }
        }
    }
    assert_eq!(home.processes(), [0; 0]);
}
