//! Where a daemon is: its profile, its files, its port.

use super::error::ControlError;
use crate::cli::Which;
use crate::config::{ConfigError, ConfigFile, Env, Profile, Settings, Source, StateDirs};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories deeper than this are not looked at for profiles.
const MAX_DEPTH: usize = 8;

/// Everything by which a daemon is found.
#[derive(Clone, Debug)]
pub struct Place {
    /// The profile.
    pub profile: Profile,
    /// Its directories.
    pub dirs: StateDirs,
    /// The port of its local HTTP server.
    pub port: u16,
}

impl Place {
    /// Finds the place of a daemon. Only what leads there is read, so that a bad setting of something else does not keep a daemon
    /// from being stopped.
    ///
    /// # Errors
    /// The profile is not known, or one of these settings cannot be used.
    pub fn find(which: &Which, env: &Env) -> Result<Self, ControlError> {
        let profile = Profile::new(&which.profile)?;
        let dirs = StateDirs::find(env, &profile)?;
        require_known(&profile, &dirs)?;
        let port = port(which, env, &dirs, &profile)?;
        Ok(Self { profile, dirs, port })
    }

    /// The place that settings lead to.
    pub fn of(settings: &Settings) -> Self {
        let (profile, dirs) = (settings.profile.clone(), settings.dirs.clone());
        Self { profile, dirs, port: settings.health_port }
    }

    /// What the daemon is called: `Daemon`, or `Daemon [dev]`.
    pub fn label(&self) -> String {
        if self.profile.is_default() { "Daemon".to_owned() } else { format!("Daemon [{}]", self.profile) }
    }

    /// The file with the process id, for people and other programs.
    pub fn pid_file(&self) -> PathBuf {
        self.dirs.profile.join("daemon.pid")
    }

    /// The log of a daemon in the background.
    pub fn log_file(&self) -> PathBuf {
        self.dirs.profile.join("daemon.log")
    }

    /// What a daemon in the background writes to standard output and standard error.
    pub fn error_log(&self) -> PathBuf {
        self.dirs.profile.join("daemon.err.log")
    }
}

/// The flag that names a profile, with a blank before it; nothing for the default one.
pub(super) fn profile_flag(profile: &Profile) -> String {
    if profile.is_default() { String::new() } else { format!(" --profile {}", profile.name()) }
}

fn port(which: &Which, env: &Env, dirs: &StateDirs, profile: &Profile) -> Result<u16, ConfigError> {
    const ENV: &str = "MULTICA_DAEMON_HEALTH_PORT";
    const KEY: &str = "health_port";
    let read = |text: &str, place: Source| {
        let expected = "a whole number from 1 to 65535";
        text.parse::<u16>().map_err(|_| ConfigError::value(place, Some(text), "it is no port", expected))
    };
    let flag = which.health_port.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let said = if let Some(text) = flag {
        read(text, Source::Flag("--health-port"))?
    } else if let Some(text) = env.text(ENV)? {
        read(text, Source::Env(ENV.to_owned()))?
    } else {
        let file = ConfigFile::load(&dirs.profile.join("config.json"), &mut Vec::new())?;
        file.text_or_number(KEY)?.map_or(Ok(0), |text| read(&text, file.place(KEY)))?
    };
    Ok(if said == 0 { profile.health_port() } else { said })
}

/// A mistyped name must not look like a daemon that is stopped.
fn require_known(profile: &Profile, dirs: &StateDirs) -> Result<(), ControlError> {
    if profile.is_default() || dirs.profile.is_dir() {
        return Ok(());
    }
    Err(ControlError::UnknownProfile { name: profile.name().to_owned(), known: known(&dirs.shared) })
}

/// The profiles that have a config file, in the order of their names.
fn known(shared: &Path) -> Vec<String> {
    fn walk(dir: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
        if !name.is_empty() && dir.join("config.json").is_file() {
            found.push(name.to_owned());
        }
        if depth == MAX_DEPTH {
            return;
        }
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (Ok(kind), Ok(part)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            if kind.is_dir() {
                let below = if name.is_empty() { part } else { format!("{name}/{part}") };
                walk(&entry.path(), &below, depth + 1, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&shared.join("profiles"), "", 0, &mut found);
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        home: &Path,
        profile: &str,
        flag: Option<&str>,
        env: &[(&str, &str)],
    ) -> Result<Place, ControlError> {
        let mut all = Env::from_pairs([("HOME", home)]);
        for (name, value) in env {
            all.set(*name, *value);
        }
        let which = Which { profile: profile.to_owned(), health_port: flag.map(str::to_owned) };
        Place::find(&which, &all)
    }

    fn with_config(home: &Path, profile: &str, text: &str) {
        let dir = home.join(".multica").join(profile);
        fs::create_dir_all(&dir).expect("directories");
        fs::write(dir.join("config.json"), text).expect("written");
    }

    #[test]
    fn cli_78_an_unknown_profile_is_told_with_those_that_there_are() {
        let home = tempfile::tempdir().expect("a directory");
        with_config(home.path(), "profiles/team/dev", "{}");
        with_config(home.path(), "profiles/alpha", "{}");
        let error = find(home.path(), "alhpa", None, &[]).expect_err("unknown");
        let text = error.to_string();
        assert!(text.contains("\"alhpa\"") && text.ends_with("alpha, team/dev"), "{text}");
        assert_eq!(find(home.path(), "team/dev", None, &[]).expect("known").label(), "Daemon [team/dev]");
        find(home.path(), "team", None, &[]).expect("its directory is there");
        assert_eq!(find(home.path(), "", None, &[]).expect("never checked").label(), "Daemon");
    }

    #[test]
    fn the_port_is_found_as_the_daemon_finds_it_and_nothing_else_is_read() {
        let home = tempfile::tempdir().expect("a directory");
        with_config(home.path(), "", r#"{"health_port": 4000, "poll_interval": "never"}"#);
        let port = |flag, env: &[(&str, &str)]| find(home.path(), "", flag, env).expect("a place").port;
        assert_eq!(port(None, &[]), 4000);
        let env = [("MULTICA_DAEMON_HEALTH_PORT", "4001"), ("MULTICA_DAEMON_POLL_INTERVAL", "never")];
        assert_eq!(port(None, &env), 4001);
        assert_eq!(port(Some("4002"), &env), 4002);
        let error = find(home.path(), "", Some("many"), &[]).expect_err("no port").to_string();
        assert!(error.contains("--health-port") && error.contains("many"), "{error}");
        with_config(home.path(), "", "{}");
        assert_eq!(port(None, &[]), crate::config::DEFAULT_HEALTH_PORT);
    }
}
