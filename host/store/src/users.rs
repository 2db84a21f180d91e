//! People and their password hashes.

use uuid::Uuid;

use super::connection::{Connection, on};
use super::error::Error;
use assurance_core::domain::id::UserId;
use assurance_core::domain::people::User;
use assurance_core::domain::time::Timestamp;

/// Adds a person. Returns [`Error::AlreadyExists`] if the email address is
/// taken.
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

/// Finds a person by normalized email address, with the password hash. For a
/// disabled account, the hash is `None`, so that no password is accepted.
pub async fn by_email(
    connection: &mut Connection,
    email: &str,
) -> Result<Option<(User, Option<String>)>, Error> {
    let row: Option<(Uuid, String, String, bool, Option<String>)> = on!(connection, c => {
        sqlx::query_as(
            "SELECT id, email, display_name, email_verified, \
             CASE WHEN disabled_at IS NULL THEN password_hash END FROM users WHERE email = $1",
        )
        .bind(email)
        .fetch_optional(&mut *c)
        .await?
    });
    Ok(row.map(|(id, email, display_name, email_verified, hash)| {
        (User { id: UserId(id), email, display_name, email_verified }, hash)
    }))
}

/// Finds a person by id, disabled or not.
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

/// Replaces the password hash. Returns [`Error::NotFound`] if the person does
/// not exist.
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

/// Locks a person against being disabled until the transaction ends. Returns
/// [`Error::NotFound`] if the person does not exist or is disabled.
pub async fn hold(connection: &mut Connection, user: UserId) -> Result<(), Error> {
    let held = on!(connection, c => {
        sqlx::query("UPDATE users SET id = id WHERE id = $1 AND disabled_at IS NULL")
            .bind(user.0)
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if held == 0 { Err(Error::NotFound) } else { Ok(()) }
}

/// Locks a person's password until the transaction ends, and stores a renewed
/// hash of the same password. Returns [`Error::RunAgain`] if another password
/// was stored meanwhile, or the account is disabled.
pub async fn hold_password(
    connection: &mut Connection,
    user: UserId,
    checked: &str,
    renewed: &str,
) -> Result<(), Error> {
    let held = on!(connection, c => {
        sqlx::query(
            "UPDATE users SET password_hash = $3 \
             WHERE id = $1 AND password_hash = $2 AND disabled_at IS NULL",
        )
        .bind(user.0)
        .bind(checked)
        .bind(renewed)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    if held == 0 { Err(Error::RunAgain) } else { Ok(()) }
}

/// Records a sign-in. Other sign-ins of the person wait until the transaction
/// ends, so that each sees the previous sessions. Returns [`Error::NotFound`]
/// if the person does not exist or is disabled.
pub async fn note_sign_in(
    connection: &mut Connection,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        sqlx::query(
            "UPDATE users SET last_sign_in_at = $2 WHERE id = $1 AND disabled_at IS NULL",
        )
        .bind(user.0)
        .bind(now.0)
        .execute(&mut *c)
        .await?
        .rows_affected()
    });
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}

/// Disables an account from a time on, or enables it (`None`). Waits for
/// running sign-ins of the person. Returns [`Error::NotFound`] if the person
/// does not exist.
pub async fn set_disabled(
    connection: &mut Connection,
    user: UserId,
    since: Option<Timestamp>,
) -> Result<(), Error> {
    let changed = on!(connection, c => {
        sqlx::query("UPDATE users SET disabled_at = $2 WHERE id = $1")
            .bind(user.0)
            .bind(since.map(|since| since.0))
            .execute(&mut *c)
            .await?
            .rows_affected()
    });
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}
