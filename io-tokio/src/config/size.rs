//! Sizes as operators write them: a byte count, or a number with a unit such as `1GiB`.

const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Reads `1048576`, `512MiB`, `1.5 GiB`, `2GB`; 0 is left to the caller, to whom it means "off".
///
/// # Errors
/// Says in words what is wrong with the text.
pub fn parse(text: &str) -> Result<u64, &'static str> {
    let text = text.trim();
    let number_len = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_len);
    let unit = unit.trim_start();
    let scale = match unit {
        "" => 1,
        _ => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or(UNKNOWN_UNIT)?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (fraction.is_empty() && number.contains('.')) {
        return Err("it does not start with a number");
    }
    if unit.is_empty() && !fraction.is_empty() {
        return Err("a byte count has no fraction");
    }
    let whole: u64 = whole.parse().map_err(|_| TOO_LARGE)?;
    let fraction = &fraction[..fraction.len().min(12)];
    let part = match fraction.parse::<u128>() {
        Ok(n) => n * u128::from(scale) / 10u128.pow(u32::try_from(fraction.len()).unwrap_or(12)),
        Err(_) => 0,
    };
    u64::try_from(u128::from(whole) * u128::from(scale) + part).map_err(|_| TOO_LARGE)
}

const UNKNOWN_UNIT: &str = "the unit is none of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB";
const TOO_LARGE: &str = "it is more than 16 EiB";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_and_units_are_read() {
        for (text, want) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1GiB", 1 << 30),
            (" 1.5 GiB ", 3 << 29),
            ("2GB", 2_000_000_000),
            ("10kB", 10_000),
            ("7B", 7),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for bad in [
            "",
            "GiB",
            "1G",
            "1.5",
            "-1",
            "1.2.3MB",
            "1.MB",
            "99999999TiB",
            "1 GiB x",
            "99999999999999999999",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
