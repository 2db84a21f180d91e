//! Budget of one step of a job: the number of documents and bytes that it may still read and write
//! within the limits of a call and the memory.

use area_sdk::prelude::*;

use crate::inventory::component::StoredComponent;

/// Documents and bytes that the current step of a job may still read and write.
#[derive(Debug)]
pub(crate) struct StepBudget {
    documents: usize,
    bytes: usize,
}

/// Maximum number of documents that a job step reads and writes; the limit of a call is 10,000.
const DOCUMENTS: usize = 9_500;
/// Maximum size of the documents that a job step reads and writes, estimated in bytes; the limit of
/// a call is 64 MiB.
const BYTES: usize = 40 << 20;
/// Documents and bytes that must remain in a step's budget for the step to begin more work.
const AMPLE: (usize, usize) = (4_500, 16 << 20);

impl Default for StepBudget {
    fn default() -> Self {
        Self { documents: DOCUMENTS, bytes: BYTES }
    }
}

impl StepBudget {
    /// Whether enough of the budget remains for the step to begin more work.
    pub(crate) fn is_ample(&self) -> bool {
        self.documents >= AMPLE.0 && self.bytes >= AMPLE.1
    }

    /// Whether this number of documents fits into the budget. False if no bytes are left.
    pub(crate) fn has(&self, documents: usize) -> bool {
        self.documents >= documents && self.bytes > 0
    }

    /// Subtracts documents from the budget, even if they do not fit.
    pub(crate) fn spend(&mut self, documents: usize) {
        self.documents = self.documents.saturating_sub(documents);
    }

    /// Subtracts bytes from the budget, even if they do not fit.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Subtracts documents from the budget if they fit. Returns whether they did.
    pub(crate) fn take(&mut self, documents: usize) -> bool {
        let has = self.has(documents);
        if has {
            self.spend(documents);
        }
        has
    }
}

/// Number of components in the first page that a step reads, when their sizes are unknown; after a
/// failed attempt, also the maximum of later pages.
const FIRST_PAGE: u32 = 10;
/// Maximum number of components in each later page that a step reads.
const LATER_PAGE: u32 = 500;
/// Approximate maximum size of each later page of components, in bytes.
const BYTES_OF_PAGE: usize = 4 << 20;

/// Number of documents to read in the next page of a query. It adapts to their sizes: some
/// components have thousands of advisories, and some advisories list hundreds of versions.
#[derive(Debug)]
pub(crate) struct AdaptiveBatchSize {
    limit: u32,
    most: u32,
    /// Approximate maximum size of a page, in bytes.
    bytes: usize,
}

impl AdaptiveBatchSize {
    /// Returns the size of a page, whose first value is `first` and whose maximum is `most`
    /// documents or approximately `bytes` bytes.
    pub(crate) fn new(first: u32, most: u32, bytes: usize) -> Self {
        Self { limit: first, most, bytes }
    }

    /// Returns the size of a page of components at the beginning of a step. Its maximum is smaller
    /// after a failed attempt.
    pub(crate) fn of(ctx: &JobCtx) -> Self {
        let most = if ctx.attempt() > 1 { FIRST_PAGE } else { LATER_PAGE };
        Self::new(FIRST_PAGE, most, BYTES_OF_PAGE)
    }

    /// Returns the number of documents to read in the next page.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Adapts the page size to the average size of documents just read: `count` with together
    /// `bytes` bytes. It stays as it is if there are none.
    pub(crate) fn adapt(&mut self, count: usize, bytes: usize) {
        if let Some(fits) = (self.bytes * count).checked_div(bytes) {
            self.limit = u32::try_from(fits).unwrap_or(self.most).clamp(1, self.most);
        }
    }

    /// Adapts the page size like [`Self::adapt`], but does not increase it.
    pub(crate) fn shrink(&mut self, count: usize, bytes: usize) {
        let former = self.limit;
        self.adapt(count, bytes);
        self.limit = self.limit.min(former);
    }

    /// Adapts the page size to the sizes of the components just read, and subtracts these
    /// components from the budget.
    pub(crate) fn learn(&mut self, page: &[Stored<StoredComponent>], budget: &mut StepBudget) {
        let bytes: usize = page.iter().map(|component| component.bytes()).sum();
        budget.spend(page.len());
        budget.spend_bytes(bytes);
        self.adapt(page.len(), bytes);
    }
}
