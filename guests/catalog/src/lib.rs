//! The catalog: the repositories, services and groups of a workspace, which
//! every other area refers to and reads. Nothing here is deleted, so that what
//! refers to it keeps its meaning; a repository is archived.

mod content;
mod groups;
mod intake;
mod known;
mod repositories;
mod resource;
mod services;

use area_sdk::prelude::*;

use groups::{Group, GroupCreated, GroupUpdated};
use intake::ImportServices;
use repositories::{Repository, RepositoryCreated, RepositoryUpdated};
use services::{Service, ServiceCreated, ServiceUpdated};

/// The area.
pub fn area() -> Area {
    let area = Area::new("catalog", env!("CARGO_PKG_VERSION"))
        .summary("Repositories, services and groups of a workspace")
        .uses(&[Capability::Blobs, Capability::Directory])
        .event::<RepositoryCreated>("A repository was registered")
        .event::<RepositoryUpdated>("A repository was changed or archived")
        .event::<ServiceCreated>("A service was registered, by somebody or by evidence")
        .event::<ServiceUpdated>("A service was changed, by somebody or by evidence")
        .event::<GroupCreated>("A group was made")
        .event::<GroupUpdated>("A group was changed")
        .on("evidence_envelope.accepted", intake::accepted)
        .on("upload.ready", intake::ready)
        .job::<ImportServices>(Lane::Ingest, 10, 10_000, intake::run);
    group_routes(service_routes(repository_routes(collections(area))))
}

fn collections(area: Area) -> Area {
    area.collection(
        Collection::of::<Repository>()
            .summary("Where the code is; archived ones stay")
            .text("name")
            .text("provider")
            .text("external_id")
            .boolean("archived")
            .unique(&["name"])
            .unique(&["provider", "external_id"])
            .index(&["archived"])
            .readable_by(&["*"]),
    )
    .collection(
        Collection::of::<Service>()
            .summary("What runs, from which repositories, and whose it is")
            .text("name")
            .text("owner_id")
            .text("group_id")
            .text("environment")
            .unique(&["name"])
            .index(&["owner_id"])
            .index(&["group_id"])
            .readable_by(&["*"]),
    )
    .collection(
        Collection::of::<Group>()
            .summary("Teams: their people, the names other systems know them by, their zone")
            .text("name")
            .text("trust_zone")
            .text("data_classification")
            .unique(&["name"])
            .readable_by(&["*"]),
    )
}

const REPOSITORIES: &str = "/v1/workspaces/{workspace_id}/repositories";
const REPOSITORY: &str = "/v1/workspaces/{workspace_id}/repositories/{repository_id}";

fn repository_routes(area: Area) -> Area {
    area.route(
        post("create_repository", REPOSITORIES)
            .summary("Register a repository")
            .description(
                "The name is unique in the workspace, and so is an `external_id` among the \
                 repositories of one provider.",
            )
            .handler(repositories::create),
    )
    .route(
        get("list_repositories", REPOSITORIES)
            .summary("List repositories, newest first")
            .handler(repositories::list),
    )
    .route(
        get("get_repository", REPOSITORY).summary("Read a repository").handler(repositories::show),
    )
    .route(
        patch("update_repository", REPOSITORY)
            .summary("Change, archive or bring back a repository")
            .description("Members that are absent stay; null clears what may be null.")
            .handler(repositories::update),
    )
}

const SERVICES: &str = "/v1/workspaces/{workspace_id}/services";
const SERVICE: &str = "/v1/workspaces/{workspace_id}/services/{service_id}";

fn service_routes(area: Area) -> Area {
    area.route(
        post("create_service", SERVICES)
            .summary("Register a service")
            .description(intake::DESCRIPTION)
            .handler(services::create),
    )
    .route(
        get("list_services", SERVICES)
            .summary("List services, newest first")
            .handler(services::list),
    )
    .route(get("get_service", SERVICE).summary("Read a service").handler(services::show))
    .route(
        patch("update_service", SERVICE)
            .summary("Change a service")
            .description("Members that are absent stay; null clears what may be null.")
            .handler(services::update),
    )
}

const GROUPS: &str = "/v1/workspaces/{workspace_id}/groups";
const GROUP: &str = "/v1/workspaces/{workspace_id}/groups/{group_id}";

fn group_routes(area: Area) -> Area {
    area.route(
        post("create_group", GROUPS)
            .summary("Make a group")
            .description(
                "By admins: a group's zone and classification decide what counts as crossing a \
                 trust boundary, and its identities decide whom findings are assigned to.",
            )
            .role(Role::Admin)
            .handler(groups::create),
    )
    .route(get("list_groups", GROUPS).summary("List groups, newest first").handler(groups::list))
    .route(get("get_group", GROUP).summary("Read a group").handler(groups::show))
    .route(
        patch("update_group", GROUP)
            .summary("Change a group")
            .description("Members that are absent stay. Dependencies are judged anew.")
            .role(Role::Admin)
            .handler(groups::update),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
