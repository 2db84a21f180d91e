//! Dependencies between groups (operation 12): which group relies on which, how,
//! and what that means for trust and data. The groups themselves are the
//! catalog's.

mod content;
mod dependencies;
mod evidence;
mod groups;
mod judgement;

use area_sdk::prelude::*;

use dependencies::{Dependency, DependencyCreated, DependencyDeleted};
use evidence::ImportRelationships;
use judgement::Rejudge;

const DEPENDENCIES: &str = "/v1/workspaces/{workspace_id}/group-dependencies";
const DEPENDENCY: &str = "/v1/workspaces/{workspace_id}/group-dependencies/{dependency_id}";

/// The area.
pub fn area() -> Area {
    let area = Area::new("groups", env!("CARGO_PKG_VERSION"))
        .summary("Dependencies between groups")
        .uses(&[Capability::Blobs])
        .collection(
            Collection::of::<Dependency>()
                .summary("Which group relies on which, and how")
                .text("source_group_id")
                .text("target_group_id")
                .text("relationship_kind")
                .text("state")
                .boolean("crosses_trust_boundary")
                .unique(&["source_group_id", "target_group_id", "relationship_kind"])
                .index(&["target_group_id"])
                .readable_by(&["*"]),
        )
        .event::<DependencyCreated>("A dependency between groups became known")
        .event::<DependencyDeleted>("A dependency between groups was deleted")
        .on("evidence_envelope.accepted", evidence::accepted)
        .on("upload.ready", evidence::ready)
        .on("group.updated", judgement::take)
        .job::<ImportRelationships>(Lane::Ingest, 10, 10_000, evidence::run)
        .job::<Rejudge>(Lane::Maintenance, 10, 10_000, judgement::run);
    routes(area)
}

fn routes(area: Area) -> Area {
    area.route(
        post("create_group_dependency", DEPENDENCIES)
            .summary("Declare that one group depends on another")
            .description(dependencies::DESCRIPTION)
            .in_contract()
            .role(Role::Admin)
            .handler(dependencies::create),
    )
    .route(
        get("list_group_dependencies", DEPENDENCIES)
            .summary("List dependencies between groups, newest first")
            .handler(dependencies::list),
    )
    .route(
        get("get_group_dependency", DEPENDENCY)
            .summary("Read a dependency between groups")
            .handler(dependencies::show),
    )
    .route(
        delete("delete_group_dependency", DEPENDENCY)
            .summary("Delete a dependency between groups")
            .description("Evidence that comes later may bring it back.")
            .role(Role::Admin)
            .handler(dependencies::remove),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
