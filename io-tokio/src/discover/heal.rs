//! A program that is not where it was found: version managers move them. It is looked up again when it is to be launched.

use super::places::Place;
use super::prober::{Prober, usable};
use super::probes::Question;
use super::{FoundAgent, agent_cli};
use longshore_core::id::Provider;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What the login shell said may be this old, as it may have said it before the program moved.
const SHELL_AGE: Duration = Duration::from_mins(1);
/// Longer than a program may take.
const LIMIT: Duration = Duration::from_secs(30);

impl Prober {
    /// The program of a provider, to be launched now. One that is not there any more is looked up again, and must say a version that can be
    /// used; whoever wants the same one meanwhile waits for that.
    ///
    /// # Errors
    /// A sentence for people.
    pub async fn for_launch(&self, provider: &str) -> Result<Arc<FoundAgent>, String> {
        let known = self.known(provider);
        let gone = || format!("the {provider} program is not on this machine any more; install it again");
        let (Some(known), Some(turn)) = (known, self.healing.get(provider)) else { return Err(gone()) };
        if is_there(&known.path).await {
            return Ok(known);
        }
        let _turn = turn.lock().await;
        match self.known(provider) {
            Some(now) if now.path != known.path && is_there(&now.path).await => return Ok(now),
            _ => {}
        }
        let cli = agent_cli(provider).ok_or_else(gone)?;
        let search = self.search.clone();
        let found = tokio::task::spawn_blocking(move || search.place_of(cli).map(Place::at)).await;
        let mut place = found.ok().flatten();
        if place.is_none() && self.search.login_shell && self.search.is_default(cli) {
            let said = self.shell.ask(&self.search, SHELL_AGE).await;
            place = said
                .get(cli.command)
                .filter(|path| super::lookup::is_executable(path))
                .cloned()
                .map(Place::at);
        }
        let was = known.path.display();
        let place = place.ok_or_else(|| {
            format!("the {provider} program {was} is not there any more, and no other one was found; install it again")
        })?;
        let question = Question::new(cli, place.path.clone());
        let answer = self.probes.ask(&question, place.file, Result::is_ok, Instant::now() + LIMIT).await;
        let path = place.path;
        let now = path.display();
        let line = answer.ok_or_else(|| {
            format!("the {provider} program {was} is not there any more, and {now} does not say its version")
        })?;
        let version_line = usable(cli, line).map_err(|problem| {
            format!("the {provider} program {was} is not there any more, and {now} cannot be used: {problem}")
        })?;
        tracing::info!(provider, from = %was, to = %now, version = version_line, "the program has moved");
        let agent = Arc::new(FoundAgent { cli, provider: Provider::new(provider), path, version_line });
        self.learn(agent.clone());
        Ok(agent)
    }
}

/// A disk that hangs must not keep everything else waiting.
async fn is_there(path: &Path) -> bool {
    tokio::fs::metadata(path).await.is_ok_and(|meta| meta.is_file())
}
