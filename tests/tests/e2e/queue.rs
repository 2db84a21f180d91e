//! The queue (operation 22): real jobs in their lanes, and operations of admins on them.

use std::time::Duration;

use assurance_tests::artifacts::path_at;
use assurance_tests::contract::Contract;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends, until};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const QUEUE: &str = "/v1/workspaces/{ws}/queue";
const JOBS: &str = "/v1/workspaces/{ws}/queue/jobs";
const SCHEDULES: &str = "/v1/workspaces/{ws}/audit-schedules";
const INVITATIONS: &str = "/v1/workspaces/{ws}/invitations";

/// A host on which audits wait, because the lane `scanner` is disabled.
async fn host_where_audits_wait(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["catalog", "queue", "schedules"]);
    builder.set("jobs.lanes.scanner.capacity", 0).start_with_owner().await
}

/// A host that sends mail to this server.
async fn host_with_mail(backend: Backend, smtp_url: &str) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["invitations", "queue"]);
    let builder = builder.set("mail.smtp_url", smtp_url);
    builder.set("mail.from", "Assurance <assurance@example.com>").start_with_owner().await
}

/// Starts an audit of a new repository. Returns the audit's id.
async fn audit(client: &Client, repository: &str) -> Value {
    let repository = json!({ "name": repository, "provider": "github" });
    let made = client.post("/v1/workspaces/{ws}/repositories", &repository).await.expect(201);
    let audit = json!({ "repository_id": made["id"] });
    client.post("/v1/workspaces/{ws}/audits", &audit).await.expect(201)["id"].clone()
}

async fn invite(client: &Client, email: &str) -> Value {
    let new = json!({ "email": email, "role": "member" });
    client.post(INVITATIONS, &new).await.expect(201)
}

/// Calls operation 22 and checks the contract's shape.
async fn queue(client: &Client) -> Value {
    let queue = client.get(QUEUE).await.expect(200);
    Contract::read().check(22, &queue);
    queue
}

fn lane<'q>(queue: &'q Value, name: &str) -> &'q Value {
    let lanes = queue["lanes"].as_array().expect("lanes");
    lanes.iter().find(|lane| lane["name"] == name).expect("the lane")
}

fn of_lane(queue: &Value, name: &str) -> Vec<Value> {
    let jobs = queue["jobs"].as_array().expect("jobs");
    jobs.iter().filter(|job| job["lane"] == name).cloned().collect()
}

/// Waits until the first job of a kind meets the condition.
async fn job(client: &Client, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let is_wanted = |page: &Value| page["items"].get(0).is_some_and(&wanted);
    client.until(&format!("{JOBS}?kind={kind}"), is_wanted).await["items"][0].clone()
}

fn path(job: &Value) -> String {
    path_at(JOBS, job)
}

fn action(job: &Value, action: &str) -> String {
    format!("{}/{action}", path(job))
}

