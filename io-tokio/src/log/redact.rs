//! Keeps credentials out of log lines: known values, and whatever looks like one of the server's tokens.

use crate::secret::Secret;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

/// Shorter values are not looked for: they would match by chance.
pub const MIN_SECRET_LEN: usize = 8;
/// Values that are looked for at one time; more are not taken.
pub const MAX_SECRETS: usize = 4096;

const REPLACEMENT: &str = "[REDACTED]";
const TOKEN_PREFIXES: [&str; 4] = ["mul_", "mcn_", "mat_", "mdt_"];
const MIN_TOKEN_LEN: usize = 8;

/// The values that must not be seen. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Arc<RwLock<Vec<(u64, Secret)>>>,
}

/// Keeps one value in the list until it is dropped.
#[derive(Debug)]
pub struct Registration {
    redactor: Redactor,
    id: Option<u64>,
}

impl Redactor {
    /// Looks for `secret` from now on, until the registration is dropped. A value under [`MIN_SECRET_LEN`] bytes,
    /// or one more than [`MAX_SECRETS`], is not looked for.
    #[must_use = "the value is looked for only while the registration lives"]
    pub fn register(&self, secret: &Secret) -> Registration {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let fits = secret.expose().len() >= MIN_SECRET_LEN && known.len() < MAX_SECRETS;
        let id = fits.then(|| known.last().map_or(0, |(id, _)| id + 1));
        known.extend(id.map(|id| (id, secret.clone())));
        Registration { redactor: self.clone(), id }
    }

    /// The text with every known value and every token replaced.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for (_, secret) in self.known.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if out.contains(secret.expose()) {
                out = Cow::Owned(out.replace(secret.expose(), REPLACEMENT));
            }
        }
        for prefix in TOKEN_PREFIXES {
            if out.contains(prefix) {
                out = Cow::Owned(without_tokens(&out, prefix));
            }
        }
        out
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut known = self.redactor.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(id, _)| Some(*id) != self.id);
    }
}

/// Keeps the prefix, which says what kind of token it was.
fn without_tokens(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(prefix) {
        let (before, from) = rest.split_at(start);
        let body = &from[prefix.len()..];
        let len =
            body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(body.len());
        let inside_word = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        out.push_str(prefix);
        out.push_str(if len >= MIN_TOKEN_LEN && !inside_word { REPLACEMENT } else { &body[..len] });
        rest = &body[len..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_i25_known_values_are_replaced_while_registered() {
        let redactor = Redactor::default();
        let first = redactor.register(&Secret::new("hunter2-hunter2"));
        let second = redactor.register(&Secret::new("other-secret"));
        assert_eq!(redactor.redact("a hunter2-hunter2 b other-secret"), "a [REDACTED] b [REDACTED]");
        drop(first);
        assert_eq!(redactor.redact("hunter2-hunter2 other-secret"), "hunter2-hunter2 [REDACTED]");
        let third = redactor.register(&Secret::new("third-secret"));
        drop(second);
        assert_eq!(redactor.redact("third-secret other-secret"), "[REDACTED] other-secret");
        drop(third);
    }

    #[test]
    fn inv_i25_tokens_are_replaced_without_being_known() {
        let redactor = Redactor::default();
        assert_eq!(redactor.redact("Bearer mul_abcdef0123456789."), "Bearer mul_[REDACTED].");
        assert_eq!(redactor.redact("mat_0123456789 and mdt_x"), "mat_[REDACTED] and mdt_x");
        assert_eq!(redactor.redact("format_specification"), "format_specification");
    }

    #[test]
    fn short_values_are_not_looked_for() {
        let redactor = Redactor::default();
        let _kept = redactor.register(&Secret::new("on"));
        assert_eq!(redactor.redact("on and on"), "on and on");
    }
}
