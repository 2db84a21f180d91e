//! `assurance area list`, `status`, `history` and `diff`.

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value as Json, json};

use super::super::Common;
use super::super::operators::{Operators, Target};
use super::super::output;
use super::Named;
use crate::domain::manifest::Manifest;
use crate::registry::compatibility;

/// The areas of a running service.
pub(super) async fn list(target: Target, common: &Common) -> anyhow::Result<()> {
    print(&target.connect(common)?.get("/areas").await?)
}

#[derive(Debug, Args)]
pub(in crate::cli) struct One {
    #[command(flatten)]
    area: Named,
}

impl One {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        print(&operators.get(&format!("/areas/{}", self.area.name)).await?)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct History {
    #[command(flatten)]
    area: Named,
    /// So many at most.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl History {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        let path = format!("/areas/{}/history?limit={}", self.area.name, self.limit);
        print(&operators.get(&path).await?)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Diff {
    #[command(flatten)]
    area: Named,
    /// The digest of a version the service has; default: how the answers of
    /// the shadow differ from the live version's.
    to: Option<String>,
    /// The digest of the version it is compared with; default: the live one.
    #[arg(long, value_name = "DIGEST", requires = "to")]
    from: Option<String>,
}

impl Diff {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let operators = self.area.target.connect(common)?;
        let Some(to) = &self.to else {
            return print(&operators.get(&format!("/areas/{}/shadow", self.area.name)).await?);
        };
        let before = manifest(&operators, &self.area.name, self.from.as_deref()).await?;
        let now = manifest(&operators, &self.area.name, Some(to)).await?;
        let report = compatibility::compare(&before, &now);
        common.output().values(&[
            ("from", json!(before.version)),
            ("to", json!(now.version)),
            ("verdict", json!(report.verdict())),
            ("differences", json!(report.differences)),
            ("asks_beyond", json!(compatibility::asks_beyond(&before, &now))),
        ]);
        Ok(())
    }
}

async fn manifest(
    operators: &Operators,
    area: &str,
    digest: Option<&str>,
) -> anyhow::Result<Manifest> {
    let query = digest.map(|digest| format!("?digest={digest}")).unwrap_or_default();
    let told = operators.get(&format!("/areas/{area}/manifest{query}")).await?;
    serde_json::from_value(told).context("the service's manifest is of another version")
}

fn print(answer: &Json) -> anyhow::Result<()> {
    output::line(serde_json::to_string_pretty(answer)?);
    Ok(())
}
