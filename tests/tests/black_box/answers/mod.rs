//! Every row of the table of answers, driven through the faults of the control plane: the request is answered with the trouble, and what the
//! table says follows is what is seen.
//!
//! What was not sent is no answer that a server can give: outages have tests of their own, and the core's scenarios know the difference.

mod checks;
mod faults;
mod scenes;

use faults::faults;
use futures_util::{StreamExt, stream};
use longshore_io_tokio::answers::{ANSWERS, Trouble};
use scenes::Scene;

/// Daemons at work at a time.
const AT_ONCE: usize = 6;

#[tokio::test]
async fn every_answer_is_followed_by_what_the_table_says() {
    let mut cases = Vec::new();
    for row in ANSWERS {
        for trouble in row.troubles.iter().filter(|trouble| **trouble != Trouble::NotSent) {
            cases.extend(
                faults(row.route, *trouble).into_iter().map(|(name, action)| (row, *trouble, name, action)),
            );
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());
    let outcomes = stream::iter(cases).map(|(row, trouble, name, action)| async move {
        let what =
            format!("{} {}: {} ({name})", row.route.method.as_str(), row.route.template, trouble.words());
        // A panic of one case is told with the case.
        let seen = tokio::spawn(async move { Scene::of(row.route).play(row, trouble, action).await }).await;
        seen.map_err(|_| "it panicked".to_owned()).flatten().err().map(|why| format!("{what}: {why}"))
    });
    let failed: Vec<String> =
        outcomes.buffer_unordered(AT_ONCE).filter_map(async |failed| failed).collect().await;
    assert!(failed.is_empty(), "{} rows are not true:\n{}", failed.len(), failed.join("\n"));
}
