//! The environment as a value, so that nothing but the program's start reads the real one.

use super::error::ConfigError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A snapshot of environment variables.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

/// Values may be secrets, so only the number of variables is shown.
impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Env({} variables)", self.0.len())
    }
}

impl Env {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment made of these variables; the last of two with one name counts.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// Adds or replaces a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value exactly as it is; a variable that is set but empty is `Some`.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The value without surrounding blanks; blank is the same as unset.
    ///
    /// # Errors
    /// The value is not UTF-8.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, ConfigError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let text = raw.to_str().ok_or_else(|| ConfigError::env(name, "it is not UTF-8", "UTF-8 text"))?;
        Ok(Some(text.trim()).filter(|t| !t.is_empty()))
    }

    /// The value as a path, blanks around it removed where it is UTF-8; blank is the same as unset.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let raw = self.raw(name)?;
        let trimmed = raw.to_str().map_or(raw, |t| OsStr::new(t.trim()));
        (!trimmed.is_empty()).then(|| PathBuf::from(trimmed))
    }

    /// All variables in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(k, v)| (k.as_os_str(), v.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_16_blank_is_unset_but_still_present() {
        let env = Env::from_pairs([("A", "  "), ("B", " x ")]);
        assert_eq!(env.text("A").expect("text"), None);
        assert_eq!(env.raw("A"), Some(OsStr::new("  ")));
        assert_eq!(env.text("B").expect("text"), Some("x"));
        assert_eq!(env.path("B"), Some(PathBuf::from("x")));
        assert_eq!(env.path("C"), None);
    }

    #[test]
    fn values_are_not_printed() {
        assert_eq!(format!("{:?}", Env::from_pairs([("TOKEN", "mul_secret")])), "Env(1 variables)");
    }
}
