-- What the areas keep: documents, sealed secrets, the names of blobs, and the
-- answers that a retried request gets again. Areas bring no migrations; the
-- indexes and unique keys they declare are partial indexes on `documents`,
-- made when the area is installed. Times are microseconds since 1970. Every
-- key begins with the workspace, so that a table can be distributed by it.

CREATE TABLE documents (
    workspace_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL, -- area.name
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    body jsonb NOT NULL, -- an object
    PRIMARY KEY (workspace_id, collection, id)
);

CREATE TABLE idempotency (
    workspace_id uuid NOT NULL,
    user_id uuid NOT NULL,
    operation text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    status bigint NOT NULL,
    body text,
    version bigint,
    expires_at bigint NOT NULL,
    PRIMARY KEY (workspace_id, user_id, operation, key)
);

CREATE INDEX idempotency_expires_at ON idempotency (expires_at);

CREATE TABLE secrets (
    workspace_id uuid NOT NULL,
    area text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (workspace_id, area, name)
);

CREATE TABLE blobs (
    workspace_id uuid NOT NULL,
    area text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL, -- where the content is in the blob store
    size bigint NOT NULL,
    sha256 text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (workspace_id, area, name)
);

-- The sweep asks which objects a row still names.
CREATE INDEX blobs_object ON blobs (object);

-- Ends a statement, and so its transaction, as a lost race, when it changed
-- fewer rows than it had to. A check inside the statement saves a round trip.
CREATE FUNCTION must_match(changed bigint, wanted bigint, code text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF changed <> wanted THEN
        RAISE EXCEPTION 'changed % rows instead of %', changed, wanted USING ERRCODE = code;
    END IF;
END
$$;
