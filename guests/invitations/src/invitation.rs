//! What an invitation is, where it stands, and what is told of it.

use area_sdk::prelude::*;

/// How long an invitation is good.
pub(crate) const GOOD_FOR_SECONDS: i64 = 7 * 24 * 3600;

/// What an invited person may become.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InvitedRole {
    /// Reads.
    Viewer,
    /// Works.
    Member,
    /// Configures.
    Admin,
    /// Decides who is an owner.
    Owner,
}

impl InvitedRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
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

/// Where an invitation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// Waits for an answer.
    Pending,
    /// The person is a member.
    Accepted,
    /// The person does not want to be one.
    Declined,
    /// There was no answer in time.
    Expired,
    /// An admin took it back.
    Revoked,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::Declined => "declined",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// An invitation as it is kept; id and creation are the document's.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredInvitation {
    /// Lower case.
    pub(crate) email: String,
    /// The same while it is pending: at most one is for each address.
    pub(crate) pending_email: Option<String>,
    pub(crate) role: InvitedRole,
    pub(crate) status: Status,
    pub(crate) invited_by: Uuid,
    pub(crate) expires_at: Timestamp,
    pub(crate) last_sent_at: Timestamp,
    /// How often it was sent.
    pub(crate) sent: u32,
    pub(crate) responded_at: Option<Timestamp>,
    /// Whether the address had an account when this was last written.
    pub(crate) existing_account: bool,
}

impl Document for StoredInvitation {
    const COLLECTION: &'static str = "invitations";
}

impl StoredInvitation {
    /// Where it stands at this moment: time passes before the job that notes
    /// it has run.
    pub(crate) fn status_at(&self, now: Timestamp) -> Status {
        let late = self.status == Status::Pending && now >= self.expires_at;
        if late { Status::Expired } else { self.status }
    }

    /// It waits for no answer any more.
    pub(crate) fn close(&mut self, status: Status, responded_at: Option<Timestamp>) {
        self.status = status;
        self.pending_email = None;
        self.responded_at = responded_at;
    }
}

/// An invitation as the contract shows it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Invitation {
    created_at: Timestamp,
    #[schemars(extend("format" = "email"))]
    email: String,
    /// Whether somebody can sign in with the address.
    existing_account: bool,
    expires_at: Timestamp,
    id: Uuid,
    invited_by: Uuid,
    /// When its mail was last put on its way.
    last_sent_at: Timestamp,
    /// When it was accepted or declined.
    responded_at: Option<Timestamp>,
    role: InvitedRole,
    status: Status,
    workspace_id: Uuid,
    workspace_name: String,
    workspace_slug: String,
}

/// The workspace, as invitations show it.
pub(crate) struct Place {
    id: Uuid,
    name: String,
    slug: String,
    now: Timestamp,
}

impl Place {
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

/// What every event tells of an invitation.
#[derive(Serialize, JsonSchema)]
struct About {
    invitation_id: Uuid,
    email: String,
    role: InvitedRole,
}

impl About {
    fn of(invitation: &Stored<StoredInvitation>) -> Self {
        let (email, role) = (invitation.email.clone(), invitation.role);
        Self { invitation_id: invitation.uuid(), email, role }
    }
}

/// Told when somebody is invited.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InvitationCreated {
    #[serde(flatten)]
    about: About,
    invited_by: Uuid,
    expires_at: Timestamp,
}

impl InvitationCreated {
    pub(crate) fn of(invitation: &Stored<StoredInvitation>) -> Self {
        let (invited_by, expires_at) = (invitation.invited_by, invitation.expires_at);
        Self { about: About::of(invitation), invited_by, expires_at }
    }
}

impl Event for InvitationCreated {
    const NAME: &'static str = "invitation.created";
}

/// An event that tells who did it.
macro_rules! done_by_somebody {
    ($(#[$doc:meta])* $event:ident, $name:literal) => {
        $(#[$doc])*
        #[derive(Serialize, JsonSchema)]
        pub(crate) struct $event {
            #[serde(flatten)]
            about: About,
            user_id: Uuid,
        }

        impl $event {
            pub(crate) fn of(invitation: &Stored<StoredInvitation>, user_id: Uuid) -> Self {
                Self { about: About::of(invitation), user_id }
            }
        }

        impl Event for $event {
            const NAME: &'static str = $name;
        }
    };
}

done_by_somebody!(
    /// Told when the invited person becomes a member.
    InvitationAccepted,
    "invitation.accepted"
);
done_by_somebody!(
    /// Told when the invited person does not want to become one.
    InvitationDeclined,
    "invitation.declined"
);
done_by_somebody!(
    /// Told when an admin takes an invitation back.
    InvitationRevoked,
    "invitation.revoked"
);

/// Told when nobody answered in time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InvitationExpired(About);

impl InvitationExpired {
    pub(crate) fn of(invitation: &Stored<StoredInvitation>) -> Self {
        Self(About::of(invitation))
    }
}

impl Event for InvitationExpired {
    const NAME: &'static str = "invitation.expired";
}
