//! Secrets of the workspace and area.

use zeroize::Zeroizing;

use super::{Fault, SecretError, UnitOfWork};

impl UnitOfWork {
    /// Keeps or replaces a secret of 1 to 4096 bytes.
    pub async fn secret_put(
        &mut self,
        _name: &str,
        _value: &[u8],
    ) -> Result<(), Fault<SecretError>> {
        Err(Fault::Refused(SecretError::NotFound))
    }

    /// Forgets a secret.
    pub async fn secret_delete(&mut self, _name: &str) -> Result<(), Fault<SecretError>> {
        Err(Fault::Refused(SecretError::NotFound))
    }

    /// Whether there is a secret of that name.
    pub async fn secret_exists(&mut self, _name: &str) -> Result<bool, Fault<SecretError>> {
        Err(Fault::Refused(SecretError::NotFound))
    }

    /// The secret itself, for the host's use on the guest's behalf. Never to
    /// be handed to a guest.
    pub async fn secret_bytes(
        &mut self,
        _name: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Fault<SecretError>> {
        Err(Fault::Refused(SecretError::NotFound))
    }
}
