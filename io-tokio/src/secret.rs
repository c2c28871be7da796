//! Values that must not be seen: tokens, custom environment values, MCP configuration.
//!
//! A [`Secret`] can be read from the wire or a config file. It cannot be printed, logged or serialised; the few
//! places that hand one on (a request header, an agent's environment) call [`Secret::expose`].

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A text that is zeroed when dropped, prints as `[secret]`, and implements no `Serialize`.
#[derive(Clone, Default)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_i25_a_secret_prints_as_nothing() {
        let secret: Secret = serde_json::from_str("\"mat_abc\"").expect("a string");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "[secret] Some([secret])");
        assert_eq!(secret.expose(), "mat_abc");
    }
}
