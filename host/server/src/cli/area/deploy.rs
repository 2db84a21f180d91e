//! `assurance area deploy`.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value as Json, json};

use super::super::operators::{OperatorsClient, OperatorsClientArgs};
use super::super::table::{digest, items, text};
use super::super::{CommonOptions, output};
use super::source::{ComponentSource, FetchedComponent};

/// Maximum wait of `area deploy` until every node of the fleet runs the
/// version.
const FLEET: Duration = Duration::from_secs(30);
/// Interval between two requests of `area deploy` for the state of the nodes.
const LOOK: Duration = Duration::from_millis(10);
/// Names of the checks that a dry run skips if the component has no valid
/// manifest.
const WITHOUT_MANIFEST: [&str; 3] =
    ["compatibility with the live version", "conflicts with other areas", "calls of the version"];
/// Time after which a waiting command prints what it waits for.
const SILENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaDeployArgs {
    #[command(flatten)]
    source: ComponentSource,
    /// Name of the area. Default: the name of the file or repository, with `_`
    /// for `-`.
    #[arg(long, value_name = "NAME")]
    area: Option<String>,
    /// Make the version live at once. Otherwise it stays staged until
    /// `assurance area activate`.
    #[arg(long)]
    activate: bool,
    /// Begin a canary that serves this share of the workspaces, in percent.
    #[arg(long, value_name = "PERCENT", conflicts_with = "activate")]
    canary: Option<f64>,
    /// Begin a shadow that executes copies of this share of the requests, in
    /// percent; its responses are discarded.
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        default_missing_value = "10",
        conflicts_with_all = ["activate", "canary", "workspaces"]
    )]
    shadow: Option<f64>,
    /// Workspace that the canary serves; may be given more than once.
    #[arg(long = "canary-workspace", value_name = "ID", conflicts_with = "activate")]
    workspaces: Vec<String>,
    /// Only check the component in the service and report every finding;
    /// nothing changes.
    #[arg(long)]
    dry_run: bool,
    /// Reason for the audit log.
    #[arg(long, visible_alias = "message", value_name = "TEXT")]
    reason: Option<String>,
    /// Deploy although the version breaks clients; the reason goes into the
    /// audit log.
    #[arg(long, value_name = "REASON")]
    force: Option<String>,
    #[command(flatten)]
    target: OperatorsClientArgs,
}

impl AreaDeployArgs {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let area = match &self.area {
            Some(area) => area.clone(),
            None => self.source.area()?,
        };
        let limits = common.load()?.limits;
        let fetched = self.source.fetch(limits.max_component_bytes).await?;
        let artifact = fetched.artifact.clone();
        let (is_dry, query) = (self.dry_run, self.query());
        let operators = self.target.connect(common)?;
        let request = request(&operators, &area, &query, fetched);
        let begun = Instant::now();
        let mut answer = patient(operators.send(request)).await?;
        let took_ms = begun.elapsed().as_millis();
        if is_dry {
            return checked(&area, &answer, common);
        }
        let mut added = Vec::new();
        if let Some(artifact) = artifact {
            added.push(("artifact", json!(artifact.to_string())));
        }
        added.push(("took_ms", json!(took_ms)));
        let on_nodes = match answer["result"].as_str() {
            Some("live") => Some("digest"),
            Some("canary" | "shadow") => Some("candidate"),
            _ => None,
        };
        if let Some(member) = on_nodes {
            let nodes = everywhere(&operators, &area, member, &answer["digest"]).await?;
            added.push(("nodes", json!(nodes)));
            added.push(("on_every_node_ms", json!(begun.elapsed().as_millis())));
        }
        let mut told = vec![("result", answer["result"].clone()), ("area", json!(area))];
        told.push(("digest", answer["digest"].clone()));
        told.extend(added.iter().cloned());
        if let Some(answer) = answer.as_object_mut() {
            answer.extend(added.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        common.print_answer(&answer, |_| common.print_values(&told));
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

/// Waits for the service's response. Prints a note if it takes longer than
/// [`SILENCE`].
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

/// Prints the result of a dry run. Returns an error if there are findings.
fn checked(area: &str, answer: &Json, common: &CommonOptions) -> anyhow::Result<()> {
    let findings = items(&answer["findings"]);
    let mut told = vec![("result", answer["result"].clone()), ("area", json!(area))];
    told.push(("digest", answer["digest"].clone()));
    told.push(match &answer["verdict"] {
        Json::Null => ("not_checked", json!(WITHOUT_MANIFEST)),
        verdict => ("compatibility", verdict.clone()),
    });
    common.print_answer(answer, |_| common.print_values(&told));
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

/// Waits until every node of the fleet reports this version in the member
/// `member` of its report. Returns the number of nodes. Prints the nodes that
/// it waits for on standard error.
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
        if let Some(failed) = nodes.iter().find(|node| has_failed(node, version)) {
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

/// Returns whether a node reports that it cannot load this version. A node reports
/// the failure of an earlier version until it has read the operators' decision.
fn has_failed(node: &Json, version: &Json) -> bool {
    let why = node["why"].as_str().unwrap_or_default();
    let names = |digest: &str| why.contains(&format!("{digest} does not answer here"));
    node["state"] == "failed" && version.as_str().is_some_and(names)
}

fn waits_for(late: &[&Json]) -> String {
    let node = |node: &&Json| {
        let (id, host, state) = (digest(&node["node"]), text(&node["host"]), text(&node["state"]));
        format!("{id} at {host} ({state})")
    };
    let nodes: Vec<String> = late.iter().map(node).collect();
    format!("waiting for {} of the nodes: {}", nodes.len(), nodes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_of_an_earlier_version_is_not_one_of_this_version() {
        let (earlier, this) = ("a".repeat(64), "b".repeat(64));
        let why = format!("{earlier} does not answer here: it does not load");
        let node = json!({"state": "failed", "digest": null, "why": why});
        assert!(has_failed(&node, &json!(earlier)) && !has_failed(&node, &json!(this)));
        let running = json!({"state": "running", "digest": this, "why": null});
        assert!(!has_failed(&running, &json!(this)));
    }
}
