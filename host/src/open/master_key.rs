//! Which master key this process works with: only the one that its database
//! is used with.
//!
//! The database keeps a check value of its key. One that has none yet, new or
//! of a release before there was one, takes the key of the first process that
//! starts, unless what is sealed in it opens under another.

use std::path::PathBuf;

use crate::config::{Config, files};
use crate::domain::time::Clock;
use crate::secrets::Keys;
use crate::store::{Store, installation};

const RESTORE: &str = "Restore the key from the backup that belongs to this database; on another \
                       node of a fleet, copy the key of the first. host/OPERATING.md, \"Keys and \
                       backup\", says what to do if it is lost for good";

/// Why a process has no key that it could work with.
#[derive(Debug, thiserror::Error)]
pub(super) enum WrongKey {
    /// The database is used with another.
    #[error("{key} is not the master key that the database {database} is used with. {RESTORE}")]
    Other { key: String, database: String },
    /// The database has no check value yet, and what it has sealed does not
    /// open.
    #[error(
        "{key} opens none of the {sealed} values that the database {database} keeps sealed. \
         {RESTORE}"
    )]
    OpensNothing { key: String, database: String, sealed: usize },
    /// There is none, and a new one would open nothing.
    #[error(
        "the master key file {} is missing, and the database {database} is in use: a new key \
         would not open what is sealed there. {RESTORE}",
        file.display()
    )]
    Missing { file: PathBuf, database: String },
}

/// The keys of this process. Makes a key file only for a database that nobody
/// has used.
pub(super) async fn keys(config: &Config, store: &Store, clock: &Clock) -> anyhow::Result<Keys> {
    let (given, mut connection) = (configured(config)?, store.writer().await?);
    let stored = installation::key_check(&mut connection).await?;
    let created = given.is_none();
    let keys = match given {
        Some(keys) => keys,
        None if stored.is_none() && installation::is_unused(&mut connection).await? => {
            Keys::create(&config.master_key_file())?
        }
        None => {
            let (file, database) = (config.master_key_file(), config.database_name());
            return Err(WrongKey::Missing { file, database }.into());
        }
    };
    let stored = match stored {
        Some(stored) => Some(stored),
        None => {
            check_sealed(config, &keys, installation::sealed_values(&mut connection).await?)?;
            let value = keys.check_value();
            installation::claim_key_check(&mut connection, &value, clock.now()).await?
        }
    };
    connection.release();
    if stored.as_deref() == Some(&keys.check_value()[..]) {
        return Ok(keys);
    }
    if created {
        // Another node was faster; nothing was sealed under this key yet.
        std::fs::remove_file(config.master_key_file())?;
    }
    let (key, database) = (name_of_key(config), config.database_name());
    Err(WrongKey::Other { key, database }.into())
}

/// The key that the configuration or its file gives; `None` if there is no
/// file.
fn configured(config: &Config) -> anyhow::Result<Option<Keys>> {
    if let Some(given) = &config.keys.master_key {
        let keys = Keys::from_base64(given.reveal()).map_err(|error| {
            anyhow::anyhow!("keys.master_key: {error}; make one with: openssl rand -base64 32")
        })?;
        return Ok(Some(keys));
    }
    let file = config.master_key_file();
    if file.exists() {
        // Refused here with the way out, before it is looked at.
        files::read_private(&file)?;
    }
    Ok(Keys::load(&file)?)
}

/// Refuses a key that opens nothing of what is sealed. What does not open
/// although other values do is logged: it was sealed under a key before.
fn check_sealed(
    config: &Config,
    keys: &Keys,
    values: Vec<crate::domain::sealed::SealedValue>,
) -> Result<(), WrongKey> {
    let sealed = values.len();
    let opened = values.iter().filter(|value| keys.open(&value.place, &value.sealed).is_ok());
    let opened = opened.count();
    if opened == sealed {
        return Ok(());
    }
    let (key, database) = (name_of_key(config), config.database_name());
    if opened == 0 {
        return Err(WrongKey::OpensNothing { key, database, sealed });
    }
    tracing::warn!(database, unreadable = sealed - opened, "sealed values do not open under {key}");
    Ok(())
}

fn name_of_key(config: &Config) -> String {
    match config.keys.master_key {
        Some(_) => "the key in keys.master_key".to_owned(),
        None => format!("the key file {}", config.master_key_file().display()),
    }
}
