//! Installations of the application, each bound to the workspace whose admin
//! came back with it.

use area_sdk::prelude::*;

use crate::install::SetupAction;

/// An installation as it is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Installation {
    /// What the repository host calls it.
    external_id: String,
    setup_action: SetupAction,
    installed_by: Uuid,
}

impl Document for Installation {
    const COLLECTION: &'static str = "installations";
}

/// An installation as clients see it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallationView {
    id: Uuid,
    /// What the repository host calls it.
    external_id: String,
    /// What was done at the repository host last.
    setup_action: SetupAction,
    /// Who came back with it last.
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

/// Told when somebody came back with an installation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Installed {
    installation_id: Uuid,
    external_id: String,
    setup_action: SetupAction,
    installed_by: Uuid,
}

impl Event for Installed {
    const NAME: &'static str = "repohost.installed";
}

/// Told when an installation is taken out.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Removed {
    installation_id: Uuid,
    external_id: String,
}

impl Event for Removed {
    const NAME: &'static str = "repohost.removed";
}

/// Makes an installation the workspace's, or notes what was changed in one
/// that is.
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
        None => {
            let id = ctx.new_id();
            installations.create(id, &installation)?;
            installations.get(id)?
        }
    };
    ctx.publish(Installed {
        installation_id: stored.uuid(),
        external_id: stored.external_id.clone(),
        setup_action,
        installed_by: ctx.user(),
    });
    Ok(versioned(ctx, stored))
}

fn versioned(ctx: &Ctx, stored: Stored<Installation>) -> Versioned<InstallationView> {
    let version = stored.version;
    Versioned(InstallationView::new(ctx, stored), version)
}

/// Which page.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many a page has at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
}

fn default_limit() -> u32 {
    50
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
) -> Result<Page<InstallationView>> {
    let query = ctx.documents::<Installation>().query();
    let page = query.cursor(params.cursor).limit(params.limit).page()?;
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
    ctx.publish(Removed { installation_id: id, external_id });
    Ok(NoContent)
}
