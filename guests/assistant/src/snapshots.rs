//! The workspace's context snapshots, read from the context area.

use area_sdk::Scope;
use area_sdk::prelude::*;

/// A snapshot of the workspace context; only its id is used.
#[derive(Serialize, Deserialize)]
struct ContextSnapshot {}

document!(ContextSnapshot, "context.snapshots");

/// Returns the id of the newest snapshot of the workspace context; `None` if there is none.
pub(crate) fn latest(scope: &Scope) -> Result<Option<Uuid>> {
    let newest = scope.documents::<ContextSnapshot>().query().descending("generated_at").first()?;
    Ok(newest.map(|snapshot| snapshot.uuid()))
}
