-- What belongs to the whole installation. Times are microseconds since 1970.

-- The check value of the master key that this database is used with: derived
-- from the key, it identifies the key and tells nothing else of it. One row.
CREATE TABLE installation (
    id         INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    key_check  BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- One row for each process that serves, renewed while it lives, whether or not
-- it runs an area.
CREATE TABLE nodes (
    id      BLOB PRIMARY KEY NOT NULL,
    host    TEXT NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;
