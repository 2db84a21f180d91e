//! `assurance area activate`, `canary`, `shadow`, `stop`, `approve`, `rollback` and
//! `remove`.

use clap::Args;
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::Common;
use super::Named;

#[derive(Debug, Args)]
pub(in crate::cli) struct Activate {
    #[command(flatten)]
    area: Named,
    /// Which of its versions; default: the one on trial.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: Option<String>,
    /// Although it breaks clients; the audit log keeps the reason.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Canary {
    #[command(flatten)]
    area: Named,
    /// Which of its versions.
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// The share of workspaces it answers for, in percent.
    #[arg(long, value_name = "PERCENT", required_unless_present = "workspaces")]
    share: Option<f64>,
    /// Workspaces it answers for whatever the share.
    #[arg(long = "workspace", value_name = "ID")]
    workspaces: Vec<String>,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Shadow {
    #[command(flatten)]
    area: Named,
    /// Which of its versions.
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// The share of requests it answers a copy of, in percent.
    #[arg(long, value_name = "PERCENT")]
    share: Option<f64>,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Stop {
    #[command(flatten)]
    area: Named,
    /// Why; the audit log keeps it.
    #[arg(long)]
    reason: String,
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
    /// Although other areas read its data or subscribe to its events.
    #[arg(long)]
    force: bool,
}

impl Activate {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason, "force": self.force});
        decide(self.area, "activate", &body, common).await
    }
}

impl Canary {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let Self { digest, share, workspaces, reason, .. } = self;
        let body = json!({
            "digest": digest, "share": share, "workspaces": workspaces, "reason": reason,
        });
        decide(self.area, "canary", &body, common).await
    }
}

impl Shadow {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "share": self.share, "reason": self.reason});
        decide(self.area, "shadow", &body, common).await
    }
}

impl Stop {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        decide(self.area, "stop", &json!({"reason": self.reason}), common).await
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
        let path = format!("/areas/{}?reason={reason}&force={}", self.area.name, self.force);
        let answer = operators.send(operators.request(Method::DELETE, &path)).await?;
        common.output().values(&[("result", answer["result"].clone())]);
        Ok(())
    }
}

async fn decide(area: Named, what: &str, body: &Json, common: &Common) -> anyhow::Result<()> {
    let operators = area.target.connect(common)?;
    let answer = operators.post(&format!("/areas/{}/{what}", area.name), body).await?;
    let told: &[&str] = match &answer["trial"] {
        Json::Null => &["/result", "/area/version", "/area/digest"],
        _ => &["/result", "/trial/mode", "/trial/digest", "/trial/share", "/trial/workspaces"],
    };
    let value = |pointer: &&'static str| {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        (name, answer.pointer(pointer).cloned().unwrap_or_default())
    };
    common.output().values(&told.iter().map(value).collect::<Vec<_>>());
    Ok(())
}
