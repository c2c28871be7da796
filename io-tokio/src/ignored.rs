//! Which signals this process was started with ignored: those stay so, here and in what is started, as whoever started it wants it.

/// Whether this process ignores the signal. Asked before anything catches it. Where the system does not tell, it does not.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
