//! Files that hold keys: made private, refused when others could read them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Why a private file cannot be used; each says the way out.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Others could have read it.
    #[error("{path} can be read by others (mode {mode:04o}); make it private: chmod 600 {path}")]
    Exposed {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Not there to be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not there to be written.
    #[error("{path} cannot be written: {source}; is its folder there, and yours?")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Makes a folder that only this user can enter, parents included; one that is
/// there is left as it is.
///
/// # Errors
/// Where the operating system refuses.
pub fn private_dir(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| FileError::Write { path: path.to_path_buf(), source })
}

/// Writes a new file, mode 0600; an existing one is never overwritten.
///
/// # Errors
/// Where it exists, or the operating system refuses.
pub fn create_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.sync_all()
    })();
    written.map_err(|source| FileError::Write { path: path.to_path_buf(), source })
}

/// Reads a file after checking that nobody else can.
///
/// # Errors
/// Where it is not there, or its mode lets others read it.
pub fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let failed = |source| FileError::Read { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(failed)?;
    // Of the opened file, so that it cannot be exchanged in between.
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(FileError::Exposed { path: path.to_path_buf(), mode });
    }
    let mut content = Zeroizing::new(Vec::with_capacity(metadata.size() as usize));
    file.read_to_end(&mut content).map_err(failed)?;
    Ok(content)
}

/// The file's content, or `make`'s, written as a new private file; safe where
/// several processes start at once.
///
/// # Errors
/// As [`read_private`] and [`create_private`].
pub fn read_or_create_private(
    path: &Path,
    make: impl FnOnce() -> Zeroizing<Vec<u8>>,
) -> Result<Zeroizing<Vec<u8>>, FileError> {
    if path.exists() {
        return read_private(path);
    }
    if let Some(parent) = path.parent() {
        private_dir(parent)?;
    }
    let content = make();
    let own = path.with_extension(format!("new-{}", std::process::id()));
    create_private(&own, &content)?;
    // A link is refused where the name is taken, and the file is whole.
    let linked = std::fs::hard_link(&own, path);
    let _ = std::fs::remove_file(&own);
    match linked {
        Ok(()) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_private(path),
        Err(source) => Err(FileError::Write { path: path.to_path_buf(), source }),
    }
}
