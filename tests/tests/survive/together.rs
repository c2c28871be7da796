//! Several scenarios at once, each with a server and a home of its own.

use crate::audit::Audit;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many run at once: they wait more than they compute.
const AT_ONCE: usize = 6;

/// Runs all of them; what was seen, by name. Fails at the end with all that was wrong.
pub(crate) async fn all<F>(scenarios: Vec<(String, F)>) -> BTreeMap<String, String>
where
    F: Future<Output = Audit> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    let mut names = BTreeMap::new();
    for (name, scenario) in scenarios {
        let room = Arc::clone(&room);
        let handle = running.spawn(async move {
            let _permit = room.acquire().await;
            scenario.await
        });
        names.insert(handle.id(), name);
    }
    let (mut seen, mut wrong) = (BTreeMap::new(), Vec::new());
    while let Some(ended) = running.join_next_with_id().await {
        match ended {
            Ok((id, audit)) => {
                let name = names.remove(&id).expect("it was begun");
                wrong.extend(audit.wrong.iter().map(|what| format!("{name}: {what}")));
                seen.insert(name, audit.says);
            }
            Err(error) => {
                let name = names.remove(&error.id()).expect("it was begun");
                wrong.push(format!("{name}: {error}, see above"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\nall that was seen: {seen:#?}");
    seen
}
