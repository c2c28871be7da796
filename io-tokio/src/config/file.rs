//! `config.json`: a JSON object shared with other programs, so everything in it is optional and unknown keys stay.

use super::error::{ConfigError, Source};
use crate::secret::Secret;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A config file longer than this is refused.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Another program may be in the middle of writing the file: it is read again this often …
pub const TORN_READS: u32 = 10;
/// … with this pause between.
pub const TORN_READ_PAUSE: Duration = Duration::from_millis(100);

/// The content of a config file.
#[derive(Clone, Default)]
pub struct ConfigFile {
    path: PathBuf,
    root: Map<String, Value>,
}

/// The file holds the token, so only its name is shown.
impl std::fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConfigFile({})", self.path.display())
    }
}

impl ConfigFile {
    /// Reads the file; one that does not exist is an empty object. A file with a token that others can read is
    /// tightened to 0600, and a warning is added.
    ///
    /// Blocks for up to a second while the content is no valid JSON, as some writers are not atomic.
    ///
    /// # Errors
    /// The file cannot be read, is over [`MAX_CONFIG_BYTES`], or is no JSON object.
    pub fn load(path: &Path, warnings: &mut Vec<String>) -> Result<Self, ConfigError> {
        let root = parse_settled(path, || read(path), || std::thread::sleep(TORN_READ_PAUSE))?;
        let file = Self { path: path.to_owned(), root };
        if !file.token()?.is_empty() {
            warnings.extend(tighten(path));
        }
        Ok(file)
    }

    /// A config with this content that no file backs.
    pub fn from_value(path: impl Into<PathBuf>, root: Map<String, Value>) -> Self {
        Self { path: path.into(), root }
    }

    /// Every key, known or not, as it was read: for a writer that must keep what it does not know.
    pub fn root(&self) -> &Map<String, Value> {
        &self.root
    }

    /// The place of a key, for messages.
    pub fn place(&self, key: &str) -> Source {
        Source::File { path: self.path.clone(), key: key.to_owned() }
    }

    /// The credential; empty if there is none.
    ///
    /// # Errors
    /// It is no string; the value is not shown.
    pub fn token(&self) -> Result<Secret, ConfigError> {
        match self.root.get("token") {
            None | Some(Value::Null) => Ok(Secret::default()),
            Some(Value::String(token)) => Ok(Secret::new(token.trim())),
            Some(_) => {
                Err(ConfigError::value(self.place("token"), None, "it is no string", "a token as text"))
            }
        }
    }

    /// The value of a key such as `backends.openclaw.state_dir`; null is the same as absent.
    ///
    /// # Errors
    /// A level on the way is no object.
    pub fn value(&self, key: &str) -> Result<Option<&Value>, ConfigError> {
        let mut object = &self.root;
        let mut levels = key.split('.').peekable();
        while let Some(level) = levels.next() {
            match object.get(level) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) if levels.peek().is_none() => return Ok(Some(value)),
                Some(Value::Object(inner)) => object = inner,
                Some(_) => return Err(self.wrong(key, "a level above it is no object", "an object")),
            }
        }
        Ok(None)
    }

    /// A string without surrounding blanks; blank is the same as absent.
    ///
    /// # Errors
    /// The value is no string.
    pub fn text(&self, key: &str) -> Result<Option<&str>, ConfigError> {
        match self.value(key)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|t| !t.is_empty())),
            Some(_) => Err(self.wrong(key, "it is no string", "text in quotes")),
        }
    }

    /// A string or a whole number, as text.
    ///
    /// # Errors
    /// The value is neither.
    pub fn text_or_number(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.value(key)? {
            Some(Value::Number(n)) => Ok(Some(n.to_string())),
            _ => Ok(self.text(key)?.map(str::to_owned)),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// The value is none.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.value(key)? {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(_) => Err(self.wrong(key, "it is no boolean", "true or false")),
        }
    }

    /// An object; empty if absent.
    ///
    /// # Errors
    /// The value is none.
    pub fn object(&self, key: &str) -> Result<Map<String, Value>, ConfigError> {
        match self.value(key)? {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(_) => Err(self.wrong(key, "it is no object", "an object")),
        }
    }

    fn wrong(&self, key: &str, problem: &str, expected: &str) -> ConfigError {
        ConfigError::value(self.place(key), None, problem, expected)
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Opening a FIFO would wait for a writer.
    match path.metadata() {
        Ok(meta) if meta.is_dir() || meta.is_file() => {}
        Ok(_) => return Err(io::Error::other("it is no regular file")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(Some(bytes))
}

fn parse_settled(
    path: &Path,
    mut read: impl FnMut() -> io::Result<Option<Vec<u8>>>,
    mut pause: impl FnMut(),
) -> Result<Map<String, Value>, ConfigError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let Some(bytes) = read().map_err(|source| ConfigError::Read { path: path.to_owned(), source })?
        else {
            return Ok(Map::new());
        };
        let problem = match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(root)) => return Ok(root),
            Ok(_) => "it is no JSON object".to_owned(),
            // The parser's own text could quote the content.
            Err(e) => format!("it is no JSON (line {}, column {})", e.line(), e.column()),
        };
        if tries > TORN_READS {
            return Err(ConfigError::Syntax { path: path.to_owned(), problem });
        }
        pause();
    }
}

