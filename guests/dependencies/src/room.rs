//! What a step of a job may still read and write: a call has a limit of
//! documents and of their bytes, and little memory.

use area_sdk::prelude::*;

use crate::inventory::component::StoredComponent;

/// Documents and bytes that are left.
#[derive(Debug)]
pub(crate) struct Room {
    documents: usize,
    bytes: usize,
}

/// Documents of a step; a call has 10,000.
const DOCUMENTS: usize = 9_500;
/// Bytes of a step, as estimated; a call has 64 MiB.
const BYTES: usize = 40 << 20;
/// While so much is left of each, a step goes on.
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

    /// Whether so many documents fit.
    pub(crate) fn has(&self, documents: usize) -> bool {
        self.documents >= documents && self.bytes > 0
    }

    /// Uses documents, whether or not there was room.
    pub(crate) fn spend(&mut self, documents: usize) {
        self.documents = self.documents.saturating_sub(documents);
    }

    /// Uses bytes, whether or not there was room.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Uses documents if there is room; whether there was.
    pub(crate) fn take(&mut self, documents: usize) -> bool {
        let has = self.has(documents);
        if has {
            self.spend(documents);
        }
        has
    }
}

/// Components of a first page, whatever they weigh.
const FIRST_PAGE: u32 = 10;
/// Components of a later page.
const LATER_PAGE: u32 = 500;
/// Bytes of a later page, about.
const BYTES_OF_PAGE: usize = 4 << 20;

/// How many components the next page has: some have thousands of advisories.
#[derive(Debug)]
pub(crate) struct PageSize {
    limit: u32,
    most: u32,
}

impl PageSize {
    /// The size of a step's pages. An attempt after one that failed is more
    /// careful.
    pub(crate) fn of(ctx: &JobCtx) -> Self {
        let most = if ctx.attempt() > 1 { FIRST_PAGE } else { LATER_PAGE };
        Self { limit: FIRST_PAGE, most }
    }

    /// The limit of the next page.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a page of components into account, and the room that it used.
    pub(crate) fn learn(&mut self, page: &[Stored<StoredComponent>], room: &mut Room) {
        let bytes: usize = page.iter().map(|component| component.bytes()).sum();
        room.spend(page.len());
        room.spend_bytes(bytes);
        if let Some(fits) = (BYTES_OF_PAGE * page.len()).checked_div(bytes) {
            self.limit = u32::try_from(fits).unwrap_or(self.most).clamp(1, self.most);
        }
    }
}
