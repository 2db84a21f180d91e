-- Machines need a credential that lasts longer than a session, opens one
-- workspace only and can be revoked by itself. A token is random, so its
-- SHA-256 is kept. A row goes with its maker's membership: whoever leaves the
-- workspace leaves no token behind. Times are microseconds since 1970.

CREATE TABLE access_tokens (
    id BLOB PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE, -- SHA-256 of the whole text
    workspace_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin')), -- the highest
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER, -- kept to the minute
    FOREIGN KEY (workspace_id, user_id)
        REFERENCES memberships (workspace_id, user_id) ON DELETE CASCADE
) STRICT;

CREATE INDEX access_tokens_member ON access_tokens (workspace_id, user_id);
