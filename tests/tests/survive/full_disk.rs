//! A disk that takes nothing, played with a limit on the size of files: every write to a file fails.

use crate::audit;
use crate::rig::{Rig, executable, until, within};
use crate::stage::Stage;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long it may take a daemon to find out.
const TOLD: Duration = Duration::from_secs(20);

/// A program that is the binary, and whose daemon can write no file while `full` is there. What it says goes through a pipe, so that it can
/// be read.
fn limited(dir: &Path) -> PathBuf {
    let path = dir.join("longshore");
    let text = format!(
        r#"#!/bin/sh
if [ "$1" = daemon ] && [ -e '{dir}/full' ]; then
    mkfifo '{dir}/said'
    cat '{dir}/said' > '{dir}/log' &
    trap '' XFSZ
    ulimit -f 0
    exec '{executable}' "$@" > '{dir}/said' 2>&1
fi
exec '{executable}' "$@"
"#,
        dir = dir.display(),
        executable = executable(),
    );
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    path
}

#[tokio::test]
#[ignore = "takes longer: three daemons"]
async fn a_disk_that_is_full_is_told_in_clear_words_and_nothing_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let mut rig = Rig::of(limited(dir.path()), |home| home).await;
    let stage = Stage::new(&rig);
    let task = stage.in_mid_output(&mut rig).await;
    rig.kill().await;

    fs::write(at("full"), "").expect("written");
    rig.start_next();
    let later = Stage::named(&rig, "later");
    later.open_all(&mut rig);
    let queued = rig.enqueue(later.spec(false));
    let said = || fs::read_to_string(at("log")).unwrap_or_default();
    let ended = within(TOLD, || rig.daemon().has_ended().then_some(())).await;
    assert!(ended.is_some(), "{}", said());
    let log = until("a clear word", || Some(said()).filter(|log| log.contains("free some space"))).await;
    let ledger = rig.home.state_dir().join("ledger");
    assert!(log.contains(&ledger.display().to_string()), "{log}");

    fs::remove_file(at("full")).expect("it was there");
    rig.start_next();
    stage.open_all(&mut rig);
    for task in [&task, &queued] {
        let tries = rig.completed(task).await;
        assert_eq!(audit::task(&rig, &tries, true).wrong, Vec::<String>::new());
    }
    rig.stop().await;
}
