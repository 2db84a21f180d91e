//! Workspace context (operation 19): a snapshot of what the service knows of a workspace, for users
//! and the assistant.
//!
//! Events request a renewal. A job then computes the content and stores a snapshot if the
//! content changed (`renew`). So a read loads one document and writes nothing.

mod content;
mod gaps;
mod ingestions;
mod renew;
mod repositories;
mod snapshots;

use area_sdk::prelude::*;

use ingestions::LatestSourceIngestion;
use renew::{MergedEventsJob, RenewSnapshotJob};
use repositories::LatestAudit;
use snapshots::StoredSnapshot;

/// Declares the area `context`: its operations, collections and jobs.
pub fn area() -> Area {
    let area = Area::new("context", env!("CARGO_PKG_VERSION"))
        .summary("What the service knows of a workspace")
        .uses(&[Capability::Crypto])
        .on("audit.completed", renew::heard)
        .on("evidence_envelope.accepted", renew::heard)
        .on("evidence_envelope.rejected", renew::heard)
        .on("*", renew::heard)
        .job::<MergedEventsJob>(Lane::Maintenance, 10, 20_000, renew::run)
        .job::<RenewSnapshotJob>(Lane::Maintenance, 10, 20_000, renew::run);
    routes(collections(area))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<StoredSnapshot>()
            .summary("Snapshots; the one with the newest `generated_at` is current")
            .index(&["generated_at"])
            .readable_by(&["*"]),
        Collection::of::<LatestAudit>()
            .summary("The latest audit of a repository; its id is the id"),
        Collection::of::<LatestSourceIngestion>()
            .summary("The latest ingestion from each source of evidence"),
    ])
}

fn routes(area: Area) -> Area {
    area.routes([
        get("get_workspace_context", "/v1/workspaces/{workspace_id}/context")
            .summary("Read the current context of the workspace")
            .description(snapshots::DESCRIPTION)
            .in_contract()
            .deadline_ms(5_000)
            .example(include_str!("../examples/get_workspace_context.json"))
            .handler(snapshots::current),
        get("list_context_snapshots", "/v1/workspaces/{workspace_id}/context/snapshots")
            .summary("List context snapshots, newest first")
            .description("The latest 200 snapshots are stored.")
            .example(include_str!("../examples/list_context_snapshots.json"))
            .handler(snapshots::list),
        get(
            "get_context_snapshot",
            "/v1/workspaces/{workspace_id}/context/snapshots/{snapshot_id}",
        )
        .summary("Read a context snapshot, such as the `context_snapshot_id` of a conversation")
        .description("Snapshots never change. `GET …/context` returns the latest one.")
        .example(include_str!("../examples/get_context_snapshot.json"))
        .handler(snapshots::show),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
