//! Operations of admins on invitations.

use area_sdk::prelude::*;
use area_sdk::text::name;
use email_address::EmailAddress;

use crate::invitation::{
    GOOD_FOR_SECONDS, Invitation, InvitationCreated, InvitationPresenter, InvitationRevoked,
    InvitedRole, LatestEmailDelivery, Status, StoredInvitation,
};
use crate::{expiry, letter};

/// Maximum number of pending invitations of a workspace.
const MOST_PENDING: u64 = 500;

/// Maximum number of times that the e-mail of an invitation is sent.
const MOST_SENT: u32 = 10;

/// Maximum size of an e-mail address, in bytes.
const MOST_EMAIL_BYTES: usize = 254;

pub(crate) const DESCRIPTION: &str = "Sends a mail with which the invited person accepts or \
    declines, signed in with an account of the invited address. A person without one creates it \
    with `POST /v1/auth/register` and the mail's token. An invitation is valid for seven days. \
    Only an owner can invite an owner. A workspace can have one pending invitation for an \
    address, and 500 in total.";

/// A request to invite a person to the workspace.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewInvitation {
    /// E-mail address of the person; stored in lower case.
    #[schemars(length(min = 3, max = 254), extend("format" = "email"))]
    email: String,
    /// Role that the person gets in the workspace.
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
            "The person is already a member of the workspace.",
        ));
    }
    make_room(ctx, &email)?;
    let invitation = keep(ctx, email, new.role, account.is_some())?;
    ctx.publish(InvitationCreated::of(&invitation));
    letter::post(ctx, &invitation);
    expiry::plan(ctx, invitation.uuid(), invitation.expires_at);
    Ok(Created(Versioned(InvitationPresenter::of(ctx).show(&invitation), invitation.version)))
}

/// Whether a user may invite for a role: admins may, but only an owner may invite an owner.
pub(crate) fn may_invite(inviter: Role, role: InvitedRole) -> bool {
    inviter >= Role::Admin && (role != InvitedRole::Owner || inviter == Role::Owner)
}

fn check_may_invite(inviter: Role, role: InvitedRole) -> Result<()> {
    if may_invite(inviter, role) {
        return Ok(());
    }
    Err(Problem::permission_denied("Only an owner can invite an owner."))
}

/// Validates the e-mail address of an invitation and converts it to lower case.
fn address(given: &str) -> Result<String> {
    let email = given.trim().to_lowercase();
    // Refuses quoted names with spaces or `@`: nobody signs in with such an address.
    let plain = email.matches('@').count() == 1 && !email.contains(char::is_whitespace);
    if plain && email.len() <= MOST_EMAIL_BYTES && EmailAddress::is_valid(&email) {
        Ok(email)
    } else {
        Err(Problem::validation("/email", "is not an e-mail address like name@example.com"))
    }
}

/// Refuses a second pending invitation for an address, and more pending invitations than the
/// maximum.
fn make_room(ctx: &Ctx, email: &str) -> Result<()> {
    let invitations = ctx.documents::<StoredInvitation>();
    if let Some(mut earlier) = invitations.query().equals("pending_email", email).first()? {
        if earlier.status_at(ctx.now()) == Status::Pending {
            return Err(Problem::conflict(
                "invitation_pending",
                "An invitation for this address is already pending.",
            )
            .hint("Send it again, or revoke it first."));
        }
        expiry::expire(ctx, &mut earlier)?;
    }
    let pending = invitations.query().equals("status", name(&Status::Pending)).count()?;
    if pending >= MOST_PENDING {
        return Err(Problem::conflict(
            "too_many_invitations",
            format!(
                "The workspace already has {MOST_PENDING} pending invitations, which is the \
                maximum."
            ),
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
    let now = ctx.now();
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
    Ok(ctx.documents().create_stored(ctx.new_id(), value)?)
}

pub(crate) fn resend(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let mut invitation = pending(ctx, id)?;
    if invitation.sent >= MOST_SENT {
        return Err(Problem::conflict(
            "invitation_sent_often",
            format!("The invitation was already sent {MOST_SENT} times, which is the maximum."),
        )
        .hint("Revoke it and invite the person again, or ask whether the mail arrived."));
    }
    check_may_invite(ctx.role(), invitation.role)?;
    // The user who sends it again becomes the inviter.
    invitation.invited_by = ctx.user();
    invitation.sent += 1;
    invitation.expires_at = ctx.now().plus_seconds(GOOD_FOR_SECONDS);
    invitation.existing_account = ctx.account(&invitation.email).is_some();
    ctx.documents().replace(&mut invitation)?;
    letter::post(ctx, &invitation);
    Ok(Versioned(InvitationPresenter::of(ctx).show(&invitation), invitation.version))
}

pub(crate) fn revoke(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Invitation>> {
    let mut invitation = pending(ctx, id)?;
    invitation.close(Status::Revoked, None);
    ctx.documents().replace(&mut invitation)?;
    ctx.publish(InvitationRevoked::of(&invitation, ctx.user()));
    Ok(Versioned(InvitationPresenter::of(ctx).show(&invitation), invitation.version))
}

/// Returns the pending invitation with this id, or an error; checks `If-Match`.
fn pending(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredInvitation>> {
    let mut invitation = ctx.documents::<StoredInvitation>().get(id)?;
    ctx.check_if_match(invitation.version)?;
    LatestEmailDelivery::apply(ctx, std::slice::from_mut(&mut invitation))?;
    if invitation.status_at(ctx.now()) == Status::Pending {
        Ok(invitation)
    } else {
        Err(not_pending(ctx, &invitation))
    }
}

pub(crate) fn not_pending(scope: &Scope, invitation: &StoredInvitation) -> Problem {
    let status = invitation.status_at(scope.now());
    let hint = match status {
        Status::Accepted => {
            "The person became a member. If they were removed since, an admin can invite the \
             address again."
        }
        _ => "An admin of the workspace can invite the address again.",
    };
    let detail = format!("The invitation is already {}.", name(&status));
    Problem::conflict("invitation_not_pending", detail).hint(hint)
}
