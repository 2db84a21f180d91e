-- The walk through a lane's flows: pairs of workspace and resource. Few jobs
-- wait, so it is made in no time.
CREATE INDEX jobs_flows ON jobs (
    lane, workspace_id, coalesce(resource_id, zeroblob(16)), available_at
) WHERE status IN ('queued', 'retrying');
