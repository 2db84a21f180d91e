//! What an area can ask of its host, as a trait: the component's imports stand
//! behind it on wasm32, and natively whatever a test or a benchmark brings.

use crate::wit::assurance::area::{
    blobs, calendar, directory, documents, egress, events, jobs, links, log, mail, malware,
    membership, queue, secrets, types,
};

/// The host's side of a [`Scope`](crate::Scope).
#[cfg(target_arch = "wasm32")]
pub type Handle = crate::glue::Imports;
/// The host's side of a [`Scope`](crate::Scope).
#[cfg(not(target_arch = "wasm32"))]
pub type Handle = Box<dyn Host>;

/// The capabilities of `wit/`, one method a function, of the same meaning.
#[expect(missing_docs, reason = "documented in wit/, one interface a file")]
pub trait Host {
    fn get(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<documents::Document>, documents::Error>;
    fn get_many(
        &self,
        collection: &str,
        ids: &[String],
    ) -> Result<Vec<documents::Document>, documents::Error>;
    fn query(&self, query: &documents::Query) -> Result<documents::Page, documents::Error>;
    fn count(
        &self,
        collection: &str,
        conditions: &[documents::Condition],
        at_most: Option<u32>,
    ) -> Result<u64, documents::Error>;
    fn count_by(
        &self,
        collection: &str,
        conditions: &[documents::Condition],
        fields: &[String],
    ) -> Result<Vec<documents::Group>, documents::Error>;
    fn write(
        &self,
        collection: &str,
        writes: &[documents::Write],
    ) -> Result<Vec<u64>, documents::Error>;

    fn blob_stat(&self, name: &str) -> Result<Option<blobs::Info>, blobs::Error>;
    fn blob_read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, blobs::Error>;
    fn blob_write(&self, name: &str, content: &[u8]) -> Result<blobs::Info, blobs::Error>;
    fn blob_delete(&self, name: &str) -> Result<(), blobs::Error>;
    fn shared_blob_stat(&self, area: &str, name: &str)
    -> Result<Option<blobs::Info>, blobs::Error>;
    fn shared_blob_read(
        &self,
        area: &str,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, blobs::Error>;
    fn scan(&self, blob: &str) -> Result<malware::Verdict, malware::Error>;

    fn sign_link(
        &self,
        operation: &str,
        claims: &str,
        expires_at: i64,
    ) -> Result<String, links::Error>;
    fn setting(&self, key: &str) -> Option<String>;

    fn publish(&self, name: &str, data: &str) -> Result<String, events::Error>;
    fn enqueue(&self, job: &jobs::NewJob) -> Result<String, jobs::Error>;

    fn secret_put(&self, name: &str, value: &[u8]) -> Result<(), secrets::Error>;
    fn secret_delete(&self, name: &str) -> Result<(), secrets::Error>;
    fn secret_exists(&self, name: &str) -> Result<bool, secrets::Error>;
    fn secret_hmac_sha256(&self, name: &str, message: &[u8]) -> Result<Vec<u8>, secrets::Error>;

    fn random_bytes(&self, length: u32) -> Vec<u8>;
    fn sha256(&self, data: &[u8]) -> Vec<u8>;
    fn ed25519_verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool;

    fn member(&self, user: &str) -> Option<directory::Person>;
    fn members(&self) -> Vec<directory::Person>;
    fn workspace(&self) -> (String, String);

    fn local(&self, zone: &str, at: i64) -> Result<calendar::Civil, calendar::Error>;
    fn resolve(&self, zone: &str, at: calendar::Civil) -> Result<i64, calendar::Error>;

    fn send(&self, request: &egress::Outgoing) -> Result<egress::Incoming, egress::Error>;
    fn check_url(&self, url: &str) -> Result<(), egress::Error>;

    fn queue_lanes(&self) -> Vec<queue::Lane>;
    fn queue_overview(&self, limit: u32) -> Result<Vec<queue::Job>, queue::Error>;
    fn queue_find(
        &self,
        filter: &queue::Filter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<queue::Page, queue::Error>;
    fn queue_get(&self, job: &str) -> Option<queue::Job>;
    fn queue_retry(&self, job: &str) -> Result<queue::Job, queue::Error>;
    fn queue_cancel(&self, job: &str, reason: &str) -> Result<queue::Job, queue::Error>;

    fn account(&self, email: &str) -> Option<membership::Account>;
    fn add_member(&self, user: &str, role: types::Role) -> Result<(), membership::Error>;
    fn vouch(&self, email: &str, expires_at: i64) -> Result<String, membership::Error>;

    fn send_mail(&self, message: &mail::Message) -> Result<(), mail::Error>;

    fn log(&self, level: log::Level, message: &str);
}
