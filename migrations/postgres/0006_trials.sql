-- Versions on trial: each is beside the live one of its area, as a canary that
-- answers for some workspaces. Every node follows the rows; the last trial of
-- an area stays, so that operators can read how it ended.
CREATE TABLE area_trials (
    area       text PRIMARY KEY COLLATE "C",
    digest     text NOT NULL COLLATE "C",
    mode       text NOT NULL COLLATE "C",
    -- Hundredths of a percent.
    share      bigint NOT NULL,
    -- A JSON array of workspace ids that are in whatever the share.
    workspaces text NOT NULL,
    state      text NOT NULL COLLATE "C",
    -- Why it was begun, or how it ended.
    why        text,
    -- Grows with every change, so that two operators cannot both win.
    revision   bigint NOT NULL,
    begun_at   bigint NOT NULL,
    begun_by   text NOT NULL,
    ended_at   bigint
);

-- The version on trial on the node, where there is one.
ALTER TABLE area_nodes ADD COLUMN candidate text COLLATE "C";
