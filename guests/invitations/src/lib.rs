//! Invitations (operation 21): how people come to a workspace. An admin
//! invites an e-mail address; whoever reads its mail accepts or declines, with
//! an account made on the way where there was none.
//!
//! Invariant: the tokens are in the mail alone. They are signed when the mail
//! is written, and no document, event, log line or job holds one.

mod expiry;
mod invitation;
mod letter;
mod lists;
mod manage;
mod respond;

use area_sdk::LinkHolder;
use area_sdk::prelude::*;

use expiry::ExpireInvitation;
use invitation::{
    InvitationAccepted, InvitationCreated, InvitationDeclined, InvitationExpired,
    InvitationRevoked, StoredInvitation,
};
use letter::SendInvitation;

/// The area.
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
        .collection(
            Collection::of::<StoredInvitation>()
                .summary("One invitation each, without its token")
                .text("status")
                .text("pending_email")
                .index(&["status"])
                .unique(&["pending_email"]),
        )
        .event::<InvitationCreated>("Somebody was invited to the workspace")
        .event::<InvitationAccepted>("An invitation was accepted: the workspace has a new member")
        .event::<InvitationDeclined>("An invitation was declined")
        .event::<InvitationRevoked>("An invitation was taken back")
        .event::<InvitationExpired>("An invitation was not answered in time")
        .job::<SendInvitation>(Lane::Delivery, 20, 30_000, letter::send)
        .job::<ExpireInvitation>(Lane::Maintenance, 5, 10_000, expiry::run);
    with_answers(with_management(area))
}

/// What admins do.
fn with_management(area: Area) -> Area {
    area.route(
        post("create_invitation", "/v1/workspaces/{workspace_id}/invitations")
            .summary("Invite somebody by e-mail")
            .description(manage::DESCRIPTION)
            .role(Role::Admin)
            .problems(&["already_member", "invitation_pending", "too_many_invitations"])
            .handler(manage::create),
    )
    .route(
        get("list_invitations", "/v1/workspaces/{workspace_id}/invitations")
            .summary("List the workspace's invitations")
            .description(
                "The newest 100, newest first; older ones are paged through \
                 `/invitation-history`. `status` is pending, accepted, declined, expired or \
                 revoked.",
            )
            .in_contract()
            .role(Role::Admin)
            .handler(lists::newest),
    )
    .route(
        get("page_invitations", "/v1/workspaces/{workspace_id}/invitation-history")
            .summary("Page through the workspace's invitations")
            .role(Role::Admin)
            .handler(lists::page),
    )
    .route(
        get("get_invitation", "/v1/workspaces/{workspace_id}/invitations/{invitation_id}")
            .summary("Read an invitation")
            .role(Role::Admin)
            .handler(lists::show),
    )
    .route(
        post(
            "resend_invitation",
            "/v1/workspaces/{workspace_id}/invitations/{invitation_id}/resend",
        )
        .summary("Send an invitation's mail again")
        .description(
            "The invitation is good for another seven days. It is sent ten times at most, the \
             first one included. Who sends it again is its inviter from then on.",
        )
        .role(Role::Admin)
        .problems(&["invitation_not_pending", "invitation_sent_often"])
        .handler(manage::resend),
    )
    .route(
        post(
            "revoke_invitation",
            "/v1/workspaces/{workspace_id}/invitations/{invitation_id}/revoke",
        )
        .summary("Take an invitation back")
        .role(Role::Admin)
        .problems(&["invitation_not_pending"])
        .handler(manage::revoke),
    )
}

/// What invited people do.
fn with_answers(area: Area) -> Area {
    area.route(
        post("accept_invitation", "/v1/invitations/accept")
            .summary("Accept an invitation")
            .description(
                "With the token of the invitation's mail, signed in with the address it was sent \
                 to. Who has no account yet makes one with `POST /v1/auth/register`. Who is a \
                 member already keeps a higher role. The inviter's role is checked again.",
            )
            .role(Role::Viewer)
            .signed_link("token", LinkHolder::SignedIn)
            .problems(&["invitation_not_pending", "inviter_not_allowed"])
            .handler(respond::accept),
    )
    .route(
        post("decline_invitation", "/v1/invitations/decline")
            .summary("Decline an invitation")
            .description(
                "With the other token of the invitation's mail, signed in with the address it \
                 was sent to.",
            )
            .role(Role::Viewer)
            .signed_link("token", LinkHolder::SignedIn)
            .problems(&["invitation_not_pending"])
            .handler(respond::decline),
    )
}

area_sdk::export!(area);

#[cfg(test)]
mod tests;
