//! People and the hashes of their passwords.

use uuid::Uuid;

use super::connection::{Connection, on};
use super::error::Error;
use crate::domain::id::UserId;
use crate::domain::people::User;
use crate::domain::time::Timestamp;

/// Adds a person; [`Error::AlreadyExists`] where the e-mail is taken.
pub async fn insert(
    connection: &mut Connection,
    user: &User,
    password_hash: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    let added = on!(connection, c => sqlx::query(
        "INSERT INTO users (id, email, display_name, email_verified, password_hash, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (email) DO NOTHING",
    )
    .bind(user.id.0)
    .bind(&user.email)
    .bind(&user.display_name)
    .bind(user.email_verified)
    .bind(password_hash)
    .bind(now.0)
    .execute(&mut *c)
    .await?
    .rows_affected());
    if added == 0 { Err(Error::AlreadyExists) } else { Ok(()) }
}

/// Finds a person by (normalised) e-mail, with the password's hash.
pub async fn by_email(
    connection: &mut Connection,
    email: &str,
) -> Result<Option<(User, Option<String>)>, Error> {
    let row: Option<(Uuid, String, String, bool, Option<String>)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT id, email, display_name, email_verified, password_hash \
             FROM users WHERE email = $1",
        )
        .bind(email)
        .fetch_optional(&mut *c)
        .await?
    });
    Ok(row.map(|(id, email, display_name, email_verified, hash)| {
        (User { id: UserId(id), email, display_name, email_verified }, hash)
    }))
}

/// Finds a person.
pub async fn find(connection: &mut Connection, id: UserId) -> Result<Option<User>, Error> {
    let row: Option<(String, String, bool)> = on!(connection, c => {
        sqlx::query_as("SELECT email, display_name, email_verified FROM users WHERE id = $1")
            .bind(id.0)
            .fetch_optional(&mut *c)
            .await?
    });
    Ok(row.map(|(email, display_name, email_verified)| User {
        id,
        email,
        display_name,
        email_verified,
    }))
}

/// Replaces the password's hash; [`Error::NotFound`] where there is no such
/// person.
pub async fn set_password(
    connection: &mut Connection,
    user: UserId,
    password_hash: &str,
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        sqlx::query("UPDATE users SET password_hash = $2 WHERE id = $1")
            .bind(user.0)
            .bind(password_hash)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}

/// Keeps a person's password as it is until the transaction ends, or renews the
/// hash of the same password; [`Error::RunAgain`] where another one is stored
/// by now.
pub async fn hold_password(
    connection: &mut Connection,
    user: UserId,
    checked: &str,
    renewed: &str,
) -> Result<(), Error> {
    let held = on!(connection, c => {
        sqlx::query("UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2")
            .bind(user.0)
            .bind(checked)
            .bind(renewed)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if held == 0 { Err(Error::RunAgain) } else { Ok(()) }
}

/// Notes a sign-in. Also keeps the person's other sign-ins waiting until the
/// transaction ends, so that each sees the sessions of the one before.
pub async fn note_sign_in(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        sqlx::query("UPDATE users SET last_sign_in_at = $2 WHERE id = $1")
            .bind(user.0)
            .bind(now.0)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}
