//! Installation of the application at the repository host. The `state` parameter is signed for the
//! user's session; a stored document ensures that it is used only once.

use area_sdk::prelude::*;
use area_sdk::{JobOptions, LinkClaims};

use crate::installations::{self, InstallationView};

/// Id of the operation to which the repository host redirects the user after the installation.
pub(crate) const COME_BACK: &str = "complete_repohost_install";

/// Lifetime of the `state` parameter of an installation URL, in seconds.
const STATE_SECONDS: i64 = 900;

/// Name of the operator's setting with the URL at which users install the repository-host
/// application.
const APP_URL: &str = "app_url";

/// Text for the OpenAPI document about operation 14.
pub(crate) const DESCRIPTION: &str = "Send the browser to `installation_url`. It has a `state` \
    that is valid once, for 15 minutes, in this session and for this workspace. So each request \
    returns a new URL, also with an `Idempotency-Key` that was used before. The application must \
    redirect users to `/v1/repohost/app/callback`. Returns 409 `not_configured` if the operator \
    has configured no application.";

/// Text for the OpenAPI document about the operation to which the repository host redirects.
pub(crate) const CALLBACK: &str = "The repository host sends the browser here, with the session's \
    cookie and the `state` it was given. Binds the installation to the workspace of the state, or \
    updates a bound one. A `setup_action` of `request` means that an owner at the repository host \
    must agree first: 409 `installation_requested`, and the state stays valid.";

/// A started installation that has not finished; the document's id is the `state_id` of the link.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PendingInstall {
    user_id: Uuid,
    expires_at: Timestamp,
}

document!(PendingInstall, "pending_installs");

/// Job that deletes a started installation once its `state` parameter has expired.
#[derive(Serialize, Deserialize)]
pub(crate) struct ForgetInstallStateJob {
    state_id: Uuid,
}

job!(ForgetInstallStateJob, "forget_state");

/// Claims of the signed `state` parameter of an installation URL.
#[derive(Serialize, Deserialize)]
pub(crate) struct StateClaims {
    state_id: Uuid,
}

/// A request to start an installation of the application.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewInstall")]
pub(crate) struct StartInstall {
    #[expect(dead_code, reason = "the host has read it: it is the request's workspace")]
    workspace_id: Uuid,
}

/// Response with the URL of the repository host that the user must open.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Install", extend("x-single-use" = true))]
pub(crate) struct StartInstallResponse {
    installation_url: String,
}

pub(crate) fn start(ctx: &Ctx, Body(_): Body<StartInstall>) -> Result<StartInstallResponse> {
    let app_url = ctx.setting(APP_URL).filter(|url| is_app_url(url)).ok_or_else(not_configured)?;
    let state_id = ctx.new_id();
    let expires_at = ctx.now().plus_seconds(STATE_SECONDS);
    ctx.documents().create(state_id, &PendingInstall { user_id: ctx.user(), expires_at })?;
    let later = JobOptions { at: Some(expires_at), ..JobOptions::default() };
    ctx.enqueue_with(&ForgetInstallStateJob { state_id }, later);
    let state = ctx.sign_link(COME_BACK, &StateClaims { state_id }, expires_at);
    let joint = if app_url.contains('?') { '&' } else { '?' };
    Ok(StartInstallResponse { installation_url: format!("{app_url}{joint}state={state}") })
}

/// Whether a text is an http or https URL to which a query can be appended.
fn is_app_url(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic()))
        && !url.contains('#')
}

/// Not a 503, which clients would retry and alerts count: only the operator can end this state.
fn not_configured() -> Problem {
    Problem::conflict("not_configured", "This service has no repository-host application.").hint(
        "The operator must set areas.settings.repohost.app_url to the URL at which the \
        application is installed.",
    )
}

/// Query parameters that the repository host adds to the callback URL.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Return")]
pub(crate) struct CallbackParams {
    /// Id of the installation at the repository host.
    #[schemars(length(min = 1, max = 100))]
    installation_id: Option<String>,
    /// Action of the user at the repository host; default `install`.
    setup_action: Option<SetupAction>,
    /// Authorization code of the user, which some hosts send; ignored.
    #[expect(dead_code, reason = "taken, so that it is not refused")]
    #[schemars(length(max = 500))]
    code: Option<String>,
}

/// Action of a user at the repository host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SetupAction {
    /// The application was installed.
    #[default]
    Install,
    /// The permissions of the installed application were changed.
    Update,
    /// The user asked an owner to install the application.
    Request,
}

pub(crate) fn come_back(
    ctx: &Ctx,
    LinkClaims(state): LinkClaims<StateClaims>,
    Params(back): Params<CallbackParams>,
) -> Result<Versioned<InstallationView>> {
    let action = back.setup_action.unwrap_or_default();
    let pending = ctx.documents::<PendingInstall>().find(state.state_id)?;
    let pending = pending.ok_or_else(|| {
        Problem::conflict("state_used", "This state was already used.")
            .hint("Start the installation again with POST /v1/repohost/app/install.")
    })?;
    if action == SetupAction::Request {
        let detail = "An owner at the repository host has to install the application first.";
        return Err(Problem::conflict("installation_requested", detail)
            .hint("When it is installed, start again with POST /v1/repohost/app/install."));
    }
    let external_id = back
        .installation_id
        .ok_or_else(|| Problem::validation("installation_id", "is required"))?;
    ctx.documents().delete(&pending)?;
    installations::bind(ctx, external_id, action)
}

pub(crate) fn forget(ctx: &JobCtx, job: ForgetInstallStateJob) -> JobResult<ForgetInstallStateJob> {
    if let Some(pending) = ctx.documents::<PendingInstall>().find(job.state_id)? {
        ctx.documents().delete(&pending)?;
    }
    Ok(Outcome::Done)
}
