//! What this program is called by who started it.

use std::ffi::OsStr;
use std::path::{Component, Path};

/// The name that the program has on the `PATH`.
const NAME: &str = "longshore";

/// The program as it can be typed in `cwd`: by the path that it was started by, as `cargo run` does it, or by its name if the `PATH` led to it.
/// A path below `cwd` is given from there.
pub(super) fn called(program: Option<&OsStr>, cwd: &Path) -> String {
    // A path that is no text cannot be printed for a shell.
    let Some(path) = program.and_then(OsStr::to_str).filter(|path| path.contains('/')) else {
        return NAME.to_owned();
    };
    let below = Path::new(path).strip_prefix(cwd).ok().and_then(Path::to_str);
    quoted(&match below {
        // Without a separator the shell would look on the PATH.
        Some(below) if Path::new(below).components().count() == 1 => format!("./{below}"),
        Some(below) if matches!(Path::new(below).components().next(), Some(Component::Normal(_))) => {
            below.to_owned()
        }
        _ => path.to_owned(),
    })
}

/// The same word to a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_called_so_that_a_shell_finds_it_again() {
        for (program, want) in [
            (None, "longshore"),
            (Some("longshore"), "longshore"),
            (Some("target/release/longshore"), "target/release/longshore"),
            (Some("./longshore"), "./longshore"),
            (Some("../longshore"), "../longshore"),
            (Some("/home/a/project/target/release/longshore"), "target/release/longshore"),
            (Some("/home/a/project/longshore"), "./longshore"),
            (Some("/home/a/project/../other/longshore"), "/home/a/project/../other/longshore"),
            (Some("/opt/bin/longshore"), "/opt/bin/longshore"),
            (Some("/opt/my bin/longshore"), "'/opt/my bin/longshore'"),
            (Some("/opt/it's/longshore"), r"'/opt/it'\''s/longshore'"),
        ] {
            assert_eq!(called(program.map(OsStr::new), Path::new("/home/a/project")), want, "{program:?}");
        }
    }
}
