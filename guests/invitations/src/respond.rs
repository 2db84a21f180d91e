//! What an invited person answers. The link of the mail shows which
//! invitation; the session, that the answer is the invited person's.

use area_sdk::prelude::*;
use area_sdk::{Link, NoSuchUser};

use crate::invitation::{
    Invitation, InvitationAccepted, InvitationDeclined, Place, Status, StoredInvitation,
};
use crate::manage::{may_invite, not_pending};

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
    check_inviter(ctx, &invitation)?;
    ctx.add_member(ctx.user(), invitation.role.into())
        .map_err(|NoSuchUser| Problem::not_found())?;
    invitation.close(Status::Accepted, Some(ctx.now()));
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationAccepted::of(&invitation, ctx.user()));
    Ok(Place::of(ctx).show(&invitation))
}

/// An invitation is worth what its inviter may do now, not when it was sent.
fn check_inviter(ctx: &Ctx, invitation: &StoredInvitation) -> Result<()> {
    let inviter = ctx.member(invitation.invited_by);
    if inviter.is_some_and(|inviter| may_invite(inviter.role, invitation.role)) {
        return Ok(());
    }
    let role = invitation.role.as_str();
    let detail = format!(
        "The person who sent the invitation can no longer invite anybody as {role} to this \
         workspace."
    );
    Err(Problem::conflict("inviter_not_allowed", detail)
        .hint("Ask an admin of the workspace to send the invitation again."))
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
