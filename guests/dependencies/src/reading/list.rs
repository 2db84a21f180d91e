//! Lists with a memory budget. A file with many short items would otherwise need many times its
//! size in memory. A document that exceeds the budget is refused before the memory is exhausted.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Memory budget for all lists of one parsed document, in bytes.
pub(super) const BUDGET: usize = 12 << 20;
/// Memory budget for all lists of a compressed document, in bytes. Larger, because only its strings
/// and not the document itself are in memory.
pub(super) const LARGE_BUDGET: usize = 40 << 20;

thread_local! {
    /// Remaining memory budget for lists, in bytes. An area has one thread and reads one document
    /// at a time, so one counter suffices.
    static LEFT: Cell<usize> = const { Cell::new(BUDGET) };
}

/// Sets the memory budget for lists, in bytes. Called before a document is parsed.
pub(super) fn begin(budget: usize) {
    LEFT.set(budget);
}

/// A list parsed from a JSON array within the document's memory budget; null becomes an empty list.
#[derive(Debug)]
pub(crate) struct MemoryBoundedList<T>(pub(crate) Vec<T>);

impl<T> Default for MemoryBoundedList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MemoryBoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fold(deserializer, Self::default(), |list, _, item| push(&mut list.0, item))
    }
}

/// Appends an item to a list, if the document's memory budget permits it.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), &'static str> {
    spend(size_of::<T>())?;
    // Grow in smaller steps than a vector does by itself.
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(8));
    }
    list.push(item);
    Ok(())
}

fn spend(bytes: usize) -> Result<(), &'static str> {
    let left = LEFT.get().checked_sub(bytes.max(1));
    LEFT.set(left.ok_or("the document has more items than can be read at once; split it")?);
    Ok(())
}

/// Parses a JSON array item by item without storing it. `step` receives the state, the index and
/// the item, and decides what to store in the state. Null counts as an empty array.
pub(crate) fn fold<'de, D, T, S>(
    deserializer: D,
    state: S,
    step: impl FnMut(&mut S, usize, T) -> Result<(), &'static str>,
) -> Result<S, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ArrayFoldVisitor { state, step, item: PhantomData })
}

struct ArrayFoldVisitor<T, S, F> {
    state: S,
    step: F,
    item: PhantomData<fn() -> T>,
}

impl<'de, T, S, F> Visitor<'de> for ArrayFoldVisitor<T, S, F>
where
    T: Deserialize<'de>,
    F: FnMut(&mut S, usize, T) -> Result<(), &'static str>,
{
    type Value = S;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_unit<X>(self) -> Result<S, X> {
        Ok(self.state)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<S, A::Error> {
        let mut at = 0;
        while let Some(item) = items.next_element()? {
            (self.step)(&mut self.state, at, item).map_err(A::Error::custom)?;
            at += 1;
        }
        Ok(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_items_than_the_budget_has_room_for_are_refused() {
        let budget = BUDGET / size_of::<u64>();
        let text = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        let read = |count| {
            begin(BUDGET);
            serde_json::from_str::<MemoryBoundedList<u64>>(&text(count))
        };
        assert_eq!(read(budget).map(|list| list.0.len()).ok(), Some(budget));
        assert!(read(budget + 1).is_err());
        assert!(read(2).is_ok(), "each document has its own budget");
        assert_eq!(
            serde_json::from_str::<MemoryBoundedList<u64>>("null").map(|list| list.0.len()).ok(),
            Some(0)
        );
    }
}
