//! Private files for keys: created with mode 0600, and refused if other users
//! can read them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Errors of files that only this user may read; each message includes the fix.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Other users can read the private file.
    #[error("{path} can be read by others (mode {mode:04o}); make it private: chmod 600 {path}")]
    Exposed {
        /// Path of the file that other users can read.
        path: PathBuf,
        /// Permission bits of the file that other users can read.
        mode: u32,
    },
    /// A private file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// Path of the private file that cannot be read.
        path: PathBuf,
        /// Operating system's error of opening or reading the private file.
        source: io::Error,
    },
    /// A private file cannot be written, or a private folder cannot be created.
    #[error(
        "{path} cannot be written: {source}; check that its folder exists and belongs to this user"
    )]
    Write {
        /// Path of the private file or folder that cannot be written.
        path: PathBuf,
        /// Operating system's error of writing the private file or creating the
        /// folder.
        source: io::Error,
    },
}

/// Creates a folder that only this user can enter, with its parents. An
/// existing folder is left unchanged.
///
/// # Errors
/// The operating system refuses.
pub fn private_dir(path: &Path) -> Result<(), PrivateFileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| PrivateFileError::Write { path: path.to_path_buf(), source })
}

/// Writes a new file with mode 0600. An existing file is never overwritten.
///
/// # Errors
/// The file exists, or the operating system refuses.
pub fn create_private(path: &Path, content: &[u8]) -> Result<(), PrivateFileError> {
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.sync_all()
    })();
    written.map_err(|source| PrivateFileError::Write { path: path.to_path_buf(), source })
}

/// Writes a file with mode 0600, in place of an existing one. Readers never see
/// a partial file. With `sync`, the content is on disk before it replaces the
/// old one.
///
/// # Errors
/// The operating system refuses.
pub fn replace_private(path: &Path, content: &[u8], sync: bool) -> io::Result<()> {
    let draft = draft_of(path);
    // A draft that a killed process left would keep its mode.
    let _ = std::fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(content)?;
    if sync {
        file.sync_all()?;
    }
    std::fs::rename(&draft, path)
}

fn draft_of(path: &Path) -> PathBuf {
    path.with_extension(format!("new-{}", std::process::id()))
}

/// Reads a file after checking that other users cannot read it.
///
/// # Errors
/// The file cannot be read, or its mode lets other users read it.
pub fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, PrivateFileError> {
    let failed = |source| PrivateFileError::Read { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(failed)?;
    // Checks the opened file, so that the file cannot be exchanged between
    // check and read.
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(PrivateFileError::Exposed { path: path.to_path_buf(), mode });
    }
    let mut content = Zeroizing::new(Vec::with_capacity(metadata.size() as usize));
    file.read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

/// Reads a private file. If it is missing, writes the result of `make` as a new
/// private file. Safe if several processes start at once.
///
/// # Errors
/// The errors of [`read_private`] and [`create_private`].
pub fn read_or_create_private(
    path: &Path,
    make: impl FnOnce() -> Zeroizing<Vec<u8>>,
) -> Result<Zeroizing<Vec<u8>>, PrivateFileError> {
    if path.exists() {
        return read_private(path);
    }
    if let Some(parent) = path.parent() {
        private_dir(parent)?;
    }
    let content = make();
    let own = path.with_extension(format!("new-{}", uuid::Uuid::new_v4()));
    create_private(&own, &content)?;
    // Linking fails if the name exists, and readers never see a partial file.
    let linked = std::fs::hard_link(&own, path);
    let _ = std::fs::remove_file(&own);
    match linked {
        Ok(()) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_private(path),
        Err(source) => Err(PrivateFileError::Write { path: path.to_path_buf(), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, read_dir, set_permissions, write};

    use super::*;

    #[test]
    fn a_replaced_file_is_private_whatever_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo.json");
        for left in [path.clone(), draft_of(&path)] {
            write(&left, "a longer text of an earlier process").unwrap();
            set_permissions(&left, Permissions::from_mode(0o644)).unwrap();
        }
        replace_private(&path, b"new", true).unwrap();
        assert_eq!(**read_private(&path).unwrap(), *b"new");
        assert_eq!(read_dir(folder.path()).unwrap().count(), 1);
    }
}
