//! Whatever a server answers to a claim: nothing panics, no element is lost without a word, and no id leaves the workspaces root.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longshore_io_tokio::prepare;
use longshore_io_tokio::wire::claim::ClaimReply;
use longshore_io_tokio::wire::routes;
use std::path::{Component, Path};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let root = Path::new("/workspaces");
    for reply in [ClaimReply::batch(&text), ClaimReply::single(&text)].into_iter().flatten() {
        for task in &reply.tasks {
            if let Some(env_root) = prepare::predicted_root(&task.workspace_id, &task.id) {
                let dir = prepare::path_of(root, &env_root);
                let below = dir.strip_prefix(root).expect("below the root");
                assert!(below.components().all(|part| matches!(part, Component::Normal(_))), "{dir:?}");
            }
            let _ = prepare::prior_root(&[root], &task.prior_work_dir);
            if let Ok(path) = routes::START.path(&[&task.id]) {
                assert_eq!(path.matches('/').count(), routes::START.template.matches('/').count());
            }
            let _ = (task.kind(), format!("{task:?}"));
        }
    }
});
