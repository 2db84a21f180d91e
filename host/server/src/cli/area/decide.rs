//! `assurance area activate`, `canary`, `shadow`, `stop`, `approve`, `rollback` and
//! `remove`.

use clap::Args;
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::CommonOptions;
use super::super::operators::escaped;
use super::AreaArgument;

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaActivateArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version to activate: its digest, the first characters of the digest, or its number. Default:
    /// the version on trial, or else the only version that is staged or waits for approval.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: Option<String>,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
    /// Activate the version although it breaks clients; the reason goes into the audit log.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaCanaryArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version that becomes the canary: its digest, the first characters of the digest, or its
    /// number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// Share of the workspaces that the version serves, in percent.
    #[arg(long, value_name = "PERCENT", required_unless_present = "workspaces")]
    share: Option<f64>,
    /// Workspace that the version serves in addition to the share; may be given more than once.
    #[arg(long = "workspace", value_name = "ID")]
    workspaces: Vec<String>,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaShadowArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version that becomes the shadow: its digest, the first characters of the digest, or its
    /// number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// Share of the requests of which the version executes a copy, in percent.
    #[arg(long, value_name = "PERCENT")]
    share: Option<f64>,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaStopArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaApproveArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version to approve: its digest, the first characters of the digest, or its number.
    #[arg(long, value_name = "VERSION|DIGEST")]
    digest: String,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaRollbackArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version to return to: its digest, the first characters of the digest, or its number.
    /// Default: the version that was live before.
    #[arg(long, value_name = "VERSION|DIGEST")]
    to: Option<String>,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaRemoveArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: String,
    /// Remove the area even if other areas read its data or subscribe to its events.
    #[arg(long)]
    force: bool,
}

impl AreaActivateArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason, "force": self.force});
        decide(self.area, "activate", &body, common).await
    }
}

impl AreaCanaryArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self { digest, share, workspaces, reason, .. } = self;
        let body = json!({
            "digest": digest, "share": share, "workspaces": workspaces, "reason": reason,
        });
        decide(self.area, "canary", &body, common).await
    }
}

impl AreaShadowArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "share": self.share, "reason": self.reason});
        decide(self.area, "shadow", &body, common).await
    }
}

impl AreaStopArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        decide(self.area, "stop", &json!({"reason": self.reason}), common).await
    }
}

impl AreaApproveArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"digest": self.digest, "reason": self.reason});
        decide(self.area, "approve", &body, common).await
    }
}

impl AreaRollbackArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let body = json!({"reason": self.reason, "to": self.to});
        decide(self.area, "rollback", &body, common).await
    }
}

impl AreaRemoveArgs {
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
