//! The work of the helper process, which can be killed at any point and be followed at once by another one on the
//! same directory (MUL-4923): everything here may be done again from the beginning.

use super::beneath::Dir;
use super::error::{At, PrepareError};
use super::job::{Job, Prepared, Prior, Reply};
use super::layout::{self, LOCK, OWNER, WORKDIR};
use super::lock::{self, LockFile, Owner};
use super::manifest::{self, Manifest};
use super::marker::{self, ENV_MARK, Provenance};
use super::{claude, codex, context, skill, tree};
use crate::brief;
use std::path::Path;

/// Runs in the helper process: takes the request's bytes, answers with the reply's. Both are JSON, neither is logged.
pub fn helper(job: &[u8]) -> Vec<u8> {
    let reply = match Job::from_bytes(job).and_then(|job| run(&job)) {
        Ok(prepared) => Reply::Prepared(prepared),
        Err(error) => {
            let text = error.to_string();
            match serde_json::value::to_raw_value(&error) {
                Ok(error) => Reply::Error { error, text },
                // A path that is no UTF-8.
                Err(_) => Reply::Error { error: Box::default(), text },
            }
        }
    };
    serde_json::to_vec(&reply).unwrap_or_else(|error| {
        let text = format!("the answer cannot be written: {error}");
        serde_json::json!({"error": {"error": {"kind": "other", "text": text}, "text": text}})
            .to_string()
            .into_bytes()
    })
}

/// Reads what the helper process wrote. Anything that is no whole answer is [`PrepareError::Reply`], never a success.
pub fn read_reply(bytes: &[u8]) -> Result<Prepared, PrepareError> {
    let unusable = |reason: &str| PrepareError::Reply { reason: reason.to_owned() };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(unusable("it is empty"));
    }
    match serde_json::from_slice(bytes) {
        Ok(Reply::Prepared(prepared)) => Ok(prepared),
        Ok(Reply::Error { error, text }) => {
            Err(serde_json::from_str(error.get()).unwrap_or(PrepareError::Other { text }))
        }
        Err(_) => Err(unusable("it is not understood")),
    }
}

/// Prepares. An earlier environment that turns out not to be usable is a warning and the task's own is made instead.
pub fn run(job: &Job) -> Result<Prepared, PrepareError> {
    let mut warnings = Vec::new();
    let root = lock::checked_root(&job.workspace_id, &job.task_id)?;
    if let Err(error) = marker::ensure_root_marker(&job.workspaces_root) {
        warnings.push(format!("the workspaces root has no marker: {error}"));
    }
    if let (Some(prior), None) = (&job.reuse, &job.local_workdir) {
        match again(job, prior, &mut warnings) {
            Ok(prepared) => return Ok(prepared),
            Err(error) => warnings.push(format!("the earlier work directory is not used again: {error}")),
        }
    }
    fresh(job, root.as_str(), warnings)
}

fn fresh(job: &Job, root: &str, mut warnings: Vec<String>) -> Result<Prepared, PrepareError> {
    let top = Dir::open(&job.workspaces_root).at("open", &job.workspaces_root)?;
    let (workspace, key) = root.split_once('/').expect("made of two names");
    let parent = top.ensure(workspace, layout::DIR).at("open", top.path().join(workspace))?;
    let env_root = parent.ensure(key, layout::PRIVATE_DIR).at("open", parent.path().join(key))?;
    let _lock = own(job, &env_root)?;
    let local = match &job.local_workdir {
        Some(path) => Some(local_directory(path)?),
        None => None,
    };
    if let Some(local) = &local {
        // A run in this directory that was killed: what it left is on the list that is about to be wiped.
        if let Err(error) = take_out(job, &env_root, local) {
            warnings.push(format!("what an earlier try left in {} stays: {error}", local.path().display()));
        }
    }
    tree::clear(&env_root, &[OWNER, LOCK]).into_result().at("empty", env_root.path())?;
    for name in [layout::OUTPUT, layout::LOGS] {
        env_root.make(name, layout::DIR).at("create", env_root.path().join(name))?;
    }
    let work_dir = match local {
        Some(local) => local,
        None => env_root.ensure(WORKDIR, layout::DIR).at("create", env_root.path().join(WORKDIR))?,
    };
    let furnished = furnish(job, &env_root, &work_dir, false, &mut warnings);
    if furnished.is_err() && job.local_workdir.is_some() {
        // A person's directory is given back as it was (MUL-6132); the first error is the one to tell.
        let _ = take_out(job, &env_root, &work_dir);
    }
    let mut prepared = furnished?;
    prepared.warnings = warnings;
    Ok(prepared)
}

/// Makes sure that the env root is this task's. The lock is the daemon's to hold, unless it said otherwise.
fn own(job: &Job, env_root: &Dir) -> Result<Option<LockFile>, PrepareError> {
    let lock = if job.claimed {
        None
    } else {
        let lock = LockFile::try_take(env_root, LOCK).at("lock", env_root.path().join(LOCK))?;
        Some(lock.ok_or_else(|| PrepareError::Busy { root: env_root.path().to_owned() })?)
    };
    if lock::owner(env_root, &job.task_id)? == Owner::Nobody {
        if job.claimed {
            return Err(PrepareError::Changed { path: env_root.path().to_owned() });
        }
        lock::mark(env_root, &job.task_id)?;
    }
    Ok(lock)
}

