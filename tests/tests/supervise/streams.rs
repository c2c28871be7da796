//! The agent's input and output.

use crate::bench::{Bench, LIMIT, listen, listen_for, seq};
use longshore_io_tokio::supervise::record::EndedBy;
use longshore_io_tokio::supervise::{Credit, RunEvent, StdinError};
use std::time::Duration;

#[tokio::test]
async fn bug_31_a_prompt_is_delivered_whole_while_the_agent_writes_first() {
    let bench = Bench::new();
    let text = "head -c 262144 /dev/zero; head -c 262144 /dev/zero >&2; echo; cksum";
    let mut spec = bench.shell(text);
    spec.prompt = "say \"hi\"\n-X 'x' $HOME `id`\n".repeat(8_000).into_bytes();
    assert!(spec.prompt.len() > 200_000);
    let file = bench.dir.path().join("expected");
    std::fs::write(&file, &spec.prompt).expect("written");
    let sum = std::process::Command::new("cksum").stdin(std::fs::File::open(file).expect("there")).output();
    let sum = sum.expect("cksum runs").stdout;
    let said = listen(&mut bench.launch(spec).await).await;
    assert!(said.record.success());
    assert_eq!(said.stderr.len(), 262_144);
    assert!(said.stdout.ends_with(&sum), "the prompt arrived changed");
}

#[tokio::test]
async fn bug_31_ten_megabytes_go_through_and_an_agent_that_wants_none_of_them_still_ends() {
    let bench = Bench::new();
    let prompt = vec![b'p'; 10_000_000];
    let cases = [
        ("wc -c", "10000000"),
        ("echo not reading", "not reading"),
        ("exec 0<&-; sleep 0.1; echo closed", "closed"),
        ("head -c 1024 >/dev/null; exec 0<&-; sleep 0.1; echo result", "result"),
    ];
    for (attempt, (text, expected)) in (1..).zip(cases) {
        let mut spec = bench.shell(text);
        spec.attempt = attempt;
        spec.prompt.clone_from(&prompt);
        let said = listen(&mut bench.launch(spec).await).await;
        assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), expected);
        assert!(said.record.success(), "{text}: {:?}", said.record);
    }
}

#[tokio::test]
async fn what_is_written_later_follows_the_prompt_and_close_is_the_end() {
    let bench = Bench::new();
    let mut spec = bench.shell("cat");
    spec.prompt = b"prompt\n".to_vec();
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "prompt\n").await;
    run.write_stdin(b"one\n").expect("taken");
    listen_for(&mut run, "one\n").await;
    let long = vec![b'x'; 3_000_000];
    run.write_stdin(&long).expect("held");
    run.close_stdin();
    assert_eq!(run.write_stdin(b"late"), Err(StdinError::Closed));
    let said = listen(&mut run).await;
    assert!(said.record.success());
    assert!(said.stdout == long, "{} bytes came back", said.stdout.len());
}

#[tokio::test]
async fn an_agent_that_does_not_read_fills_a_bound_and_can_still_be_killed() {
    let bench = Bench::new();
    let mut spec = bench.shell("echo up; sleep 600");
    spec.keep_stdin_open = true;
    let mut run = bench.launch(spec).await;
    listen_for(&mut run, "up").await;
    let block = vec![0; 1_000_000];
    let error = std::iter::repeat_with(|| run.write_stdin(&block)).take(40).find_map(Result::err);
    assert!(matches!(error, Some(StdinError::Full { held }) if held > 15_000_000), "{error:?}");
    run.kill();
    let said = listen(&mut run).await;
    assert_eq!((said.record.ended_by, said.record.signal), (EndedBy::Kill, Some(9)));
    assert!(said.took < Duration::from_secs(5), "{:?}", said.took);
}

#[tokio::test]
async fn output_beyond_a_small_budget_flows_as_it_is_read_and_none_is_lost() {
    let bench = Bench::new();
    let mut spec = bench.shell("seq 1 400000; seq 1 400000 >&2");
    spec.spool_budget = 10_000;
    let said = listen(&mut bench.launch(spec).await).await;
    let expected = seq(400_000);
    assert!(said.stdout == expected.as_bytes() && said.stderr == expected.as_bytes());
}

#[tokio::test]
async fn at_the_budget_the_agent_waits_until_its_output_is_acknowledged() {
    let bench = Bench::new();
    let budget = 200_000;
    let mut spec = bench.shell("head -c 1000000 /dev/zero; echo end");
    spec.credit = Credit::Explicit;
    spec.spool_budget = budget;
    let mut run = bench.launch(spec).await;
    let mut got = 0;
    while got < budget {
        match run.next().await {
            RunEvent::Stdout(bytes) => got += bytes.len() as u64,
            other => panic!("{other:?}"),
        }
    }
    // Nothing more comes, although everything was read: only the acknowledgement counts.
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(150), run.next()).await {
        match event {
            RunEvent::Stdout(bytes) => got += bytes.len() as u64,
            other => panic!("{other:?}"),
        }
    }
    let spool = run.dir().file("stdout").metadata().expect("there").len();
    assert!(got == spool && spool < budget + 65_536 + 1, "{got} read, {spool} in the spool");
    let mut ended = None;
    while ended.is_none() {
        let position = run.position();
        run.acknowledge(position);
        match tokio::time::timeout(LIMIT, run.next()).await.expect("it goes on") {
            RunEvent::Stdout(bytes) => got += bytes.len() as u64,
            RunEvent::Stderr(bytes) => panic!("{bytes:?}"),
            RunEvent::Ended(record) => ended = Some(record),
        }
    }
    assert_eq!(got, 1_000_004);
    assert!(ended.is_some_and(|record| record.success()));
}

#[tokio::test]
async fn a_call_of_next_that_is_dropped_loses_nothing() {
    let bench = Bench::new();
    let mut run = bench.launch(bench.shell("seq 1 20000; sleep 0.05; seq 1 20000")).await;
    let mut stdout = Vec::new();
    let record = loop {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            event = run.next() => match event {
                RunEvent::Stdout(bytes) => {
                    assert!(bytes.len() <= 256 * 1024);
                    stdout.extend_from_slice(&bytes);
                }
                RunEvent::Stderr(bytes) => panic!("{bytes:?}"),
                RunEvent::Ended(record) => break record,
            },
        }
    };
    let once = seq(20_000);
    assert!(stdout == once.repeat(2).as_bytes());
    assert!(record.success());
}
