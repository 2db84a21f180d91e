//! What the audit log will say of one operator's wish: gathered step by step,
//! and kept together with what the steps changed.

use serde_json::Value as Json;

use super::super::App;
use super::InstallError;
use crate::domain::deployment::{Audited, Step};
use crate::store::{self, Access, Connection};

/// The steps of one wish that are not in the log yet.
pub(super) struct Trail<'a> {
    app: &'a App,
    who: &'a str,
    area: &'a str,
    digest: Option<&'a str>,
    steps: Vec<Audited>,
}

impl<'a> Trail<'a> {
    pub(super) fn new(app: &'a App, who: &'a str, area: &'a str, digest: Option<&'a str>) -> Self {
        Self { app, who, area, digest, steps: Vec::new() }
    }

    /// Notes a step.
    pub(super) fn note(&mut self, step: Step, why: Option<&str>, changed: Option<Json>) {
        self.steps.push(Audited {
            at: self.app.clock.now(),
            who: self.who.to_owned(),
            area: Some(self.area.to_owned()),
            digest: self.digest.map(str::to_owned),
            step,
            why: why.map(str::to_owned),
            changed,
        });
    }

    /// Keeps what was noted, in a transaction of the caller's.
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

    /// Keeps what was noted.
    pub(super) async fn keep(&mut self) -> Result<(), store::Error> {
        let mut tx = self.app.store.begin(Access::WriteLocked).await?;
        self.keep_with(&mut tx).await?;
        tx.commit().await
    }

    /// What was noted did not come about.
    pub(super) fn forget(&mut self) {
        self.steps.clear();
    }

    /// Notes why the wish was refused, and hands the reason on.
    pub(super) async fn refuse(mut self, error: InstallError) -> InstallError {
        self.note(Step::Refused, Some(&error.to_string()), None);
        if let Err(away) = self.keep().await {
            tracing::error!(
                area.name = self.area,
                refused = %error,
                error = %away,
                "a refusal is not in the audit log"
            );
        }
        error
    }
}
