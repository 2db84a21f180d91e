//! Marks invitations as expired.

use area_sdk::JobOptions;
use area_sdk::prelude::*;

use crate::invitation::{InvitationExpired, Status, StoredInvitation};

/// Job that marks an invitation as expired.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExpireInvitationJob {
    invitation_id: Uuid,
}

job!(ExpireInvitationJob, "expire_invitation");

/// Enqueues the job that marks an invitation as expired, for the time of its expiry.
pub(crate) fn plan(scope: &Scope, id: Uuid, expires_at: Timestamp) {
    let later = JobOptions { at: Some(expires_at), resource: Some(id), dedupe_key: None };
    scope.enqueue_with(&ExpireInvitationJob { invitation_id: id }, later);
}

pub(crate) fn run(ctx: &JobCtx, job: ExpireInvitationJob) -> JobResult<ExpireInvitationJob> {
    let found = ctx.documents::<StoredInvitation>().find(job.invitation_id)?;
    let Some(mut invitation) = found.filter(|found| found.status == Status::Pending) else {
        return Ok(Outcome::Done);
    };
    if invitation.status_at(ctx.now()) == Status::Pending {
        // The invitation was sent again with a later expiry.
        plan(ctx, job.invitation_id, invitation.expires_at);
    } else {
        expire(ctx, &mut invitation)?;
    }
    Ok(Outcome::Done)
}

/// Marks an invitation as expired and publishes the event.
pub(crate) fn expire(
    scope: &Scope,
    invitation: &mut Stored<StoredInvitation>,
) -> Result<(), area_sdk::DocumentError> {
    invitation.close(Status::Expired, None);
    scope.documents().replace(invitation)?;
    scope.publish(InvitationExpired::of(invitation));
    Ok(())
}
