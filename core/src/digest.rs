//! A hash of the state that is the same on every machine: FNV-1a over fixed-width, little-endian bytes.

use std::fmt::{self, Debug, Write};
use std::hash::Hasher;

/// The hasher.
#[derive(Clone, Debug)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u16(&mut self, n: u16) {
        self.write(&n.to_le_bytes());
    }

    fn write_u32(&mut self, n: u32) {
        self.write(&n.to_le_bytes());
    }

    fn write_u64(&mut self, n: u64) {
        self.write(&n.to_le_bytes());
    }

    fn write_i64(&mut self, n: i64) {
        self.write(&n.to_le_bytes());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_i64(n as i64);
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        Hasher::write(self, text.as_bytes());
        Ok(())
    }
}

/// A hash of all that `Debug` shows of a value, which for a derived one is every field: for what test beds compare, where a `Hash` that
/// leaves out a new field would be worse than the time that this takes.
pub(crate) fn fingerprint(value: &impl Debug) -> u64 {
    let mut digest = Digest::default();
    // The hasher takes everything, and no derived `Debug` fails.
    let _ = write!(digest, "{value:?}");
    digest.finish()
}
