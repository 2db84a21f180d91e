//! Secrets of the workspace and area, sealed and bound to both.

use zeroize::Zeroizing;

use super::blobs::is_name;
use super::reading::What;
use super::{Fault, Kept, SecretError, UnitOfWork};
use crate::domain::sealed::secret_place;
use crate::store::{Error, secrets};

/// Bytes of one secret.
const MAX_SECRET: usize = 4_096;

impl UnitOfWork {
    /// Keeps or replaces a secret of 1 to 4096 bytes.
    pub async fn secret_put(&mut self, name: &str, value: &[u8]) -> Result<(), Fault<SecretError>> {
        self.check_secret(name)?;
        if value.is_empty() || value.len() > MAX_SECRET || !self.spec.writes {
            return Err(Fault::Refused(SecretError::LimitExceeded));
        }
        let sealed = self.keys.seal(&self.place_of_secret(name), value);
        self.secrets.insert(name.to_owned(), Kept { now: Some(sealed), changed: true });
        Ok(())
    }

    /// Forgets a secret.
    pub async fn secret_delete(&mut self, name: &str) -> Result<(), Fault<SecretError>> {
        self.check_secret(name)?;
        if !self.spec.writes {
            return Err(Fault::Refused(SecretError::LimitExceeded));
        }
        if self.sealed(name).await?.is_none() {
            return Err(Fault::Refused(SecretError::NotFound));
        }
        self.secrets.insert(name.to_owned(), Kept { now: None, changed: true });
        Ok(())
    }

    /// Whether there is a secret of that name.
    pub async fn secret_exists(&mut self, name: &str) -> Result<bool, Fault<SecretError>> {
        self.check_secret(name)?;
        Ok(self.sealed(name).await?.is_some())
    }

    /// The secret itself, for the host's use on the guest's behalf. Never to
    /// be handed to a guest.
    pub async fn secret_bytes(
        &mut self,
        name: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Fault<SecretError>> {
        self.check_secret(name)?;
        let place = self.place_of_secret(name);
        let keys = std::sync::Arc::clone(&self.keys);
        let sealed = self.sealed(name).await?;
        let sealed = sealed.ok_or(Fault::Refused(SecretError::NotFound))?;
        keys.open(&place, sealed).map_err(|error| Fault::Abort(Error::Seal(error)))
    }

    /// The secret itself, to go with what a job sends. It is read by itself:
    /// with the call's other reads it would begin a transaction, which would
    /// then be open for as long as the other side takes to answer.
    pub async fn secret_to_send(
        &mut self,
        name: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Fault<SecretError>> {
        self.check_secret(name)?;
        let sealed = match self.secrets.get(name) {
            Some(kept) => kept.now.clone(),
            None => {
                let workspace = self.spec.call.workspace;
                let area = std::sync::Arc::clone(&self.spec.area);
                match self.held() {
                    Some(held) => secrets::find(held, workspace, &area.area, name).await?,
                    None => {
                        let mut connection = self.store.reader().await?;
                        let found =
                            secrets::find(&mut connection, workspace, &area.area, name).await?;
                        connection.release();
                        found
                    }
                }
            }
        };
        let sealed = sealed.ok_or(Fault::Refused(SecretError::NotFound))?;
        let opened = self.keys.open(&self.place_of_secret(name), &sealed);
        opened.map_err(|error| Fault::Abort(Error::Seal(error)))
    }

    async fn sealed(&mut self, name: &str) -> Result<Option<&[u8]>, Error> {
        if !self.secrets.contains_key(name) {
            let workspace = self.spec.call.workspace;
            let area = std::sync::Arc::clone(&self.spec.area);
            let mut lease = self.lease(What::Other, 1).await?;
            let now = secrets::find(lease.connection(), workspace, &area.area, name).await?;
            self.done(lease);
            self.secrets.insert(name.to_owned(), Kept { now, changed: false });
        }
        Ok(self.secrets.get(name).and_then(|kept| kept.now.as_deref()))
    }

    fn check_secret(&self, name: &str) -> Result<(), Fault<SecretError>> {
        if is_name(name) { Ok(()) } else { Err(Fault::Refused(SecretError::InvalidName)) }
    }

    /// A secret opens only where it was sealed.
    fn place_of_secret(&self, name: &str) -> Vec<u8> {
        secret_place(self.spec.call.workspace, &self.spec.area.area, name)
    }
}
