//! Interface `crypto`: cryptographic primitives.

use sha2::{Digest as _, Sha256};

use super::super::bindings::assurance::area::crypto::Host;
use super::super::instance::CallState;
use super::super::trap::FatalHostCallError;
use assurance_core::domain::manifest::Capability;
use assurance_core::signing;

/// Maximum number of random bytes that a guest gets in one host call, as the
/// contract defines.
const MAX_RANDOM_BYTES: u32 = 4096;

impl Host for CallState {
    fn random_bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        let unit = self.enter(Capability::Crypto)?;
        if length > MAX_RANDOM_BYTES {
            return Err(
                FatalHostCallError::Misuse(format!("{length} random bytes at a time")).into()
            );
        }
        Ok(unit.random_bytes(length as usize))
    }

    async fn sha256(&mut self, data: Vec<u8>) -> wasmtime::Result<Vec<u8>> {
        self.count(Capability::Crypto)?;
        self.compute(data.len(), move || Sha256::digest(&data).to_vec()).await
    }

    async fn ed25519_verify(
        &mut self,
        public_key: Vec<u8>,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<bool> {
        self.count(Capability::Crypto)?;
        let length = message.len();
        let verify = move || signing::verify_ed25519_strict(&public_key, &message, &signature);
        self.compute(length, verify).await
    }
}
