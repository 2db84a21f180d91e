//! Lets only one process serve a SQLite database. Rate limits, idempotency keys in flight, cached
//! sessions and wake-ups are in its memory, so a second process would not see them.
//!
//! The lock is a file lock of the kernel (flock), so it ends with the process in every case.
//! Commands that only open the database do not take it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use assurance_core::config::{Config, files};

/// Lock on a SQLite database, held while this process serves it.
#[derive(Debug)]
pub struct DatabaseLock {
    _file: File,
}

impl DatabaseLock {
    /// Locks the SQLite database. Returns `None` for PostgreSQL, which any number of hosts may
    /// share.
    ///
    /// # Errors
    /// Another process serves the database; names the process and how to proceed.
    pub fn take(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(database) = config.sqlite_file() else { return Ok(None) };
        let path = database.with_extension("serving");
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

/// Returns the locked file, or a description of the process that holds the lock.
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
        // The file system supports no locks. That is accepted if several processes may use the
        // database.
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
        // The process holds the lock but has not written its description yet.
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