fn local_directory(path: &Path) -> Result<Dir, PrepareError> {
    let refuse = |reason: String| PrepareError::WorkDir { path: path.to_owned(), reason };
    let path = std::fs::canonicalize(path).map_err(|error| refuse(error.to_string()))?;
    Dir::open(&path).map_err(|error| refuse(error.to_string()))
}

fn take_out(job: &Job, env_root: &Dir, work_dir: &Dir) -> Result<(), PrepareError> {
    if Manifest::read(env_root)?.is_none() {
        return Ok(());
    }
    let brief = match brief::file_name(&job.provider) {
        Some(name) if !job.is_guest() => brief::block::remove(work_dir, name),
        _ => Ok(()),
    };
    let spelled = job.local_workdir.as_deref().unwrap_or(work_dir.path());
    manifest::roll_back(env_root, work_dir, &[work_dir.path(), spelled], None).and(brief)
}

fn again(job: &Job, prior: &Prior, warnings: &mut Vec<String>) -> Result<Prepared, PrepareError> {
    let gone = || PrepareError::Changed { path: prior.workdir.clone() };
    let root = prior.workdir.parent().ok_or_else(gone)?;
    let (Some(key), Some(workspace)) = (root.file_name(), root.parent().and_then(Path::file_name)) else {
        return Err(gone());
    };
    let top = Dir::open(&job.workspaces_root).at("open", &job.workspaces_root)?;
    let below = Path::new(workspace).join(key);
    let env_root = top.descend(&below).at("open", root)?.ok_or_else(gone)?;
    if env_root.identity().at("look at", root)? != prior.identity {
        return Err(gone());
    }
    let work_dir = env_root.child(WORKDIR).at("open", &prior.workdir)?.ok_or_else(gone)?;
    let spellings = [work_dir.path(), &prior.workdir];
    match manifest::roll_back(&env_root, &work_dir, &spellings, skill::folder(&job.provider)) {
        Ok(()) => {}
        // The agent put a link where we write.
        Err(error @ PrepareError::Symlink { .. }) => return Err(error),
        Err(error) => warnings.push(format!("old files of ours stay in the work directory: {error}")),
    }
    let mut prepared = furnish(job, &env_root, &work_dir, true, warnings)?;
    prepared.warnings = std::mem::take(warnings);
    Ok(prepared)
}

/// Everything that both a new and an earlier environment get.
fn furnish(
    job: &Job,
    env_root: &Dir,
    work_dir: &Dir,
    reused: bool,
    warnings: &mut Vec<String>,
) -> Result<Prepared, PrepareError> {
    let cli_config = env_root.path().join(layout::CLI_CONFIG);
    let config_dir = env_root.ensure(layout::CLI_CONFIG, layout::PRIVATE_DIR).at("create", &cli_config)?;
    config_dir.chmod(layout::PRIVATE_DIR).at("protect", &cli_config)?;

    let plan = context::plan(job, work_dir)?;
    plan.sidecars.write(env_root, work_dir)?;
    warnings.extend(plan.warnings);
    if !reused && let Err(error) = provenance(job, env_root) {
        warnings.push(format!("the environment cannot be used again later: {error}"));
    }
    let is = |provider: &str| job.provider == provider;
    let codex_home = if is("codex") {
        Some(codex::home(env_root, job.codex_home.as_deref(), &plan.skills, warnings)?)
    } else {
        None
    };
    let claude_settings =
        if is("claude") { claude::settings(env_root, &job.hidden_skills, &plan.skills)? } else { None };
    let mcp_config = claude::mcp_config(
        env_root,
        &job.provider,
        job.mcp_config.as_deref(),
        job.home.as_deref(),
        warnings,
    )?;
    if is("codex") && job.mcp_config.is_some() {
        warnings.push("MCP servers of the agent are not given to codex yet".to_owned());
    }
    let listed: Vec<String> = plan.skills.iter().filter(|s| s.is_listed).map(|s| s.slug.clone()).collect();
    let brief = brief::runtime(&job.facts, &listed);
    // A guest gets its brief with the prompt: the file may have that of whoever works there.
    if let Some(name) = brief::file_name(&job.provider).filter(|_| !job.is_guest())
        && let Err(error) = brief::block::install(work_dir, name, &brief)
    {
        warnings.push(format!("the agent has no brief in its work directory: {error}"));
    }
    Ok(Prepared {
        root: env_root.path().to_owned(),
        identity: env_root.identity().at("look at", env_root.path())?,
        workdir: work_dir.path().to_owned(),
        workdir_identity: work_dir.identity().at("look at", work_dir.path())?,
        reused,
        local_directory: job.local_workdir.is_some(),
        shared_directory: job.is_guest(),
        cli_config,
        codex_home,
        claude_settings,
        mcp_config,
        brief,
        warnings: Vec::new(),
    })
}

/// Says for whom the environment was made. Not for a person's directory, and not for work that has no next turn.
fn provenance(job: &Job, env_root: &Dir) -> Result<(), PrepareError> {
    if job.local_workdir.is_some() || (job.issue_id.is_empty() && job.chat_session_id.is_empty()) {
        return Ok(());
    }
    let provenance = Provenance {
        managed_by: ENV_MARK.to_owned(),
        workspace_id: job.workspace_id.clone(),
        issue_id: job.issue_id.clone(),
        chat_session_id: job.chat_session_id.clone(),
        agent_id: job.agent_id.clone(),
    };
    let path = env_root.path().join(layout::PROVENANCE);
    env_root.replace(layout::PROVENANCE, &provenance.to_bytes(), layout::FILE).at("write", path)
}

#[cfg(test)]
#[path = "helper_tests.rs"]
mod tests;
