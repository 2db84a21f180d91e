//! The catalog: the repositories, services and groups of a workspace, which all other areas refer
//! to. Nothing is deleted, so that references stay valid; repositories can be archived.

mod groups;
mod intake;
mod known;
mod repositories;
mod resource;
mod services;

use area_sdk::prelude::*;
use area_shared::evidence::{ENVELOPE_ACCEPTED, EvidenceConsumer};
use area_shared::uploads::UploadReady;

use groups::{GroupCreated, GroupUpdated, UserGroup};
use intake::ServiceEvidenceConsumer;
use repositories::{Repository, RepositoryCreated, RepositoryUpdated};
use services::{Service, ServiceCreated, ServiceUpdated};

/// Declares the area `catalog`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("catalog", env!("CARGO_PKG_VERSION"))
        .summary("Repositories, services and groups of a workspace")
        .uses(&[Capability::Blobs, Capability::Directory])
        .event::<RepositoryCreated>("A repository was registered")
        .event::<RepositoryUpdated>("A repository was changed or archived")
        .event::<ServiceCreated>("A service was registered by a user or from evidence")
        .event::<ServiceUpdated>("A service was changed by a user or from evidence")
        .event::<GroupCreated>("A group was created")
        .event::<GroupUpdated>("A group was changed")
        .on(ENVELOPE_ACCEPTED, ServiceEvidenceConsumer::accepted)
        .on(UploadReady::NAME, ServiceEvidenceConsumer::ready)
        .job(Lane::Ingest, 10, 10_000, ServiceEvidenceConsumer::run);
    group_routes(service_routes(repository_routes(collections(area))))
}

fn collections(area: Area) -> Area {
    area.collections([
        Collection::of::<Repository>()
            .summary("Repositories, including archived ones")
            .unique(&["name"])
            .unique(&["provider", "external_id"])
            .index(&["archived"])
            .readable_by(&["*"]),
        Collection::of::<Service>()
            .summary("Services with their repositories and owners")
            .fields(&["environment"])
            .unique(&["name"])
            .index(&["owner_id"])
            .index(&["group_id"])
            .readable_by(&["*"]),
        Collection::of::<UserGroup>()
            .summary(
                "Groups with their members, their names in other systems, and their trust zone",
            )
            .fields(&["trust_zone", "data_classification"])
            .unique(&["name"])
            .readable_by(&["*"]),
    ])
}

const REPOSITORIES: &str = "/v1/workspaces/{workspace_id}/repositories";
const REPOSITORY: &str = "/v1/workspaces/{workspace_id}/repositories/{repository_id}";

fn repository_routes(area: Area) -> Area {
    area.routes([
        post("create_repository", REPOSITORIES)
            .summary("Register a repository")
            .description(
                "The name is unique in the workspace, and so is an `external_id` among the \
                 repositories of one provider.",
            )
            .example(include_str!("../examples/create_repository.json"))
            .handler(repositories::create),
        get("list_repositories", REPOSITORIES)
            .summary("List repositories, newest first")
            .description(
                "One page. `q` selects repositories whose name contains a text; `provider` and \
                 `archived` select as well.",
            )
            .example(include_str!("../examples/list_repositories.json"))
            .handler(repositories::list),
        get("get_repository", REPOSITORY)
            .summary("Read a repository")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_repository.json"))
            .handler(resource::show::<Repository>),
        patch("update_repository", REPOSITORY)
            .summary("Change, archive or restore a repository")
            .description("Absent members keep their values; null clears a nullable member.")
            .example(include_str!("../examples/update_repository.json"))
            .handler(repositories::update),
    ])
}

const SERVICES: &str = "/v1/workspaces/{workspace_id}/services";
const SERVICE: &str = "/v1/workspaces/{workspace_id}/services/{service_id}";

fn service_routes(area: Area) -> Area {
    area.routes([
        post("create_service", SERVICES)
            .summary("Register a service")
            .description(intake::DESCRIPTION)
            .example(include_str!("../examples/create_service.json"))
            .handler(services::create),
        get("list_services", SERVICES)
            .summary("List services, newest first")
            .description(
                "One page. `q` selects services whose name contains a text; owner, group and \
                 environment select as well.",
            )
            .example(include_str!("../examples/list_services.json"))
            .handler(services::list),
        get("get_service", SERVICE)
            .summary("Read a service")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_service.json"))
            .handler(resource::show::<Service>),
        patch("update_service", SERVICE)
            .summary("Change a service")
            .description("Absent members keep their values; null clears a nullable member.")
            .example(include_str!("../examples/update_service.json"))
            .handler(services::update),
    ])
}

const GROUPS: &str = "/v1/workspaces/{workspace_id}/groups";
const GROUP: &str = "/v1/workspaces/{workspace_id}/groups/{group_id}";

fn group_routes(area: Area) -> Area {
    area.routes([
        post("create_group", GROUPS)
            .summary("Create a group")
            .description(
                "For admins, because a group's zone and classification determine trust \
                boundaries, and its identities determine the assignees of findings.",
            )
            .role(Role::Admin)
            .example(include_str!("../examples/create_group.json"))
            .handler(groups::create),
        get("list_groups", GROUPS)
            .summary("List groups, newest first")
            .description(
                "One page. `q` selects groups whose name contains a text; trust zone and data \
                 classification select as well.",
            )
            .example(include_str!("../examples/list_groups.json"))
            .handler(groups::list),
        get("get_group", GROUP)
            .summary("Read a group")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_group.json"))
            .handler(resource::show::<UserGroup>),
        patch("update_group", GROUP)
            .summary("Change a group")
            .description(
                "Absent members keep their values. Dependencies of the group are assessed again.",
            )
            .role(Role::Admin)
            .example(include_str!("../examples/update_group.json"))
            .handler(groups::update),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
