//! Where the decisions of a script come from.

/// A source of decisions.
pub trait Choose {
    /// A number below `n`; 0 if `n` is 0 or 1, or if nothing is left to decide with.
    fn below(&mut self, n: u32) -> u32;

    /// Whether nothing is left to decide with.
    fn exhausted(&self) -> bool {
        false
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) + 1 == n
    }

    /// True `percent` times of 100.
    fn percent(&mut self, percent: u32) -> bool {
        self.below(100) + percent >= 100
    }
}

/// Decisions from a seed: the same seed, the same decisions. splitmix64, never exhausted.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Choose for Seeded {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((z ^ (z >> 31)) % u64::from(n.max(1))).unwrap_or(0)
    }
}

/// Decisions from bytes, for property tests and fuzzers: one byte for a choice of up to 256, two for more.
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// Decides with `bytes`, from the front.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    fn byte(&mut self) -> u32 {
        let Some((first, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        u32::from(*first)
    }
}

impl Choose for Bytes<'_> {
    fn below(&mut self, n: u32) -> u32 {
        match n {
            0 | 1 => 0,
            2..=256 => self.byte() * n / 256,
            _ => {
                let two = self.byte() << 8 | self.byte();
                u32::try_from(u64::from(two) * u64::from(n) / 65_536).unwrap_or(0)
            }
        }
    }

    fn exhausted(&self) -> bool {
        self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_below_its_bound_and_bytes_run_out() {
        let mut seeded = Seeded::new(1);
        assert!((0..1000).all(|_| seeded.below(7) < 7));
        assert_eq!(seeded.below(0), 0);
        let bytes = [255, 0, 255, 255];
        let mut bytes = Bytes::new(&bytes);
        assert_eq!((bytes.below(10), bytes.below(10), bytes.below(1000)), (9, 0, 999));
        assert!(bytes.exhausted());
        assert_eq!(bytes.below(10), 0);
    }
}