fn tighten(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mode = file.metadata().ok()?.permissions().mode() & 0o777;
    if mode.trailing_zeros() >= 6 {
        // Nothing for the group and others.
        return None;
    }
    let shown = path.display();
    Some(match file.set_permissions(std::fs::Permissions::from_mode(0o600)) {
        Ok(()) => {
            format!("{shown} holds a token and was open to other users (mode {mode:o}); it is now 0600")
        }
        Err(e) => format!(
            "{shown} holds a token and is open to other users (mode {mode:o}); chmod 0600 failed: {e}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> ConfigFile {
        let Ok(Value::Object(root)) = serde_json::from_str(json) else { panic!("no object: {json}") };
        ConfigFile::from_value("/c/config.json", root)
    }

    #[test]
    fn a_missing_file_is_an_empty_object() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = ConfigFile::load(&dir.path().join("config.json"), &mut Vec::new()).expect("empty");
        assert!(file.root().is_empty());
        assert!(file.token().expect("a token").is_empty());
    }

    #[test]
    fn cli_08_a_readable_token_is_tightened_with_one_warning() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.json");
        std::fs::write(&path, r#"{"token":"mul_x"}"#).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("chmod");
        let mut warnings = Vec::new();
        let file = ConfigFile::load(&path, &mut warnings).expect("loaded");
        assert_eq!(file.token().expect("a token").expose(), "mul_x");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(!warnings[0].contains("mul_x"));
        assert_eq!(std::fs::metadata(&path).expect("metadata").permissions().mode() & 0o777, 0o600);
        warnings.clear();
        ConfigFile::load(&path, &mut warnings).expect("loaded");
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn cli_09_a_torn_file_is_read_again() {
        let mut contents = vec![r#"{"token":"x"}"#, r#"{"tok"#, ""];
        let pauses = std::cell::Cell::new(0);
        let next = || Ok(Some(contents.pop().expect("more").as_bytes().to_vec()));
        let root =
            parse_settled(Path::new("/c"), next, || pauses.set(pauses.get() + 1)).expect("whole at last");
        assert_eq!((root.len(), pauses.get()), (1, 2));
    }

    #[test]
    fn a_broken_file_is_named_and_its_content_is_not_shown() {
        let error =
            parse_settled(Path::new("/c/config.json"), || Ok(Some(b"{\"token\": mul_x".to_vec())), || ());
        let text = error.expect_err("no JSON").to_string();
        assert!(text.contains("/c/config.json") && text.contains("line 1"), "{text}");
        assert!(!text.contains("mul_x"), "{text}");
        assert!(parse_settled(Path::new("/c"), || Ok(Some(b"[1]".to_vec())), || ()).is_err());
    }

    #[test]
    fn cli_06_unknown_keys_stay_and_wrong_types_name_file_and_key() {
        let file =
            config(r#"{"future":{"a":[1]},"poll_interval":30,"backends":{"openclaw":{"state_dir":" /s "}}}"#);
        assert_eq!(file.root()["future"]["a"][0], 1);
        assert_eq!(file.text("backends.openclaw.state_dir").expect("text"), Some("/s"));
        assert_eq!(file.text("backends.openclaw.binary_path").expect("text"), None);
        let error = file.text("poll_interval").expect_err("a number").to_string();
        assert!(error.contains("poll_interval") && error.contains("/c/config.json"), "{error}");
        assert!(config(r#"{"backends":3}"#).text("backends.openclaw.state_dir").is_err());
    }

    #[test]
    fn a_fifo_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.json");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let error = ConfigFile::load(&path, &mut Vec::new()).expect_err("no file").to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
}
