//! Prints areas, their versions and their differences for people.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::output;
use super::super::table::{self, NONE, digest, items, minute, text};
use super::figures::AreaRequestCounts;
use assurance_contract::compatibility::ContractChange;

/// Prints a table with one row for each area of the list.
pub(super) fn list(areas: &Json, figures: &BTreeMap<String, AreaRequestCounts>) {
    let rows = items(&areas["areas"]).iter().map(|area| area_row(area, figures)).collect();
    table::print(
        &["NAME", "VERSION", "DIGEST", "NODES", "TRIAL", "REQ", "ERR%", "SINCE", "BY"],
        rows,
    );
}

fn area_row(area: &Json, figures: &BTreeMap<String, AreaRequestCounts>) -> Vec<String> {
    let figures = area["name"].as_str().and_then(|name| figures.get(name)).copied();
    let [requests, failed] = figures.unwrap_or_default().cells();
    let (since, by) = since(area);
    vec![
        text(&area["name"]),
        wanted_version(area),
        digest(wanted(area)),
        nodes(area),
        trial(area),
        requests,
        failed,
        since,
        by,
    ]
}

/// Returns the digest of the version that every node should run: the version
/// that operators decided, or else that of this node's folder.
fn wanted(area: &Json) -> &Json {
    match &area["live"]["digest"] {
        live @ Json::String(_) if area["source"] != "folder" => live,
        _ => &area["digest"],
    }
}

/// Returns the version number of the wanted version; `-` while this node runs
/// another one, because the response has no other version number.
fn wanted_version(area: &Json) -> String {
    if area["digest"] == *wanted(area) { text(&area["version"]) } else { NONE.to_owned() }
}

/// Returns the number of nodes that run the wanted version, as `RUNNING/ALL`.
fn nodes(area: &Json) -> String {
    let (nodes, wanted) = (items(&area["nodes"]), wanted(area));
    let running = nodes.iter().filter(|node| wanted.is_string() && node["digest"] == *wanted);
    format!("{}/{}", running.count(), nodes.len())
}

fn trial(area: &Json) -> String {
    let trial = &area["trial"];
    if trial["state"] != "running" {
        return NONE.to_owned();
    }
    let (mode, share) = (text(&trial["mode"]), text(&trial["share"]));
    format!("{mode} {share} % {}", digest(&trial["digest"]))
}

fn since(area: &Json) -> (String, String) {
    if area["source"] == "folder" {
        return (NONE.to_owned(), "folder".to_owned());
    }
    let live = &area["live"];
    (minute(&live["changed_at"]), text(&live["changed_by"]))
}

/// Prints the state of one area: live version, nodes, trial, staged versions.
pub(super) fn status(area: &Json, figures: AreaRequestCounts) {
    let (since, by) = since(area);
    let [requests, failed] = figures.cells();
    let version = |version: &Json| match version {
        Json::Null => NONE.to_owned(),
        version => format!("{} {}", text(&version["version"]), digest(&version["digest"])),
    };
    let live = match wanted(area) {
        Json::Null => "nothing is live".to_owned(),
        wanted => {
            format!("{} {}, since {since} by {by}", wanted_version(area), digest(wanted))
        }
    };
    for (name, value) in [
        ("area", text(&area["name"])),
        ("summary", text(&area["summary"])),
        ("live", live),
        ("previous", version(&area["previous"])),
        ("trial", trial_line(&area["trial"])),
        ("requests", format!("{requests} on this node, {failed} % errors")),
    ] {
        output::line(format_args!("{:9} {value}", format!("{name}:")));
    }
    output::line("");
    nodes_table(area);
    let staged = items(&area["staged"]);
    if !staged.is_empty() {
        output::line("");
        versions(staged, &BTreeMap::new());
    }
}

