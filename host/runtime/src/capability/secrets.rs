//! Interface `secrets`: secrets that the host stores and uses for the guest. A
//! guest cannot read them back.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::super::bindings::assurance::area::secrets::{Error, Host};
use super::super::convert::same;
use super::super::instance::CallState;
use super::super::trap::FatalHostCallError;
use super::{CapabilityError, convert_error};
use assurance_core::domain::manifest::Capability;
use assurance_work::{SecretError, UnitOfWork};

type SecretsResult<T> = Result<T, CapabilityError<Error>>;

impl Host for CallState {
    async fn put(&mut self, name: String, value: Vec<u8>) -> SecretsResult<()> {
        let value = Zeroizing::new(value);
        Ok(writing(self.enter(Capability::Secrets)?)?.secret_put(&name, &value).await?)
    }

    async fn delete(&mut self, name: String) -> SecretsResult<()> {
        Ok(writing(self.enter(Capability::Secrets)?)?.secret_delete(&name).await?)
    }

    async fn exists(&mut self, name: String) -> SecretsResult<bool> {
        Ok(self.enter(Capability::Secrets)?.secret_exists(&name).await?)
    }

    async fn hmac_sha256(&mut self, name: String, message: Vec<u8>) -> SecretsResult<Vec<u8>> {
        let length = message.len();
        let secret = self.enter(Capability::Secrets)?.secret_bytes(&name).await?;
        let keyed = Hmac::<Sha256>::new_from_slice(&secret);
        let keyed = keyed
            .map_err(|_| FatalHostCallError::Misuse("the secret is not a valid key".to_owned()));
        let keyed = keyed.map_err(wasmtime::Error::from)?;
        let sign = move || keyed.chain_update(&message).finalize().into_bytes().to_vec();
        Ok(self.compute(length, sign).await?)
    }

    convert_error!();
}

/// Ends the call if its route is read-only; the contract has no error for this fault of the guest.
fn writing(unit: &mut UnitOfWork) -> wasmtime::Result<&mut UnitOfWork> {
    let why = "the route is read-only; set `writes` to true in the manifest";
    if unit.spec().writes { Ok(unit) } else { Err(FatalHostCallError::Misuse(why.into()).into()) }
}

same!(SecretError => Error { NotFound, InvalidName, LimitExceeded });
