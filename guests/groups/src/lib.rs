//! Dependencies between groups (operation 12): which group depends on which, how, and the effect on
//! trust and data. The groups themselves belong to the catalog.

mod assessment;
mod dependencies;
mod evidence;

use area_sdk::prelude::*;
use area_shared::evidence::{ENVELOPE_ACCEPTED, EvidenceConsumer};
use area_shared::uploads::UploadReady;

use assessment::ReassessDependenciesJob;
use dependencies::{DependencyCreated, DependencyDeleted, StoredGroupDependency};
use evidence::RelationshipEvidenceConsumer;

const DEPENDENCIES: &str = "/v1/workspaces/{workspace_id}/group-dependencies";
const DEPENDENCY: &str = "/v1/workspaces/{workspace_id}/group-dependencies/{dependency_id}";

/// Declares the area `groups`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("groups", env!("CARGO_PKG_VERSION"))
        .summary("Dependencies between groups")
        .uses(&[Capability::Blobs])
        .collection(
            Collection::of::<StoredGroupDependency>()
                .summary("Dependencies between groups, and their kind")
                .fields(&["state", "crosses_trust_boundary"])
                .unique(&["source_group_id", "target_group_id", "relationship_kind"])
                .index(&["target_group_id"])
                .readable_by(&["*"]),
        )
        .event::<DependencyCreated>("A dependency between groups became known")
        .event::<DependencyDeleted>("A dependency between groups was deleted")
        .on(ENVELOPE_ACCEPTED, RelationshipEvidenceConsumer::accepted)
        .on(UploadReady::NAME, RelationshipEvidenceConsumer::ready)
        .on("group.updated", assessment::take)
        .job(Lane::Ingest, 10, 10_000, RelationshipEvidenceConsumer::run)
        .job::<ReassessDependenciesJob>(Lane::Maintenance, 10, 10_000, assessment::run);
    routes(area)
}

fn routes(area: Area) -> Area {
    area.routes([
        post("create_group_dependency", DEPENDENCIES)
            .summary("Declare that one group depends on another")
            .description(dependencies::DESCRIPTION)
            .in_contract()
            .role(Role::Admin)
            .example(include_str!("../examples/create_group_dependency.json"))
            .handler(dependencies::create),
        get("list_group_dependencies", DEPENDENCIES)
            .summary("List dependencies between groups, newest first")
            .description(
                "One page. Source, target, kind and `crosses_trust_boundary` select dependencies.",
            )
            .example(include_str!("../examples/list_group_dependencies.json"))
            .handler(dependencies::list),
        get("get_group_dependency", DEPENDENCY)
            .summary("Read a dependency between groups")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_group_dependency.json"))
            .handler(dependencies::show),
        delete("delete_group_dependency", DEPENDENCY)
            .summary("Delete a dependency between groups")
            .description("Later evidence may create it again.")
            .role(Role::Admin)
            .handler(dependencies::remove),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
