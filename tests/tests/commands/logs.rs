//! Where a daemon logs, and `daemon logs`.

use crate::bed::{Bed, refused, succeeded};
use std::fs;

#[tokio::test]
async fn cli_91_the_log_of_a_daemon_in_the_background_is_shown() {
    let bed = Bed::new().await;
    let none = bed.home.run(&["daemon", "logs"]).await;
    let path = bed.file("daemon.log").display().to_string();
    assert!(refused(&none).contains(&path), "{none:?}");
    succeeded(&bed.home.run(&["daemon", "start"]).await);
    let mut follow = bed.home.begin(&["daemon", "logs", "-f", "-n", "1"]);
    follow.says(&path).await;
    succeeded(&bed.home.run(&["daemon", "stop"]).await);
    let all = fs::read_to_string(bed.file("daemon.log")).expect("a log");
    let said = bed.home.run(&["daemon", "logs", "-n", "2"]).await;
    succeeded(&said);
    assert_eq!(said.out.lines().count(), 2);
    for words in [
        "asked to stop by=\"the local HTTP port\" how=stop",
        "stopping phase=deregistering",
        "daemon ends cause=stopped",
    ] {
        assert!(all.lines().any(|line| line.contains(words)), "{words}: {all}");
    }
    assert!(all.ends_with(&said.out), "{said:?}");
    assert_eq!(said.err.lines().count(), 1);
    assert!(said.err.contains(&path) && said.err.contains("default"), "{said:?}");
    let followed = follow.shown_until(said.out.lines().last().expect("two lines")).await;
    assert!(all.ends_with(&followed), "from where it began, without a gap: {followed}");
}

#[tokio::test]
async fn cli_90_a_daemon_in_the_foreground_logs_to_standard_error_unless_told_otherwise() {
    let bed = Bed::new().await;
    let ended = bed.daemon().await.stop().await;
    assert!(ended.log.contains("ready") && !bed.file("daemon.log").exists(), "{}", ended.log);
    assert!(ended.log.contains("asked to stop by=SIGTERM how=stop"), "{}", ended.log);

    let bed = Bed::with(|home| home.flag("--log-target=file")).await;
    let ended = bed.daemon().await.stop().await;
    assert_eq!(ended.log, "");
    assert!(fs::read_to_string(bed.file("daemon.log")).expect("a log").contains("ready"));

    let bed = Bed::with(|home| home.flag("--log-target=both")).await;
    let ended = bed.daemon().await.stop().await;
    assert_eq!(fs::read_to_string(bed.file("daemon.log")).expect("a log"), ended.log);
    assert!(ended.log.contains("ready"));
}
