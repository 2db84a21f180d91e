//! Invitations: response, stored form, status and events.

use std::collections::BTreeMap;

use area_sdk::DocumentError;
use area_sdk::prelude::*;

/// Lifetime of an invitation, in seconds.
pub(crate) const GOOD_FOR_SECONDS: i64 = 7 * 24 * 3600;

/// Role that an invitation offers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InvitedRole {
    /// May read the workspace.
    Viewer,
    /// May read and write.
    Member,
    /// May configure the workspace.
    Admin,
    /// May do everything, including appointing owners.
    Owner,
}

impl From<InvitedRole> for Role {
    fn from(role: InvitedRole) -> Self {
        match role {
            InvitedRole::Viewer => Self::Viewer,
            InvitedRole::Member => Self::Member,
            InvitedRole::Admin => Self::Admin,
            InvitedRole::Owner => Self::Owner,
        }
    }
}

/// Status of an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The invitation waits for a response.
    Pending,
    /// The invited person accepted and became a member.
    Accepted,
    /// The invited person declined.
    Declined,
    /// The invitation expired without a response.
    Expired,
    /// An admin revoked the invitation.
    Revoked,
}

/// A stored invitation. Id and creation time are those of the document.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredInvitation {
    /// E-mail address of the invited person, in lower case.
    pub(crate) email: String,
    /// Equal to `email` while pending, so that each address has at most one pending invitation.
    pub(crate) pending_email: Option<String>,
    pub(crate) role: InvitedRole,
    pub(crate) status: Status,
    pub(crate) invited_by: Uuid,
    pub(crate) expires_at: Timestamp,
    /// Time of the invitation, or of its last e-mail before the last write.
    pub(crate) last_sent_at: Timestamp,
    /// Number of times that the e-mail of the invitation was enqueued.
    pub(crate) sent: u32,
    pub(crate) responded_at: Option<Timestamp>,
    /// Whether an account with this address existed when this document was last written.
    pub(crate) existing_account: bool,
}

document!(StoredInvitation, "invitations");

impl StoredInvitation {
    /// Returns the status at a time. It is `Expired` from the expiry on, even before the job marks
    /// the document.
    pub(crate) fn status_at(&self, now: Timestamp) -> Status {
        let late = self.status == Status::Pending && now >= self.expires_at;
        if late { Status::Expired } else { self.status }
    }

    /// Sets the final status of the invitation.
    pub(crate) fn close(&mut self, status: Status, responded_at: Option<Timestamp>) {
        self.status = status;
        self.pending_email = None;
        self.responded_at = responded_at;
    }
}

/// Time at which the last e-mail of an invitation was sent. The document's id is the invitation's.
/// It is not part of the invitation, so that sending an e-mail does not change its version.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub(crate) struct LatestEmailDelivery {
    sent_at: Timestamp,
}

document!(LatestEmailDelivery, "deliveries");

impl LatestEmailDelivery {
    /// Stores that an e-mail of an invitation was sent at this time.
    pub(crate) fn record(
        scope: &Scope,
        invitation_id: Uuid,
        sent_at: Timestamp,
    ) -> Result<(), DocumentError> {
        let deliveries = scope.documents::<Self>();
        match deliveries.find(invitation_id)? {
            Some(mut earlier) => {
                earlier.sent_at = earlier.sent_at.max(sent_at);
                deliveries.replace(&mut earlier)
            }
            None => deliveries.create(invitation_id, &Self { sent_at }),
        }
    }

    /// Sets `last_sent_at` of invitations that were read, from their stored deliveries. Stores
    /// nothing.
    pub(crate) fn apply(
        scope: &Scope,
        invitations: &mut [Stored<StoredInvitation>],
    ) -> Result<(), DocumentError> {
        let ids = invitations.iter().map(|invitation| &invitation.id);
        let deliveries = scope.documents::<Self>().get_many(ids)?.into_iter();
        let times: BTreeMap<String, Timestamp> =
            deliveries.map(|delivery| (delivery.id, delivery.value.sent_at)).collect();
        for invitation in invitations {
            if let Some(sent_at) = times.get(&invitation.id) {
                invitation.last_sent_at = *sent_at;
            }
        }
        Ok(())
    }
}

