//! The core stays pure: it depends on little, all of it pure, and the bans on clocks, chance, files, threads and sockets stay in force.

const MANIFEST: &str = include_str!("../Cargo.toml");
const BANS: &str = include_str!("../clippy.toml");
const WORKSPACE: &str = include_str!("../../Cargo.toml");

/// What the core may be built from. Each is data or text; none reads anything.
const ALLOWED: [&str; 4] = ["proptest", "serde", "serde_json", "thiserror"];

/// What must stay banned, under the head of its list.
const BANNED: [(&str, &[&str]); 3] = [
    (
        "disallowed-types",
        &[
            "std::time::Instant",
            "std::time::SystemTime",
            "std::collections::HashMap",
            "std::collections::HashSet",
            "std::hash::RandomState",
            "std::fs::File",
            "std::fs::OpenOptions",
            "std::net::TcpStream",
            "std::net::TcpListener",
            "std::net::UdpSocket",
            "std::process::Command",
            "std::thread::Thread",
            "std::sync::Mutex",
            "std::sync::RwLock",
        ],
    ),
    (
        "disallowed-methods",
        &[
            "std::thread::spawn",
            "std::thread::sleep",
            "std::env::var",
            "std::env::vars",
            "std::env::var_os",
            "std::env::args",
            "std::fs::read",
            "std::fs::read_to_string",
            "std::fs::write",
            "std::process::exit",
        ],
    ),
    ("disallowed-macros", &["std::print", "std::println", "std::eprint", "std::eprintln", "std::dbg"]),
];

/// The keys of one table of a manifest that is written one key a line.
fn keys<'a>(manifest: &'a str, table: &str) -> Vec<&'a str> {
    let mut lines = manifest.lines().skip_while(|line| *line != format!("[{table}]")).skip(1);
    let mut keys = Vec::new();
    for line in lines.by_ref().take_while(|line| !line.starts_with('[')) {
        let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if !key.is_empty() && !key.starts_with('#') {
            keys.push(key);
        }
    }
    keys
}

/// The tables of a manifest.
fn tables(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.lines().filter(|line| line.starts_with('[')).map(|line| line.trim_matches(['[', ']']))
}

#[test]
fn the_core_depends_on_nothing_that_is_not_pure() {
    assert_eq!(
        keys("[dependencies]\na = 1\nb.workspace = true\n\n# c\n[x]\nd = 1", "dependencies"),
        ["a", "b"]
    );
    let found = keys(MANIFEST, "dependencies");
    assert!(found.contains(&"serde"), "the manifest is read");
    for name in &found {
        assert!(
            ALLOWED.contains(name),
            "{name} is new: is it pure? Then add it here and to docs/dependencies.md"
        );
    }
    for table in tables(MANIFEST) {
        let hidden = table != "dependencies" && table != "dev-dependencies" && table.contains("dependencies");
        assert!(!hidden, "[{table}] is not looked into by this test");
    }
    let optional = MANIFEST.lines().find(|line| line.starts_with("proptest = {")).unwrap_or_default();
    assert!(optional.contains("optional = true"), "proptest is only for tests");
}

#[test]
fn no_script_runs_when_the_core_is_built() {
    assert!(!MANIFEST.contains("build ="), "a build script reads the machine that it runs on");
    assert!(!std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs")).exists());
}

#[test]
fn the_bans_are_in_force() {
    for (list, paths) in BANNED {
        let body = BANS.split_once(&format!("{list} = [")).and_then(|(_, rest)| rest.split_once("\n]"));
        let (body, _) = body.unwrap_or_else(|| panic!("{list} is gone from clippy.toml"));
        for path in paths {
            assert!(body.contains(&format!("path = \"{path}\"")), "{path} is not banned any more");
        }
    }
    assert!(keys(MANIFEST, "lints").contains(&"workspace"), "the core takes the workspace's lints");
    assert!(keys(WORKSPACE, "workspace.lints.rust").contains(&"unsafe_code"));
    assert!(WORKSPACE.contains("unsafe_code = \"forbid\""), "unsafe code is forbidden");
    assert!(WORKSPACE.contains("pedantic = { level = \"warn\""), "the lints that carry the bans are on");
}
