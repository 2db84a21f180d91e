//! Installations of the repository-host application. Each belongs to the workspace whose admin
//! started it.

use area_sdk::prelude::*;

use crate::install::SetupAction;

/// A stored installation of the repository-host application.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Installation {
    /// Id of the application's installation at the repository host.
    external_id: String,
    setup_action: SetupAction,
    installed_by: Uuid,
}

document!(Installation, "installations");

/// An installation of the repository-host application.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Installation")]
pub(crate) struct InstallationView {
    id: Uuid,
    /// Id of the application's installation at the repository host.
    external_id: String,
    /// Latest action of the user at the repository host.
    setup_action: SetupAction,
    /// Id of the user who last returned from the repository host with this installation.
    installed_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    workspace_id: Uuid,
}

impl InstallationView {
    fn new(scope: &Scope, installation: Stored<Installation>) -> Self {
        Self {
            id: installation.uuid(),
            created_at: installation.created_at,
            updated_at: installation.updated_at,
            workspace_id: scope.workspace_id(),
            external_id: installation.value.external_id,
            setup_action: installation.value.setup_action,
            installed_by: installation.value.installed_by,
        }
    }
}

/// Published when a user returned from the repository host with an installation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallationAdded {
    installation_id: Uuid,
    external_id: String,
    setup_action: SetupAction,
    installed_by: Uuid,
}

event!(InstallationAdded, "repohost.installed");

/// Published when an installation was removed from the workspace.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallationRemoved {
    installation_id: Uuid,
    external_id: String,
}

event!(InstallationRemoved, "repohost.removed");

/// Adds an installation of the application to the workspace, or updates an existing one.
pub(crate) fn bind(
    ctx: &Ctx,
    external_id: String,
    setup_action: SetupAction,
) -> Result<Versioned<InstallationView>> {
    let installations = ctx.documents::<Installation>();
    let known = installations.query().equals("external_id", &external_id).first()?;
    let installation = Installation { external_id, setup_action, installed_by: ctx.user() };
    let stored = match known {
        Some(mut known) => {
            known.value = installation;
            installations.replace(&mut known)?;
            known
        }
        None => installations.create_stored(ctx.new_id(), installation)?,
    };
    ctx.publish(InstallationAdded {
        installation_id: stored.uuid(),
        external_id: stored.external_id.clone(),
        setup_action,
        installed_by: ctx.user(),
    });
    Ok(versioned(ctx, stored))
}

fn versioned(ctx: &Ctx, stored: Stored<Installation>) -> Versioned<InstallationView> {
    stored.versioned(|stored| InstallationView::new(ctx, stored))
}

pub(crate) fn list(ctx: &Ctx, paging: Paging) -> Result<Page<InstallationView>> {
    let query = ctx.documents::<Installation>().query();
    let page = query.paging(paging).page()?;
    Ok(page.map(|installation| InstallationView::new(ctx, installation)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<InstallationView>> {
    Ok(versioned(ctx, ctx.documents().get(id)?))
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let installation = ctx.documents::<Installation>().get(id)?;
    ctx.check_if_match(installation.version)?;
    ctx.documents().delete(&installation)?;
    let external_id = installation.value.external_id;
    ctx.publish(InstallationRemoved { installation_id: id, external_id });
    Ok(NoContent)
}
