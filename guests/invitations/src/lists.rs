//! Invitations, one by one and in lists.

use area_sdk::prelude::*;

use crate::invitation::{Invitation, Place, Status, StoredInvitation};

/// How many invitations operation 21 answers with.
const LISTED: u32 = 100;

pub(crate) fn newest(ctx: &Ctx) -> Result<Vec<Invitation>> {
    let newest = ctx.documents::<StoredInvitation>().query().limit(LISTED).list()?;
    let place = Place::of(ctx);
    Ok(newest.into_iter().map(|invitation| current(ctx, &place, invitation)).collect())
}

/// Which invitations.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PageParams {
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

pub(crate) fn page(ctx: &Ctx, Params(params): Params<PageParams>) -> Result<Page<Invitation>> {
    let all = ctx.documents::<StoredInvitation>().query();
    let page = all.cursor(params.cursor).limit(params.limit).page()?;
    let place = Place::of(ctx);
    Ok(page.map(|invitation| current(ctx, &place, invitation)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let invitation = ctx.documents::<StoredInvitation>().get(id)?;
    let version = invitation.version;
    Ok(Versioned(current(ctx, &Place::of(ctx), invitation), version))
}

/// As it is now: the address of one that waits may have got its account since
/// it was invited.
fn current(ctx: &Ctx, place: &Place, mut invitation: Stored<StoredInvitation>) -> Invitation {
    if invitation.status == Status::Pending && !invitation.existing_account {
        invitation.existing_account = ctx.account(&invitation.email).is_some();
    }
    place.show(&invitation)
}
