//! Who this daemon is to the server: id, earlier ids, device name, version.

mod id_file;
mod version;

pub use id_file::IdentityError;
pub use version::{COMPATIBLE_WITH, cli_version, commit, is_modified, source, source_date};

use crate::config::{Profile, Settings};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Used where the machine has no name.
pub const FALLBACK_DEVICE_NAME: &str = "local-machine";

/// What the server is told about this daemon when runtimes are registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of this machine's user, the same for all profiles; not empty.
    pub daemon_id: String,
    /// Names under which earlier versions may have registered, sorted, without `daemon_id` and without doubles.
    pub legacy_daemon_ids: Vec<String>,
    /// The label of this machine; not empty.
    pub device_name: String,
    /// See [`cli_version`].
    pub cli_version: String,
    /// `desktop` if the desktop app started the daemon, else mostly empty.
    pub launched_by: String,
}

impl Identity {
    /// Finds the identity. Without a daemon id in `settings` the file `daemon.id` is read, and made if there is none.
    ///
    /// # Errors
    /// The file is there and cannot be read, or has to be made and cannot.
    pub fn find(settings: &Settings, host_name: &str) -> Result<Self, IdentityError> {
        let daemon_id = match &settings.daemon_id {
            Some(id) => id.clone(),
            None => id_file::read_or_make(&settings.dirs)?,
        };
        let mut legacy = host_aliases(host_name, &settings.profile);
        legacy.extend(id_file::ids_of_profiles(&settings.dirs.shared));
        let same = |id: &String| id.eq_ignore_ascii_case(&daemon_id);
        let device_name = settings.device_name.as_deref().unwrap_or(host_name);
        Ok(Self {
            legacy_daemon_ids: legacy.into_iter().filter(|id| !same(id)).collect(),
            device_name: if device_name.is_empty() { FALLBACK_DEVICE_NAME } else { device_name }.to_owned(),
            cli_version: cli_version(),
            launched_by: settings.launched_by.clone(),
            daemon_id,
        })
    }
}

/// The name that the operating system gives this machine; empty if it has none or it is not UTF-8.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_str().unwrap_or_default().trim().to_owned()
}

/// Host names were daemon ids once, with the profile behind them.
fn host_aliases(host_name: &str, profile: &Profile) -> BTreeSet<String> {
    let host = host_name.strip_suffix(".local").unwrap_or(host_name);
    if host.is_empty() {
        return BTreeSet::new();
    }
    let mut all = BTreeSet::from([host.to_owned(), format!("{host}.local")]);
    if !profile.is_default() {
        let name = profile.name();
        all.extend([format!("{host}-{name}"), format!("{host}.local-{name}")]);
    }
    all
}

