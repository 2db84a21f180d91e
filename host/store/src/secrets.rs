//! Stored secrets of areas. This module handles only ciphertexts; `work` holds
//! the keys and binds each secret to its workspace, area, name and origin.

use super::connection::{Connection, execute, fetch_optional};
use super::error::Error;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::sealed::StoredSecret;

/// Returns an area's secret, encrypted; `None` if there is none with this name.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    area: &str,
    name: &str,
) -> Result<Option<StoredSecret>, Error> {
    let sql = "SELECT sealed, origin, component FROM secrets \
               WHERE workspace_id = $1 AND area = $2 AND name = $3";
    let found: Option<(Vec<u8>, String, String)> =
        fetch_optional!(connection, sql, workspace.0, area.to_owned(), name.to_owned());
    let secret = |(sealed, origin, component)| StoredSecret { sealed, origin, component };
    Ok(found.map(secret))
}

/// Binds an area's secret to one origin: replaces `before`, which has none,
/// with `bound`. Returns false if the stored secret is not `before` any more:
/// another call replaced, deleted or bound it.
pub async fn bind(
    connection: &mut Connection,
    (workspace, area, name): (WorkspaceId, &str, &str),
    before: &StoredSecret,
    bound: &StoredSecret,
) -> Result<bool, Error> {
    let changed = execute!(
        connection,
        "UPDATE secrets SET sealed = $5, origin = $6 \
         WHERE workspace_id = $1 AND area = $2 AND name = $3 AND sealed = $4 AND origin = ''",
        workspace.0,
        area.to_owned(),
        name.to_owned(),
        before.sealed.clone(),
        bound.sealed.clone(),
        bound.origin.clone()
    );
    Ok(changed == 1)
}
