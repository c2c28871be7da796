//! The driver for property tests.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Strategy, any};
use std::ops::Range;

/// Bytes for [`super::Bytes`]; one event takes about six of them.
pub fn bytes(len: Range<usize>) -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), len).boxed()
}