/// An invitation of a person to the workspace.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Invitation {
    created_at: Timestamp,
    #[schemars(extend("format" = "email"))]
    email: String,
    /// Whether an account with this e-mail address exists.
    existing_account: bool,
    expires_at: Timestamp,
    id: Uuid,
    invited_by: Uuid,
    /// Time at which the e-mail was last sent; before the first time, the time of the invitation.
    last_sent_at: Timestamp,
    /// Time at which the person accepted or declined; null before.
    responded_at: Option<Timestamp>,
    role: InvitedRole,
    status: Status,
    workspace_id: Uuid,
    workspace_name: String,
    workspace_slug: String,
}

/// Converts stored invitations for responses, with the inviting workspace and the current time.
pub(crate) struct InvitationPresenter {
    id: Uuid,
    name: String,
    slug: String,
    now: Timestamp,
}

impl InvitationPresenter {
    pub(crate) fn of(scope: &Scope) -> Self {
        let (name, slug) = scope.workspace();
        Self { id: scope.workspace_id(), name, slug, now: scope.now() }
    }

    pub(crate) fn show(&self, invitation: &Stored<StoredInvitation>) -> Invitation {
        Invitation {
            created_at: invitation.created_at,
            email: invitation.email.clone(),
            existing_account: invitation.existing_account,
            expires_at: invitation.expires_at,
            id: invitation.uuid(),
            invited_by: invitation.invited_by,
            last_sent_at: invitation.last_sent_at,
            responded_at: invitation.responded_at,
            role: invitation.role,
            status: invitation.status_at(self.now),
            workspace_id: self.id,
            workspace_name: self.name.clone(),
            workspace_slug: self.slug.clone(),
        }
    }
}

/// Data that all events about an invitation have.
#[derive(Serialize, JsonSchema)]
struct InvitationEvent {
    invitation_id: Uuid,
    email: String,
    role: InvitedRole,
}

impl InvitationEvent {
    fn of(invitation: &Stored<StoredInvitation>) -> Self {
        let (email, role) = (invitation.email.clone(), invitation.role);
        Self { invitation_id: invitation.uuid(), email, role }
    }
}

/// Published when a person was invited.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InvitationCreated {
    #[serde(flatten)]
    about: InvitationEvent,
    invited_by: Uuid,
    expires_at: Timestamp,
}

impl InvitationCreated {
    pub(crate) fn of(invitation: &Stored<StoredInvitation>) -> Self {
        let (invited_by, expires_at) = (invitation.invited_by, invitation.expires_at);
        Self { about: InvitationEvent::of(invitation), invited_by, expires_at }
    }
}

event!(InvitationCreated, "invitation.created");

/// Defines an event about an invitation that also contains the acting user.
macro_rules! done_by_somebody {
    ($(#[$doc:meta])* $event:ident, $name:literal) => {
        $(#[$doc])*
        #[derive(Serialize, JsonSchema)]
        pub(crate) struct $event {
            #[serde(flatten)]
            about: InvitationEvent,
            user_id: Uuid,
        }

        impl $event {
            pub(crate) fn of(invitation: &Stored<StoredInvitation>, user_id: Uuid) -> Self {
                Self { about: InvitationEvent::of(invitation), user_id }
            }
        }

        event!($event, $name);
    };
}

done_by_somebody!(
    /// Published when the invited person became a member.
    InvitationAccepted,
    "invitation.accepted"
);
done_by_somebody!(
    /// Published when the invited person declined.
    InvitationDeclined,
    "invitation.declined"
);
done_by_somebody!(
    /// Published when an admin revoked an invitation.
    InvitationRevoked,
    "invitation.revoked"
);

/// Published when an invitation expired.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InvitationExpired(InvitationEvent);

impl InvitationExpired {
    pub(crate) fn of(invitation: &Stored<StoredInvitation>) -> Self {
        Self(InvitationEvent::of(invitation))
    }
}

event!(InvitationExpired, "invitation.expired");
