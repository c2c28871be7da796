//! Rows by their keys that know which of them were touched since they were stored last, so that no caller can forget
//! to say so.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::hash::{Hash, Hasher};

/// Rows by key. Two tables are equal if their rows are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent, bound(deserialize = "K: Deserialize<'de>, V: Deserialize<'de>"))]
pub(super) struct Table<K: Ord, V> {
    rows: BTreeMap<K, V>,
    /// Keys that were touched; `None` as long as nobody stores the rows, so that the set does not grow for nobody.
    #[serde(skip)]
    touched: Option<BTreeSet<K>>,
}

impl<K: Ord, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), touched: None }
    }
}

impl<K: Ord, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl<K: Ord, V: Eq> Eq for Table<K, V> {}

impl<K: Ord + Hash, V: Hash> Hash for Table<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rows.hash(state);
    }
}

impl<K: Ord + Clone, V> Table<K, V> {
    /// From now on touched rows are noted; all there are count as touched.
    pub(super) fn track(&mut self) {
        self.touched = Some(self.rows.keys().cloned().collect());
    }

    /// The rows that were touched since the last call, in the order of their keys; `None` for one that is gone.
    pub(super) fn take_touched(&mut self) -> Vec<(K, Option<&V>)> {
        let touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        touched.into_iter().map(|key| (key.clone(), self.rows.get(&key))).collect()
    }

    pub(super) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.rows.get(key)
    }

    /// The row to be changed: it counts as touched.
    pub(super) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        if let Some(touched) = &mut self.touched
            && let Some((key, _)) = self.rows.get_key_value(key)
        {
            touched.insert(key.clone());
        }
        self.rows.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: K, row: V) -> Option<V> {
        if let Some(touched) = &mut self.touched {
            touched.insert(key.clone());
        }
        self.rows.insert(key, row)
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, row) = self.rows.remove_entry(key)?;
        if let Some(touched) = &mut self.touched {
            touched.insert(key);
        }
        Some(row)
    }

    pub(super) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.rows.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn iter(&self) -> btree_map::Iter<'_, K, V> {
        self.rows.iter()
    }

    pub(super) fn values(&self) -> btree_map::Values<'_, K, V> {
        self.rows.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_is_told_once_and_only_to_whom_asked_for_it() {
        let mut table = Table::default();
        table.insert("a".to_owned(), 1);
        assert!(table.take_touched().is_empty());
        table.track();
        table.insert("b".to_owned(), 2);
        table.insert("c".to_owned(), 3);
        table.remove("c");
        assert_eq!(
            table.take_touched(),
            [("a".to_owned(), Some(&1)), ("b".to_owned(), Some(&2)), ("c".to_owned(), None)]
        );
        assert!(table.take_touched().is_empty());
        *table.get_mut("a").expect("there") += 1;
        assert!(table.get_mut("nobody").is_none());
        assert_eq!(table.take_touched(), [("a".to_owned(), Some(&2))]);
    }
}
