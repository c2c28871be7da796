//! Local.
use crate::cli::{Exit, Local};
use crate::config::Env;
use std::error::Error;
use std::path::Path;
/// Runs.
pub async fn run(_local: &Local, _env: &Env, _cwd: &Path) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    Ok(Exit::Success)
}
