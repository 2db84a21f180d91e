//! The workspace's context, as its area snapshots it.

use area_sdk::Scope;
use area_sdk::prelude::*;

/// A snapshot; here only its id counts.
#[derive(Serialize, Deserialize)]
struct Snapshot {}

impl Document for Snapshot {
    const COLLECTION: &'static str = "context.snapshots";
}

/// The newest snapshot, where there is any.
pub(crate) fn latest(scope: &Scope) -> Result<Option<Uuid>> {
    let newest = scope.documents::<Snapshot>().query().descending("generated_at").first()?;
    Ok(newest.map(|snapshot| snapshot.uuid()))
}
