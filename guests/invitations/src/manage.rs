//! What admins do with invitations.

use area_sdk::prelude::*;
use email_address::EmailAddress;

use crate::invitation::{
    GOOD_FOR_SECONDS, Invitation, InvitationCreated, InvitationRevoked, InvitedRole, Place, Status,
    StoredInvitation,
};
use crate::{expiry, letter};

/// Invitations of a workspace that may be pending at a time.
const MOST_PENDING: u64 = 500;

/// How often one invitation is sent.
const MOST_SENT: u32 = 10;

/// The longest address of an account.
const MOST_EMAIL_BYTES: usize = 254;

pub(crate) const DESCRIPTION: &str = "\
Sends a mail with which whoever reads it accepts or declines, signed in with an account of the \
invited address; who has none makes one with `POST /v1/auth/register` and the mail's token. An \
invitation is good for seven days. Only an owner invites an owner. One invitation for an address \
is pending at a time, and 500 in a workspace.";

/// Who is invited.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewInvitation {
    /// Where the mail goes; kept in lower case.
    #[schemars(length(min = 3, max = 254), extend("format" = "email"))]
    email: String,
    /// What the person will be.
    role: InvitedRole,
}

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewInvitation>,
) -> Result<Created<Versioned<Invitation>>> {
    let email = address(&new.email)?;
    check_may_invite(ctx.role(), new.role)?;
    let account = ctx.account(&email);
    let user = account.as_ref().and_then(|account| account.user.parse().ok());
    if user.is_some_and(|user| ctx.member(user).is_some()) {
        return Err(Problem::conflict(
            "already_member",
            "The person is a member of the workspace already.",
        ));
    }
    make_room(ctx, &email)?;
    let invitation = keep(ctx, email, new.role, account.is_some())?;
    ctx.publish(InvitationCreated::of(&invitation));
    letter::post(ctx, invitation.uuid());
    expiry::plan(ctx, invitation.uuid(), invitation.expires_at);
    Ok(Created(Versioned(Place::of(ctx).show(&invitation), invitation.version)))
}

/// Admins invite, and only an owner invites an owner.
pub(crate) fn may_invite(inviter: Role, role: InvitedRole) -> bool {
    inviter >= Role::Admin && (role != InvitedRole::Owner || inviter == Role::Owner)
}

fn check_may_invite(inviter: Role, role: InvitedRole) -> Result<()> {
    if may_invite(inviter, role) {
        return Ok(());
    }
    Err(Problem::permission_denied("Only an owner invites an owner."))
}

/// The address in the form in which it is kept.
fn address(given: &str) -> Result<String> {
    let email = given.trim().to_lowercase();
    // Quoted names with spaces or @ are addresses that nobody signs in with.
    let plain = email.matches('@').count() == 1 && !email.contains(char::is_whitespace);
    if plain && email.len() <= MOST_EMAIL_BYTES && EmailAddress::is_valid(&email) {
        Ok(email)
    } else {
        Err(Problem::validation("/email", "is not an e-mail address like name@example.com"))
    }
}

/// Refuses a second pending invitation of an address, and too many in all.
fn make_room(ctx: &Ctx, email: &str) -> Result<()> {
    let invitations = ctx.documents::<StoredInvitation>();
    if let Some(mut earlier) = invitations.query().equals("pending_email", email).first()? {
        if earlier.status_at(ctx.now()) == Status::Pending {
            return Err(Problem::conflict(
                "invitation_pending",
                "An invitation of this address waits for an answer already.",
            )
            .hint("Send it again, or revoke it first."));
        }
        expiry::expire(ctx, &mut earlier)?;
    }
    let pending = invitations.query().equals("status", Status::Pending.as_str()).count()?;
    if pending >= MOST_PENDING {
        return Err(Problem::conflict(
            "too_many_invitations",
            format!("{MOST_PENDING} invitations wait for an answer already."),
        ));
    }
    Ok(())
}

fn keep(
    ctx: &Ctx,
    email: String,
    role: InvitedRole,
    existing_account: bool,
) -> Result<Stored<StoredInvitation>> {
    let (id, now) = (ctx.new_id(), ctx.now());
    let value = StoredInvitation {
        pending_email: Some(email.clone()),
        email,
        role,
        status: Status::Pending,
        invited_by: ctx.user(),
        expires_at: now.plus_seconds(GOOD_FOR_SECONDS),
        last_sent_at: now,
        sent: 1,
        responded_at: None,
        existing_account,
    };
    ctx.documents().create(id, &value)?;
    Ok(Stored { id: id.to_string(), version: 1, created_at: now, updated_at: now, value })
}

pub(crate) fn resend(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let mut invitation = pending(ctx, id)?;
    if invitation.sent >= MOST_SENT {
        return Err(Problem::conflict(
            "invitation_sent_often",
            format!("The invitation was sent {MOST_SENT} times already."),
        )
        .hint("Revoke it and invite the person anew, or ask them whether mail arrives."));
    }
    check_may_invite(ctx.role(), invitation.role)?;
    // Whoever sends it again answers for it from now on.
    invitation.invited_by = ctx.user();
    invitation.sent += 1;
    invitation.last_sent_at = ctx.now();
    invitation.expires_at = ctx.now().plus_seconds(GOOD_FOR_SECONDS);
    invitation.existing_account = ctx.account(&invitation.email).is_some();
    ctx.documents().replace(&mut invitation)?;
    letter::post(ctx, id);
    Ok(Versioned(Place::of(ctx).show(&invitation), invitation.version))
}

pub(crate) fn revoke(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let mut invitation = pending(ctx, id)?;
    invitation.close(Status::Revoked, None);
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationRevoked::of(&invitation, ctx.user()));
    Ok(Versioned(Place::of(ctx).show(&invitation), invitation.version))
}

/// An invitation that waits for an answer, at the version the client saw.
fn pending(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredInvitation>> {
    let invitation = ctx.documents::<StoredInvitation>().get(id)?;
    ctx.check_if_match(invitation.version)?;
    if invitation.status_at(ctx.now()) == Status::Pending {
        Ok(invitation)
    } else {
        Err(not_pending(ctx, &invitation))
    }
}

pub(crate) fn not_pending(scope: &Scope, invitation: &StoredInvitation) -> Problem {
    let status = invitation.status_at(scope.now()).as_str();
    Problem::conflict("invitation_not_pending", format!("The invitation is {status} already."))
        .hint("An admin of the workspace can invite the address anew.")
}
