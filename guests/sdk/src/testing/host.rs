//! The fake host's implementation of each capability. It enforces the area's manifest.

use std::rc::Rc;

use ed25519_dalek::{Signature, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, civil};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::limits::{MAX_BLOB_READ, MAX_KEY, MAX_SECRET};
use super::{EnqueuedJob, FakeHost, MOST_DOCUMENTS, PublishedEvent, SignedLink};
use crate::host::Host;
use crate::id::IdGenerator;
use crate::time::Timestamp;
use crate::wit::assurance::area::manifest::{Capability, LinkHolder, WorkspaceSource};
use crate::wit::assurance::area::types::Role;
use crate::wit::assurance::area::{
    blobs, calendar, directory, documents, egress, events, jobs, links, log, mail, malware,
    membership, queue, secrets, types,
};

/// Error text for a call that writes although its route only reads, the same as the host's.
const READ_ONLY: &str = "the route is read-only; set `writes` to true in the manifest";

impl FakeHost {
    /// Returns an error with the reason if the current call may not write.
    fn may_write(&self) -> Result<(), String> {
        if self.0.writes.get() { Ok(()) } else { Err(READ_ONLY.to_owned()) }
    }

    fn id(&self) -> Uuid {
        let made = self.0.calls.get() + 1;
        self.0.calls.set(made);
        IdGenerator::new((made, 2)).next_id(self.now())
    }
}

impl Host for FakeHost {
    /// Panics if the area's manifest does not list the capability.
    fn enter(&self, capability: Capability) {
        let asked = self.0.manifest.capabilities.contains(&capability);
        assert!(asked, "the area uses {capability:?} without asking for it");
        let (calls, max) = (self.0.host_calls.get() + 1, self.0.max_host_calls.get());
        self.0.host_calls.set(calls);
        assert!(
            calls <= max,
            "more than {max} host calls (runtime.max_host_calls; for one area \
             areas.limits.AREA.max_host_calls)"
        );
    }

