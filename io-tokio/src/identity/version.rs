//! The version that servers gate features on.

/// The release of the multica command line whose behaviour is matched.
pub const COMPATIBLE_WITH: &str = "0.4.32";

/// The commit that this program was built from, if the build knew it: 7 to 40 lower-case hexadecimal digits. A release build in a git
/// repository does; elsewhere it can be said with `LONGSHORE_COMMIT`.
pub fn commit() -> Option<&'static str> {
    option_env!("LONGSHORE_COMMIT").filter(|c| {
        (7..=40).contains(&c.len()) && c.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// Whether the source that was built was changed since that commit, as far as git saw.
pub fn is_modified() -> bool {
    option_env!("LONGSHORE_MODIFIED").is_some()
}

/// The commit for a person, and for recordings: with `-modified` if the source was not that of the commit alone.
pub fn source() -> Option<String> {
    Some(source_of(commit()?, is_modified()))
}

fn source_of(commit: &str, modified: bool) -> String {
    format!("{commit}{}", if modified { "-modified" } else { "" })
}

/// The day of that commit in UTC, as `2026-01-31`, or of `SOURCE_DATE_EPOCH` where the build had that. It says nothing of when the build ran,
/// so that the same source makes the same program.
pub fn source_date() -> Option<String> {
    let seconds = option_env!("LONGSHORE_SOURCE_DATE")?.parse().ok()?;
    Some(day(jiff::Timestamp::from_second(seconds).ok()?))
}

fn day(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// The version told to servers and by `longshore version`, in the form that `git describe` has for a build between
/// releases: such a version passes every gate, and nobody offers to replace the program by an official release.
/// The number in the middle is longshore's own version: 1002003 for 1.2.3.
pub fn cli_version() -> String {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let own = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
        + number(env!("CARGO_PKG_VERSION_PATCH"));
    format!("v{COMPATIBLE_WITH}-{own}-g{}", commit().unwrap_or("0000000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_was_changed_is_not_that_of_its_commit() {
        assert_eq!(source_of("0123456789ab", false), "0123456789ab");
        assert_eq!(source_of("0123456789ab", true), "0123456789ab-modified");
    }

    #[test]
    fn a_day_is_that_of_utc() {
        let day_of = |seconds| day(jiff::Timestamp::from_second(seconds).expect("a time"));
        assert_eq!((day_of(0), day_of(1_800_000_000 - 1)), ("1970-01-01".into(), "2027-01-15".into()));
    }

    #[test]
    fn cli_58_the_version_has_the_form_that_passes_every_gate() {
        let version = cli_version();
        let rest = version.strip_prefix('v').expect("a v");
        let parts: Vec<&str> = rest.split('-').collect();
        assert_eq!(parts.len(), 3, "{version}");
        let triple: Vec<u32> = parts[0].split('.').map(|n| n.parse().expect("a number")).collect();
        assert!(triple.len() == 3 && triple >= vec![0, 4, 24], "{version}");
        assert!(parts[1].parse::<u64>().is_ok(), "{version}");
        let hash = parts[2].strip_prefix('g').expect("a g");
        assert!(!hash.is_empty() && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{version}");
    }
}
