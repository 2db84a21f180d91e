//! Writes the CTEs about jobs: jobs that a call enqueues, deliveries of its
//! events, and the ends of the jobs that it ran.

use std::collections::BTreeMap;

use super::super::super::jobs::push_end;
use super::super::super::sql::{Sql, SqlParameter};
use super::super::Effects;
use super::{CteBuilder, each, integers, texts, uuids};
use assurance_core::domain::job::NewJob;
use assurance_core::domain::time::Timestamp;

/// SQL expressions of id, payload and resource for a job that is inserted
/// unchanged.
const AS_GIVEN: &str = "u.id, u.payload, u.resource_id";
/// SQL expressions of id, payload and resource for the job of one document that
/// requests an event; see
/// [`EventDeliveryJobTemplate`](assurance_core::domain::job::EventDeliveryJobTemplate).
const FOR_EACH_DOCUMENT: &str = "(left(u.id::text, 30) || lpad(to_hex(row_number() OVER \
     (PARTITION BY u.id ORDER BY d.id) - 1), 6, '0'))::uuid, left(u.payload, -1) || \
     ',\"requested_by\":' || to_json(d.id)::text || '}', \
     CASE WHEN d.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN d.id::uuid END";

impl CteBuilder {
    /// Writes the CTE that inserts jobs, with the same rows as `jobs::insert`.
    pub(super) fn jobs(&mut self, calls: &[&Effects]) {
        let jobs: Vec<_> = each(calls, |effects| &effects.jobs).collect();
        if !jobs.is_empty() {
            self.sql.push(", queued AS (");
            self.insert_jobs(AS_GIVEN, &jobs, |_| {});
            self.sql.push(" ON CONFLICT DO NOTHING)");
        }
    }

    /// Writes the CTEs that enqueue a delivery of an event for each document
    /// that requests it. The name of the collection is a literal, so that the
    /// planner uses an index of this collection: reading an index that others
    /// write to would make serializable transactions fail.
    pub(super) fn deliveries(&mut self, calls: &[&Effects]) {
        let mut by_requests: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (now, delivery) in each(calls, |effects| &effects.deliveries) {
            by_requests.entry(&delivery.requests).or_default().push((now, delivery));
        }
        for (requests, deliveries) in by_requests {
            let arm = format!("requested_{}", self.requested.len());
            self.sql.push(&format!(", {arm} AS ("));
            let jobs: Vec<_> = deliveries.iter().map(|(now, one)| (*now, &one.job)).collect();
            self.insert_jobs(FOR_EACH_DOCUMENT, &jobs, |sql| {
                let ids = uuids(jobs.iter().map(|(_, job)| job.id.0));
                let events = texts(deliveries.iter().map(|(_, one)| &one.event));
                sql.push(" JOIN ").push_unnest([ids, events]);
                sql.push(" AS e(id, event) ON e.id = u.id JOIN documents AS d ON ");
                sql.push("d.workspace_id = ").bind(jobs[0].1.workspace.0);
                sql.push(&format!(" AND d.collection = '{}' AND d.body -> ", requests.collection));
                sql.bind(requests.member.clone()).push("::text ? e.event");
            });
            self.sql.push(" ON CONFLICT DO NOTHING RETURNING 1)");
            self.requested.push(format!("(SELECT count(*) FROM {arm})"));
        }
    }

    /// Appends an insert of jobs, each with the time at which it is enqueued and
    /// with these expressions of id, payload and resource; `more` appends joins.
    fn insert_jobs(
        &mut self,
        columns: &str,
        jobs: &[(Timestamp, &NewJob)],
        more: impl FnOnce(&mut Sql),
    ) {
        let sql = &mut self.sql;
        sql.push(
            "INSERT INTO jobs (id, payload, resource_id, workspace_id, area, kind, lane, \
             max_attempts, timeout_ms, available_at, dedupe_key, created_at, \
             updated_at, status, attempts) SELECT ",
        );
        sql.push(columns).push(
            ", u.workspace_id, u.area, u.kind, u.lane, u.max_attempts, u.timeout_ms, \
             u.available_at, u.dedupe_key, u.now, u.now, 'queued', 0 \
             FROM gate CROSS JOIN ",
        );
        sql.push_unnest([
            uuids(jobs.iter().map(|(_, job)| job.workspace.0)),
            uuids(jobs.iter().map(|(_, job)| job.id.0)),
            texts(jobs.iter().map(|(_, job)| &job.area)),
            texts(jobs.iter().map(|(_, job)| &job.kind)),
            SqlParameter::Texts(jobs.iter().map(|(_, job)| job.lane.as_str().to_owned()).collect()),
            texts(jobs.iter().map(|(_, job)| &job.payload)),
            SqlParameter::MaybeUuids(jobs.iter().map(|(_, job)| job.resource).collect()),
            integers(jobs.iter().map(|(_, job)| job.max_attempts.into())),
            integers(jobs.iter().map(|(_, job)| job.timeout_ms.into())),
            integers(jobs.iter().map(|(_, job)| job.available_at.0)),
            SqlParameter::MaybeTexts(jobs.iter().map(|(_, job)| job.dedupe_key.clone()).collect()),
            integers(jobs.iter().map(|(now, _)| now.0)),
        ]);
        sql.push(
            " AS u(workspace_id, id, area, kind, lane, payload, resource_id, \
             max_attempts, timeout_ms, available_at, dedupe_key, now)",
        );
        more(sql);
    }

    /// Writes the CTEs that end the runs of jobs.
    pub(super) fn job_ends(&mut self, effects: &Effects) {
        for (number, end) in effects.job_ends.iter().enumerate() {
            self.sql.push(&format!(", ended_{number} AS ("));
            push_end(&mut self.sql, end, effects.now);
            self.sql.push(" RETURNING 1)");
            self.check(&format!("ended_{number}"), end.jobs.len(), "AS004");
        }
    }
}