both_backends! {
    async fn a_thousand_jobs_of_one_workspace_do_not_wait_for_the_poll(backend) {
        let builder = Builder::new(backend).areas(&["queue"]).fixtures(&["enqueues-jobs"]);
        let (_host, ada) = builder.set("jobs.poll_ms", 600_000).start_with_owner().await;
        let enqueues = "/v1/workspaces/{ws}/fixtures/enqueues-jobs";
        let enqueued = ada.post(enqueues, &json!({})).await.expect(200);
        assert_eq!(enqueued["enqueued"], 1_000);
        until("every job has ended", async || {
            let lane = lane(&queue(&ada).await, "maintenance").clone();
            let open = (lane["active"].as_u64(), lane["queued"].as_u64());
            if open == (Some(0), Some(0)) { Ok(()) } else { Err(lane) }
        })
        .await;
    }

    async fn audits_wait_in_their_lane_at_their_positions(backend) {
        let (mut host, ada) = host_where_audits_wait(backend).await;
        let empty = queue(&ada).await;
        assert_eq!(empty["jobs"], json!([]));
        let names: Vec<&Value> =
            empty["lanes"].as_array().expect("lanes").iter().map(|lane| &lane["name"]).collect();
        assert_eq!(names, ["assistant", "delivery", "events", "ingest", "maintenance", "scanner"]);
        assert_eq!(lane(&empty, "ingest")["capacity"], 4);

        let audits = [audit(&ada, "one").await, audit(&ada, "two").await, audit(&ada, "three").await];
        let viewer = host.member("vera", &ada.workspace, "viewer");
        let seen = queue(&viewer).await;
        let waiting = of_lane(&seen, "scanner");
        let expected = json!({ "name": "scanner", "capacity": 0, "active": 0, "queued": 3 });
        assert_eq!(lane(&seen, "scanner"), &expected);
        for (at, (job, audit)) in waiting.iter().zip(&audits).enumerate() {
            assert_eq!((&job["kind"], &job["status"]), (&json!("audit"), &json!("queued")));
            assert_eq!((&job["position"], &job["resource_id"]), (&json!(at + 1), audit));
            assert_eq!((&job["dispatch_status"], &job["attempts"]), (&json!("waiting"), &json!(0)));
            assert_eq!((&job["last_error"], &job["workspace_id"]), (&Value::Null, &json!(ada.workspace)));
            assert!(job["created_at"].as_str() <= seen["updated_at"].as_str(), "{job}");
        }
        assert_eq!(waiting.len(), 3);
    }

    async fn cancelling_moves_the_others_up_and_retrying_joins_the_end(backend) {
        let (mut host, ada) = host_where_audits_wait(backend).await;
        let (first, second) = (audit(&ada, "one").await, audit(&ada, "two").await);
        let found = ada.get(&format!("{JOBS}?resource_id={}", first.as_str().expect("an id"))).await;
        let found = found.expect(200);
        // The other job is the audit's deadline.
        let mut jobs = found["items"].as_array().expect("jobs").iter();
        let job = jobs.find(|job| job["kind"] == "audit").expect("the audit's job").clone();
        assert_eq!((&job["area"], &job["max_attempts"].is_u64()), (&json!("schedules"), &true));

        let member = host.member("mia", &ada.workspace, "member");
        member.post(&action(&job, "cancel"), &json!({})).await.problem(403, "permission_denied");
        let admin = host.member("abe", &ada.workspace, "admin");
        let forged = admin.without_csrf();
        forged.post(&action(&job, "cancel"), &json!({})).await.problem(403, "csrf_failed");
        admin.post(&action(&job, "retry"), &json!({})).await.problem(409, "job_status");
        let cancelled = admin.post(&action(&job, "cancel"), &json!({})).await.expect(200);
        assert_eq!((&cancelled["status"], &cancelled["position"]), (&json!("failed"), &Value::Null));
        assert_eq!(cancelled["dispatch_status"], "settled");
        let text = cancelled["last_error"].as_str().expect("a reason");
        assert!(text.starts_with("cancelled by user "), "{text}");
        admin.post(&action(&job, "cancel"), &json!({})).await.problem(409, "job_status");

        let seen = queue(&ada).await;
        let places: Vec<(Value, Value)> = of_lane(&seen, "scanner")
            .iter()
            .map(|job| (job["resource_id"].clone(), job["position"].clone()))
            .collect();
        assert_eq!(places, [(second.clone(), json!(1)), (first.clone(), Value::Null)]);
        assert_eq!(lane(&seen, "scanner")["queued"], 1);

        let retried = admin.post(&action(&job, "retry"), &json!({})).await.expect(200);
        assert_eq!((&retried["status"], &retried["attempts"]), (&json!("queued"), &json!(0)));
        let places: Vec<Value> =
            of_lane(&queue(&ada).await, "scanner").iter().map(|job| job["resource_id"].clone()).collect();
        assert_eq!(places, [second, first]);
        let shown = ada.get(&path(&job)).await.expect(200);
        assert_eq!(shown["position"], 2);
    }

    async fn a_schedule_whose_job_is_cancelled_waits_for_its_next_due_time(backend) {
        let (_host, ada) = host_where_audits_wait(backend).await;
        let repository = json!({ "name": "one", "provider": "github" });
        let made = ada.post("/v1/workspaces/{ws}/repositories", &repository).await.expect(201);
        let new = json!({
            "name": "Nightly", "cadence": "daily", "local_hour": 3, "local_minute": 30,
            "timezone": "UTC", "repository_id": made["id"],
        });
        let schedule = ada.post(SCHEDULES, &new).await.expect(201);
        let timer = job(&ada, "schedule_dispatch", |_| true).await;
        ada.post(&action(&timer, "cancel"), &json!({})).await.expect(200);
        let path = path_at(SCHEDULES, &schedule);
        let is_planned = |shown: &Value| shown["next_run_at"] != schedule["next_run_at"];
        let shown = ada.until(&path, is_planned).await;
        assert!(shown["next_run_at"].as_str() > schedule["next_run_at"].as_str(), "{shown}");
        let next = job(&ada, "schedule_dispatch", |_| true).await;
        assert_eq!(next["id"], shown["engine_schedule_id"]);
        assert_eq!(next["status"], "queued");
    }

    async fn another_workspace_sees_and_changes_nothing_of_this_one(backend) {
        let (mut host, ada) = host_where_audits_wait(backend).await;
        audit(&ada, "one").await;
        let job = job(&ada, "audit", |_| true).await;
        let bea = host.create_owner("bea", "second");
        assert_eq!(queue(&bea).await["jobs"], json!([]));
        assert_eq!(lane(&queue(&bea).await, "scanner")["queued"], 0);
        for name in ["cancel", "retry"] {
            bea.post(&action(&job, name), &json!({})).await.problem(404, "not_found");
        }
        bea.in_workspace(&ada.workspace).get(QUEUE).await.problem(404, "not_found");
        host.nobody().in_workspace(&ada.workspace).get(QUEUE).await.problem(401, "unauthenticated");
        ada.in_workspace("no-uuid").get(QUEUE).await.problem(422, "validation_failed");
        ada.get(&format!("{QUEUE}?x=1")).await.problem(422, "validation_failed");
    }

    async fn pages_hold_to_their_filter_and_nobody_makes_a_cursor(backend) {
        let (_host, ada) = host_where_audits_wait(backend).await;
        for name in ["one", "two", "three"] {
            audit(&ada, name).await;
        }
        let page = async |rest: &str| ada.get(&format!("{JOBS}?kind=audit&limit=2{rest}")).await;
        let first = page("").await.expect(200);
        let cursor = first["next_cursor"].as_str().expect("a cursor");
        let second = page(&format!("&cursor={cursor}")).await.expect(200);
        let ids = |page: &Value| -> Vec<String> {
            let items = page["items"].as_array().expect("items").iter();
            items.map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
        };
        let all = [ids(&first), ids(&second)].concat();
        assert_eq!(all.len(), 3);
        assert!(all.is_sorted_by(|a, b| a > b), "newest first: {all:?}");
        assert_eq!(second["next_cursor"], Value::Null);
        for wrong in ["&cursor=AAAA", "&status=lost", &format!("&cursor={cursor}&status=queued")] {
            page(wrong).await.problem(422, "validation_failed");
        }
        let none = ada.get(&format!("{JOBS}?lane=nowhere&status=&kind=null")).await.expect(200);
        assert_eq!(none["items"], json!([]));
    }

    async fn what_runs_says_so_and_a_cancelled_run_stays_cancelled(backend) {
        // Accepts connections and never responds.
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("smtp://{}", silent.local_addr().expect("an address"));
        let (_host, ada) = host_with_mail(backend, &url).await;
        invite(&ada, "eve@example.org").await;
        let running = job(&ada, "send_invitation", |job| job["status"] == "running").await;
        let seen = queue(&ada).await;
        assert_eq!(lane(&seen, "delivery")["active"], 1);
        let shown = &of_lane(&seen, "delivery")[0];
        assert_eq!((&shown["attempts"], &shown["position"]), (&json!(1), &Value::Null));
        assert_eq!(shown["dispatch_status"], "dispatched");
        ada.post(&action(&running, "cancel"), &json!({})).await.expect(200);
        // Lets the run end; it then detects that its lease is lost.
        drop(silent);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let seen = job(&ada, "send_invitation", |_| true).await;
        assert_eq!(seen["status"], "failed", "{seen}");
        assert_eq!(lane(&queue(&ada).await, "delivery")["active"], 0);
    }

    async fn a_timer_neither_counts_nor_is_listed_before_it_is_due(backend) {
        let (_host, ada) = host_with_mail(backend, "smtp://127.0.0.1:1").await;
        // The job that expires the invitation is due in a week.
        invite(&ada, "eve@example.org").await;
        let expiry = job(&ada, "expire_invitation", |_| true).await;
        assert_eq!((&expiry["status"], &expiry["position"]), (&json!("queued"), &Value::Null));
        assert_eq!(expiry["dispatch_status"], "scheduled");
        let seen = queue(&ada).await;
        assert_eq!(of_lane(&seen, "maintenance"), [Value::Null; 0]);
        assert_eq!(lane(&seen, "maintenance")["queued"], 0);
    }

    async fn a_job_that_fails_waits_for_its_next_attempt_with_its_error(backend) {
        let (_host, ada) = host_with_mail(backend, "smtp://127.0.0.1:1").await;
        invite(&ada, "eve@example.org").await;
        job(&ada, "send_invitation", |job| job["attempts"].as_u64() >= Some(3)).await;
        let waiting = until("the job waits for its next attempt", async || {
            let job = of_lane(&queue(&ada).await, "delivery").remove(0);
            if job["status"] == "retrying" { Ok(job) } else { Err(job) }
        })
        .await;
        assert_eq!((&waiting["dispatch_status"], &waiting["position"]), (&json!("scheduled"), &Value::Null));
        let error = waiting["last_error"].as_str().expect("an error");
        assert!(error.starts_with("mail: "), "{error}");
    }
}
