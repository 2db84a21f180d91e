-- Claims due jobs of these flows (pairs of workspace and resource, zeros for
-- none), up to a number of each, the oldest first. A function, so that the
-- settings hold for this statement alone: whatever the statistics are, the
-- jobs of a flow are read along the index `jobs_flows` in its order. The
-- planner's other way is to read and sort all jobs of the workspace.
CREATE FUNCTION claim_jobs(
    of_lane text, areas text, claimed_at bigint, by_worker uuid, with_lease uuid,
    workspaces uuid[], resources uuid[], numbers bigint[]
) RETURNS SETOF jobs
LANGUAGE plpgsql
SET enable_sort = off
SET enable_incremental_sort = off
SET enable_bitmapscan = off
SET enable_seqscan = off
AS $$
BEGIN
    -- Materialized, so that rows are picked and locked once.
    RETURN QUERY WITH picked AS MATERIALIZED (
        SELECT due.workspace_id, due.id
        FROM unnest(workspaces, resources, numbers) AS flow (workspace_id, resource, number)
        CROSS JOIN LATERAL (
            SELECT j.workspace_id, j.id FROM jobs AS j
            WHERE j.lane = of_lane AND j.status IN ('queued', 'retrying')
            AND (j.workspace_id,
                 coalesce(j.resource_id, '00000000-0000-0000-0000-000000000000'::uuid),
                 j.available_at)
                >= (flow.workspace_id, flow.resource, '-9223372036854775808'::bigint)
            AND (j.workspace_id,
                 coalesce(j.resource_id, '00000000-0000-0000-0000-000000000000'::uuid),
                 j.available_at)
                <= (flow.workspace_id, flow.resource, claimed_at)
            AND strpos(areas, ',' || j.area || ',') > 0
            ORDER BY j.workspace_id,
                coalesce(j.resource_id, '00000000-0000-0000-0000-000000000000'::uuid),
                j.available_at
            LIMIT flow.number FOR UPDATE SKIP LOCKED
        ) AS due
    )
    UPDATE jobs SET status = 'running', attempts = jobs.attempts + 1,
        lease_id = with_lease, worker_id = by_worker, updated_at = claimed_at
    FROM picked WHERE jobs.workspace_id = picked.workspace_id AND jobs.id = picked.id
    RETURNING jobs.*;
END
$$;
