//! The repository-host application (operation 14): an admin is redirected to the host, installs the
//! application, and returns with an installation that is bound to the workspace.

mod install;
mod installations;

use area_sdk::LinkHolder;
use area_sdk::prelude::*;

use install::{ForgetInstallStateJob, PendingInstall};
use installations::{Installation, InstallationAdded, InstallationRemoved};

/// Declares the area `repohost`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("repohost", env!("CARGO_PKG_VERSION"))
        .summary("Installations of the repository-host application")
        .uses(&[Capability::Links, Capability::Settings])
        .collections([
            Collection::of::<PendingInstall>().summary("Installations in progress"),
            Collection::of::<Installation>()
                .summary("The workspace's installations of the application")
                .unique(&["external_id"])
                .readable_by(&["*"]),
        ])
        .event::<InstallationAdded>(
            "The repository-host application was installed for the workspace",
        )
        .event::<InstallationRemoved>("An installation was removed from the workspace")
        .job::<ForgetInstallStateJob>(Lane::Maintenance, 10, 5_000, install::forget);
    routes(area)
}

const INSTALLATIONS: &str = "/v1/workspaces/{workspace_id}/repohost/installations";
const INSTALLATION: &str = "/v1/workspaces/{workspace_id}/repohost/installations/{installation_id}";

fn routes(area: Area) -> Area {
    area.routes([
        post("start_repohost_install", "/v1/repohost/app/install")
            .summary("Start to install the repository-host application")
            .description(install::DESCRIPTION)
            .in_contract()
            .workspace_in_body("workspace_id")
            .role(Role::Admin)
            .problems(&["not_configured"])
            .example(include_str!("../examples/start_repohost_install.json"))
            .handler(install::start),
        get(install::COME_BACK, "/v1/repohost/app/callback")
            .summary("Return from installing the application")
            .description(install::CALLBACK)
            .signed_link("state", LinkHolder::SameSession)
            .writes()
            .role(Role::Admin)
            .problems(&["state_used", "installation_requested"])
            .example(include_str!("../examples/complete_repohost_install.json"))
            .handler(install::come_back),
        get("list_repohost_installations", INSTALLATIONS)
            .summary("List the application's installations, newest first")
            .description("One page of installations that were bound to this workspace.")
            .example(include_str!("../examples/list_repohost_installations.json"))
            .handler(installations::list),
        get("get_repohost_installation", INSTALLATION)
            .summary("Read an installation")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .example(include_str!("../examples/get_repohost_installation.json"))
            .handler(installations::show),
        delete("delete_repohost_installation", INSTALLATION)
            .summary("Remove an installation from the workspace")
            .description("At the repository host it stays installed until it is removed there.")
            .role(Role::Admin)
            .handler(installations::remove),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
