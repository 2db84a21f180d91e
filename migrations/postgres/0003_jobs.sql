-- The durable queue. A job is a row that is enqueued in the transaction of the
-- call that wanted it and ended in the transaction of what it did, so that
-- neither can be seen without the other.
CREATE TABLE jobs (
    workspace_id uuid   NOT NULL,
    id           uuid   NOT NULL,
    area         text   NOT NULL COLLATE "C",
    kind         text   NOT NULL COLLATE "C",
    lane         text   NOT NULL COLLATE "C",
    -- As the enqueuer wrote it; no query looks inside, so it is not parsed.
    payload      text   NOT NULL,
    resource_id  uuid,
    status       text   NOT NULL COLLATE "C",
    attempts     bigint NOT NULL,
    max_attempts bigint NOT NULL,
    timeout_ms   bigint NOT NULL,
    available_at bigint NOT NULL,
    dedupe_key   text COLLATE "C",
    checkpoint   text,
    -- One claim's name; what ends the job must show it.
    lease_id     uuid,
    -- The process that holds the lease; job_workers says until when.
    worker_id    uuid,
    last_error   text,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
) WITH (
    -- A queue's rows die young: clean up after a thousand of them, not after a
    -- fifth of the table.
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

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
-- lease, and never touches a job that a long transaction is about to end
-- (which, serializable, would have to be run again).
CREATE TABLE job_workers (
    id         uuid PRIMARY KEY,
    expires_at bigint NOT NULL
);
