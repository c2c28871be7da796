use super::*;
use crate::actions::Machine;
use crate::config::Env;
use crate::wire::action::SkillRoot;
use std::fs;
use std::os::unix::fs::symlink;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn at(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn write(&self, below: &str, text: impl AsRef<[u8]>) {
        let path = self.at(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn skill(&self, folder: &str, head: &str) {
        self.write(&format!("{folder}/SKILL.md"), format!("---\n{head}\n---\nbody\n"));
    }

    fn places(&self, provider: &str) -> Places {
        let machine = Machine { env: Env::default(), home: self.0.path().to_owned(), agent: None };
        Places::of(&machine, provider)
    }

    fn keys(&self, provider: &str) -> Vec<String> {
        list(&self.places(provider), provider).skills.into_iter().map(|skill| skill.key).collect()
    }

    fn load(&self, provider: &str, key: &str) -> Result<SkillBundle, SkillError> {
        load(&self.places(provider), provider, key)
    }
}

#[test]
fn the_first_of_a_key_counts_and_plugins_come_last() {
    let home = Home::new();
    home.skill(".claude/skills/review", "name: Review\ndescription: \"Looks: twice\"");
    home.write(".claude/skills/review/extra.md", "more");
    home.skill(".claude/skills/group/deep", "description: >\n  two\n  lines");
    home.skill(".agents/skills/review", "name: another");
    home.skill(".agents/skills/shared", "name: Shared");
    home.skill("plugged/skills/lint", "name: Lint");
    home.skill("unused/skills/never", "name: Never");
    home.write(".claude/settings.json", r#"{"enabledPlugins":{"tools@market":true,"off@market":false}}"#);
    let installed = serde_json::json!({ "version": 2, "plugins": {
        "tools@market": [{ "scope": "user", "installPath": home.at("plugged") }],
        "off@market": [{ "scope": "user", "installPath": home.at("unused") }],
    }});
    home.write(".claude/plugins/installed_plugins.json", installed.to_string());

    let report = list(&home.places("claude"), "claude");
    let keys: Vec<_> = report.skills.iter().map(|skill| skill.key.as_str()).collect();
    assert_eq!(keys, ["group/deep", "review", "shared", "tools:lint"]);
    let (deep, review, lint) = (&report.skills[0], &report.skills[1], &report.skills[3]);
    assert_eq!((deep.name.as_str(), deep.description.as_str()), ("deep", "two lines"));
    assert_eq!((review.name.as_str(), review.description.as_str()), ("Review", "Looks: twice"));
    assert_eq!((review.file_count, review.root), (2, Some(SkillRoot::Provider)));
    assert_eq!(review.source_path, "~/.claude/skills/review");
    assert_eq!((lint.plugin.as_str(), lint.root), ("tools", Some(SkillRoot::Plugin)));
    for key in keys {
        assert!(home.load("claude", key).is_ok(), "{key}");
    }
    assert_eq!(home.load("claude", "review").expect("it is there").name, "Review");
}

#[test]
fn a_skill_is_taken_whole_but_for_dot_entries_and_licences() {
    let home = Home::new();
    home.skill(".codex/skills/s", "name: S");
    for (path, text) in
        [("a.txt", "a"), ("sub/b.sh", "b"), (".hidden", "x"), ("LICENSE.txt", "x"), ("COPYING", "x")]
    {
        home.write(&format!(".codex/skills/s/{path}"), text);
    }
    home.write(".codex/skills/s/.git/config", "x");
    let bundle = home.load("codex", "s").expect("it is there");
    assert!(bundle.content.ends_with("body\n"));
    let files: Vec<_> = bundle.files.iter().map(|file| (file.path.as_str(), file.content.as_str())).collect();
    assert_eq!(files, [("a.txt", "a"), ("sub/b.sh", "b")]);
    let too_deep = "d/e/f/g/h.txt";
    home.write(&format!(".codex/skills/s/{too_deep}"), "x");
    let bundle = home.load("codex", "s").expect("it is there");
    assert!(bundle.files.iter().all(|file| file.path != too_deep));
}

#[test]
fn what_cannot_be_imported_is_said() {
    let home = Home::new();
    let refused = |key: &str| home.load("claude", key).expect_err(key).to_string();
    let file = |name: &str, content: &[u8]| {
        home.skill(&format!(".claude/skills/{name}"), "name: x");
        home.write(&format!(".claude/skills/{name}/file"), content);
    };
    file("binary", b"\xff\xfe");
    file("nul", b"a\0b");
    file("large", &vec![b'x'; (1 << 20) + 1]);
    assert!(refused("binary").contains("`file` of the skill is no text"), "{}", refused("binary"));
    assert!(refused("nul").contains("no text"));
    assert!(refused("large").contains("larger than 1024 KiB"));
    for n in 0..9 {
        home.write(&format!(".claude/skills/whole/{n}"), vec![b'x'; 1 << 20]);
    }
    home.skill(".claude/skills/whole", "name: x");
    assert!(refused("whole").contains("8 MiB"));
    home.skill(".claude/skills/many", "name: x");
    for n in 0..MAX_FILES {
        home.write(&format!(".claude/skills/many/{n}"), "x");
    }
    assert!(refused("many").contains("256 files"));
    let missing = refused("nothing");
    assert!(missing.contains("no skill `nothing`") && missing.contains("~/.claude/skills"), "{missing}");
    for bad in ["", "..", "../x", "/etc", "a/../b", ".git", "a/b/c/d/e", "a\\b", "x:y"] {
        assert!(refused(bad).contains("there is no skill"), "{bad}");
    }
    assert!(home.load("dim", "x").expect_err("none").to_string().contains("dim has no skills"));
}

#[test]
fn no_link_leads_out_of_the_folder_of_skills() {
    let home = Home::new();
    home.write("secret/SKILL.md", "---\nname: secret\n---\n");
    home.write("secret/key", "secret");
    home.skill(".claude/skills/real", "name: Real");
    home.write(".claude/skills/real/own", "own");
    let at = |below: &str| home.at(&format!(".claude/skills/{below}"));
    symlink(home.at("secret"), at("out")).expect("a link");
    symlink(home.at("secret/key"), at("real/stolen")).expect("a link");
    symlink(home.at("secret"), at("real/folder")).expect("a link");
    symlink(at("real/own"), at("real/inside")).expect("a link");
    symlink(at("real"), at("alias")).expect("a link");
    symlink(at(""), at("loop")).expect("a link");
    assert_eq!(home.keys("claude"), ["alias", "real"]);
    let bundle = home.load("claude", "real").expect("it is there");
    let files: Vec<_> = bundle.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["inside", "own"]);
    assert!(home.load("claude", "out").is_err());
    // The folder itself may be a link: it is the user's.
    let other = Home::new();
    fs::create_dir(other.at(".claude")).expect("a folder");
    symlink(home.at(".claude/skills"), other.at(".claude/skills")).expect("a link");
    assert_eq!(other.keys("claude"), ["alias", "real"]);
}

#[test]
fn no_secret_of_an_mcp_server_leaves_the_machine() {
    let home = Home::new();
    let claude = r#"{"mcpServers":{"fs":{"command":"npx","args":["s3cret"],"env":{"K":"s3cret"}},
        "web":{"type":"http","url":"https://x/?k=s3cret"},"off":{"command":"x","disabled":true}}}"#;
    home.write(".claude.json", claude);
    home.write(
        ".codex/config.toml",
        "[mcp_servers.docs]\nurl = \"https://s3cret\"\n[mcp_servers.off]\ncommand = \"x\"\nenabled = false\n",
    );
    home.write(".codebuddy/mcp.json", "{ // mine\n \"mcpServers\": { \"a\": { \"command\": \"s3cret\" } } }");
    for (provider, known) in [
        ("claude", "fs stdio true, off stdio false, web http true"),
        ("codex", "docs http true, off stdio false"),
        ("codebuddy", "a stdio true"),
    ] {
        let report = list(&home.places(provider), provider);
        assert!(report.mcp_supported);
        let text = serde_json::to_string(&report).expect("JSON");
        assert!(!text.contains("s3cret"), "{text}");
        let servers = report.mcp_servers.iter();
        let shown: Vec<_> =
            servers.map(|it| format!("{} {} {}", it.name, it.transport.unwrap_or(""), it.enabled)).collect();
        assert_eq!(shown.join(", "), known);
    }
    let unknown = list(&home.places("pi"), "pi");
    assert!(unknown.supported && !unknown.mcp_supported);
    assert!(!list(&home.places("dim"), "dim").supported);
}
