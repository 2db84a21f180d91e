//! `assurance area deploy`.

use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::super::Common;
use super::super::operators::{Operators, Target};
use super::source::Source;
use crate::config::Flags;

/// How long every node of a fleet may take.
const FLEET: Duration = Duration::from_secs(30);
/// Between two looks at the fleet.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, Args)]
pub(in crate::cli) struct Deploy {
    #[command(flatten)]
    source: Source,
    /// The area's name; default: the file's or the repository's, `-` being `_`.
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// Let it answer at once; else it waits for `assurance area activate`.
    #[arg(long)]
    activate: bool,
    /// Let it answer for a share of the workspaces.
    #[arg(long, value_name = "PERCENT", conflicts_with = "activate")]
    canary: Option<f64>,
    /// Let it answer copies of a share of the requests, which nobody hears.
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        default_missing_value = "10",
        conflicts_with_all = ["activate", "canary", "workspaces"]
    )]
    shadow: Option<f64>,
    /// Let it answer for this workspace; may be given more than once.
    #[arg(long = "canary-workspace", value_name = "ID", conflicts_with = "activate")]
    workspaces: Vec<String>,
    /// Take it although it breaks clients; the audit log keeps the reason.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Deploy {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let area = match self.area {
            Some(area) => area,
            None => self.source.area()?,
        };
        let limits = common.load(Flags::default())?.limits;
        let fetched = self.source.fetch(limits.max_component_bytes).await?;
        let operators = self.target.connect(common)?;
        let mut query = vec![("activate", self.activate.to_string())];
        query.extend(self.canary.map(|share| ("canary", share.to_string())));
        query.extend(self.shadow.map(|share| ("shadow", share.to_string())));
        if !self.workspaces.is_empty() {
            query.push(("workspaces", self.workspaces.join(",")));
        }
        query.extend(self.force.map(|reason| ("force", reason)));
        let query: String =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let mut request = operators.request(Method::PUT, &format!("/areas/{area}?{query}"));
        if let Some(signature) = fetched.signature {
            request = request
                .header("x-area-publisher", signature.publisher)
                .header("x-area-signature", signature.signature);
        }
        let begun = Instant::now();
        let answer = operators.send(request.body(fetched.component)).await?;
        let took_ms = begun.elapsed().as_millis();
        let result = answer["result"].clone();
        let mut told = vec![("result", result.clone()), ("area", json!(area))];
        told.push(("digest", answer["digest"].clone()));
        if let Some(artifact) = fetched.artifact {
            told.push(("artifact", json!(artifact.to_string())));
        }
        told.push(("took_ms", json!(took_ms)));
        let on_nodes = match result.as_str() {
            Some("live") => Some("digest"),
            Some("canary" | "shadow") => Some("candidate"),
            _ => None,
        };
        if let Some(member) = on_nodes {
            let nodes = everywhere(&operators, &area, member, &answer["digest"]).await?;
            told.push(("nodes", json!(nodes)));
            told.push(("on_every_node_ms", json!(begun.elapsed().as_millis())));
        }
        common.output().values(&told);
        Ok(())
    }
}

/// Waits until every node of the fleet has this version, as this member of its
/// report says; how many they are.
async fn everywhere(
    operators: &Operators,
    area: &str,
    member: &str,
    digest: &Json,
) -> anyhow::Result<usize> {
    let begun = Instant::now();
    loop {
        let told = operators.get(&format!("/areas/{area}")).await?;
        let nodes = told["nodes"].as_array().cloned().unwrap_or_default();
        if !nodes.is_empty() && nodes.iter().all(|node| node[member] == *digest) {
            return Ok(nodes.len());
        }
        if let Some(failed) = nodes.iter().find(|node| node["state"] == "failed") {
            anyhow::bail!("node {} at {}: {}", failed["node"], failed["host"], failed["why"]);
        }
        anyhow::ensure!(begun.elapsed() < FLEET, "it answers, but not on every node: {nodes:?}");
        tokio::time::sleep(LOOK).await;
    }
}
