//! Audit schedules (operation 9): created, changed, and started by the clock.

use std::time::Duration;

use assurance_tests::artifacts::id_of;
use assurance_tests::contract::Contract;
use assurance_tests::envelope::now;
use assurance_tests::{Backend, Builder, Client, TestHost, both_backends};
use reqwest::Method;
use serde_json::{Value, json};

const SCHEDULES: &str = "/v1/workspaces/{ws}/audit-schedules";

async fn host(backend: Backend) -> (TestHost, Client) {
    Builder::new(backend).areas(&["catalog", "schedules"]).start_with_owner().await
}

fn nightly(repository: &str) -> Value {
    json!({
        "name": "Nightly", "cadence": "daily", "local_hour": 3, "local_minute": 30,
        "timezone": "Europe/Berlin", "repository_id": repository,
    })
}

both_backends! {
    async fn a_schedule_is_made_changed_paused_resumed_and_deleted(backend) {
        let (mut host, ada) = host(backend).await;
        let contract = Contract::read();
        let mia = host.member("mia", &ada.workspace, "member");
        let repository = ada.repository("shop").await;
        let made = mia.post(SCHEDULES, &nightly(&repository)).await.expect(201);
        contract.check(9, &made);
        assert_eq!((&made["state"], &made["missed_run_policy"]), (&json!("active"), &json!("run_once")));
        assert!(made["next_run_at"].is_string() && made["engine_schedule_id"].is_string());
        assert!(made["owner_id"].is_string() && made["anchor_date"].is_string());
        let mut with_fractions = nightly(&repository);
        with_fractions["local_hour"] = json!(3.0);
        assert_eq!(mia.post(SCHEDULES, &with_fractions).await.expect(201)["local_hour"], 3);
        let path = format!("{SCHEDULES}/{}", id_of(&made));
        assert_eq!(ada.get(&path).await.expect(200), made);

        let monthly = json!({ "cadence": "monthly", "day_of_month": 31, "timezone": "Pacific/Apia" });
        let changed = mia.change(Method::PATCH, &path, 1, &monthly).await;
        assert_eq!(changed.header("etag"), Some("\"2\""));
        let changed = changed.expect(200);
        contract.check(9, &changed);
        assert_eq!((&changed["day_of_month"], &changed["weekday"]), (&json!(31), &Value::Null));
        assert_ne!(changed["engine_schedule_id"], made["engine_schedule_id"]);
        mia.change(Method::PATCH, &path, 1, &monthly).await.problem(409, "version_conflict");
        let weekly = json!({ "cadence": "weekly" });
        let weekly = mia.change(Method::PATCH, &path, 2, &weekly).await.expect(200);
        assert!(weekly["weekday"].as_u64().is_some_and(|day| (1..=7).contains(&day)));

        let pause = format!("{path}/pause");
        let paused = mia.change(Method::POST, &pause, 3, &Value::Null).await.expect(200);
        assert_eq!((&paused["state"], &paused["next_run_at"]), (&json!("paused"), &Value::Null));
        let resume = format!("{path}/resume");
        let resumed = mia.change(Method::POST, &resume, 4, &Value::Null).await.expect(200);
        assert_eq!(resumed["next_run_at"], weekly["next_run_at"]);
        mia.change(Method::DELETE, &path, 4, &Value::Null).await.problem(409, "version_conflict");
        let gone = mia.change(Method::DELETE, &path, 5, &Value::Null).await.expect(200);
        assert_eq!(gone["state"], "deleted");
        mia.change(Method::POST, &resume, 6, &Value::Null).await.problem(409, "schedule_deleted");
        let listed = ada.get(SCHEDULES).await.expect(200);
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
        let deleted = ada.get(&format!("{SCHEDULES}?state=deleted")).await.expect(200);
        assert_eq!(deleted["items"][0], gone);
    }

    async fn what_cannot_be_scheduled_is_refused(backend) {
        let (mut host, ada) = host(backend).await;
        let vera = host.member("vera", &ada.workspace, "viewer");
        let repository = ada.repository("shop").await;
        let good = nightly(&repository);
        vera.post(SCHEDULES, &good).await.problem(403, "permission_denied");
        host.nobody().in_workspace(&ada.workspace).post(SCHEDULES, &good).await.problem(401, "unauthenticated");
        ada.without_csrf().post(SCHEDULES, &good).await.problem(403, "csrf_failed");
        let wrong = [
            ("timezone", json!("Mars/Olympus")),
            ("timezone", json!("+02:00")),
            ("timezone", json!("Etc/Unknown")),
            ("local_hour", json!(24)),
            ("local_minute", json!(60)),
            ("cadence", json!("hourly")),
            ("name", json!("")),
            ("weekday", json!(1)),
        ];
        for (member, value) in wrong {
            let mut body = good.clone();
            body[member] = value;
            ada.post(SCHEDULES, &body).await.problem_about(422, "validation_failed", member);
        }
        let mut unknown = good.clone();
        unknown["repository_id"] = json!(ada.workspace);
        ada.post(SCHEDULES, &unknown).await.problem(404, "not_found");
        let repository = format!("{}/{repository}", crate::catalog::REPOSITORIES);
        let archived = json!({ "archived": true });
        ada.change(Method::PATCH, &repository, 1, &archived).await.expect(200);
        ada.post(SCHEDULES, &good).await.problem(409, "repository_archived");
    }

    async fn a_due_time_that_the_host_was_away_at_starts_one_audit(backend) {
        let (mut host, ada) = Builder::new(backend)
            .areas(&["catalog", "control-room", "dependencies", "ownership", "schedules"])
            .start_with_owner()
            .await;
        let repository = ada.repository("shop").await;
        let (mut body, wait) = due_soon(&nightly(&repository));
        body["name"] = json!("Due soon");
        let made = ada.post(SCHEDULES, &body).await.expect(201);
        host.kill9();
        tokio::time::sleep(wait).await;
        host.start().await;
        let ada = ada.at(&host);

        let path = format!("{SCHEDULES}/{}", id_of(&made));
        let ran = ada.until(&path, |schedule| !schedule["last_run_at"].is_null()).await;
        Contract::read().check(9, &ran);
        assert!(ran["last_dispatched_at"].as_str() >= made["next_run_at"].as_str(), "{ran}");
        assert!(ran["next_run_at"].as_str() > made["next_run_at"].as_str(), "{ran}");
        assert_eq!(ran["last_error_code"], Value::Null);
        let audits = format!("/v1/workspaces/{{ws}}/audits?schedule_id={}", id_of(&made));
        let audits = ada.get(&audits).await.expect(200);
        assert_eq!(audits["items"].as_array().map(Vec::len), Some(1), "{audits:#}");
        let audit = &audits["items"][0];
        assert_eq!((&audit["trigger"], &audit["state"]), (&json!("schedule"), &json!("completed")));
        assert_eq!(audit["due_at"], made["next_run_at"]);
    }
}

/// Returns the schedule with a due time at the next minute that is not too near, and the wait until
/// then.
fn due_soon(schedule: &Value) -> (Value, Duration) {
    const MINUTE_MS: i64 = 60_000;
    let now_ms = now().0 / 1000;
    let due_ms = ((now_ms + 3000) / MINUTE_MS + 1) * MINUTE_MS;
    let minute_of_day = due_ms / MINUTE_MS % (24 * 60);
    let mut schedule = schedule.clone();
    schedule["timezone"] = json!("UTC");
    schedule["local_hour"] = json!(minute_of_day / 60);
    schedule["local_minute"] = json!(minute_of_day % 60);
    (schedule, Duration::from_millis(u64::try_from(due_ms - now_ms).expect("to come")))
}
