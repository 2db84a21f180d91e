//! Who belongs to which workspace.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::{UserId, WorkspaceId};
use crate::domain::people::{Member, Membership};
use crate::domain::role::Role;
use crate::domain::time::Timestamp;

type MemberRow = (Uuid, String, String, String);

/// Makes a person a member, or changes a member's role.
pub async fn put(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "INSERT INTO memberships (workspace_id, user_id, role, created_at) \
         VALUES ($1, $2, $3, $4) \
         ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role",
    )
    .bind(workspace.0)
    .bind(user.0)
    .bind(role.as_str())
    .bind(now.0)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

/// Makes a person a member; a member keeps a higher role.
pub async fn add(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), Error> {
    on!(connection, c => sqlx::query(
        "INSERT INTO memberships (workspace_id, user_id, role, created_at) \
         VALUES ($1, $2, $3, $4) \
         ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role \
         WHERE CASE excluded.role WHEN 'owner' THEN 3 WHEN 'admin' THEN 2 WHEN 'member' THEN 1 \
         ELSE 0 END > CASE memberships.role WHEN 'owner' THEN 3 WHEN 'admin' THEN 2 \
         WHEN 'member' THEN 1 ELSE 0 END",
    )
    .bind(workspace.0)
    .bind(user.0)
    .bind(role.as_str())
    .bind(now.0)
    .execute(&mut *c)
    .await?.rows_affected());
    Ok(())
}

/// What a person may do in a workspace, in one question; nothing where they
/// are no member.
pub async fn find(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Membership>, Error> {
    let rows: Vec<(String, Option<String>)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT m.role, f.flag FROM memberships m LEFT JOIN workspace_flags f \
             ON f.workspace_id = m.workspace_id AND f.enabled = FALSE \
             WHERE m.workspace_id = $1 AND m.user_id = $2",
        )
        .bind(workspace.0)
        .bind(user.0)
        .fetch_all(&mut *c)
        .await?
    });
    let Some((role, _)) = rows.first() else { return Ok(None) };
    let role = parse_role(role)?;
    let off: BTreeSet<String> = rows.into_iter().filter_map(|(_, flag)| flag).collect();
    Ok(Some(Membership { role, features_off: Arc::new(off) }))
}

/// How many workspaces a person owns. Makes others that count the same
/// person's wait until the transaction ends.
pub async fn count_owned(connection: &mut Connection, user: UserId) -> Result<i64, Error> {
    on!(connection, c => {
        sqlx::query("UPDATE users SET id = id WHERE id = $1")
            .bind(user.0)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    Ok(on!(connection, c => {
        sqlx::query_scalar("SELECT COUNT(*) FROM memberships WHERE user_id = $1 AND role = 'owner'")
            .bind(user.0)
            .fetch_one(&mut *c)
            .await?
    }))
}

/// One member of a workspace.
pub async fn member(
    connection: &mut Connection,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Member>, Error> {
    let row: Option<MemberRow> = on!(connection, c => {
        sqlx::query_as(
            "SELECT u.id, u.email, u.display_name, m.role FROM memberships m \
             JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 AND m.user_id = $2",
        )
        .bind(workspace.0)
        .bind(user.0)
        .fetch_optional(&mut *c)
        .await?
    });
    row.map(read).transpose()
}

/// All members of a workspace, by e-mail.
pub async fn members(
    connection: &mut Connection,
    workspace: WorkspaceId,
) -> Result<Vec<Member>, Error> {
    let rows: Vec<MemberRow> = on!(connection, c => {
        sqlx::query_as(
            "SELECT u.id, u.email, u.display_name, m.role FROM memberships m \
             JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 ORDER BY u.email",
        )
        .bind(workspace.0)
        .fetch_all(&mut *c)
        .await?
    });
    rows.into_iter().map(read).collect()
}

fn read((user, email, display_name, role): MemberRow) -> Result<Member, Error> {
    Ok(Member { user: UserId(user), email, display_name, role: parse_role(&role)? })
}

/// A role that a newer version of this service has written is a fault, not a
/// viewer.
pub(super) fn parse_role(text: &str) -> Result<Role, Error> {
    text.parse().map_err(|error: String| Error::Database(sqlx::Error::Decode(error.into())))
}
