//! The way to the repository host and back. The state that travels is signed
//! for the session, and a document makes it good for one return.

use area_sdk::prelude::*;
use area_sdk::{Later, Link};

use crate::installations::{self, InstallationView};

/// The operation that the repository host sends people back to.
pub(crate) const COME_BACK: &str = "complete_repohost_install";

/// How long somebody may take at the repository host, in seconds.
const STATE_SECONDS: i64 = 900;

/// What the operator sets: where the application is installed.
const APP_URL: &str = "app_url";

/// What operation 14 says beside its schema.
pub(crate) const DESCRIPTION: &str = "\
Send the browser to `installation_url`. It carries a `state` that is good for 15 minutes, once, in \
this session and for this workspace; the application must be set up to send people back to \
`/v1/repohost/app/callback`. 503 `unavailable` where the operator has set up no application.";

/// What the callback says beside its schema.
pub(crate) const CALLBACK: &str = "\
The repository host sends the browser here, with the session's cookie and the `state` it was given. \
Binds the installation to the workspace of the state; one that is bound already is updated. A \
`setup_action` of `request` means that an owner at the repository host has to agree first: 409 \
`installation_requested`, and the state stays good.";

/// Somebody on the way.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PendingInstall {
    user_id: Uuid,
    expires_at: Timestamp,
}

impl Document for PendingInstall {
    const COLLECTION: &'static str = "pending_installs";
}

/// Forgets somebody who has not come back.
#[derive(Serialize, Deserialize)]
pub(crate) struct ForgetState {
    state_id: Uuid,
}

impl Job for ForgetState {
    const KIND: &'static str = "forget_state";
}

/// What the state says.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    state_id: Uuid,
}

/// For which workspace.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct StartInstall {
    #[expect(dead_code, reason = "the host has read it: it is the request's workspace")]
    workspace_id: Uuid,
}

/// Where to go.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallStarted {
    installation_url: String,
}

pub(crate) fn start(ctx: &Ctx, Body(_): Body<StartInstall>) -> Result<InstallStarted> {
    let app_url = ctx.setting(APP_URL).filter(|url| is_app_url(url)).ok_or_else(not_set_up)?;
    let state_id = ctx.new_id();
    let expires_at = ctx.now().plus_seconds(STATE_SECONDS);
    ctx.documents().create(state_id, &PendingInstall { user_id: ctx.user(), expires_at })?;
    let later = Later { at: Some(expires_at), ..Later::default() };
    ctx.enqueue_with(&ForgetState { state_id }, later);
    let state = ctx.sign_link(COME_BACK, &State { state_id }, expires_at);
    let joint = if app_url.contains('?') { '&' } else { '?' };
    Ok(InstallStarted { installation_url: format!("{app_url}{joint}state={state}") })
}

/// A URL of the web that a query can be put at the end of.
fn is_app_url(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic()))
        && !url.contains('#')
}

fn not_set_up() -> Problem {
    Problem::unavailable("This service has no repository-host application.").hint(
        "The operator sets areas.settings.repohost.app_url to the address at which the \
         application is installed.",
    )
}

/// What the repository host adds to the address.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Return {
    /// What the repository host calls the installation.
    #[schemars(length(min = 1, max = 100))]
    installation_id: Option<String>,
    /// What was done there.
    setup_action: Option<SetupAction>,
    /// Sent by hosts that also identify the person; not used.
    #[expect(dead_code, reason = "taken, so that it is not refused")]
    #[schemars(length(max = 500))]
    code: Option<String>,
}

/// What was done at the repository host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SetupAction {
    /// It was installed.
    #[default]
    Install,
    /// What it may reach was changed.
    Update,
    /// An owner was asked to install it.
    Request,
}

pub(crate) fn come_back(
    ctx: &Ctx,
    Link(state): Link<State>,
    Params(back): Params<Return>,
) -> Result<Versioned<InstallationView>> {
    let action = back.setup_action.unwrap_or_default();
    let pending = ctx.documents::<PendingInstall>().find(state.state_id)?;
    let pending = pending.ok_or_else(|| {
        Problem::conflict("state_used", "This way back was used already.")
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

pub(crate) fn forget(ctx: &JobCtx, job: ForgetState) -> JobResult<ForgetState> {
    if let Some(pending) = ctx.documents::<PendingInstall>().find(job.state_id)? {
        ctx.documents().delete(&pending)?;
    }
    Ok(Outcome::Done)
}
