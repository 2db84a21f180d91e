//! Operations that read invitations: one, or a list.

use area_sdk::prelude::*;

use crate::invitation::{
    Invitation, InvitationPresenter, LatestEmailDelivery, Status, StoredInvitation,
};

/// Maximum number of invitations in the response of operation 21.
const LISTED: u32 = 100;

pub(crate) fn newest(ctx: &Ctx) -> Result<Vec<Invitation>> {
    let mut newest = ctx.documents::<StoredInvitation>().query().limit(LISTED).list()?;
    LatestEmailDelivery::apply(ctx, &mut newest)?;
    let place = InvitationPresenter::of(ctx);
    Ok(newest.into_iter().map(|invitation| current(ctx, &place, invitation)).collect())
}

pub(crate) fn page(ctx: &Ctx, paging: Paging) -> Result<Page<Invitation>> {
    let all = ctx.documents::<StoredInvitation>().query();
    let mut page = all.paging(paging).page()?;
    LatestEmailDelivery::apply(ctx, &mut page.items)?;
    let place = InvitationPresenter::of(ctx);
    Ok(page.map(|invitation| current(ctx, &place, invitation)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let mut invitation = ctx.documents::<StoredInvitation>().get(id)?;
    LatestEmailDelivery::apply(ctx, std::slice::from_mut(&mut invitation))?;
    Ok(invitation.versioned(|invitation| current(ctx, &InvitationPresenter::of(ctx), invitation)))
}

/// Converts an invitation for a response. Checks again whether an account with the address exists,
/// because it may have been created after the invitation.
fn current(
    ctx: &Ctx,
    place: &InvitationPresenter,
    mut invitation: Stored<StoredInvitation>,
) -> Invitation {
    if invitation.status == Status::Pending && !invitation.existing_account {
        invitation.existing_account = ctx.account(&invitation.email).is_some();
    }
    place.show(&invitation)
}
