//! Lets only one process serve a SQLite database. Rate limits, idempotency keys in flight, cached
//! sessions and wake-ups are in its memory, so a second process would not see them.
//!
//! The lock is a file lock of the kernel (flock), so it ends with the process in every case.
//! Commands that only open the database do not take it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::bail;
use rustix::io::Errno;

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
    /// Another process serves the database, or its file cannot be locked; names the process or
    /// the cause, and how to proceed.
    pub fn take(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(database) = config.sqlite_file() else { return Ok(None) };
        let path = database.with_extension("serving");
        let shared = config.database.allow_several_processes;
        let locked = lock(&path, shared).map_err(|error| {
            let context = format!("{} cannot be locked; {}", path.display(), fix(&error));
            anyhow::Error::new(error).context(context)
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

/// Returns what to do about a file that cannot be locked.
fn fix(error: &std::io::Error) -> String {
    let no_locks = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS];
    if Errno::from_io_error(error).is_some_and(|errno| no_locks.contains(&errno)) {
        return "its file system has no locks: set database.allow_several_processes".to_owned();
    }
    let user = rustix::process::geteuid();
    format!("check the owner and mode of the file and its folder, which user {user} must write to")
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
    fn a_file_that_cannot_be_opened_is_no_reason_to_do_without_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        // Not even root opens a folder for writing.
        std::fs::create_dir(folder.path().join("assurance.serving")).unwrap();
        let config = Config { data_dir: folder.path().to_path_buf(), ..Config::default() };
        let refusal = format!("{:#}", DatabaseLock::take(&config).unwrap_err());
        assert!(refusal.contains("check the owner and mode"), "{refusal}");
        assert!(refusal.contains(&format!("user {}", rustix::process::geteuid())), "{refusal}");
        assert!(!refusal.contains("allow_several_processes"), "{refusal}");
        for errno in [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS] {
            assert!(fix(&errno.into()).contains("allow_several_processes"), "{errno}");
        }
        assert!(!fix(&Errno::ROFS.into()).contains("allow_several_processes"));
    }

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
