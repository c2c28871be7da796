//! Tells the program which commit it is built from, see `build/source.rs`.

#[path = "build/source.rs"]
mod source;

use std::path::Path;

/// Says to the program that its source was changed since the commit.
const MODIFIED: &str = "LONGSHORE_MODIFIED";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/source.rs");
    for variable in [source::COMMIT, source::DATE, source::EPOCH] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let of = |name: &str| std::env::var(name).ok();
    // A build for work on the program itself is not made anew for each commit, so it names none.
    let is_shipped = of("PROFILE").is_some_and(|profile| profile == "release");
    let top = of("CARGO_MANIFEST_DIR").and_then(|dir| Some(Path::new(&dir).parent()?.to_owned()));
    let git = top.filter(|_| is_shipped).and_then(|top| source::of_git(&top));
    for path in git.iter().flat_map(|git| &git.watched) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let (commit, seconds) = source::choose(git.as_ref(), of);
    if let Some(commit) = &commit {
        println!("cargo::rustc-env={}={commit}", source::COMMIT);
    }
    // Whoever says the commit answers for it.
    if let Some(git) = git
        && git.modified
        && commit.as_ref() == Some(&git.commit)
    {
        println!("cargo::rustc-env={MODIFIED}=1");
    }
    if let Some(seconds) = seconds {
        println!("cargo::rustc-env={}={seconds}", source::DATE);
    }
}
