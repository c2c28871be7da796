//! Whether the server takes the credential, asked before anything is started or ended.

use super::error::ControlError;
use super::place::profile_flag;
use crate::config::Settings;
use crate::http::{CallError, Client, ClientConfig, ClientError, Request};
use crate::identity::cli_version;
use crate::wire::routes::ME;
use std::time::Duration;

/// How long the server's answer is waited for. Together with the start it must stay below the minute that the desktop app gives it.
const WITHIN: Duration = Duration::from_secs(10);

const FOREGROUND: &str = "; a daemon in the foreground (--foreground) waits until the server is there";

/// Fails if the server is not reached or refuses the credential, which the new daemon would meet as well. Another answer is no reason not
/// to start.
pub(super) async fn reach(settings: &Settings) -> Result<(), ControlError> {
    match ask(settings).await {
        Ok(()) | Err(Problem::Answered(_)) => Ok(()),
        Err(Problem::Client(error)) => Err(error.into()),
        Err(Problem::Refused) => Err(refused(settings)),
        Err(Problem::Unreachable(why)) => Err(unreachable(settings, why, FOREGROUND)),
    }
}

/// Fails if the server does anything but take the credential: a daemon that works is not replaced by one that may not.
pub(super) async fn confirm(settings: &Settings) -> Result<(), ControlError> {
    match ask(settings).await {
        Ok(()) => Ok(()),
        Err(Problem::Client(error)) => Err(ControlError::NoSuccessor(error.to_string())),
        Err(Problem::Refused) => Err(refused(settings)),
        Err(Problem::Unreachable(why)) => {
            Err(unreachable(settings, why, "; the running daemon is left as it is"))
        }
        Err(Problem::Answered(why)) => {
            Err(ControlError::Unconfirmed { server: settings.server_url.clone(), why })
        }
    }
}

fn refused(settings: &Settings) -> ControlError {
    ControlError::Credential { server: settings.server_url.clone(), flag: profile_flag(&settings.profile) }
}

fn unreachable(settings: &Settings, why: String, hint: &'static str) -> ControlError {
    ControlError::Unreachable { server: settings.server_url.clone(), why, hint }
}

enum Problem {
    Client(ClientError),
    Refused,
    Unreachable(String),
    Answered(String),
}

async fn ask(settings: &Settings) -> Result<(), Problem> {
    let client = Client::new(&ClientConfig {
        base_url: settings.server_url.clone(),
        token: settings.token.clone(),
        version: cli_version(),
        capabilities: Vec::new(),
        os: std::env::consts::OS.to_owned(),
    })
    .map_err(Problem::Client)?;
    let request = Request::new(ME, &[]).map_err(|error| Problem::Unreachable(error.to_string()))?;
    match client.call(request, WITHIN).await {
        Ok(_) => Ok(()),
        Err(CallError::NotSent { why } | CallError::Unknown { why }) => Err(Problem::Unreachable(why)),
        Err(error) if error.status() == Some(401) => Err(Problem::Refused),
        Err(error) => Err(Problem::Answered(error.to_string())),
    }
}
