//! `assurance area activate`, `canary`, `shadow`, `stop`, `approve`, `rollback` and
//! `remove`.

use clap::Args;
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::CommonOptions;
use super::super::operators::escaped;
use super::AreaArgument;

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaActivate {
    #[command(flatten)]
    area: AreaArgument,
    /// Which of its versions, by digest, its first characters, or number;
    /// default: the one on trial, or else the only one that waits.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: Option<String>,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
    /// Although it breaks clients; the audit log keeps the reason.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaCanary {
    #[command(flatten)]
    area: AreaArgument,
    /// Which of its versions, by digest, its first characters, or number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// The share of workspaces it answers for, in percent.
    #[arg(long, value_name = "PERCENT", required_unless_present = "workspaces")]
    share: Option<f64>,
    /// Workspaces it answers for whatever the share.
    #[arg(long = "workspace", value_name = "ID")]
    workspaces: Vec<String>,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaShadow {
    #[command(flatten)]
    area: AreaArgument,
    /// Which of its versions, by digest, its first characters, or number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// The share of requests it answers a copy of, in percent.
    #[arg(long, value_name = "PERCENT")]
    share: Option<f64>,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaStop {
    #[command(flatten)]
    area: AreaArgument,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaApprove {
    #[command(flatten)]
    area: AreaArgument,
    /// Which of its versions, by digest, its first characters, or number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaRollback {
    #[command(flatten)]
    area: AreaArgument,
    /// The version to go back to, by digest, its first characters, or number;
    /// default: the one before.
    #[arg(long, value_name = "VERSION|DIGEST")]
    to: Option<String>,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaRemove {
    #[command(flatten)]
    area: AreaArgument,
    /// Why; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
    /// Although other areas read its data or subscribe to its events.
    #[arg(long)]
    force: bool,
}

impl AreaActivate {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason, "force": self.force});
        decide(self.area, "activate", &body, common).await
    }
}

impl AreaCanary {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self { digest, share, workspaces, reason, .. } = self;
        let body = json!({
            "digest": digest, "share": share, "workspaces": workspaces, "reason": reason,
        });
        decide(self.area, "canary", &body, common).await
    }
}

impl AreaShadow {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "share": self.share, "reason": self.reason});
        decide(self.area, "shadow", &body, common).await
    }
}

impl AreaStop {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        decide(self.area, "stop", &json!({"reason": self.reason}), common).await
    }
}

impl AreaApprove {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason});
        decide(self.area, "approve", &body, common).await
    }
}

impl AreaRollback {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"reason": self.reason, "to": self.to});
        decide(self.area, "rollback", &body, common).await
    }
}

impl AreaRemove {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        let (name, reason) = (&self.area.name, escaped(&self.reason));
        let path = format!("/areas/{name}?reason={reason}&force={}", self.force);
        let answer = operators.send(operators.request(Method::DELETE, &path)).await?;
        common.output().values(&[("result", answer["result"].clone())]);
        Ok(())
    }
}

async fn decide(
    area: AreaArgument,
    what: &str,
    body: &Json,
    common: &CommonOptions,
) -> anyhow::Result<()> {
    let operators = area.target.connect(common)?;
    let answer = operators.post(&format!("/areas/{}/{what}", area.name), body).await?;
    let digest = if answer["approved"].is_string() { "/approved" } else { "/area/digest" };
    let told: &[(&'static str, &str)] = match &answer["trial"] {
        Json::Null => &[("result", "/result"), ("version", "/area/version"), ("digest", digest)],
        _ => &[
            ("result", "/result"),
            ("mode", "/trial/mode"),
            ("digest", "/trial/digest"),
            ("share", "/trial/share"),
            ("workspaces", "/trial/workspaces"),
        ],
    };
    let value = |(name, pointer): &(&'static str, &str)| {
        (*name, answer.pointer(pointer).cloned().unwrap_or_default())
    };
    let mut told: Vec<_> = told.iter().map(value).collect();
    if !common.json {
        told.retain(|(_, value)| !value.is_null());
    }
    common.output().values(&told);
    Ok(())
}
