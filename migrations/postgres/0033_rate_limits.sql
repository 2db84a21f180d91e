-- Rate limits that the nodes of a fleet share: one row for each key. Before,
-- each node had its own rows and read those of all others. Unlogged, because
-- a crash of the database loses only the usage of a moment.
DROP TABLE rate_uses;
CREATE UNLOGGED TABLE rate_limits (
    -- A session, an access token, a workspace or an address.
    key         text NOT NULL COLLATE "C" PRIMARY KEY,
    -- Time of the last charge, in microseconds by the database's clock.
    charged_at  bigint NOT NULL,
    -- Time at which the key has its full quota again.
    regained_at bigint NOT NULL
) WITH (fillfactor = 50);
