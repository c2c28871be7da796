//! Demo.
use crate::cli::{Demo, Exit};
use crate::config::Env;
use std::error::Error;
use std::path::Path;
/// Runs.
pub async fn run(_demo: &Demo, _env: &Env, _cwd: &Path) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    Ok(Exit::Success)
}
