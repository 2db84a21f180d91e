-- Tokens of operators, with scopes, beside the one in operators.token. A token
-- is random, so its SHA-256 is kept; a revoked one stays for the audit log's
-- sake, and its name is free again.
CREATE TABLE operator_tokens (
    id         BLOB PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    -- Words with spaces between.
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE UNIQUE INDEX operator_tokens_name ON operator_tokens (name) WHERE revoked_at IS NULL;
