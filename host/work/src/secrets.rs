//! Stores and reads secrets of the call's workspace and area, encrypted and
//! bound to both.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::blobs::is_name;
use super::reading::ReadKind;
use super::{HostCallError, SecretError, SecretOrBlobState, SendSecretError, UnitOfWork};
use assurance_core::domain::sealed::{StoredSecret, secret_place};
use assurance_store::{Error, TransactionAccess, secrets};

/// Maximum size of one secret, in bytes.
const MAX_SECRET: usize = 4_096;

impl UnitOfWork {
    /// Stores or replaces one of the area's secrets, of 1 to 4096 bytes, when
    /// the call commits.
    pub async fn secret_put(
        &mut self,
        name: &str,
        value: &[u8],
    ) -> Result<(), HostCallError<SecretError>> {
        self.check_secret(name)?;
        if value.is_empty() || value.len() > MAX_SECRET || !self.spec.writes {
            return Err(HostCallError::Refused(SecretError::LimitExceeded));
        }
        let secret = StoredSecret {
            sealed: self.keys.seal(&self.place_of_secret(name, ""), value),
            origin: String::new(),
            component: self.spec.area.digest.clone(),
        };
        self.secrets
            .insert(name.to_owned(), SecretOrBlobState { now: Some(secret), changed: true });
        Ok(())
    }

    /// Deletes one of the area's secrets when the call commits.
    pub async fn secret_delete(&mut self, name: &str) -> Result<(), HostCallError<SecretError>> {
        self.check_secret(name)?;
        if !self.spec.writes {
            return Err(HostCallError::Refused(SecretError::LimitExceeded));
        }
        if self.sealed(name, ReadKind::Other).await?.is_none() {
            return Err(HostCallError::Refused(SecretError::NotFound));
        }
        self.secrets.insert(name.to_owned(), SecretOrBlobState { now: None, changed: true });
        Ok(())
    }

    /// Returns whether the area has a secret with this name.
    pub async fn secret_exists(&mut self, name: &str) -> Result<bool, HostCallError<SecretError>> {
        self.check_secret(name)?;
        Ok(self.sealed(name, ReadKind::Other).await?.is_some())
    }

    /// Returns one of the area's secrets decrypted, for use by the host. It
    /// must never be passed to a guest.
    pub async fn secret_bytes(
        &mut self,
        name: &str,
    ) -> Result<Zeroizing<Vec<u8>>, HostCallError<SecretError>> {
        self.check_secret(name)?;
        let stored = self.sealed(name, ReadKind::SecretInUse).await?.cloned();
        let stored = stored.ok_or(HostCallError::Refused(SecretError::NotFound))?;
        let place = self.place_of_secret(name, &stored.origin);
        Ok(self.keys.open(&place, &stored.sealed).map_err(Error::Seal)?)
    }

    /// Returns a decrypted secret for a job's request to this origin. The first
    /// origin that a secret is sent to becomes the only one; this binding is
    /// committed before anything is sent. No transaction is open afterwards,
    /// because the receiver may be slow.
    pub async fn secret_to_send(
        &mut self,
        name: &str,
        origin: &str,
    ) -> Result<Zeroizing<Vec<u8>>, HostCallError<SendSecretError>> {
        if !is_name(name) {
            return Err(HostCallError::Refused(SendSecretError::NotFound));
        }
        self.release_connection().await?;
        let known = self.secrets.get(name).map(|kept| (kept.now.clone(), kept.changed));
        let (stored, own) = match known {
            Some(known) => known,
            None => (self.stored_secret(name).await?, false),
        };
        let stored = stored.ok_or(HostCallError::Refused(SendSecretError::NotFound))?;
        let opened = self.keys.open(&self.place_of_secret(name, &stored.origin), &stored.sealed);
        let secret = opened.map_err(Error::Seal)?;
        match stored.origin.as_str() {
            bound if bound == origin => return Ok(secret),
            "" => {}
            bound => {
                return Err(HostCallError::Refused(SendSecretError::OtherOrigin(bound.to_owned())));
            }
        }
        if !stored.component.is_empty() && stored.component != self.spec.area.digest {
            return Err(HostCallError::Refused(SendSecretError::OtherComponent));
        }
        let bound = StoredSecret {
            sealed: self.keys.seal(&self.place_of_secret(name, origin), &secret),
            origin: origin.to_owned(),
            ..stored.clone()
        };
        if !own {
            self.bind_secret(name, &stored, &bound).await?;
        }
        // A secret that this call itself stored is bound to the origin at the
        // commit. Until then, no other call can send it.
        self.secrets.insert(name.to_owned(), SecretOrBlobState { now: Some(bound), changed: own });
        Ok(secret)
    }

    /// Stores the binding of a secret to an origin in a transaction of its own,
    /// because a rollback of the job step must not undo it.
    async fn bind_secret(
        &mut self,
        name: &str,
        before: &StoredSecret,
        bound: &StoredSecret,
    ) -> Result<(), HostCallError<SendSecretError>> {
        if self.held().is_some() {
            return Err(HostCallError::Refused(SendSecretError::WrittenBefore));
        }
        let place = (self.spec.call.workspace, self.spec.area.area.as_str(), name);
        let mut tx = self.store.begin(TransactionAccess::WriteLocked).await?;
        if !secrets::bind(&mut tx, place, before, bound).await? {
            return Err(HostCallError::Abort(Error::RunAgain));
        }
        tx.commit().await?;
        tracing::info!(
            target: "security",
            event = "secret_bound",
            workspace.id = %self.spec.call.workspace,
            area.name = %self.spec.area.area,
            secret = name,
            origin = %bound.origin,
            "secret bound to its origin"
        );
        Ok(())
    }

    /// Reads a stored secret on a separate connection: as one of the call's own
    /// reads it would begin a transaction.
    async fn stored_secret(&mut self, name: &str) -> Result<Option<StoredSecret>, Error> {
        let (workspace, area) = (self.spec.call.workspace, Arc::clone(&self.spec.area));
        self.read_apart(async |c| secrets::find(c, workspace, &area.area, name).await).await
    }

    async fn sealed(&mut self, name: &str, what: ReadKind) -> Result<Option<&StoredSecret>, Error> {
        if !self.secrets.contains_key(name) {
            let (workspace, area) = (self.spec.call.workspace, Arc::clone(&self.spec.area));
            let now =
                self.read(what, async |c| secrets::find(c, workspace, &area.area, name).await);
            let now = now.await?;
            self.secrets.insert(name.to_owned(), SecretOrBlobState { now, changed: false });
        }
        Ok(self.secrets.get(name).and_then(|kept| kept.now.as_ref()))
    }

    fn check_secret(&self, name: &str) -> Result<(), HostCallError<SecretError>> {
        if is_name(name) { Ok(()) } else { Err(HostCallError::Refused(SecretError::InvalidName)) }
    }

    /// Returns the associated data of a secret's encryption: workspace, area,
    /// name and origin.
    fn place_of_secret(&self, name: &str, origin: &str) -> Vec<u8> {
        secret_place(self.spec.call.workspace, &self.spec.area.area, name, origin)
    }
}
