//! Identifiers with a type for each entity, so that a workspace id cannot be
//! passed as a user id.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Returns a new time-ordered identifier (UUIDv7, RFC 9562).
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id!(
    /// Id of a workspace.
    WorkspaceId
);
id!(
    /// Id of a person who can sign in.
    UserId
);
id!(
    /// Public id of a user's session; not the secret in the cookie.
    SessionId
);
id!(
    /// Id of a workspace's access token; not its secret.
    AccessTokenId
);
id!(
    /// Id of a job in the durable queue.
    JobId
);
id!(
    /// Id of a published event, the same at every delivery.
    EventId
);
