//! Responses of invited persons. The mail's link identifies the invitation; the session proves that
//! the invited person responds.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{LinkClaims, NoSuchUser};

use crate::invitation::{
    Invitation, InvitationAccepted, InvitationDeclined, InvitationPresenter, LatestEmailDelivery,
    Status, StoredInvitation,
};
use crate::manage::{may_invite, not_pending};

/// Id of the operation that accepts an invitation.
pub(crate) const ACCEPT: &str = "accept_invitation";
/// Id of the operation that declines an invitation.
pub(crate) const DECLINE: &str = "decline_invitation";

/// Data in the signed links of an invitation's e-mail.
#[derive(Serialize, Deserialize)]
pub(crate) struct InvitationLinkClaims {
    pub(crate) invitation_id: Uuid,
}

pub(crate) fn accept(
    ctx: &Ctx,
    LinkClaims(claims): LinkClaims<InvitationLinkClaims>,
) -> Result<Invitation> {
    let mut invitation = answered(ctx, &claims)?;
    check_inviter(ctx, &invitation)?;
    ctx.add_member(ctx.user(), invitation.role.into())
        .map_err(|NoSuchUser| Problem::not_found())?;
    invitation.close(Status::Accepted, Some(ctx.now()));
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationAccepted::of(&invitation, ctx.user()));
    Ok(InvitationPresenter::of(ctx).show(&invitation))
}

/// Checks that the inviter may still invite for this role. The inviter's current role counts, not
/// the role at the time of the invitation.
fn check_inviter(ctx: &Ctx, invitation: &StoredInvitation) -> Result<()> {
    let inviter = ctx.member(invitation.invited_by);
    if inviter.is_some_and(|inviter| may_invite(inviter.role, invitation.role)) {
        return Ok(());
    }
    let role = name(&invitation.role);
    let detail =
        format!("The inviter no longer has the right to invite a {role} to this workspace.");
    Err(Problem::conflict("inviter_not_allowed", detail)
        .hint("Ask an admin of the workspace to send the invitation again."))
}

pub(crate) fn decline(
    ctx: &Ctx,
    LinkClaims(claims): LinkClaims<InvitationLinkClaims>,
) -> Result<Invitation> {
    let mut invitation = answered(ctx, &claims)?;
    invitation.close(Status::Declined, Some(ctx.now()));
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationDeclined::of(&invitation, ctx.user()));
    Ok(InvitationPresenter::of(ctx).show(&invitation))
}

/// Returns the pending invitation of the link, if its address is the caller's.
fn answered(ctx: &Ctx, claims: &InvitationLinkClaims) -> Result<Stored<StoredInvitation>> {
    let mut invitation = ctx.documents::<StoredInvitation>().get(claims.invitation_id)?;
    let invited = ctx.account(&invitation.email);
    if invited.is_none_or(|account| account.user != ctx.user().to_string()) {
        return Err(Problem::permission_denied("The invitation is for another e-mail address.")
            .hint("Sign in with the address that the invitation was sent to."));
    }
    if invitation.status_at(ctx.now()) != Status::Pending {
        return Err(not_pending(ctx, &invitation));
    }
    invitation.existing_account = true;
    LatestEmailDelivery::apply(ctx, std::slice::from_mut(&mut invitation))?;
    Ok(invitation)
}
