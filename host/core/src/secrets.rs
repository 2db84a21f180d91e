//! The master key, the keys derived from it for single purposes, and the
//! encryption of stored secrets.

use std::io::ErrorKind;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::config::files::{self, PrivateFileError};

/// First byte of every ciphertext; identifies the format.
const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Encryption and signing keys of this installation, all derived from one
/// master key.
pub struct Keys {
    master: Zeroizing<[u8; 32]>,
    seal: XChaCha20Poly1305,
}

/// Errors of loading the master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The file of the master key cannot be read or created, or other users can
    /// read it.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The master key is not 32 bytes in base64.
    #[error("the master key is not 32 bytes in base64")]
    Form,
}

/// Error of decrypting a value: it was encrypted with another key or for
/// another location, or was altered.
#[derive(Debug, thiserror::Error)]
#[error("the value cannot be decrypted: it has another key or location, or was altered")]
pub struct DecryptionError;

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Keys {
    /// Derives the keys from a master key.
    #[must_use]
    pub fn new(master: [u8; 32]) -> Self {
        let master = Zeroizing::new(master);
        let key = Zeroizing::new(derive(&master, "seal"));
        Self { seal: XChaCha20Poly1305::new((&*key).into()), master }
    }

    /// Derives the keys from a master key in base64, the form in the key file
    /// and in the environment variable.
    pub fn from_base64(text: &str) -> Result<Self, MasterKeyError> {
        let bytes =
            Zeroizing::new(BASE64_STANDARD.decode(text.trim()).map_err(|_| MasterKeyError::Form)?);
        let master = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| MasterKeyError::Form)?;
        Ok(Self::new(master))
    }

    /// Reads the master key from a file that only its owner may read, and
    /// derives the keys; `None` if there is no such file.
    pub fn load(path: &Path) -> Result<Option<Self>, MasterKeyError> {
        match files::read_private(path) {
            Ok(content) => Self::from_base64(&String::from_utf8_lossy(&content)).map(Some),
            Err(PrivateFileError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the file with a new random master key, and derives the keys. If
    /// another process created the file first, reads that file.
    pub fn create(path: &Path) -> Result<Self, MasterKeyError> {
        let content = files::read_or_create_private(path, || {
            let master: Zeroizing<[u8; 32]> = Zeroizing::new(rand::random());
            let text = Zeroizing::new(BASE64_STANDARD.encode(*master));
            Zeroizing::new([text.as_bytes(), b"\n"].concat())
        })?;
        Self::from_base64(&String::from_utf8_lossy(&content))
    }

    /// Returns a check value that identifies the master key without revealing
    /// it. The database stores the check value of its key.
    #[must_use]
    pub fn check_value(&self) -> [u8; 32] {
        self.derive("key check")
    }

    /// Derives from the master key the key for one purpose. It reveals nothing
    /// about the keys for other purposes.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        derive(&self.master, purpose)
    }

    /// Encrypts and authenticates `plain`. `aad` is the location of the value;
    /// decryption requires the same one.
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

    /// Decrypts a ciphertext of [`Keys::seal`]. `aad` must be the same
    /// location.
    pub fn open(&self, aad: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, DecryptionError> {
        let (&SEAL_VERSION, rest) = sealed.split_first().ok_or(DecryptionError)? else {
            return Err(DecryptionError);
        };
        let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptionError)?;
        let plain = self.seal.decrypt(&XNonce::from(*nonce), Payload { msg, aad });
        plain.map(Zeroizing::new).map_err(|_| DecryptionError)
    }
}

fn derive(master: &[u8; 32], purpose: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(master).expect("HMAC takes a key of any length");
    mac.update(b"assurance key 1\0");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
        assert!(matches!(
            Keys::load(&path),
            Err(MasterKeyError::File(PrivateFileError::Exposed { .. }))
        ));
    }
}