    fn documents_get(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<documents::Document>, documents::Error> {
        self.readable(collection)?;
        let found = self.0.state.borrow().documents.get(collection, id);
        self.charge(found.iter().len())?;
        Ok(found)
    }

    fn documents_get_many(
        &self,
        collection: &str,
        ids: &[String],
    ) -> Result<Vec<documents::Document>, documents::Error> {
        self.readable(collection)?;
        if ids.len() > MOST_DOCUMENTS {
            return Err(documents::Error::LimitExceeded);
        }
        let state = self.0.state.borrow();
        let found: Vec<_> =
            ids.iter().filter_map(|id| state.documents.get(collection, id)).collect();
        self.charge(found.len())?;
        Ok(found)
    }

    fn documents_find(
        &self,
        query: &documents::Query,
    ) -> Result<documents::Page, documents::Error> {
        self.asked(&query.collection, &query.conditions)?;
        self.check_page(query)?;
        let (documents, next) = self.0.state.borrow().documents.query(query)?;
        self.charge(documents.len())?;
        Ok(documents::Page { documents, next })
    }

    fn documents_count(
        &self,
        collection: &str,
        conditions: &[documents::Condition],
        at_most: Option<u32>,
    ) -> Result<u64, documents::Error> {
        self.asked(collection, conditions)?;
        let count = self.0.state.borrow().documents.count(collection, conditions) as u64;
        Ok(at_most.map_or(count, |most| count.min(most.into())))
    }

    fn documents_count_by(
        &self,
        collection: &str,
        conditions: &[documents::Condition],
        fields: &[String],
    ) -> Result<Vec<documents::Group>, documents::Error> {
        self.asked(collection, conditions)?;
        self.check_groups(collection, fields)?;
        Ok(self.0.state.borrow().documents.groups(collection, conditions, fields))
    }

    fn documents_apply(
        &self,
        collection: &str,
        writes: &[documents::Write],
    ) -> Result<Vec<u64>, documents::Error> {
        let declared = self.declared(collection)?;
        self.may_write().map_err(documents::Error::Misuse)?;
        self.charge(writes.len())?;
        self.0.state.borrow_mut().documents.apply(declared, writes, self.now())
    }

    fn blobs_stat(&self, name: &str) -> Result<Option<blobs::Info>, blobs::Error> {
        let state = self.0.state.borrow();
        Ok(state.blobs.get(name).map(|content| info(content)))
    }

    fn blobs_stat_shared(
        &self,
        area: &str,
        name: &str,
    ) -> Result<Option<blobs::Info>, blobs::Error> {
        let key = (area.to_owned(), name.to_owned());
        Ok(self.0.shared_blobs.borrow().get(&key).map(|content| info(content)))
    }

    fn blobs_read_shared(
        &self,
        area: &str,
        name: &str,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, blobs::Error> {
        let key = (area.to_owned(), name.to_owned());
        let shared = self.0.shared_blobs.borrow();
        Ok(slice(shared.get(&key).ok_or(blobs::Error::NotFound)?, offset, length))
    }

    fn malware_scan(&self, blob: &str) -> Result<malware::Verdict, malware::Error> {
        if !self.0.in_job.get() {
            return Err(malware::Error::NotInAJob);
        }
        let state = self.0.state.borrow();
        let content = state.blobs.get(blob).ok_or(malware::Error::NotFound)?;
        (self.0.scanner.borrow_mut())(content)
    }

    fn links_sign(
        &self,
        operation: &str,
        claims: &str,
        expires_at: i64,
    ) -> Result<String, links::Error> {
        let mut routes = self.0.manifest.routes.iter();
        let route = routes.find(|route| route.operation_id == operation);
        let Some(WorkspaceSource::SignedLink(link)) = route.map(|route| &route.workspace) else {
            let what = format!("{operation} takes no signed link");
            return Err(links::Error::Misuse(what));
        };
        if self.0.in_job.get() && link.holder != LinkHolder::SignedIn {
            return Err(links::Error::NoSession);
        }
        check_object(claims).map_err(links::Error::Misuse)?;
        let mut state = self.0.state.borrow_mut();
        let token = format!("signed.{}", state.links.len() + 1);
        state.links.push(SignedLink {
            operation: operation.to_owned(),
            claims: serde_json::from_str(claims).unwrap_or_default(),
            expires_at: Timestamp(expires_at),
            token: token.clone(),
        });
        Ok(token)
    }

    fn settings_get(&self, key: &str) -> Option<String> {
        self.0.settings.borrow().get(key).cloned()
    }

    fn blobs_read(&self, name: &str, offset: u64, length: u32) -> Result<Vec<u8>, blobs::Error> {
        let state = self.0.state.borrow();
        Ok(slice(state.blobs.get(name).ok_or(blobs::Error::NotFound)?, offset, length))
    }

    fn blobs_write(&self, name: &str, content: &[u8]) -> Result<blobs::Info, blobs::Error> {
        self.may_write().unwrap_or_else(|why| panic!("blobs misused: {why}"));
        self.0.state.borrow_mut().blobs.insert(name.to_owned(), content.to_vec());
        Ok(info(content))
    }

    fn blobs_delete(&self, name: &str) -> Result<(), blobs::Error> {
        self.may_write().unwrap_or_else(|why| panic!("blobs misused: {why}"));
        let removed = self.0.state.borrow_mut().blobs.remove(name);
        removed.map(drop).ok_or(blobs::Error::NotFound)
    }

    fn events_publish(&self, name: &str, data: &str) -> Result<String, events::Error> {
        if !self.0.manifest.publishes.iter().any(|event| event.name == name) {
            return Err(events::Error::Misuse(format!("no event {name}")));
        }
        self.may_write().map_err(events::Error::Misuse)?;
        check_object(data).map_err(events::Error::Misuse)?;
        let (id, data) = (self.id(), serde_json::from_str(data).unwrap_or_default());
        let event = PublishedEvent { id, name: name.to_owned(), data };
        self.0.state.borrow_mut().events.push(Rc::new(event));
        Ok(id.to_string())
    }

    fn jobs_enqueue(&self, job: &jobs::NewJob) -> Result<String, jobs::Error> {
        if !self.0.manifest.jobs.iter().any(|kind| kind.name == job.kind) {
            return Err(jobs::Error::Misuse(format!("no kind of job {}", job.kind)));
        }
        self.may_write().map_err(jobs::Error::Misuse)?;
        check_object(&job.payload).map_err(jobs::Error::Misuse)?;
        if job.dedupe_key.as_ref().is_some_and(|key| key.chars().count() > MAX_KEY) {
            let what = format!("a dedupe key has at most {MAX_KEY} characters");
            return Err(jobs::Error::Misuse(what));
        }
        let job = EnqueuedJob {
            id: self.id(),
            kind: job.kind.clone(),
            payload: serde_json::from_str(&job.payload).unwrap_or_default(),
            available_at: job.available_at.map(Timestamp),
            resource: job.resource.as_ref().and_then(|id| id.parse().ok()),
            dedupe_key: job.dedupe_key.clone(),
        };
        let mut state = self.0.state.borrow_mut();
        let same = |other: &&EnqueuedJob| {
            job.dedupe_key.is_some()
                && (&other.kind, &other.dedupe_key) == (&job.kind, &job.dedupe_key)
        };
        let taken = self.0.taken_jobs.borrow();
        let id = state.jobs.iter().chain(&*taken).find(same).map_or(job.id, |other| other.id);
        if id == job.id {
            state.jobs.push(job);
        }
        Ok(id.to_string())
    }

    fn jobs_report_progress(&self, progress: types::Progress) -> Result<(), jobs::Error> {
        if progress.done > progress.total {
            return Err(jobs::Error::Misuse(format!("{progress:?} is more than all of it")));
        }
        Ok(())
    }

    fn jobs_progress_of(&self, _: &str) -> Vec<jobs::RunningJob> {
        Vec::new()
    }

    fn secrets_put(&self, name: &str, value: &[u8]) -> Result<(), secrets::Error> {
        self.may_write().map_err(|_| secrets::Error::LimitExceeded)?;
        if value.is_empty() || value.len() > MAX_SECRET {
            return Err(secrets::Error::LimitExceeded);
        }
        self.0.state.borrow_mut().secrets.insert(name.to_owned(), value.to_vec());
        Ok(())
    }

    fn secrets_delete(&self, name: &str) -> Result<(), secrets::Error> {
        self.may_write().map_err(|_| secrets::Error::LimitExceeded)?;
        let removed = self.0.state.borrow_mut().secrets.remove(name);
        removed.map(drop).ok_or(secrets::Error::NotFound)
    }

    fn secrets_exists(&self, name: &str) -> Result<bool, secrets::Error> {
        Ok(self.0.state.borrow().secrets.contains_key(name))
    }

    fn secrets_hmac_sha256(&self, name: &str, message: &[u8]) -> Result<Vec<u8>, secrets::Error> {
        let state = self.0.state.borrow();
        let secret = state.secrets.get(name).ok_or(secrets::Error::NotFound)?;
        Ok(hmac_sha256(secret, message))
    }

    fn crypto_random_bytes(&self, length: u32) -> Vec<u8> {
        let source = IdGenerator::new((self.id().as_u64_pair().1, 3));
        (0..length).map(|_| source.next_u64().to_le_bytes()[0]).collect()
    }

    fn crypto_sha256(&self, data: &[u8]) -> Vec<u8> {
        Sha256::digest(data).to_vec()
    }

    fn crypto_ed25519_verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let key = <[u8; 32]>::try_from(public_key)
            .ok()
            .and_then(|key| VerifyingKey::from_bytes(&key).ok());
        let signature = Signature::from_slice(signature);
        match (key, signature) {
            (Some(key), Ok(signature)) => key.verify_strict(message, &signature).is_ok(),
            _ => false,
        }
    }

    fn directory_member(&self, user: &str) -> Option<directory::Person> {
        self.0.state.borrow().members.iter().find(|person| person.user == user).cloned()
    }

    fn directory_members(&self) -> Vec<directory::Person> {
        self.0.state.borrow().members.clone()
    }

    fn directory_workspace(&self) -> (String, String) {
        ("Test workspace".to_owned(), "test".to_owned())
    }

    fn calendar_local(&self, zone: &str, at: i64) -> Result<calendar::Civil, calendar::Error> {
        let zone = TimeZone::get(zone).map_err(|_| calendar::Error::UnknownZone)?;
        let instant = Instant::from_microsecond(at).map_err(|_| calendar::Error::OutOfRange)?;
        let local = zone.to_datetime(instant);
        let small = |number: i8| u8::try_from(number).unwrap_or_default();
        Ok(calendar::Civil {
            year: local.year(),
            month: small(local.month()),
            day: small(local.day()),
            hour: small(local.hour()),
            minute: small(local.minute()),
            second: small(local.second()),
            weekday: small(local.weekday().to_monday_one_offset()),
        })
    }

    fn calendar_resolve(&self, zone: &str, at: calendar::Civil) -> Result<i64, calendar::Error> {
        let zone = TimeZone::get(zone).map_err(|_| calendar::Error::UnknownZone)?;
        let small = |number: u8| i8::try_from(number).unwrap_or(-1);
        civil::DateTime::new(
            at.year,
            small(at.month),
            small(at.day),
            small(at.hour),
            small(at.minute),
            small(at.second),
            0,
        )
        .and_then(|local| zone.to_ambiguous_timestamp(local).compatible())
        .map(Instant::as_microsecond)
        .map_err(|_| calendar::Error::OutOfRange)
    }

    fn egress_send(&self, request: &egress::Outgoing) -> Result<egress::Incoming, egress::Error> {
        if !self.0.in_job.get() {
            return Err(egress::Error::NotInAJob);
        }
        self.egress_check(&request.url)?;
        self.0.sent.borrow_mut().push(request.clone());
        (self.0.network.borrow_mut())(request)
    }

    fn egress_send_all(
        &self,
        requests: &[egress::Outgoing],
    ) -> Vec<Result<egress::Incoming, egress::Error>> {
        requests.iter().map(|request| self.egress_send(request)).collect()
    }

    fn egress_check(&self, url: &str) -> Result<(), egress::Error> {
        if url.starts_with("https://") && !url.contains("localhost") {
            Ok(())
        } else {
            Err(egress::Error::Refused("only https to public addresses".to_owned()))
        }
    }

    fn queue_lanes(&self) -> Vec<queue::Lane> {
        self.0.state.borrow().queue.lanes(self.now().0)
    }

    fn queue_overview(&self, _: u32) -> Result<Vec<queue::Job>, queue::Error> {
        Ok(self.0.state.borrow().queue.overview(self.now().0))
    }

    fn queue_find(
        &self,
        filter: &queue::Filter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<queue::Page, queue::Error> {
        self.0.state.borrow().queue.page(filter, cursor, limit, self.now().0)
    }

    fn queue_get(&self, job: &str) -> Option<queue::Job> {
        self.0.state.borrow().queue.get(job, self.now().0)
    }

    fn queue_progress_of(&self, _: &str) -> Option<types::Progress> {
        None
    }

    fn queue_retry(&self, job: &str) -> Result<queue::Job, queue::Error> {
        self.may_write().map_err(queue::Error::Misuse)?;
        self.0.state.borrow_mut().queue.retry(job, self.now().0)
    }

    fn queue_cancel(&self, job: &str, reason: &str) -> Result<queue::Job, queue::Error> {
        self.may_write().map_err(queue::Error::Misuse)?;
        self.0.state.borrow_mut().queue.cancel(job, reason, self.now().0)
    }

    fn membership_find_account(&self, email: &str) -> Option<membership::Account> {
        let email = email.trim().to_lowercase();
        self.0.state.borrow().accounts.iter().find(|account| account.email == email).cloned()
    }

    fn membership_add(&self, user: &str, role: Role) -> Result<(), membership::Error> {
        self.may_write().map_err(membership::Error::Misuse)?;
        let state = &mut *self.0.state.borrow_mut();
        if let Some(member) = state.members.iter_mut().find(|member| member.user == user) {
            member.role = member.role.max(role);
            return Ok(());
        }
        let account = state.accounts.iter().find(|account| account.user == user);
        let account = account.ok_or(membership::Error::NoSuchUser)?.clone();
        let membership::Account { user, email, display_name } = account;
        state.members.push(directory::Person { user, email, display_name, role });
        Ok(())
    }

    fn membership_vouch(&self, email: &str, expires_at: i64) -> Result<String, membership::Error> {
        Ok(format!("voucher-of-{email}-until-{expires_at}"))
    }

    fn mail_send(&self, message: &mail::Message) -> Result<(), mail::Error> {
        if !self.0.in_job.get() {
            return Err(mail::Error::NotInAJob);
        }
        (self.0.mail_server.borrow_mut())(message)?;
        self.0.mail.borrow_mut().push(message.clone());
        Ok(())
    }

    fn log_write(&self, level: log::Level, message: &str) {
        self.0.log.borrow_mut().push(format!("{level:?}: {message}"));
    }
}

/// Returns an HMAC-SHA256 computed with the plain key, for comparison in a test.
#[must_use]
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn check_object(text: &str) -> Result<(), String> {
    match serde_json::from_str(text) {
        Ok(Json::Object(_)) => Ok(()),
        _ => Err(format!("{text} is not a JSON object")),
    }
}

fn slice(content: &[u8], offset: u64, length: u32) -> Vec<u8> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let to = from.saturating_add(length.min(MAX_BLOB_READ) as usize).min(content.len());
    content[from..to].to_vec()
}

pub(super) fn info(content: &[u8]) -> blobs::Info {
    let digest = Sha256::digest(content);
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    blobs::Info { size: content.len() as u64, sha256 }
}
