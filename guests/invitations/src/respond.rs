//! What an invited person answers. The link of the mail shows which
//! invitation; the session, that the answer is the invited person's.

use area_sdk::prelude::*;
use area_sdk::{Link, NoSuchUser};

use crate::invitation::{
    Invitation, InvitationAccepted, InvitationDeclined, Place, Status, StoredInvitation,
};
use crate::manage::not_pending;

/// The operation that an accepting link is for.
pub(crate) const ACCEPT: &str = "accept_invitation";
/// The operation that a declining link is for.
pub(crate) const DECLINE: &str = "decline_invitation";

/// What a link says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) invitation_id: Uuid,
}

pub(crate) fn accept(ctx: &Ctx, Link(claims): Link<Claims>) -> Result<Invitation> {
    let mut invitation = answered(ctx, &claims)?;
    ctx.add_member(ctx.user(), invitation.role.into())
        .map_err(|NoSuchUser| Problem::not_found())?;
    invitation.close(Status::Accepted, Some(ctx.now()));
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationAccepted::of(&invitation, ctx.user()));
    Ok(Place::of(ctx).show(&invitation))
}

pub(crate) fn decline(ctx: &Ctx, Link(claims): Link<Claims>) -> Result<Invitation> {
    let mut invitation = answered(ctx, &claims)?;
    invitation.close(Status::Declined, Some(ctx.now()));
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationDeclined::of(&invitation, ctx.user()));
    Ok(Place::of(ctx).show(&invitation))
}

/// The invitation, where it is for the caller to answer.
fn answered(ctx: &Ctx, claims: &Claims) -> Result<Stored<StoredInvitation>> {
    let mut invitation = ctx.documents::<StoredInvitation>().get(claims.invitation_id)?;
    let invited = ctx.account(&invitation.email);
    if invited.is_none_or(|account| account.user != ctx.user().to_string()) {
        return Err(Problem::permission_denied(
            "The invitation is for another e-mail address than yours.",
        )
        .hint("Sign in with the address that the invitation was sent to."));
    }
    if invitation.status_at(ctx.now()) != Status::Pending {
        return Err(not_pending(ctx, &invitation));
    }
    invitation.existing_account = true;
    Ok(invitation)
}
