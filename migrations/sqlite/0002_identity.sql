-- Who may do what: people, workspaces, memberships, sessions, second factors,
-- and what wrong passwords and codes have led to. No secret is kept as it is:
-- passwords are Argon2id, session tokens and recovery codes SHA-256 (they are
-- random, so there is nothing to guess), TOTP secrets sealed under the master
-- key. Times are microseconds since 1970.

CREATE TABLE users (
    id BLOB PRIMARY KEY,
    email TEXT NOT NULL UNIQUE, -- lower case
    display_name TEXT NOT NULL,
    email_verified INTEGER NOT NULL,
    password_hash TEXT, -- PHC string; none: signs in by other means only
    created_at INTEGER NOT NULL,
    last_sign_in_at INTEGER
) STRICT;

CREATE TABLE workspaces (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE memberships (
    workspace_id BLOB NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) STRICT;

CREATE INDEX memberships_user ON memberships (user_id);

-- A flag without a row is on.
CREATE TABLE workspace_flags (
    workspace_id BLOB NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    flag TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, flag)
) STRICT;

CREATE TABLE sessions (
    id BLOB PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE, -- SHA-256 of the cookie's 32 bytes
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL, -- kept to the minute
    expires_at INTEGER NOT NULL, -- however much it is used
    ip TEXT,
    user_agent TEXT
) STRICT;

CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE totp (
    user_id BLOB PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    sealed_secret BLOB NOT NULL,
    confirmed_at INTEGER, -- none: enrolment has begun, and counts for nothing
    last_step INTEGER NOT NULL, -- the newest step used: each is good once
    recovery_locked_until INTEGER NOT NULL
) STRICT;

CREATE TABLE recovery_codes (
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash BLOB NOT NULL,
    used_at INTEGER,
    PRIMARY KEY (user_id, code_hash)
) STRICT;

CREATE TABLE second_factor_failures (
    user_id BLOB NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id BLOB NOT NULL,
    failed_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, id)
) STRICT;

-- By account (a keyed hash of the address that was tried, so that unknown ones
-- are treated alike and nobody's typing is kept) and by network address.
CREATE TABLE sign_in_failures (
    subject TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    last_failed_at INTEGER NOT NULL,
    blocked_until INTEGER NOT NULL
) STRICT;

CREATE INDEX sign_in_failures_age ON sign_in_failures (last_failed_at);
