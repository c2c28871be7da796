//! Reading of optional fields: one that is missing, null or of the wrong type is as if it were not there.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// For `#[serde(default, deserialize_with = "lenient::field")]`.
pub fn field<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// The same for a list, of which elements of the wrong type are left out.
pub fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(from)?;
    let items: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect())
}
