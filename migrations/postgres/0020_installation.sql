-- What belongs to the whole installation. Times are microseconds since 1970.

-- The check value of the master key that this database is used with: derived
-- from the key, it identifies the key and tells nothing else of it. One row.
CREATE TABLE installation (
    id         bigint PRIMARY KEY CHECK (id = 1),
    key_check  bytea NOT NULL,
    created_at bigint NOT NULL
);

-- One row for each process that serves, renewed while it lives, whether or not
-- it runs an area.
CREATE TABLE nodes (
    id      uuid PRIMARY KEY,
    host    text NOT NULL,
    seen_at bigint NOT NULL
);
