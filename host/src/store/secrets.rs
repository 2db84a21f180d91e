//! Sealed secrets. What goes in and out here is sealed; only `work` holds the
//! keys, and binds each secret to its workspace, area and name.

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::WorkspaceId;

/// A secret as it is stored.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    name: &str,
) -> Result<Option<Vec<u8>>, Error> {
    Ok(on!(connection, c => {
        sqlx::query_scalar(
            "SELECT sealed FROM secrets WHERE workspace_id = $1 AND area = $2 AND name = $3",
        )
        .bind(workspace.0)
        .bind(area.to_owned())
        .bind(name.to_owned())
        .fetch_optional(&mut *c)
        .await?
    }))
}
