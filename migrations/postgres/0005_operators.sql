-- Tokens of operators, with scopes, beside the one in operators.token. A token
-- is random, so its SHA-256 is kept; a revoked one stays for the audit log's
-- sake, and its name is free again.
CREATE TABLE operator_tokens (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    token_hash bytea NOT NULL UNIQUE,
    -- Words with spaces between.
    scopes     text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
);

CREATE UNIQUE INDEX operator_tokens_name ON operator_tokens (name) WHERE revoked_at IS NULL;
