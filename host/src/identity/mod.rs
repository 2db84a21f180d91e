//! Users, sessions, memberships, multi-factor authentication.
