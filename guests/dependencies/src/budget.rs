//! Budget of one step of a job: the number of documents and bytes that it may still read and write
//! within the limits of a call and the memory.

use area_sdk::prelude::*;

use crate::inventory::component::StoredComponent;

/// Remaining documents and bytes of a step.
#[derive(Debug)]
pub(crate) struct StepBudget {
    documents: usize,
    bytes: usize,
}

/// Maximum number of documents in one step; the limit of a call is 10,000.
const DOCUMENTS: usize = 9_500;
/// Maximum size of the documents in one step, estimated in bytes; the limit of a call is 64 MiB.
const BYTES: usize = 40 << 20;
/// Minimum number of remaining documents and bytes with which a step begins another piece of work.
const AMPLE: (usize, usize) = (4_500, 16 << 20);

impl Default for StepBudget {
    fn default() -> Self {
        Self { documents: DOCUMENTS, bytes: BYTES }
    }
}

impl StepBudget {
    /// Whether enough of the budget remains for another piece of work.
    pub(crate) fn is_ample(&self) -> bool {
        self.documents >= AMPLE.0 && self.bytes >= AMPLE.1
    }

    /// Whether this number of documents fits into the budget.
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

/// Number of components in the first page, when their sizes are unknown.
const FIRST_PAGE: u32 = 10;
/// Maximum number of components in a further page.
const LATER_PAGE: u32 = 500;
/// Approximate maximum size of a further page, in bytes.
const BYTES_OF_PAGE: usize = 4 << 20;

/// Number of components to read in the next page. It adapts to their sizes, because some components
/// have thousands of advisories.
#[derive(Debug)]
pub(crate) struct AdaptiveBatchSize {
    limit: u32,
    most: u32,
}

impl AdaptiveBatchSize {
    /// Returns the initial page size of a step. The maximum is smaller after a failed attempt.
    pub(crate) fn of(ctx: &JobCtx) -> Self {
        let most = if ctx.attempt() > 1 { FIRST_PAGE } else { LATER_PAGE };
        Self { limit: FIRST_PAGE, most }
    }

    /// Returns the number of components to read in the next page.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Adapts the page size to the sizes of these components, and subtracts them from the budget.
    pub(crate) fn learn(&mut self, page: &[Stored<StoredComponent>], budget: &mut StepBudget) {
        let bytes: usize = page.iter().map(|component| component.bytes()).sum();
        budget.spend(page.len());
        budget.spend_bytes(bytes);
        if let Some(fits) = (BYTES_OF_PAGE * page.len()).checked_div(bytes) {
            self.limit = u32::try_from(fits).unwrap_or(self.most).clamp(1, self.most);
        }
    }
}
