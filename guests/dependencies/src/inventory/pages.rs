//! Builds pages of components from pages of rows. Skips hidden rows, and limits the size of a page
//! of rows in bytes, because some components have thousands of advisories.

use area_sdk::prelude::*;
use area_sdk::{DocumentError, Query};

use super::LongCursorPaging;
use super::component::StoredComponent;
use super::list::DependencyFilters;
use super::matches::{self, StoredMatch};
use super::row_filter::{InventoryRow, RowFilter};
use crate::advisories::mentions;
use crate::budget::AdaptiveBatchSize;

type StoredComponents = Vec<Stored<StoredComponent>>;

/// Number of rows (components or matches) in the first query for a page, when their sizes are
/// unknown.
const FIRST: u32 = 10;
/// Maximum number of rows in a query for a page, used once a query for it found rows that are hidden
/// because an import is running.
const MOST: u32 = 500;
/// Approximate maximum size of the rows of each later query for a page, in bytes.
const BYTES: usize = 8 << 20;
/// Maximum number of rows read for one page of dependencies. While an import runs, most rows may be
/// hidden.
const MOST_READ: usize = 4_000;

/// Returns the page of the dependency list that filters and paging select.
pub(super) fn page(
    ctx: &Ctx,
    filters: &DependencyFilters,
    paging: LongCursorPaging,
) -> Result<Page<Stored<StoredComponent>>, DocumentError> {
    let row_filter = RowFilter::new(ctx, filters.history);
    let Some(advisory) = &filters.advisory else {
        let query = || filters.apply(ctx.documents::<StoredComponent>().query());
        return gather(paging, row_filter, query, Ok);
    };
    let keys = mentions::related_keys(ctx, advisory)?;
    let query = || {
        let matches = ctx.documents::<StoredMatch>().query();
        filters.apply(match &keys[..] {
            [key] => matches.equals("advisory_key", key),
            keys => matches.one_of("advisory_key", keys),
        })
    };
    gather(paging, row_filter, query, |rows| {
        let components = once(ctx, &keys, &rows)?;
        ctx.documents::<StoredComponent>().get_many(components)
    })
}

/// Returns the ids of the components of some matches, without duplicates. Matches of one component
/// are adjacent; the first component may have been on the previous page already.
fn once<'a>(
    ctx: &Ctx,
    keys: &[String],
    rows: &'a [Stored<StoredMatch>],
) -> Result<Vec<&'a String>, DocumentError> {
    let mut components: Vec<&String> = rows.iter().map(|row| &row.component_id).collect();
    components.dedup();
    if let Some(first) = rows.first() {
        let before = keys.iter().filter(|key| **key < first.advisory_key);
        let before: Vec<String> = before.map(|key| matches::id(&first.component_id, key)).collect();
        if !ctx.documents::<StoredMatch>().get_many(before)?.is_empty() {
            components.remove(0);
        }
    }
    Ok(components)
}

/// Queries rows until a page of components is complete, or the maximum number of rows was read.
fn gather<'a, T: InventoryRow>(
    paging: LongCursorPaging,
    mut row_filter: RowFilter<'_>,
    query: impl Fn() -> Query<'a, T>,
    components: impl Fn(Vec<Stored<T>>) -> Result<StoredComponents, DocumentError>,
) -> Result<Page<Stored<StoredComponent>>, DocumentError> {
    let (limit, mut next_cursor) = (paging.limit as usize, paging.cursor);
    let mut items = Vec::new();
    let size = AdaptiveBatchSize::new(FIRST, MOST, BYTES);
    let mut pace = RowReadProgress { size, has_hidden: false, left: MOST_READ };
    loop {
        let missing = limit - items.len();
        let ask = |rows: usize| {
            let rows = u32::try_from(rows).unwrap_or(u32::MAX);
            query().cursor(next_cursor.clone()).limit(rows).page()
        };
        let mut page = ask(pace.rows(missing))?;
        let mut answers = row_filter.answers(&page.items)?;
        if let Some(end) = end_of(&answers, missing) {
            page = ask(end)?;
            answers.truncate(end);
        }
        pace.read(&page.items, &answers);
        next_cursor = page.next_cursor;
        let mut answers = answers.into_iter();
        page.items.retain(|_| answers.next().unwrap_or_default());
        let mut found = components(page.items)?;
        pace.found(&found);
        found.iter_mut().for_each(|component| component.slim());
        items.append(&mut found);
        if items.len() >= limit || next_cursor.is_none() || pace.left == 0 {
            return Ok(Page { items, next_cursor });
        }
    }
}

/// Returns the number of rows that complete a page. `answers` has for each row whether it is
/// listed, `missing` is the number of components that the page lacks. `None` if no further row is
/// listed.
fn end_of(answers: &[bool], missing: usize) -> Option<usize> {
    let mut those = answers.iter().enumerate().filter(|(_, answers)| **answers);
    let (last, _) = those.nth(missing - 1)?;
    those.next().map(|_| last + 1)
}

/// Progress of reading the rows of one page of dependencies.
struct RowReadProgress {
    size: AdaptiveBatchSize,
    /// Whether the last query returned rows that the dependency list does not show.
    has_hidden: bool,
    /// Number of rows that may still be read for this page of dependencies.
    left: usize,
}

impl RowReadProgress {
    /// Returns the number of rows to read in the next query. The page lacks `missing` components.
    fn rows(&self, missing: usize) -> usize {
        let rows = if self.has_hidden { self.left } else { missing.min(self.left) };
        rows.min(self.size.limit() as usize).max(1)
    }

    fn read<T: InventoryRow>(&mut self, rows: &[Stored<T>], answers: &[bool]) {
        self.left = self.left.saturating_sub(rows.len());
        self.has_hidden = answers.contains(&false);
        let bytes = rows.iter().map(|row| row.value.bytes()).sum();
        self.size.adapt(rows.len(), bytes);
    }

    fn found(&mut self, components: &[Stored<StoredComponent>]) {
        let bytes = components.iter().map(|component| component.bytes()).sum();
        self.size.shrink(components.len(), bytes);
    }
}
