//! Profiles: separate state, log, health port and workspaces root under one user.

use super::env::Env;
use super::error::ConfigError;
use std::fmt;
use std::path::{Path, PathBuf};

/// The health port of the default profile.
pub const DEFAULT_HEALTH_PORT: u16 = 19_514;
/// The ports of named profiles start behind it, and there are this many of them.
pub const NAMED_HEALTH_PORTS: u16 = 1_000;

const IN_TASK: &str = "MULTICA_TASK_CONFIG_ROOT";

/// A checked profile name; the empty one is the default profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile(String);

impl Profile {
    /// Checks a name as given with `--profile`. `team/dev` is fine and makes nested directories.
    ///
    /// # Errors
    /// A name that could leave the profiles directory: absolute, with an empty, `.` or `..` component, a backslash
    /// or a NUL.
    pub fn new(name: &str) -> Result<Self, ConfigError> {
        let bad_part = |part: &str| part.is_empty() || part == "." || part == "..";
        let bad = name.contains(['\\', '\0']) || name.split('/').any(bad_part);
        if bad && !name.is_empty() {
            return Err(ConfigError::Profile { name: name.to_owned() });
        }
        Ok(Self(name.to_owned()))
    }

    /// The name; empty for the default profile.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether this is the default profile.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The port of the local HTTP server: 19514, or 19515 to 20514 by the bytes of the name. Names with the same
    /// sum share a port.
    pub fn health_port(&self) -> u16 {
        if self.is_default() {
            return DEFAULT_HEALTH_PORT;
        }
        let sum = self.0.bytes().fold(0, |sum, b| (sum + u16::from(b)) % NAMED_HEALTH_PORTS);
        DEFAULT_HEALTH_PORT + 1 + sum
    }

    /// Where tasks of this profile get their directories when nothing else is said.
    pub fn default_workspaces_root(&self, home: &Path) -> PathBuf {
        if self.is_default() {
            return home.join("multica_workspaces");
        }
        home.join(format!("multica_workspaces_{}", self.0))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_default() { "default" } else { &self.0 })
    }
}

/// The directories that hold state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDirs {
    /// The user's home directory.
    pub home: PathBuf,
    /// The state directory of the default profile, which also holds what all profiles share.
    pub shared: PathBuf,
    /// The state directory of the profile in use.
    pub profile: PathBuf,
}

impl StateDirs {
    /// Finds them; nothing is created. Inside a task the directory that the task was given takes the place of
    /// `~/.multica`, and a profile's name must then be a single component.
    ///
    /// # Errors
    /// `HOME` is unset or relative, the task's directory is relative, or the profile's name is nested inside a task.
    pub fn find(env: &Env, profile: &Profile) -> Result<Self, ConfigError> {
        let home = env.path("HOME").filter(|p| p.is_absolute()).ok_or(ConfigError::Home)?;
        let shared = match env.path(IN_TASK) {
            None => home.join(".multica"),
            Some(root) if root.is_absolute() => {
                if profile.name().contains('/') {
                    return Err(ConfigError::Profile { name: profile.name().to_owned() });
                }
                root
            }
            Some(_) => return Err(ConfigError::env(IN_TASK, "the path is not absolute", "an absolute path")),
        };
        let profile =
            if profile.is_default() { shared.clone() } else { shared.join("profiles").join(profile.name()) };
        Ok(Self { home, shared, profile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_30_health_ports_follow_the_vectors() {
        for (name, port) in [
            ("", 19514),
            ("a", 19612),
            ("dev", 19834),
            ("staging", 20264),
            ("local", 20038),
            ("work", 19966),
            ("desktop-api.multica.ai", 19681),
            ("desktop-localhost-8080", 19544),
            ("desktop", 20277),
            ("team/dev", 20304),
            ("prod", 19952),
            ("caf\u{e9}", 20177),
        ] {
            assert_eq!(Profile::new(name).expect("a good name").health_port(), port, "{name}");
        }
    }

    #[test]
    fn cli_04_names_that_leave_the_directory_are_refused() {
        for bad in ["..", ".", "a/../../b", "/abs", "a//b", "a/", "a\\b", "a\0b"] {
            assert!(Profile::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn cli_01_02_state_and_workspaces_follow_the_profile() {
        let env = Env::from_pairs([("HOME", "/h")]);
        let dirs =
            |name| StateDirs::find(&env, &Profile::new(name).expect("a good name")).expect("dirs").profile;
        assert_eq!(dirs(""), Path::new("/h/.multica"));
        assert_eq!(dirs("dev"), Path::new("/h/.multica/profiles/dev"));
        assert_eq!(dirs("team/dev"), Path::new("/h/.multica/profiles/team/dev"));
        let root = |name| Profile::new(name).expect("a good name").default_workspaces_root(Path::new("/h"));
        assert_eq!(root(""), Path::new("/h/multica_workspaces"));
        assert_eq!(root("dev"), Path::new("/h/multica_workspaces_dev"));
    }

    #[test]
    fn cli_14_inside_a_task_the_tasks_own_directory_is_used() {
        let dev = Profile::new("dev").expect("a good name");
        let env = Env::from_pairs([("HOME", "/h"), (IN_TASK, "/t/cfg")]);
        assert_eq!(StateDirs::find(&env, &dev).expect("dirs").profile, Path::new("/t/cfg/profiles/dev"));
        let nested = Profile::new("team/dev").expect("a good name");
        assert!(StateDirs::find(&env, &nested).is_err());
        let relative = Env::from_pairs([("HOME", "/h"), (IN_TASK, "cfg")]);
        let error = StateDirs::find(&relative, &dev).expect_err("a relative path").to_string();
        assert!(error.contains(IN_TASK), "{error}");
    }

    #[test]
    fn a_missing_home_is_an_error() {
        let none = StateDirs::find(&Env::default(), &Profile::default());
        assert!(none.expect_err("no home").to_string().contains("HOME"));
    }
}
