//! Content of a streamed body in the blob store, which is deleted after the call unless a row
//! references it.

use std::time::Duration;

use tracing::Instrument as _;

use assurance_service::app::call::{CallRefusal, CommittedResponse};
use assurance_store::Store;
use assurance_store::blobs::{self, StoredBlob};

/// Time after which no call of a request that was given up can commit any more.
const LONGEST_COMMIT: Duration = Duration::from_secs(600);

/// Streamed content of a request in the blob store, until the request's call has ended. Dropping it
/// deletes the content, unless a row references it.
pub(super) struct ReceivedBlobGuard {
    store: Store,
    object: String,
    /// Time from the drop to the deletion of the content: [`LONGEST_COMMIT`] if the call may still
    /// commit, otherwise zero.
    delay: Duration,
}

impl ReceivedBlobGuard {
    pub(super) fn new(store: &Store, blob: &StoredBlob) -> Self {
        Self { store: store.clone(), object: blob.object.clone(), delay: LONGEST_COMMIT }
    }

    /// Records that the call has ended, so that the drop deletes unreferenced content at once. A
    /// failed call may have committed, for example if the database did not confirm the commit, so
    /// its content is deleted later.
    pub(super) fn end(mut self, answered: &Result<CommittedResponse, CallRefusal>) {
        if !matches!(answered, Err(CallRefusal::Failed(_))) {
            self.delay = Duration::ZERO;
        }
    }
}

impl Drop for ReceivedBlobGuard {
    fn drop(&mut self) {
        // Without a runtime, the process is exiting; the sweep deletes the content later.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (store, object, delay) =
            (self.store.clone(), std::mem::take(&mut self.object), self.delay);
        let discarding = async move {
            tokio::time::sleep(delay).await;
            if let Err(error) = blobs::discard(&store, &object).await {
                tracing::warn!(%error, "cannot delete refused content; it is deleted later");
            }
        };
        runtime.spawn(discarding.in_current_span());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assurance_core::domain::id::WorkspaceId;
    use assurance_store::Backend;
    use assurance_store::testing::fresh;

    #[tokio::test]
    async fn content_of_a_refused_call_is_deleted_when_the_call_ends() {
        let fresh = fresh(Backend::Sqlite).await.unwrap();
        let (store, workspace) = (&fresh.store, WorkspaceId::new());
        let write = async || store.blobs().write(workspace, "uploads", vec![7]).await.unwrap();
        let (refused, running) = (write().await, write().await);
        ReceivedBlobGuard::new(store, &refused).end(&Err(CallRefusal::Contended));
        drop(ReceivedBlobGuard::new(store, &running));
        while store.blobs().has(&refused.object).await.unwrap() {
            tokio::task::yield_now().await;
        }
        assert!(store.blobs().has(&running.object).await.unwrap());
    }
}
