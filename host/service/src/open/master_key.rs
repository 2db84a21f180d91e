//! Loads the master key and verifies that it is the one its database is used with.
//!
//! The database stores a check value of its key. A database without one (new, or written by an old
//! release) accepts the key of the first process, unless its encrypted values do not decrypt with
//! it.

use assurance_core::config::{Config, files};
use assurance_core::domain::sealed::SealedValue;
use assurance_core::domain::time::Clock;
use assurance_core::secrets::{Keys, MasterKeyError};
use assurance_store::{Store, installation};

const RESTORE: &str = "Restore the key from the backup that belongs to this database; on another \
    node of a fleet, copy the key of another node. host/OPERATING.md, \"Keys and backup\", says \
    what to do if the key is lost";

/// Loads the master key and checks that it is the one that the database is used with. Creates a key
/// file only for an unused database.
pub(super) async fn keys(config: &Config, store: &Store, clock: &Clock) -> anyhow::Result<Keys> {
    let (given, mut connection) = (configured_keys(config)?, store.writer().await?);
    let stored = installation::key_check(&mut connection).await?;
    let created = given.is_none();
    let keys = match given {
        Some(keys) => keys,
        None if stored.is_none() && installation::is_unused(&mut connection).await? => {
            Keys::create(&config.master_key_file())?
        }
        None => anyhow::bail!(
            "the master key file {} is missing, and the database {} is in use: a new key cannot \
             decrypt its values. {RESTORE}",
            config.master_key_file().display(),
            config.database_name()
        ),
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
        // Another node created its key first. Nothing was encrypted with this one yet.
        std::fs::remove_file(config.master_key_file())?;
    }
    let (key, database) = (name_of_key(config), config.database_name());
    anyhow::bail!(
        "{key} is not the master key that the database {database} is used with. {RESTORE}"
    );
}

/// Returns the keys of the master key from the configuration or its file; `None` if there is no
/// file. Changes nothing.
///
/// # Errors
/// The key is not 32 bytes in base64, or other users can read the file.
pub fn configured_keys(config: &Config) -> anyhow::Result<Option<Keys>> {
    if let Some(given) = &config.keys.master_key {
        let keys = Keys::from_base64(given.reveal()).map_err(|error| {
            anyhow::anyhow!("keys.master_key: {error}; make one with: openssl rand -base64 32")
        })?;
        return Ok(Some(keys));
    }
    let file = config.master_key_file();
    if file.exists() {
        // Checks the file's permissions before it is parsed; the error says how to fix them.
        files::read_private(&file)?;
    }
    Keys::load(&file).map_err(|error| match error {
        MasterKeyError::Form => anyhow::anyhow!(
            "{}: {error}; restore the key from the backup that belongs to the database, or, before \
             the first start, make one with: openssl rand -base64 32",
            file.display()
        ),
        file @ MasterKeyError::File(_) => file.into(),
    })
}

/// Refuses a master key that decrypts none of the stored values. If only some do not decrypt, logs
/// it: they were encrypted with a former key.
fn check_sealed(config: &Config, keys: &Keys, values: Vec<SealedValue>) -> anyhow::Result<()> {
    let sealed = values.len();
    let opened = values.iter().filter(|value| keys.open(&value.place, &value.sealed).is_ok());
    let opened = opened.count();
    if opened == sealed {
        return Ok(());
    }
    let (key, database) = (name_of_key(config), config.database_name());
    if opened == 0 {
        anyhow::bail!(
            "{key} decrypts none of the {sealed} encrypted values in the database {database}. \
             {RESTORE}"
        );
    }
    tracing::warn!(
        database,
        unreadable = sealed - opened,
        "encrypted values do not decrypt with {key}"
    );
    Ok(())
}

fn name_of_key(config: &Config) -> String {
    match config.keys.master_key {
        Some(_) => "the key in keys.master_key".to_owned(),
        None => format!("the key file {}", config.master_key_file().display()),
    }
}
