-- A secret is sent to one origin only (scheme, host and port): the first one
-- that it is sent to, by the component that stored it. Both are empty for a
-- secret of an earlier release; `origin` is empty until the secret is sent.

ALTER TABLE secrets ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE secrets ADD COLUMN component TEXT NOT NULL DEFAULT '';
