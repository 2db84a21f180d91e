-- Which version of which area is live, how it came to be, and who did what.
-- The components' bytes are in the blob store, named by their digest. Times
-- are microseconds since 1970, digests SHA-256 in lower-case hex.

-- Every version that passed the checks, whether it ever answered or not.
CREATE TABLE area_versions (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    area        text NOT NULL COLLATE "C",
    digest      text NOT NULL COLLATE "C",
    version     text NOT NULL COLLATE "C",
    -- As the component described itself: what later versions are held against.
    manifest    text NOT NULL,
    size        bigint NOT NULL,
    object      text NOT NULL COLLATE "C",
    -- Who signed the digest; nobody where development mode took it unsigned.
    publisher   text COLLATE "C",
    signature   bytea,
    stage       text NOT NULL COLLATE "C",
    received_at bigint NOT NULL,
    received_by text NOT NULL,
    approved_at bigint,
    approved_by text,
    -- When it last began to answer.
    live_at     bigint,
    UNIQUE (area, digest)
);

-- One pointer for each area; every node follows it.
CREATE TABLE live_areas (
    area       text PRIMARY KEY COLLATE "C",
    -- None: the area was taken out.
    digest     text COLLATE "C",
    -- Where a rollback goes.
    previous   text COLLATE "C",
    -- Grows with every change, so that two operators cannot both win.
    revision   bigint NOT NULL,
    changed_at bigint NOT NULL,
    changed_by text NOT NULL
);

-- Who did what, when and why. Only ever added to.
CREATE TABLE audit_log (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    who     text NOT NULL,
    area    text COLLATE "C",
    digest  text COLLATE "C",
    step    text NOT NULL COLLATE "C",
    why     text,
    changed text
);

CREATE INDEX audit_log_area ON audit_log (area, id);

CREATE FUNCTION audit_log_is_only_added_to() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END
$$;

CREATE TRIGGER audit_log_keeps_what_it_says
    BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_only_added_to();

-- What each process runs, and why it does not run what it should.
CREATE TABLE area_nodes (
    node    uuid NOT NULL,
    area    text NOT NULL COLLATE "C",
    host    text NOT NULL,
    -- What answers on the node; none: nothing does.
    digest  text COLLATE "C",
    -- `running`, or `failed`: it should run another and cannot, as `why` says.
    state   text NOT NULL COLLATE "C",
    why     text,
    seen_at bigint NOT NULL,
    PRIMARY KEY (node, area)
);
