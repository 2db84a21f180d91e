//! Room of a job's step: the documents and bytes that it may still read and write within the call's
//! limits and memory.

use area_sdk::prelude::*;

use crate::inventory::component::StoredComponent;

/// Remaining documents and bytes.
#[derive(Debug)]
pub(crate) struct Room {
    documents: usize,
    bytes: usize,
}

/// Documents in one step; a call is limited to 10,000.
const DOCUMENTS: usize = 9_500;
/// Estimated bytes in one step; a call is limited to 64 MiB.
const BYTES: usize = 40 << 20;
/// Remaining documents and bytes above which a step continues.
const AMPLE: (usize, usize) = (4_500, 16 << 20);

impl Default for Room {
    fn default() -> Self {
        Self { documents: DOCUMENTS, bytes: BYTES }
    }
}

impl Room {
    /// Whether another piece of work fits.
    pub(crate) fn is_ample(&self) -> bool {
        self.documents >= AMPLE.0 && self.bytes >= AMPLE.1
    }

    /// Whether `documents` fit.
    pub(crate) fn has(&self, documents: usize) -> bool {
        self.documents >= documents && self.bytes > 0
    }

    /// Uses documents, even beyond the room.
    pub(crate) fn spend(&mut self, documents: usize) {
        self.documents = self.documents.saturating_sub(documents);
    }

    /// Uses bytes, even beyond the room.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Uses documents if they fit. Returns whether they did.
    pub(crate) fn take(&mut self, documents: usize) -> bool {
        let has = self.has(documents);
        if has {
            self.spend(documents);
        }
        has
    }
}

/// Number of components in a first page, whatever their size.
const FIRST_PAGE: u32 = 10;
/// Maximum number of components in a later page.
const LATER_PAGE: u32 = 500;
/// Approximate size of a later page, in bytes.
const BYTES_OF_PAGE: usize = 4 << 20;

/// Number of components in the next page: some have thousands of advisories.
#[derive(Debug)]
pub(crate) struct PageSize {
    limit: u32,
    most: u32,
}

impl PageSize {
    /// Returns the size of a step's pages. It is smaller after a failed attempt.
    pub(crate) fn of(ctx: &JobCtx) -> Self {
        let most = if ctx.attempt() > 1 { FIRST_PAGE } else { LATER_PAGE };
        Self { limit: FIRST_PAGE, most }
    }

    /// Returns the limit of the next page.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Adjusts the size to a page of components, and uses the room of that page.
    pub(crate) fn learn(&mut self, page: &[Stored<StoredComponent>], room: &mut Room) {
        let bytes: usize = page.iter().map(|component| component.bytes()).sum();
        room.spend(page.len());
        room.spend_bytes(bytes);
        if let Some(fits) = (BYTES_OF_PAGE * page.len()).checked_div(bytes) {
            self.limit = u32::try_from(fits).unwrap_or(self.most).clamp(1, self.most);
        }
    }
}
