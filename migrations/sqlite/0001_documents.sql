-- What the areas keep: documents, sealed secrets, the names of blobs, and the
-- answers that a retried request gets again. Areas bring no migrations; the
-- indexes and unique keys they declare are partial indexes on `documents`,
-- made when the area is installed. Times are microseconds since 1970.

CREATE TABLE documents (
    workspace_id BLOB NOT NULL,
    collection TEXT NOT NULL, -- area.name
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL, -- a JSON object
    PRIMARY KEY (workspace_id, collection, id)
) STRICT;

CREATE TABLE idempotency (
    workspace_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    status INTEGER NOT NULL,
    body TEXT,
    version INTEGER,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id, operation, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_expires_at ON idempotency (expires_at);

CREATE TABLE secrets (
    workspace_id BLOB NOT NULL,
    area TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, area, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    workspace_id BLOB NOT NULL,
    area TEXT NOT NULL,
    name TEXT NOT NULL,
    object TEXT NOT NULL, -- where the content is in the blob store
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, area, name)
) STRICT, WITHOUT ROWID;

-- The sweep asks which objects a row still names.
CREATE INDEX blobs_object ON blobs (object);
