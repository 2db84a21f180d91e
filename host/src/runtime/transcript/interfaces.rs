//! Every function that the contract lets a guest call.

use super::area::types::Role;
use super::area::{
    blobs, calendar, crypto, directory, documents, egress, jobs, log, mail, malware, manifest,
    membership, queue, types,
};
use super::capability::{
    BlobsRefusal, CalendarRefusal, DocumentsRefusal, EgressRefusal, EventsRefusal, JobsRefusal,
    LinksRefusal, MailRefusal, MalwareRefusal, MembershipRefusal, QueueRefusal, SecretsRefusal,
};
use super::{Answered, CallState, Transcriber, Turn, area};

type Plain<T> = wasmtime::Result<T>;

impl types::Host for Transcriber<'_> {}

impl manifest::Host for Transcriber<'_> {}

transcribe! { documents:
    async get(collection: String, id: String)
        -> Result<Option<documents::Document>, DocumentsRefusal>;
    async get_many(collection: String, ids: Vec<String>)
        -> Result<Vec<documents::Document>, DocumentsRefusal>;
    async find(query: documents::Query) -> Result<documents::Page, DocumentsRefusal>;
    async count(
        collection: String, conditions: Vec<documents::Condition>, at_most: Option<u32>
    ) -> Result<u64, DocumentsRefusal>;
    async count_by(
        collection: String, conditions: Vec<documents::Condition>, fields: Vec<String>
    ) -> Result<Vec<documents::Group>, DocumentsRefusal>;
    async apply(collection: String, writes: Vec<documents::Write>)
        -> Result<Vec<u64>, DocumentsRefusal>;
    refuses DocumentsRefusal
}

transcribe! { blobs:
    async stat(name: String) -> Result<Option<blobs::Info>, BlobsRefusal>;
    async read(name: String, offset: u64, length: u32) -> Result<Vec<u8>, BlobsRefusal>;
    async write(name: String, content: Vec<u8>) -> Result<blobs::Info, BlobsRefusal>;
    async delete(name: String) -> Result<(), BlobsRefusal>;
    async stat_shared(of: String, name: String) -> Result<Option<blobs::Info>, BlobsRefusal>;
    async read_shared(of: String, name: String, offset: u64, length: u32)
        -> Result<Vec<u8>, BlobsRefusal>;
    refuses BlobsRefusal
}

transcribe! { malware:
    async scan(blob: String) -> Result<malware::Verdict, MalwareRefusal>;
    refuses MalwareRefusal
}

transcribe! { events:
    now publish(name: String, data: String) -> Result<String, EventsRefusal>;
    refuses EventsRefusal
}

transcribe! { jobs:
    now enqueue(job: jobs::NewJob) -> Result<String, JobsRefusal>;
    refuses JobsRefusal
}

transcribe! { secrets:
    async put(name: String, value: Vec<u8>) -> Result<(), SecretsRefusal>;
    async delete(name: String) -> Result<(), SecretsRefusal>;
    async exists(name: String) -> Result<bool, SecretsRefusal>;
    async hmac_sha256(name: String, message: Vec<u8>) -> Result<Vec<u8>, SecretsRefusal>;
    refuses SecretsRefusal
}

transcribe! { directory:
    async member(user: String) -> Plain<Option<directory::Person>>;
    async members() -> Plain<Vec<directory::Person>>;
    async workspace() -> Plain<(String, String)>;
}

transcribe! { egress:
    async send(request: egress::Outgoing) -> Result<egress::Incoming, EgressRefusal>;
    now check(url: String) -> Result<(), EgressRefusal>;
    refuses EgressRefusal
}

transcribe! { links:
    now sign(operation: String, claims: String, expires_at: i64) -> Result<String, LinksRefusal>;
    refuses LinksRefusal
}

transcribe! { settings:
    now get(key: String) -> Plain<Option<String>>;
}

transcribe! { queue:
    async lanes() -> Plain<Vec<queue::Lane>>;
    async overview(limit: u32) -> Result<Vec<queue::Job>, QueueRefusal>;
    async find(filter: queue::Filter, cursor: Option<String>, limit: u32)
        -> Result<queue::Page, QueueRefusal>;
    async get(job: String) -> Plain<Option<queue::Job>>;
    async retry(job: String) -> Result<queue::Job, QueueRefusal>;
    async cancel(job: String, reason: String) -> Result<queue::Job, QueueRefusal>;
    refuses QueueRefusal
}

transcribe! { membership:
    async find_account(email: String) -> Plain<Option<membership::Account>>;
    async add(user: String, role: Role) -> Result<(), MembershipRefusal>;
    now vouch(email: String, expires_at: i64) -> Result<String, MembershipRefusal>;
    refuses MembershipRefusal
}

transcribe! { mail:
    async send(message: mail::Message) -> Result<(), MailRefusal>;
    refuses MailRefusal
}

impl crypto::Host for Transcriber<'_> {
    fn random_bytes(&mut self, length: u32) -> Plain<Vec<u8>> {
        pass_on!(self, crypto::Host, "crypto.random_bytes", random_bytes(length))
    }

    async fn sha256(&mut self, data: Vec<u8>) -> Plain<Vec<u8>> {
        self.0.sha256(data).await
    }

    async fn ed25519_verify(
        &mut self,
        key: Vec<u8>,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Plain<bool> {
        self.0.ed25519_verify(key, message, signature).await
    }
}

impl calendar::Host for Transcriber<'_> {
    fn local(&mut self, zone: String, at: i64) -> Result<calendar::Civil, CalendarRefusal> {
        self.0.local(zone, at)
    }

    fn resolve(&mut self, zone: String, at: calendar::Civil) -> Result<i64, CalendarRefusal> {
        self.0.resolve(zone, at)
    }

    fn convert_error(&mut self, refusal: CalendarRefusal) -> Plain<calendar::Error> {
        <CallState as calendar::Host>::convert_error(self.0, refusal)
    }
}

impl log::Host for Transcriber<'_> {
    fn write(&mut self, level: log::Level, message: String) -> Plain<()> {
        log::Host::write(self.0, level, message)
    }
}
