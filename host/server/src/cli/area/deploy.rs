//! `assurance area deploy`.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value as Json, json};

use super::super::operators::{OperatorsClient, Target};
use super::super::table::{digest, items, text};
use super::super::{CommonOptions, output};
use super::source::{ComponentSource, FetchedComponent};
use assurance_core::config::FlagOverrides;

/// How long every node of a fleet may take.
const FLEET: Duration = Duration::from_secs(30);
/// Between two looks at the fleet.
const LOOK: Duration = Duration::from_millis(10);
/// After this time a waiting command says what it waits for.
const SILENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaDeploy {
    #[command(flatten)]
    source: ComponentSource,
    /// The area's name; default: the file's or the repository's, `-` being `_`.
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// Let it answer at once; else it waits for `assurance area activate`.
    #[arg(long)]
    activate: bool,
    /// Let it answer for a share of the workspaces.
    #[arg(long, value_name = "PERCENT", conflicts_with = "activate")]
    canary: Option<f64>,
    /// Mirror this share of the requests to it; discard its responses.
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
    /// Let the service check it and report every finding; nothing changes.
    #[arg(long)]
    dry_run: bool,
    /// What this deployment is for; the audit log keeps it.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
    /// Take it although it breaks clients; the audit log keeps the reason.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl AreaDeploy {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let area = match &self.area {
            Some(area) => area.clone(),
            None => self.source.area()?,
        };
        let limits = common.load(FlagOverrides::default())?.limits;
        let fetched = self.source.fetch(limits.max_component_bytes).await?;
        let artifact = fetched.artifact.clone();
        let (is_dry, query) = (self.dry_run, self.query());
        let operators = self.target.connect(common)?;
        let request = request(&operators, &area, &query, fetched);
        let begun = Instant::now();
        let answer = patient(operators.send(request)).await?;
        let took_ms = begun.elapsed().as_millis();
        if is_dry {
            return checked(&area, &answer, common);
        }
        let result = answer["result"].clone();
        let mut told = vec![("result", result.clone()), ("area", json!(area))];
        told.push(("digest", answer["digest"].clone()));
        if let Some(artifact) = artifact {
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

    fn query(&self) -> String {
        let mut query = vec![("activate", self.activate.to_string())];
        query.extend(self.canary.map(|share| ("canary", share.to_string())));
        query.extend(self.shadow.map(|share| ("shadow", share.to_string())));
        if !self.workspaces.is_empty() {
            query.push(("workspaces", self.workspaces.join(",")));
        }
        query.extend(self.dry_run.then(|| ("dry_run", "true".to_owned())));
        query.extend(self.reason.clone().map(|reason| ("reason", reason)));
        query.extend(self.force.clone().map(|reason| ("force", reason)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish()
    }
}

fn request(
    operators: &OperatorsClient,
    area: &str,
    query: &str,
    fetched: FetchedComponent,
) -> RequestBuilder {
    let mut request = operators.request(Method::PUT, &format!("/areas/{area}?{query}"));
    if let Some(signature) = fetched.signature {
        request = request
            .header("x-area-publisher", signature.publisher)
            .header("x-area-signature", signature.signature);
    }
    request.body(fetched.component)
}

/// Waits for the service; says so if that takes long.
async fn patient<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    match tokio::time::timeout(SILENCE, &mut answer).await {
        Ok(answer) => answer,
        Err(_) => {
            output::note("waiting for the service, which compiles and checks the component");
            answer.await
        }
    }
}

/// Prints the findings of a dry run; fails if there are any.
fn checked(area: &str, answer: &Json, common: &CommonOptions) -> anyhow::Result<()> {
    let findings = items(&answer["findings"]);
    let mut told = vec![("result", answer["result"].clone()), ("area", json!(area))];
    for name in ["digest", "verdict"] {
        told.push((name, answer[name].clone()));
    }
    if common.json {
        told.extend(["differences", "findings"].map(|name| (name, answer[name].clone())));
    }
    common.output().values(&told);
    if findings.is_empty() {
        return Ok(());
    }
    if !common.json {
        for finding in findings {
            output::line(format_args!(
                "\n{}: {}",
                text(&finding["code"]),
                text(&finding["detail"])
            ));
        }
    }
    bail!("the service would refuse it; findings: {}", findings.len())
}

/// Waits until every node of the fleet has this version, as this member of its
/// report says; how many they are. Says on standard error for which nodes it
/// waits.
async fn everywhere(
    operators: &OperatorsClient,
    area: &str,
    member: &str,
    version: &Json,
) -> anyhow::Result<usize> {
    let (begun, mut said) = (Instant::now(), String::new());
    loop {
        let told = operators.get(&format!("/areas/{area}")).await?;
        let nodes = items(&told["nodes"]);
        let late: Vec<&Json> = nodes.iter().filter(|node| node[member] != *version).collect();
        if !nodes.is_empty() && late.is_empty() {
            return Ok(nodes.len());
        }
        if let Some(failed) = nodes.iter().find(|node| node["state"] == "failed") {
            bail!("node {} at {}: {}", failed["node"], failed["host"], failed["why"]);
        }
        let waiting = waits_for(&late);
        anyhow::ensure!(begun.elapsed() < FLEET, "it answers, but not on every node: {waiting}");
        if begun.elapsed() > SILENCE && said != waiting {
            output::note(&waiting);
            said = waiting;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn waits_for(late: &[&Json]) -> String {
    let node = |node: &&Json| {
        let (id, host, state) = (digest(&node["node"]), text(&node["host"]), text(&node["state"]));
        format!("{id} at {host} ({state})")
    };
    let nodes: Vec<String> = late.iter().map(node).collect();
    format!("waiting for {} of the nodes: {}", nodes.len(), nodes.join("; "))
}
