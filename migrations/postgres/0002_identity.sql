-- Who may do what: people, workspaces, memberships, sessions, second factors,
-- and what wrong passwords and codes have led to. No secret is kept as it is:
-- passwords are Argon2id, session tokens and recovery codes SHA-256 (they are
-- random, so there is nothing to guess), TOTP secrets sealed under the master
-- key. Times are microseconds since 1970.

CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text COLLATE "C" NOT NULL UNIQUE, -- lower case
    display_name text NOT NULL,
    email_verified boolean NOT NULL,
    password_hash text, -- PHC string; none: signs in by other means only
    created_at bigint NOT NULL,
    last_sign_in_at bigint
);

CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    slug text COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL
);

CREATE TABLE memberships (
    workspace_id uuid NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
    created_at bigint NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);

CREATE INDEX memberships_user ON memberships (user_id);

-- A flag without a row is on.
CREATE TABLE workspace_flags (
    workspace_id uuid NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    flag text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    PRIMARY KEY (workspace_id, flag)
);

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE, -- SHA-256 of the cookie's 32 bytes
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at bigint NOT NULL,
    last_seen_at bigint NOT NULL, -- kept to the minute
    expires_at bigint NOT NULL, -- however much it is used
    ip text,
    user_agent text
);

CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE totp (
    user_id uuid PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    sealed_secret bytea NOT NULL,
    confirmed_at bigint, -- none: enrolment has begun, and counts for nothing
    last_step bigint NOT NULL, -- the newest step used: each is good once
    recovery_locked_until bigint NOT NULL
);

CREATE TABLE recovery_codes (
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash bytea NOT NULL,
    used_at bigint,
    PRIMARY KEY (user_id, code_hash)
);

CREATE TABLE second_factor_failures (
    user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id uuid NOT NULL,
    failed_at bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);

-- By account (a keyed hash of the address that was tried, so that unknown ones
-- are treated alike and nobody's typing is kept) and by network address.
CREATE TABLE sign_in_failures (
    subject text COLLATE "C" PRIMARY KEY,
    failures bigint NOT NULL,
    last_failed_at bigint NOT NULL,
    blocked_until bigint NOT NULL
);

CREATE INDEX sign_in_failures_age ON sign_in_failures (last_failed_at);
