//! The files that are put into the work directory for the agent and its tools.

use super::beneath::Dir;
use super::error::{At, PrepareError};
use super::job::Job;
use super::layout::{AGENT_CONTEXT, MARKER, MULTICA_DIR, POINTER};
use super::manifest::{Existing, Sidecars};
use super::marker::{TASK_MARK, TaskMarker};
use super::skill::{self, Placed};
use std::path::Path;

/// What is going to be written, and the skills that need a place elsewhere.
pub(super) struct Plan {
    pub(super) sidecars: Sidecars,
    /// All skills, with the names of their folders.
    pub(super) skills: Vec<Placed>,
    pub(super) warnings: Vec<String>,
}

/// Looks at the work directory and plans. Nothing is written.
pub(super) fn plan(job: &Job, work_dir: &Dir) -> Result<Plan, PrepareError> {
    let mut sidecars = Sidecars::default();
    let mut warnings = Vec::new();
    let agent_context = Path::new(AGENT_CONTEXT);
    // A guest in a person's directory puts nothing there under a name that belongs to whoever works there.
    if !job.is_guest() {
        marker(job, work_dir, &mut sidecars)?;
        sidecars.file(agent_context.join(POINTER), job.pointer.as_bytes(), Existing::Keep);
    }

    let folder = skill::folder(&job.provider);
    let into = match folder {
        Some(folder) => work_dir.descend(folder).at("open", work_dir.path().join(folder))?,
        None => None,
    };
    let skills = skill::place(&job.skills, into.as_ref(), &job.workspaces_root)?;
    if let (Some(folder), false) = (folder, skills.is_empty()) {
        for file in skills.iter().flat_map(|skill| &skill.files) {
            sidecars.shared_file(folder.join(&file.below), file.text.as_bytes(), file.shared.clone());
        }
    } else if job.provider == "codex" && !skills.is_empty() {
        sidecars.dir(agent_context.join("skills"));
    } else if !skills.is_empty() {
        warnings.push(format!(
            "{} skill(s) were not installed: {} has no place for them yet",
            skills.len(),
            job.provider
        ));
    }
    if let Some(resources) = job.resources.as_ref().filter(|_| !job.is_guest()) {
        sidecars.file(
            Path::new(MULTICA_DIR).join("project/resources.json"),
            resources.as_bytes(),
            Existing::Keep,
        );
    }
    Ok(Plan { sidecars, skills, warnings })
}

/// The marker that tells the `multica` CLI that it is inside a task. One of ours from a run that was cut short is
/// written anew, so that it goes away with this one; anything else of that name is somebody's and an error.
fn marker(job: &Job, work_dir: &Dir, sidecars: &mut Sidecars) -> Result<(), PrepareError> {
    let below = Path::new(MULTICA_DIR).join(MARKER);
    let path = work_dir.path().join(&below);
    let folder = work_dir.child(MULTICA_DIR).at("open", work_dir.path().join(MULTICA_DIR))?;
    let there = match folder {
        Some(folder) => folder.kind(MARKER).at("look at", &path)?.is_some(),
        None => false,
    };
    let existing = match (there, TaskMarker::read(work_dir)) {
        (false, _) => Existing::Refuse,
        (true, Some(old)) if old.managed_by == TASK_MARK => Existing::Replace,
        (true, _) => return Err(PrepareError::Foreign { path }),
    };
    let marker = TaskMarker {
        managed_by: TASK_MARK.to_owned(),
        agent_id: job.agent_id.clone(),
        issue_id: job.issue_id.clone(),
        chat_session_id: job.chat_session_id.clone(),
    };
    sidecars.file(below, marker.to_bytes(), existing);
    Ok(())
}
