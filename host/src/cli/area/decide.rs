//! `assurance area activate`, `approve`, `rollback` and `remove`.

use clap::Args;
use reqwest::Method;
use serde_json::json;

use super::super::Common;
use super::Named;

#[derive(Debug, Args)]
pub(in crate::cli) struct Activate {
    #[command(flatten)]
    area: Named,
    /// Which of its versions.
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: Option<String>,
    /// Although it breaks clients; the audit log keeps the reason.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Approve {
    #[command(flatten)]
    area: Named,
    /// Which of its versions.
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Rollback {
    #[command(flatten)]
    area: Named,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    #[command(flatten)]
    area: Named,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: String,
}

impl Activate {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason, "force": self.force});
        decide(self.area, "activate", &body, common).await
    }
}

impl Approve {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason});
        decide(self.area, "approve", &body, common).await
    }
}

impl Rollback {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        decide(self.area, "rollback", &json!({"reason": self.reason}), common).await
    }
}

impl Remove {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        let reason: String = url::form_urlencoded::byte_serialize(self.reason.as_bytes()).collect();
        let path = format!("/areas/{}?reason={reason}", self.area.name);
        let answer = operators.send(operators.request(Method::DELETE, &path)).await?;
        common.output().values(&[("result", answer["result"].clone())]);
        Ok(())
    }
}

async fn decide(
    area: Named,
    what: &str,
    body: &serde_json::Value,
    common: &Common,
) -> anyhow::Result<()> {
    let operators = area.target.connect(common)?;
    let answer = operators.post(&format!("/areas/{}/{what}", area.name), body).await?;
    let now = &answer["area"];
    common.output().values(&[
        ("result", answer["result"].clone()),
        ("version", now["version"].clone()),
        ("digest", now["digest"].clone()),
    ]);
    Ok(())
}
