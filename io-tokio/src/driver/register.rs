//! Registrations, and their end.

use super::host::Host;
use super::profiles::{Profile, ProfileSet};
use crate::discover::Problem;
use crate::http::{CallError, Limit};
use crate::wire::register::{
    DeregisterRequest, FailedProfile, OfferedRuntime, OfflineReason, RegisterRequest, RegisteredRuntime,
    Repair,
};
use longshore_core::event::{ApiReply, Registered};
use longshore_core::id::{ProfileId, Provider, RuntimeId, WorkspaceId, is_safe_component};
use std::collections::BTreeMap;
use std::sync::Arc;

type Result<T> = std::result::Result<T, CallError>;

/// Names these agent CLIs, and the custom runtimes with this signature, in a workspace.
pub(super) async fn register(
    host: &Host,
    workspace: &WorkspaceId,
    agents: &[Provider],
    profiles: Option<u64>,
    limit: Limit,
) -> Result<ApiReply> {
    let not_sent = |why: &str| CallError::NotSent { why: why.to_owned() };
    let set = match profiles {
        None => None,
        Some(signature) => Some(
            host.served()
                .profiles(workspace, signature)
                .ok_or_else(|| not_sent("the custom runtimes of the workspace are others by now"))?,
        ),
    };
    let request = request(host, workspace, agents, set.as_deref());
    if request.runtimes.is_empty() && request.failed_profiles.is_empty() {
        return Err(not_sent("there is nothing to register"));
    }
    let reply = match host.client.register(&request, limit).await {
        Ok(reply) => reply,
        Err(error) => {
            if let (CallError::Rejected(rejection), Some(set)) = (&error, &set)
                && matches!(rejection.status, 400 | 409)
            {
                let named: Vec<String> = set.all.iter().map(|profile| label(profile)).collect();
                tracing::warn!(%workspace, profiles = named.join(", "), "the server refuses the registration, perhaps because of one of the custom runtimes: {error}");
            }
            return Err(error);
        }
    };
    if reply.runtimes.unusable > 0 {
        return Err(CallError::Undecodable {
            status: 200,
            why: format!("{} of the runtimes in it cannot be read", reply.runtimes.unusable),
        });
    }
    host.served().set_repos(workspace, reply.repos);
    let runtimes: Vec<Registered> =
        reply.runtimes.items.into_iter().filter_map(|runtime| for_core(workspace, runtime)).collect();
    tracing::info!(
        %workspace,
        runtimes = runtimes.len(),
        failed_profiles = request.failed_profiles.len(),
        "registered"
    );
    Ok(ApiReply::Registered { runtimes })
}

fn label(profile: &Profile) -> String {
    if profile.name.is_empty() {
        profile.id.to_string()
    } else {
        format!("{} ({})", profile.name, profile.id)
    }
}

fn request(
    host: &Host,
    workspace: &WorkspaceId,
    agents: &[Provider],
    profiles: Option<&ProfileSet>,
) -> RegisterRequest {
    let device = &host.identity.device_name;
    let mut runtimes = Vec::new();
    for provider in agents {
        let Some(agent) = host.prober.known(provider.as_str()) else {
            tracing::error!(%provider, "an agent is to be registered that no look has found; this is a bug");
            continue;
        };
        runtimes.push(OfferedRuntime {
            name: agent.runtime_name(device),
            provider: provider.as_str().to_owned(),
            version: agent.version_line.clone(),
            status: "online",
            profile_id: None,
        });
    }
    let mut failed_profiles = Vec::new();
    let profiles: &[Arc<Profile>] = profiles.map_or(&[], |set| &set.all);
    for profile in profiles {
        let profile_id = profile.id.as_str().to_owned();
        match &profile.here {
            Ok(usable) => runtimes.push(OfferedRuntime {
                name: match profile.name.trim() {
                    "" => format!("{} ({device})", usable.cli.display),
                    name => format!("{name} ({device})"),
                },
                provider: usable.cli.provider.to_owned(),
                version: usable.version_line.clone(),
                status: "online",
                profile_id: Some(profile_id),
            }),
            Err(why) => failed_profiles.push(FailedProfile {
                profile_id,
                command_name: profile.command.clone(),
                reason: why.clone(),
            }),
        }
    }
    RegisterRequest {
        workspace_id: workspace.clone(),
        daemon_id: host.identity.daemon_id.clone(),
        legacy_daemon_ids: host.identity.legacy_daemon_ids.clone(),
        device_name: device.clone(),
        cli_version: host.identity.cli_version.clone(),
        launched_by: host.identity.launched_by.clone(),
        runtimes,
        failed_profiles,
    }
}

fn for_core(workspace: &WorkspaceId, runtime: RegisteredRuntime) -> Option<Registered> {
    if !is_safe_component(runtime.id.as_str()) {
        tracing::error!(%workspace, "the server names a runtime whose id can be no part of a URL; it is not used");
        return None;
    }
    Some(Registered {
        id: runtime.id,
        provider: Provider::new(runtime.provider.to_ascii_lowercase()),
        profile: runtime.profile_id.filter(|id| !id.is_empty()).map(ProfileId::new),
    })
}

/// Takes runtimes off line; `broken` is the agent CLI that the system refuses to run, if that is why.
pub(super) async fn deregister(
    host: &Host,
    runtimes: &[RuntimeId],
    broken: Option<&Provider>,
    limit: Limit,
) -> Result<ApiReply> {
    let reason = broken.map(|provider| offline_reason(host, provider));
    let offline_reasons: BTreeMap<_, _> = reason
        .into_iter()
        .flat_map(|reason| runtimes.iter().map(move |runtime| (runtime.clone(), reason.clone())))
        .collect();
    let request = DeregisterRequest { runtime_ids: runtimes, offline_reasons };
    host.client.deregister(&request, limit).await.map(|()| ApiReply::Done)
}

/// Why an agent CLI cannot be run, and how a person repairs that, as the latest look saw it.
fn offline_reason(host: &Host, provider: &Provider) -> OfflineReason {
    let latest = host.prober.latest();
    let skipped = latest.iter().flat_map(|found| &found.skipped);
    let problem = skipped
        .filter(|skipped| skipped.cli.provider == provider.as_str())
        .find(|skipped| matches!(skipped.problem, Problem::NotExecutable { .. }));
    let (detail, repair) = match problem.map(|skipped| &skipped.problem) {
        Some(problem @ Problem::NotExecutable { repair }) => {
            let repair = repair.as_ref().map(|repair| Repair {
                package: repair.package.clone(),
                command: repair.command.clone(),
                shell: "bash".to_owned(),
            });
            (problem.to_string(), repair)
        }
        _ => (format!("the system refused to run the {provider} program"), None),
    };
    OfflineReason { code: "not_executable", detail, repair }
}
