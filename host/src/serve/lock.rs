//! One process at a time serves a SQLite database: rates, keys in flight,
//! cached sessions and wake-ups are in its memory, and another would not see
//! them.
//!
//! The lock is the kernel's (flock), so it ends with the process however that
//! ends. Commands that open the database do not take it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::config::{Config, files};

/// Held for as long as the process uses the database alone.
#[derive(Debug)]
pub struct DatabaseLock {
    _file: File,
}

impl DatabaseLock {
    /// Locks the SQLite database; PostgreSQL is shared by any number of hosts
    /// and has no lock.
    ///
    /// # Errors
    /// Another process serves it: which one, and the way out.
    pub fn take(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(database) = config.sqlite_file() else { return Ok(None) };
        let path = lock_file(&database);
        let shared = config.database.allow_several_processes;
        let locked = lock(&path, shared).with_context(|| {
            format!(
                "{} cannot be locked; where the file system has no locks, set \
                 database.allow_several_processes",
                path.display()
            )
        })?;
        match locked {
            Ok(file) => Ok(Some(Self { _file: file })),
            Err(holder) => bail!(
                "{} is served by {holder}, which holds {}; stop that process, or set \
                 database.allow_several_processes",
                database.display(),
                path.display()
            ),
        }
    }
}

fn lock_file(database: &Path) -> PathBuf {
    database.with_extension("serving")
}

/// The locked file, or who holds it.
fn lock(path: &Path, shared: bool) -> std::io::Result<Result<File, String>> {
    if let Some(folder) = path.parent() {
        files::private_dir(folder).map_err(std::io::Error::other)?;
    }
    let mut options = OpenOptions::new();
    let mut file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(holder(&mut file))),
        // There is nothing to hold on to, and nothing was promised.
        Err(TryLockError::Error(_)) if shared => return Ok(Ok(file)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())?;
    Ok(Ok(file))
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.is_empty() => format!("process {text}"),
        // It has taken the lock and not written yet.
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_holders_unless_all_share_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/assurance.serving");
        let first = lock(&path, false).unwrap().unwrap();
        let holder = lock(&path, false).unwrap().unwrap_err();
        assert_eq!(holder, format!("process {}", std::process::id()));
        assert!(lock(&path, true).unwrap().is_err());
        drop(first);
        let _one = lock(&path, true).unwrap().unwrap();
        let _two = lock(&path, true).unwrap().unwrap();
        assert!(lock(&path, false).unwrap().is_err());
    }
}
