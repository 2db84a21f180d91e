//! The dependency list (operation 16) with each filter: its first page, and its thousandth or last
//! one.

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::Value as Json;

use super::report::repeated;
use crate::bench::report::Latency;
use crate::bench::server::Server;

/// Number of timed requests for each page of the dependency list.
const SAMPLES: usize = 300;
const FAR: usize = 1_000;

/// Times of the dependency list with one filter.
#[derive(Serialize)]
pub(super) struct DependencyListTimes {
    pub(super) filter: String,
    pub(super) first: Latency,
    /// Number of the page whose times are in `far`, counted from 1.
    pub(super) far_page: usize,
    pub(super) far: Latency,
}

/// Measures the dependency list with every filter alone, then with some combinations.
pub(super) fn measure(server: &Server) -> anyhow::Result<Vec<DependencyListTimes>> {
    let page = server.get("/dependencies?limit=1")?;
    let item = |member: &str| -> anyhow::Result<&str> {
        page["items"][0][member].as_str().with_context(|| format!("no {member} in {page:#}"))
    };
    let (repository, audit) = (item("repository_id")?, item("audit_id")?);
    let filters = [
        ("none", String::new()),
        ("history", "history=true".to_owned()),
        ("repository_id", format!("repository_id={repository}")),
        ("audit_id", format!("audit_id={audit}")),
        ("branch_ref", "branch_ref=main".to_owned()),
        ("advisory", "advisory=GHSA-size-size-size".to_owned()),
        ("repository_id, branch_ref", format!("repository_id={repository}&branch_ref=main")),
        ("q, one package in a thousand", "q=react-util".to_owned()),
        ("q, one in ten", "q=react".to_owned()),
        ("q, a version", "q=%401.2.3".to_owned()),
        ("q, none", "q=no-such-package".to_owned()),
        ("q, repository_id", format!("q=react&repository_id={repository}")),
    ];
    filters.iter().map(|(name, query)| list(server, name, query)).collect()
}

fn list(server: &Server, filter: &str, query: &str) -> anyhow::Result<DependencyListTimes> {
    let first = format!("/dependencies?{query}");
    let (far_page, far) = walk(server, &first)?;
    eprintln!("{filter}: page 1, page {far_page}");
    Ok(DependencyListTimes {
        filter: filter.to_owned(),
        first: repeated(SAMPLES, || server.get(&first))?,
        far_page,
        far: repeated(SAMPLES, || server.get(&far))?,
    })
}

/// Follows the cursors of a list to the thousandth page, or to the last one if there are fewer.
/// Returns that page's number and path.
fn walk(server: &Server, first: &str) -> anyhow::Result<(usize, String)> {
    let (mut number, mut path) = (1, first.to_owned());
    while number < FAR {
        let page: Json = server.get(&path)?;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        ensure!(page["has_more"] == true, "a cursor where there is no more");
        path = format!("{first}&cursor={cursor}");
        number += 1;
    }
    Ok((number, path))
}
