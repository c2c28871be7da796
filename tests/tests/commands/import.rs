//! Logs of another daemon that become traces: from files and pipes, packed or not, whole or not.

use crate::bed::succeeded;
use crate::traces::{alone, gzip, zstd};
use longshore_tests::{Home, trace_text};
use std::fmt::Write;
use std::fs;

const IMPORT: [&str; 8] =
    ["trace", "import", "--from", "multica-log", "--date", "2026-03-01", "--time-zone", "+00:00"];

/// A log of many tasks, one a second.
fn log(tasks: u32) -> String {
    let mut text =
        "09:00:00.000 INF starting daemon component=daemon version=0.9.1 agents=[claude]\n".to_owned();
    for n in 1..=tasks {
        let (minute, second) = (n / 60, n % 60);
        writeln!(
            text,
            "09:{minute:02}:{second:02}.000 INF task received component=daemon task=t{n:07} target=i-{n}"
        )
        .expect("writes to memory");
        writeln!(
            text,
            "09:{minute:02}:{second:02}.500 INF task completed component=daemon task=t{n:07} status=completed"
        )
        .expect("writes to memory");
    }
    text
}

fn words<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    IMPORT.iter().copied().chain(rest.iter().copied()).collect()
}

/// Puts a log there, and gives its name.
fn put<'a>(home: &Home, name: &'a str, bytes: &[u8]) -> &'a str {
    fs::write(home.dir().join(name), bytes).expect("writes");
    name
}

#[tokio::test]
async fn a_log_is_the_same_from_a_file_or_a_pipe_packed_or_not() {
    let home = alone();
    let text = log(40);
    let all = [text.as_bytes().to_vec(), gzip(text.as_bytes()), zstd(text.as_bytes())];
    let plain = home.run(&words(&[put(&home, "plain", &all[0])])).await;
    succeeded(&plain);
    assert!(plain.err.contains("understood  81 lines"), "{plain:?}");
    for bytes in &all {
        // Its name says nothing of how it is packed.
        let file = home.run(&words(&[put(&home, "log", bytes)])).await;
        let piped = home.run_fed(&words(&["-"]), bytes).await;
        for said in [file, piped] {
            succeeded(&said);
            assert_eq!((said.out, said.err), (plain.out.clone(), plain.err.clone()));
        }
    }
    let written = home.run_fed(&words(&["-", "-o", "there.jsonl.gz"]), &all[2]).await;
    succeeded(&written);
    assert_eq!(trace_text(&home.dir().join("there.jsonl.gz")), plain.out.as_bytes());
    let read = home.run_fed(&["trace", "check", "-"], plain.out.as_bytes()).await;
    succeeded(&read);
}

#[tokio::test]
async fn of_a_packed_log_that_is_cut_off_what_is_there_is_imported() {
    let home = alone();
    let text = log(3_000);
    for (name, bytes, packer) in
        [("log.gz", gzip(text.as_bytes()), "gzip"), ("log.zst", zstd(text.as_bytes()), "zstd")]
    {
        let cut = &bytes[..bytes.len() * 3 / 4];
        let file = home.run(&words(&[put(&home, name, cut)])).await;
        let piped = home.run_fed(&words(&["-"]), cut).await;
        assert_eq!(file.out, piped.out);
        for said in [file, piped] {
            succeeded(&said);
            let warning = said.err.lines().next().expect("a warning");
            assert!(warning.starts_with("warning: ") && warning.contains(": after line "), "{warning}");
            let end = format!(
                "nothing can be read: the {packer} data is cut off (for the rest, copy the whole file again); what came before was used"
            );
            assert!(warning.ends_with(&end), "{warning}");
            assert!(said.out.lines().count() > 500, "{}", said.out.lines().count());
        }
    }
}

#[tokio::test]
async fn a_night_and_a_copy_of_the_log_are_told_from_what_they_look_like() {
    let home = alone();
    let evening = "\
20:00:00.000 INF starting daemon component=daemon version=0.9.1
20:00:01.000 INF task received component=daemon task=t0000001 target=i-1
20:00:02.000 INF task completed component=daemon task=t0000001 status=completed
";
    let morning = "\
08:30:00.000 INF task received component=daemon task=t0000002 target=i-2
08:30:01.000 INF task completed component=daemon task=t0000002 status=completed
";
    put(&home, "daemon-2026-11-29T08-30-02.000.log", format!("{evening}{morning}").as_bytes());
    // A copy of its end, which somebody put behind it.
    put(&home, "daemon-2026-11-29T08-30-03.000.log", morning.as_bytes());
    fs::create_dir(home.dir().join("logs")).expect("a directory");
    for name in ["daemon-2026-11-29T08-30-02.000.log", "daemon-2026-11-29T08-30-03.000.log"] {
        fs::rename(home.dir().join(name), home.dir().join("logs").join(name)).expect("moves");
    }
    let words =
        ["trace", "import", "--from", "multica-log", "--time-zone", "+00:00", "logs", "-o", "there.jsonl"];
    let said = home.run(&words).await;
    succeeded(&said);
    let want = "\
there.jsonl: 5 steps from 7 lines; where lines have no date it was taken from the names of the files
understood  7 lines
repeated    2 lines are there twice, used once: line 6 is line 4 again, and so on
";
    assert_eq!(said.err, want);
    let shown = home.run(&["trace", "show", "there.jsonl"]).await;
    succeeded(&shown);
    assert!(shown.out.contains("begun 2026-11-28T20:00:00.000Z"), "{}", shown.out);
    assert!(shown.out.contains(" 12:30:01.000 "), "a night lies between the tasks: {}", shown.out);
    succeeded(&home.run(&["trace", "check", "there.jsonl"]).await);
}

#[tokio::test]
async fn what_cannot_be_imported_is_refused_with_2_and_a_reason() {
    let home = alone();
    for (rest, input, why) in [
        (["-", "-"].as_slice(), "", "standard input can be read only once"),
        (&["-"], "", "error: standard input is empty"),
        (&["-"], "no log\n", "error: its one line is none that the multica daemon writes"),
        (&["none"], "", "none cannot be read: No such file"),
        (&["--date", "9999-12-31", "-"], "", "a trace can hold the days from 1970-01-01 to 9999-12-29"),
        (&["--time-zone", "+25:00", "-"], "", "an offset is from -14:00 to +14:00"),
    ] {
        // What is said a second time would be another error.
        let once = rest[0].starts_with("--");
        let words: Vec<&str> =
            if once { IMPORT[..4].iter().chain(rest).copied().collect() } else { words(rest) };
        let said = home.run_fed(&words, input.as_bytes()).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.starts_with("error: ") && said.err.contains(why), "{said:?}");
    }
}
