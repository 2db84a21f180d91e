//! Audit log entries of one operator's request. They are written in the same
//! transaction as the changes that they describe.

use serde_json::Value as Json;

use super::super::App;
use super::error::AreaActionError;
use assurance_core::domain::deployment::{AuditAction, NewAuditEntry};
use assurance_store::{self as store, Connection, TransactionAccess};

/// Audit log entries of one operator's request on an area that are not written
/// to the database yet.
pub(super) struct PendingAuditEntries<'a> {
    app: &'a App,
    who: &'a str,
    area: &'a str,
    digest: Option<&'a str>,
    steps: Vec<NewAuditEntry>,
}

impl<'a> PendingAuditEntries<'a> {
    pub(super) fn new(app: &'a App, who: &'a str, area: &'a str, digest: Option<&'a str>) -> Self {
        Self { app, who, area, digest, steps: Vec::new() }
    }

    /// Adds an audit log entry for a step of the request, without writing it.
    pub(super) fn note(&mut self, step: AuditAction, why: Option<&str>, changed: Option<Json>) {
        self.steps.push(NewAuditEntry {
            at: self.app.clock.now(),
            who: self.who.to_owned(),
            area: Some(self.area.to_owned()),
            digest: self.digest.map(str::to_owned),
            step,
            why: why.map(str::to_owned),
            changed,
        });
    }

    /// Writes the pending audit log entries in the caller's transaction.
    pub(super) async fn keep_with(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), store::Error> {
        for step in &self.steps {
            store::audit::append(connection, step).await?;
        }
        self.steps.clear();
        Ok(())
    }

    /// Writes the pending audit log entries in a transaction of their own.
    pub(super) async fn keep(&mut self) -> Result<(), store::Error> {
        let mut tx = self.app.store.begin(TransactionAccess::WriteLocked).await?;
        self.keep_with(&mut tx).await?;
        tx.commit().await
    }

    /// Writes the pending audit log entries and one for the refusal, with the
    /// error as its reason. Returns the error.
    pub(super) async fn refuse(mut self, error: AreaActionError) -> AreaActionError {
        self.note(AuditAction::Refused, Some(&error.to_string()), None);
        if let Err(away) = self.keep().await {
            tracing::error!(
                area.name = self.area,
                refused = %error,
                error = %away,
                "cannot write a refusal to the audit log"
            );
        }
        error
    }
}
