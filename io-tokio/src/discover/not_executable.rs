//! Explains a program that the system cannot run, which for agents mostly means that an npm install stopped half-way.

use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// A longer `package.json` is not looked at.
const MAX_PACKAGE_BYTES: u64 = 1 << 20;

/// How to repair an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The npm package.
    pub package: String,
    /// The command, for bash.
    pub command: String,
}

/// The repair of the npm package that `program` is in, if it has a step after its installation.
pub(super) fn repair(program: &Path) -> Option<Repair> {
    let bin = program.parent().filter(|dir| dir.file_name().is_some_and(|name| name == "bin"))?;
    let root = bin.parent()?;
    let mut text = Vec::new();
    let file = std::fs::File::open(root.join("package.json")).ok()?;
    file.take(MAX_PACKAGE_BYTES).read_to_end(&mut text).ok()?;
    let package: Value = serde_json::from_slice(&text).ok()?;
    let script = package["scripts"]["postinstall"].as_str().filter(|s| !s.trim().is_empty())?;
    let quoted = root.to_str()?.replace('\'', r"'\''");
    Some(Repair {
        package: package["name"].as_str().unwrap_or_default().to_owned(),
        command: format!("cd '{quoted}' && {script}"),
    })
}

/// One sentence for people.
pub(super) fn explain(repair: Option<&Repair>) -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let cause = format!("not a program for {os} on {arch}; probably a step of its installation never ran");
    match repair {
        Some(Repair { package, command }) => {
            format!("{cause}; to finish the installation of {package}: {command}")
        }
        None => format!("{cause}; install it again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_that_never_ran_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("it's");
        std::fs::create_dir_all(root.join("bin")).expect("directories");
        let json = r#"{"name":"@x/agent","scripts":{"postinstall":"node install.js"}}"#;
        std::fs::write(root.join("package.json"), json).expect("written");
        let found = repair(&root.join("bin/agent")).expect("a repair");
        assert_eq!(found.package, "@x/agent");
        assert!(found.command.ends_with("it'\\''s' && node install.js"), "{}", found.command);
        assert!(explain(Some(&found)).contains("@x/agent"));
        assert_eq!(repair(&root.join("lib/agent")), None);
        assert_eq!(repair(Path::new("/missing/bin/agent")), None);
    }
}
