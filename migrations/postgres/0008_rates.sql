-- What each node of a fleet has let through lately, so that the others limit
-- by it too. Nothing here is missed after a crash: unlogged.
CREATE UNLOGGED TABLE rate_uses (
    node    uuid NOT NULL,
    -- A session, a workspace or an address.
    key     text NOT NULL COLLATE "C",
    -- Units, since the row was begun.
    units   bigint NOT NULL,
    -- By the database's clock: those of the nodes may differ.
    told_at bigint NOT NULL,
    PRIMARY KEY (node, key)
) WITH (fillfactor = 50);
