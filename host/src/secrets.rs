//! The master key, and what is derived from it: keys for one purpose each,
//! and the seal on stored secrets.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The first byte of everything sealed, so that the form can change.
const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// The keys of this installation. All of them follow from one master key.
pub struct Keys {
    master: Zeroizing<[u8; 32]>,
    seal: XChaCha20Poly1305,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file could not be read or made.
    #[error("the key file {}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read the file.
    #[error("the key file {} is open to others; it must have mode 0600", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
    },
    /// Not 32 bytes in base64.
    #[error("the master key is not 32 bytes in base64")]
    Form,
}

/// What was sealed cannot be opened: another key, another place, or altered.
#[derive(Debug, thiserror::Error)]
#[error("the sealed value does not open under this key at this place")]
pub struct SealError;

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Keys {
    /// The keys that follow from this master key.
    #[must_use]
    pub fn new(master: [u8; 32]) -> Self {
        let master = Zeroizing::new(master);
        let key = Zeroizing::new(derive(&master, "seal"));
        Self { seal: XChaCha20Poly1305::new((&*key).into()), master }
    }

    /// From 32 bytes in base64, as the environment carries them.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let bytes =
            Zeroizing::new(BASE64_STANDARD.decode(text.trim()).map_err(|_| KeyError::Form)?);
        let master = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| KeyError::Form)?;
        Ok(Self::new(master))
    }

    /// From a file that only its owner may read; `None` if there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, KeyError> {
        let file = |source| KeyError::File { path: path.to_owned(), source };
        match std::fs::metadata(path) {
            Ok(about) if about.permissions().mode() & 0o077 != 0 => {
                Err(KeyError::Open { path: path.to_owned() })
            }
            Ok(_) => {
                let text = Zeroizing::new(std::fs::read_to_string(path).map_err(file)?);
                Self::from_base64(&text).map(Some)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file(error)),
        }
    }

    /// Makes the file, with a new key, and reads it; reads the one that is
    /// there if another process was faster.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let file = |source| KeyError::File { path: path.to_owned(), source };
        create(path).map_err(file)?;
        Self::load(path)?.ok_or_else(|| file(ErrorKind::NotFound.into()))
    }

    /// Identifies the master key and reveals nothing about it; a database
    /// keeps the check value of the key it is used with.
    #[must_use]
    pub fn check_value(&self) -> [u8; 32] {
        self.derive("key check")
    }

    /// A key for one purpose, which tells nothing of the others.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        derive(&self.master, purpose)
    }

    /// Encrypts and authenticates; `aad` says where the value belongs, and
    /// only there it opens again.
    #[must_use]
    pub fn seal(&self, aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce);
        let sealed = self
            .seal
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad })
            .expect("a value far below 256 GiB can be sealed");
        [&[SEAL_VERSION][..], &nonce, &sealed].concat()
    }

    /// Opens what [`Keys::seal`] made for the same place.
    pub fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (&SEAL_VERSION, rest) = sealed.split_first().ok_or(SealError)? else {
            return Err(SealError);
        };
        let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(SealError)?;
        let plain = self.seal.decrypt(&XNonce::from(*nonce), Payload { msg, aad });
        plain.map(Zeroizing::new).map_err(|_| SealError)
    }
}

fn derive(master: &[u8; 32], purpose: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(master).expect("HMAC takes a key of any length");
    mac.update(b"assurance key 1\0");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

/// Writes a new key under another name and links it into place, so that no
/// process ever reads half a key and of two that start at once one wins.
fn create(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut master = Zeroizing::new([0_u8; 32]);
    rand::fill(&mut master[..]);
    let draft = path.with_extension(format!("new-{}", uuid::Uuid::new_v4()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(Zeroizing::new(BASE64_STANDARD.encode(*master)).as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_where_it_was_sealed() {
        let keys = Keys::new([7; 32]);
        let sealed = keys.seal(b"here", b"secret");
        assert_eq!(*keys.open(b"here", &sealed).unwrap(), b"secret");
        assert!(keys.open(b"there", &sealed).is_err());
        assert!(Keys::new([8; 32]).open(b"here", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(keys.open(b"here", &altered).is_err(), "byte {at}");
            assert!(keys.open(b"here", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn purposes_have_keys_of_their_own() {
        let keys = Keys::new([7; 32]);
        assert_ne!(keys.derive("a"), keys.derive("b"));
        assert_eq!(keys.derive("a"), Keys::new([7; 32]).derive("a"));
    }

    #[test]
    fn a_key_file_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/master.key");
        assert!(Keys::load(&path).unwrap().is_none());
        let first = Keys::create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for second in [Keys::load(&path).unwrap().unwrap(), Keys::create(&path).unwrap()] {
            assert_eq!(first.check_value(), second.check_value());
        }
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Keys::load(&path), Err(KeyError::Open { .. })));
    }
}