fn is_id(text: &str) -> bool {
    Uuid::parse_str(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Env, Flags};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    const ID: &str = "0198c2d0-7f3a-7000-8000-0123456789ab";
    const OTHER: &str = "0198c2d0-7f3a-7000-8000-0123456789ff";

    fn settings(home: &Path, profile: &str, env: &[(&str, &str)]) -> Settings {
        let mut all = Env::from_pairs([("HOME", home)]);
        for (name, value) in env {
            all.set(*name, *value);
        }
        let flags = Flags { profile: profile.to_owned(), ..Flags::default() };
        Settings::load(&flags, &all, Path::new("/")).expect("settings")
    }

    fn find(home: &Path, profile: &str) -> Identity {
        Identity::find(&settings(home, profile, &[]), "mac.local").expect("an identity")
    }

    fn put(home: &Path, place: &str, text: &str) {
        let path = home.join(".multica").join(place);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn cli_53_the_id_is_made_once_and_shared_by_all_profiles() {
        let home = tempfile::tempdir().expect("a directory");
        let first = find(home.path(), "").daemon_id;
        let path = home.path().join(".multica/daemon.id");
        let text = std::fs::read_to_string(&path).expect("the file");
        assert_eq!((text.len(), text.trim()), (37, first.as_str()));
        assert_eq!(Uuid::parse_str(&first).expect("a UUID").get_version_num(), 7);
        assert_eq!(std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
        assert_eq!(find(home.path(), "dev").daemon_id, first);
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), text, "reused byte for byte");
        let left: Vec<_> = std::fs::read_dir(home.path().join(".multica")).expect("listed").collect();
        assert_eq!(left.len(), 1, "no temporary file stays: {left:?}");
    }

    #[test]
    fn cli_53_many_daemons_starting_at_once_agree_on_one_id() {
        let home = tempfile::tempdir().expect("a directory");
        let ids: BTreeSet<String> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| find(home.path(), "").daemon_id)).collect();
            starts.into_iter().map(|start| start.join().expect("an id")).collect()
        });
        assert_eq!(ids.len(), 1, "{ids:?}");
    }

    #[test]
    fn a_fifo_in_place_of_the_id_is_told_and_not_waited_for() {
        let home = tempfile::tempdir().expect("a directory");
        put(home.path(), "daemon.id", ID);
        let path = home.path().join(".multica/daemon.id");
        std::fs::remove_file(&path).expect("removed");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        let error = Identity::find(&settings(home.path(), "", &[]), "host").expect_err("no id").to_string();
        assert!(error.contains("no regular file") && error.contains("daemon.id"), "{error}");
    }

    #[test]
    fn cli_54_a_broken_file_is_replaced_and_an_id_of_the_profile_is_taken_over() {
        let home = tempfile::tempdir().expect("a directory");
        put(home.path(), "daemon.id", "nonsense");
        put(home.path(), "profiles/dev/daemon.id", &format!("{ID}\n"));
        assert_eq!(find(home.path(), "dev").daemon_id, ID);
        assert_eq!(find(home.path(), "").daemon_id, ID, "the taken over id is the shared one now");
        put(home.path(), "daemon.id", "");
        assert_ne!(find(home.path(), "").daemon_id, ID, "the default profile has nothing to take over");
    }

    #[test]
    fn an_unreadable_file_stops_the_start() {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(home.path().join(".multica/daemon.id")).expect("a directory in its place");
        let error = Identity::find(&settings(home.path(), "", &[]), "h").expect_err("a directory");
        assert!(error.to_string().contains("daemon.id"), "{error}");
    }

    #[test]
    fn cli_55_earlier_ids_are_host_names_and_ids_of_profiles() {
        let home = tempfile::tempdir().expect("a directory");
        put(home.path(), "daemon.id", ID);
        put(home.path(), "profiles/dev/daemon.id", &ID.to_uppercase());
        put(home.path(), "profiles/old/daemon.id", OTHER);
        put(home.path(), "profiles/bad/daemon.id", "x");
        let want = [OTHER, "mac", "mac-dev", "mac.local", "mac.local-dev"];
        assert_eq!(find(home.path(), "dev").legacy_daemon_ids, want);
        assert_eq!(find(home.path(), "").legacy_daemon_ids, [OTHER, "mac", "mac.local"]);
    }

    #[test]
    fn cli_56_a_given_id_is_used_and_nothing_is_written() {
        let home = tempfile::tempdir().expect("a directory");
        let given = settings(home.path(), "", &[("MULTICA_DAEMON_ID", " my-id ")]);
        assert_eq!(Identity::find(&given, "h").expect("an identity").daemon_id, "my-id");
        assert!(!home.path().join(".multica").exists());
    }

    #[test]
    fn cli_57_the_device_name_falls_back_to_host_and_constant() {
        let home = tempfile::tempdir().expect("a directory");
        let name = |env: &[(&str, &str)], host| {
            Identity::find(&settings(home.path(), "", env), host).expect("an identity").device_name
        };
        assert_eq!(name(&[("MULTICA_DAEMON_DEVICE_NAME", "box")], "h"), "box");
        assert_eq!(name(&[], "h"), "h");
        assert_eq!(name(&[], ""), FALLBACK_DEVICE_NAME);
    }
}
