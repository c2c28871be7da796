//! `version`: other programs read it, so its form is fixed.

use super::command::VersionOutput;
use crate::identity::{cli_version, commit};
use std::ffi::OsString;
use std::path::Path;

const BUILD_DATE: Option<&str> = option_env!("LONGSHORE_BUILD_DATE");

/// The text with its line end. The first word is the name that the program was called by where that is `multica`,
/// as programs that expect the one do not know the other; the second is the version told to servers.
pub(super) fn text(program: Option<&OsString>, output: VersionOutput) -> String {
    let called = program.and_then(|p| Path::new(p).file_name()).and_then(|name| name.to_str());
    let name = if called == Some("multica") { "multica" } else { "longshore" };
    let (version, own) = (cli_version(), env!("CARGO_PKG_VERSION"));
    let (os, arch) = (os(), arch());
    let (commit, date) = (commit().unwrap_or("unknown"), BUILD_DATE.unwrap_or("unknown"));
    match output {
        VersionOutput::Text => {
            format!("{name} {version} (longshore {own}, commit {commit}, built {date}, {os}/{arch})\n")
        }
        VersionOutput::Json => {
            let all = serde_json::json!({
                "version": version, "longshore": own, "commit": commit, "date": date, "os": os, "arch": arch,
            });
            format!("{all:#}\n")
        }
    }
}

fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        same => same,
    }
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_58_the_second_word_is_the_version_told_to_servers() {
        let called = |name: &str| text(Some(&name.into()), VersionOutput::Text);
        for (name, first) in
            [("/usr/bin/multica", "multica"), ("longshore", "longshore"), ("other", "longshore")]
        {
            let line = called(name);
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!((words[0], words[1]), (first, cli_version().as_str()), "{line}");
            assert!(line.ends_with('\n') && line.lines().count() == 1);
        }
    }

    #[test]
    fn cli_58_the_json_form_has_the_fields_that_are_read() {
        let json: serde_json::Value = serde_json::from_str(&text(None, VersionOutput::Json)).expect("JSON");
        assert_eq!(json["version"], cli_version());
        for key in ["commit", "date", "os", "arch"] {
            assert!(json[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
        }
    }
}
