//! `assurance area list`, `status`, `history` and `diff`.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::super::CommonOptions;
use super::super::operators::{OperatorsClient, OperatorsClientArgs, escaped};
use super::super::table::items;
use super::{AreaArgument, figures, shown};
use assurance_contract::compatibility;
use assurance_core::domain::manifest::Manifest;

/// Number of audit log entries that are searched for the operators' messages.
const MESSAGES: u32 = 200;

/// Lists the areas of a running service.
pub(super) async fn list(
    target: OperatorsClientArgs,
    common: &CommonOptions,
) -> anyhow::Result<()> {
    let operators = target.connect(common)?;
    let areas = operators.get("/areas").await?;
    let figures = if common.json { Default::default() } else { figures::read(&operators).await? };
    common.print_answer(&areas, |areas| shown::list(areas, &figures));
    Ok(())
}

/// Shows the state of one area.
pub(super) async fn status(area: AreaArgument, common: &CommonOptions) -> anyhow::Result<()> {
    let AreaArgument { name, target } = area;
    let operators = target.connect(common)?;
    let area = operators.get(&format!("/areas/{name}")).await?;
    let all = if common.json { Default::default() } else { figures::read(&operators).await? };
    let figures = all.get(&name).copied().unwrap_or_default();
    common.print_answer(&area, |area| shown::status(area, figures));
    Ok(())
}

/// Lists the versions of an area.
pub(super) async fn history(
    area: AreaArgument,
    limit: u32,
    common: &CommonOptions,
) -> anyhow::Result<()> {
    let AreaArgument { name, target } = area;
    let operators = target.connect(common)?;
    let history = operators.get(&format!("/areas/{name}/history?limit={limit}")).await?;
    if items(&history["items"]).is_empty() {
        // The request fails if there is no such area.
        operators.get(&format!("/areas/{name}")).await?;
    }
    let messages = if common.json {
        Default::default()
    } else {
        let path = format!("/audit-log?area={name}&limit={MESSAGES}");
        shown::messages(&operators.get(&path).await?)
    };
    common.print_answer(&history, |history| {
        shown::versions(items(&history["items"]), &messages);
    });
    Ok(())
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaDiffArgs {
    #[command(flatten)]
    area: AreaArgument,
    /// Version of the area to show differences of: its digest, the first
    /// characters of the digest, or its number. Default: show the differences
    /// between the responses of the shadow and the live version.
    #[arg(value_name = "VERSION|DIGEST")]
    to: Option<String>,
    /// Version to compare with; default: the live one.
    #[arg(long, value_name = "VERSION|DIGEST", requires = "to")]
    from: Option<String>,
}

impl AreaDiffArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        let Some(to) = &self.to else {
            let report = operators.get(&format!("/areas/{}/shadow", self.area.name)).await?;
            common.print_answer(&report, shown::shadow);
            return Ok(());
        };
        let before = manifest(&operators, &self.area.name, self.from.as_deref()).await?;
        let now = manifest(&operators, &self.area.name, Some(to)).await?;
        let report = compatibility::compare(&before, &now);
        let mut told = vec![
            ("from", json!(before.version)),
            ("to", json!(now.version)),
            ("verdict", json!(report.verdict())),
        ];
        let asks = (
            "additional_capabilities",
            json!(compatibility::additional_capabilities(&before, &now)),
        );
        if common.json {
            told.extend([("differences", json!(report.differences)), asks]);
            common.print_values(&told);
            return Ok(());
        }
        told.push(asks);
        common.print_values(&told);
        shown::differences(&report.differences);
        Ok(())
    }
}

async fn manifest(
    operators: &OperatorsClient,
    area: &str,
    named: Option<&str>,
) -> anyhow::Result<Manifest> {
    let query = named.map(|named| format!("?digest={}", escaped(named))).unwrap_or_default();
    let told = operators.get(&format!("/areas/{area}/manifest{query}")).await?;
    serde_json::from_value(told).context("the service's manifest is of another version")
}
