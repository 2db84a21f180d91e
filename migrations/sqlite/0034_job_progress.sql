-- How much of a job's work is done, in units that its area chooses.
ALTER TABLE jobs ADD COLUMN progress_done INTEGER;
ALTER TABLE jobs ADD COLUMN progress_total INTEGER;
-- The jobs about a resource that report progress.
CREATE INDEX jobs_progress ON jobs (workspace_id, resource_id) WHERE progress_total IS NOT NULL;
