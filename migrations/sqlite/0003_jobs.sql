-- The durable queue. A job is a row that is enqueued in the transaction of the
-- call that wanted it and ended in the transaction of what it did, so that
-- neither can be seen without the other.
CREATE TABLE jobs (
    workspace_id BLOB NOT NULL,
    id           BLOB NOT NULL,
    area         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    lane         TEXT NOT NULL,
    payload      TEXT NOT NULL,
    resource_id  BLOB,
    status       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    timeout_ms   INTEGER NOT NULL,
    available_at INTEGER NOT NULL,
    dedupe_key   TEXT,
    checkpoint   TEXT,
    -- One claim's name; what ends the job must show it.
    lease_id     BLOB,
    -- The process that holds the lease; job_workers says until when.
    worker_id    BLOB,
    last_error   TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, id)
) STRICT;

-- What a claim and the look for the next due job walk along.
CREATE INDEX jobs_waiting ON jobs (lane, available_at)
    WHERE status IN ('queued', 'retrying');

-- What the look for lost workers and the count of running jobs walk along.
CREATE INDEX jobs_running ON jobs (worker_id, lane) WHERE status = 'running';

-- At most one waiting or running job of a kind has a given key.
CREATE UNIQUE INDEX jobs_dedupe ON jobs (workspace_id, area, kind, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'retrying');

-- What the sweep of old jobs walks along.
CREATE INDEX jobs_ended ON jobs (status, updated_at)
    WHERE status IN ('succeeded', 'failed', 'dead');

-- One row for each process that runs jobs, renewed while it lives. A lease is
-- good for as long as its process's row: renewing one small row keeps every
-- lease, and never touches a job that a long transaction is about to end.
CREATE TABLE job_workers (
    id         BLOB PRIMARY KEY NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