fn trial_line(trial: &Json) -> String {
    if trial.is_null() {
        return NONE.to_owned();
    }
    let (mode, state, share) = (text(&trial["mode"]), text(&trial["state"]), text(&trial["share"]));
    let mut line = format!("{mode} {share} % {}, {state}", digest(&trial["digest"]));
    let begun = format!(", since {} by {}", minute(&trial["begun_at"]), text(&trial["begun_by"]));
    line.push_str(&begun);
    if let Some(why) = trial["why"].as_str() {
        line.push_str(&format!(": {why}"));
    }
    for side in ["candidate", "live"] {
        let figures = &trial["figures"][side];
        if figures.is_object() {
            let (calls, faults) = (text(&figures["calls"]), text(&figures["faults"]));
            line.push_str(&format!("\n          {side}: {calls} calls, {faults} faults"));
        }
    }
    line
}

fn nodes_table(area: &Json) {
    let row = |node: &Json| {
        vec![
            digest(&node["node"]),
            text(&node["host"]),
            text(&node["state"]),
            digest(&node["digest"]),
            digest(&node["candidate"]),
            minute(&node["seen_at"]),
            text(&node["why"]),
        ]
    };
    table::print(
        &["NODE", "HOST", "STATE", "DIGEST", "TRIAL", "SEEN", "WHY"],
        items(&area["nodes"]).iter().map(row).collect(),
    );
}

/// Prints a table of an area's versions. `messages` has the operators' messages
/// by digest.
pub(super) fn versions(versions: &[Json], messages: &BTreeMap<String, String>) {
    let row = |version: &Json| {
        let message = version["digest"].as_str().and_then(|digest| messages.get(digest));
        vec![
            text(&version["number"]),
            text(&version["version"]),
            digest(&version["digest"]),
            text(&version["stage"]),
            text(&version["publisher"]),
            minute(&version["received_at"]),
            text(&version["received_by"]),
            minute(&version["live_at"]),
            message.map_or(NONE, String::as_str).to_owned(),
        ]
    };
    table::print(
        &["NO", "VERSION", "DIGEST", "STAGE", "PUBLISHER", "RECEIVED", "BY", "LIVE", "MESSAGE"],
        versions.iter().map(row).collect(),
    );
}

/// Returns the latest message of an operator for each version, by digest. The
/// audit log is sorted from newest to oldest.
pub(super) fn messages(audit_log: &Json) -> BTreeMap<String, String> {
    let mut messages = BTreeMap::new();
    for line in items(&audit_log["items"]).iter().filter(|line| line["step"] != "refused") {
        if let (Some(digest), Some(why)) = (line["digest"].as_str(), line["why"].as_str()) {
            messages.entry(digest.to_owned()).or_insert_with(|| why.to_owned());
        }
    }
    messages
}

/// Prints the differences between the responses of a shadow and the live
/// version.
pub(super) fn shadow(report: &Json) {
    let (trial, requests) = (&report["trial"], &report["requests"]);
    output::line(trial_line(trial));
    let counts = ["compared", "different", "uncertain", "dropped", "failed"];
    let counts = counts.map(|name| format!("{name} {}", text(&requests[name])));
    output::line(format_args!("requests: {}\n", counts.join(", ")));
    let row = |place: &Json| {
        let example = &place["examples"][0];
        vec![
            text(&place["operation"]),
            text(&place["pointer"]),
            text(&place["count"]),
            text(&example["live"]),
            text(&example["candidate"]),
            text(&example["request_id"]),
        ]
    };
    table::print(
        &["OPERATION", "PLACE", "COUNT", "LIVE", "SHADOW", "REQUEST"],
        items(&report["differences"]).iter().map(row).collect(),
    );
}

/// Prints the differences between two manifests.
pub(super) fn differences(differences: &[ContractChange]) {
    let row = |change: &ContractChange| {
        let verdict = serde_json::to_value(change.verdict).unwrap_or_default();
        vec![text(&verdict), change.to_string()]
    };
    if !differences.is_empty() {
        output::line("");
        table::print(&["VERDICT", "DIFFERENCE"], differences.iter().map(row).collect());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_number_is_shown_with_its_own_digest_only() {
        let row = |live: &str| {
            let (version, live) = ("0.1.0", json!({"digest": live}));
            let area =
                json!({"source": "deployed", "version": version, "digest": "a", "live": live});
            area_row(&area, &BTreeMap::new())[1..3].to_vec()
        };
        assert_eq!(row("a"), ["0.1.0", "a"]);
        assert_eq!(row("b"), [NONE, "b"]);
    }
}
