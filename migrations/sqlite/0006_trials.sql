-- Versions on trial: each is beside the live one of its area, as a canary that
-- answers for some workspaces. Every node follows the rows; the last trial of
-- an area stays, so that operators can read how it ended.
CREATE TABLE area_trials (
    area       TEXT PRIMARY KEY NOT NULL,
    digest     TEXT NOT NULL,
    mode       TEXT NOT NULL,
    -- Hundredths of a percent.
    share      INTEGER NOT NULL,
    -- A JSON array of workspace ids that are in whatever the share.
    workspaces TEXT NOT NULL,
    state      TEXT NOT NULL,
    -- Why it was begun, or how it ended.
    why        TEXT,
    -- Grows with every change, so that two operators cannot both win.
    revision   INTEGER NOT NULL,
    begun_at   INTEGER NOT NULL,
    begun_by   TEXT NOT NULL,
    ended_at   INTEGER
) STRICT;

-- The version on trial on the node, where there is one.
ALTER TABLE area_nodes ADD COLUMN candidate TEXT;
