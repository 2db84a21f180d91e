//! Invitations (operation 21). An admin invites an e-mail address. The person who receives the
//! e-mail accepts or declines, and may create an account first.
//!
//! Invariant: the tokens exist only in the e-mail. They are signed when the e-mail is composed; no
//! document, event, log line or job contains one.

mod expiry;
mod invitation;
mod letter;
mod lists;
mod manage;
mod respond;

use area_sdk::LinkHolder;
use area_sdk::prelude::*;

use expiry::ExpireInvitationJob;
use invitation::{
    InvitationAccepted, InvitationCreated, InvitationDeclined, InvitationExpired,
    InvitationRevoked, LatestEmailDelivery, StoredInvitation,
};
use letter::SendInvitationJob;

/// Declares the area `invitations`: its operations, collections, events and jobs.
pub fn area() -> Area {
    let area = Area::new("invitations", env!("CARGO_PKG_VERSION"))
        .summary("Invitations to the workspace")
        .uses(&[
            Capability::Directory,
            Capability::Links,
            Capability::Mail,
            Capability::Membership,
            Capability::Settings,
        ])
        .collections([
            Collection::of::<StoredInvitation>()
                .summary("One invitation each, without its token")
                .index(&["status"])
                .unique(&["pending_email"]),
            Collection::of::<LatestEmailDelivery>()
                .summary("Time of the last e-mail of each invitation"),
        ])
        .event::<InvitationCreated>("A person was invited to the workspace")
        .event::<InvitationAccepted>("An invitation was accepted: the workspace has a new member")
        .event::<InvitationDeclined>("An invitation was declined")
        .event::<InvitationRevoked>("An invitation was revoked")
        .event::<InvitationExpired>("An invitation expired")
        .job::<SendInvitationJob>(Lane::Delivery, letter::ATTEMPTS, 30_000, letter::send)
        .job::<ExpireInvitationJob>(Lane::Maintenance, 5, 10_000, expiry::run);
    with_answers(with_management(area))
}

/// Adds to the area the operations with which admins manage invitations.
fn with_management(area: Area) -> Area {
    area.routes([
        post("create_invitation", "/v1/workspaces/{workspace_id}/invitations")
            .summary("Invite a person by e-mail")
            .description(manage::DESCRIPTION)
            .role(Role::Admin)
            .problems(&["already_member", "invitation_pending", "too_many_invitations"])
            .example(include_str!("../examples/create_invitation.json"))
            .handler(manage::create),
        get("list_invitations", "/v1/workspaces/{workspace_id}/invitations")
            .summary("List the workspace's invitations")
            .description(
                "The newest 100, newest first; older ones are paged through \
                 `/invitation-history`. `status` is pending, accepted, declined, expired or \
                 revoked.",
            )
            .in_contract()
            .role(Role::Admin)
            .example(include_str!("../examples/list_invitations.json"))
            .handler(lists::newest),
        get("page_invitations", "/v1/workspaces/{workspace_id}/invitation-history")
            .summary("Page through the workspace's invitations")
            .description("One page of all invitations, answered and expired ones included.")
            .role(Role::Admin)
            .example(include_str!("../examples/page_invitations.json"))
            .handler(lists::page),
        get("get_invitation", "/v1/workspaces/{workspace_id}/invitations/{invitation_id}")
            .summary("Read an invitation")
            .description(
                "The `ETag` of the response is the version that a change names in `If-Match`.",
            )
            .role(Role::Admin)
            .example(include_str!("../examples/get_invitation.json"))
            .handler(lists::show),
        post(
            "resend_invitation",
            "/v1/workspaces/{workspace_id}/invitations/{invitation_id}/resend",
        )
        .summary("Send an invitation's mail again")
        .description(
            "The invitation is valid for another seven days. It can be sent at most ten times, \
            including the first time. The user who sends it again becomes its inviter.",
        )
        .role(Role::Admin)
        .problems(&["invitation_not_pending", "invitation_sent_often"])
        .example(include_str!("../examples/resend_invitation.json"))
        .if_match()
        .handler(manage::resend),
        post(
            "revoke_invitation",
            "/v1/workspaces/{workspace_id}/invitations/{invitation_id}/revoke",
        )
        .summary("Revoke an invitation")
        .description(
            "Its links to accept and decline stop working. The mail's token for `POST \
             /v1/auth/register` is valid for the rest of the seven days: it proves access to the \
             address and creates an account, which is not a member of this workspace. An \
             invitation that is not pending is refused with `invitation_not_pending`.",
        )
        .role(Role::Admin)
        .problems(&["invitation_not_pending"])
        .example(include_str!("../examples/revoke_invitation.json"))
        .if_match()
        .handler(manage::revoke),
    ])
}

/// Adds to the area the operations with which invited persons respond.
fn with_answers(area: Area) -> Area {
    area.routes([
        post("accept_invitation", "/v1/invitations/accept")
            .summary("Accept an invitation")
            .description(
                "Requires the token of the invitation's mail, and a session of the address to \
                which it was sent. A person without an account creates one with `POST \
                /v1/auth/register`. A person who is already a member keeps a higher role. The \
                inviter's role is checked again.",
            )
            .role(Role::Viewer)
            .signed_link("token", LinkHolder::SignedIn)
            .problems(&["invitation_not_pending", "inviter_not_allowed"])
            .example(include_str!("../examples/accept_invitation.json"))
            .handler(respond::accept),
        post("decline_invitation", "/v1/invitations/decline")
            .summary("Decline an invitation")
            .description(
                "Requires the other token of the invitation's mail, and a session of the address \
                to which it was sent.",
            )
            .role(Role::Viewer)
            .signed_link("token", LinkHolder::SignedIn)
            .problems(&["invitation_not_pending"])
            .example(include_str!("../examples/decline_invitation.json"))
            .handler(respond::decline),
    ])
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
