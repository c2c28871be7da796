//! Black-box scenarios over the real binary and the real adapter live in `tests/`.
