//! Writing XML.

use crate::trace::render::text::escaped;
use std::fmt::{self, Display};

/// Writes a value so that it is text in XML, also in an attribute between quotes.
pub(super) struct Esc<T>(pub(super) T);

impl<T: Display> Display for Esc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escaped(&self.0.to_string()))
    }
}

/// A length in pixels with at most one place.
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(f, "{:.0}", tenths / 10.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}
