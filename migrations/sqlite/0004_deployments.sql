-- Which version of which area is live, how it came to be, and who did what.
-- The components' bytes are in the blob store, named by their digest. Times
-- are microseconds since 1970, digests SHA-256 in lower-case hex.

-- Every version that passed the checks, whether it ever answered or not.
CREATE TABLE area_versions (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    area        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    version     TEXT NOT NULL,
    -- As the component described itself: what later versions are held against.
    manifest    TEXT NOT NULL,
    size        INTEGER NOT NULL,
    object      TEXT NOT NULL,
    -- Who signed the digest; nobody where development mode took it unsigned.
    publisher   TEXT,
    signature   BLOB,
    stage       TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    received_by TEXT NOT NULL,
    approved_at INTEGER,
    approved_by TEXT,
    -- When it last began to answer.
    live_at     INTEGER,
    UNIQUE (area, digest)
) STRICT;

-- One pointer for each area; every node follows it.
CREATE TABLE live_areas (
    area       TEXT PRIMARY KEY NOT NULL,
    -- None: the area was taken out.
    digest     TEXT,
    -- Where a rollback goes.
    previous   TEXT,
    -- Grows with every change, so that two operators cannot both win.
    revision   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL
) STRICT;

-- Who did what, when and why. Only ever added to.
CREATE TABLE audit_log (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    who     TEXT NOT NULL,
    area    TEXT,
    digest  TEXT,
    step    TEXT NOT NULL,
    why     TEXT,
    changed TEXT
) STRICT;

CREATE INDEX audit_log_area ON audit_log (area, id);

CREATE TRIGGER audit_log_keeps_what_it_says BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;

CREATE TRIGGER audit_log_keeps_everything BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever added to');
END;

-- What each process runs, and why it does not run what it should.
CREATE TABLE area_nodes (
    node    BLOB NOT NULL,
    area    TEXT NOT NULL,
    host    TEXT NOT NULL,
    -- What answers on the node; none: nothing does.
    digest  TEXT,
    -- `running`, or `failed`: it should run another and cannot, as `why` says.
    state   TEXT NOT NULL,
    why     TEXT,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (node, area)
) STRICT;
