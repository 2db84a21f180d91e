//! `assurance area activate`, `canary`, `shadow`, `stop`, `approve`, `rollback` and
//! `remove`.

use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::CommonOptions;
use super::super::operators::escaped;
use super::AreaArgument;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Decision {
    /// Make a stored version live.
    Activate {
        #[command(flatten)]
        area: AreaArgument,
        /// Version to activate: its digest, the first characters of the digest, or its number.
        /// Default: the version on trial, or else the only version that is staged or waits for
        /// approval.
        #[arg(long, value_name = "VERSION|DIGEST")]
        digest: Option<String>,
        /// Reason for the audit log.
        #[arg(long, visible_alias = "message", value_name = "TEXT")]
        reason: Option<String>,
        /// Activate the version although it breaks clients; the reason goes into the audit log.
        #[arg(long, value_name = "REASON")]
        force: Option<String>,
    },
    /// Let a stored version serve some workspaces next to the live one.
    Canary {
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
    },
    /// Let a stored version execute copies of requests; its responses are
    /// discarded.
    Shadow {
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
    },
    /// End a trial; the live version serves all workspaces.
    Stop {
        #[command(flatten)]
        area: AreaArgument,
        /// Reason for the audit log.
        #[arg(long, visible_alias = "message", value_name = "TEXT")]
        reason: String,
    },
    /// Approve the additional capabilities that a version requests.
    Approve {
        #[command(flatten)]
        area: AreaArgument,
        /// Version to approve: its digest, the first characters of the digest, or its number.
        #[arg(long, value_name = "VERSION|DIGEST")]
        digest: String,
        /// Reason for the audit log.
        #[arg(long, visible_alias = "message", value_name = "TEXT")]
        reason: Option<String>,
    },
    /// End the running canary, or else make the version live that was live
    /// before.
    Rollback {
        #[command(flatten)]
        area: AreaArgument,
        /// Version to return to: its digest, the first characters of the digest, or its number.
        /// Default: the version that was live before.
        #[arg(long, value_name = "VERSION|DIGEST")]
        to: Option<String>,
        /// Reason for the audit log.
        #[arg(long, visible_alias = "message", value_name = "TEXT")]
        reason: String,
    },
    /// Remove an area; its stored data is kept.
    Remove {
        #[command(flatten)]
        area: AreaArgument,
        /// Reason for the audit log.
        #[arg(long, visible_alias = "message", value_name = "TEXT")]
        reason: String,
        /// Remove the area even if other areas read its data or subscribe to its events.
        #[arg(long)]
        force: bool,
    },
}

impl Decision {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let (area, what, body) = match self {
            Self::Activate { area, digest, reason, force } => {
                (area, "activate", json!({"digest": digest, "reason": reason, "force": force}))
            }
            Self::Canary { area, digest, share, workspaces, reason } => {
                let body = json!({
                    "digest": digest, "share": share, "workspaces": workspaces, "reason": reason,
                });
                (area, "canary", body)
            }
            Self::Shadow { area, digest, share, reason } => {
                (area, "shadow", json!({"digest": digest, "share": share, "reason": reason}))
            }
            Self::Stop { area, reason } => (area, "stop", json!({"reason": reason})),
            Self::Approve { area, digest, reason } => {
                (area, "approve", json!({"digest": digest, "reason": reason}))
            }
            Self::Rollback { area, to, reason } => {
                (area, "rollback", json!({"reason": reason, "to": to}))
            }
            Self::Remove { area, reason, force } => {
                return remove(area, &reason, force, common).await;
            }
        };
        decide(area, what, &body, common).await
    }
}

async fn remove(
    area: AreaArgument,
    reason: &str,
    force: bool,
    common: &CommonOptions,
) -> anyhow::Result<()> {
    let operators = area.target.connect(common)?;
    let path = format!("/areas/{}?reason={}&force={force}", area.name, escaped(reason));
    let answer = operators.send(operators.request(Method::DELETE, &path)).await?;
    common.print_answer(&answer, |answer| {
        common.print_values(&[("result", answer["result"].clone())]);
    });
    Ok(())
}

async fn decide(
    area: AreaArgument,
    what: &str,
    body: &Json,
    common: &CommonOptions,
) -> anyhow::Result<()> {
    let operators = area.target.connect(common)?;
    let answer = operators.post(&format!("/areas/{}/{what}", area.name), body).await?;
    common.print_answer(&answer, |answer| common.print_values(&summary(answer)));
    Ok(())
}

/// Returns the values of a decision's result that are shown to people.
fn summary(answer: &Json) -> Vec<(&'static str, Json)> {
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
        let value = answer.pointer(pointer).filter(|value| !value.is_null());
        value.map(|value| (*name, value.clone()))
    };
    told.iter().filter_map(value).collect()
}
