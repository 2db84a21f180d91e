//! The control room (operation 15): from uploaded scans to findings, their lifecycle, and the
//! summary.

use area_sdk::Timestamp;
use assurance_tests::artifacts::id_of;
use assurance_tests::client::send;
use assurance_tests::contract::Contract;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, envelope, place};
use reqwest::Method;
use serde_json::{Value, json};

const REBUILD: &str = "/v1/workspaces/{ws}/control-room/rebuild";
const ROOM: &str = "/v1/workspaces/{ws}/control-room";
const FINDINGS: &str = "/v1/workspaces/{ws}/findings";
const SUGGESTIONS: &str = "/v1/workspaces/{ws}/match-suggestions";

async fn host(backend: Backend) -> (TestHost, Client) {
    let areas = ["catalog", "control-room", "evidence", "schedules", "uploads"];
    // No other areas take part in audits here.
    Builder::new(backend).areas(&areas).start_with_owner().await
}

/// A scan with results by rule, path, message and `security-severity`.
fn scan(tool: &str, results: &[(&str, &str, &str, &str)]) -> Vec<u8> {
    let result = |&(rule, path, message, severity): &(&str, &str, &str, &str)| {
        json!({
            "ruleId": rule, "message": { "text": message },
            "properties": { "security-severity": severity },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": path }, "region": { "startLine": 3 },
            } }],
        })
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    let run = json!({
        "tool": { "driver": { "name": tool, "version": "1.0" } }, "results": results,
        "versionControlProvenance": [{ "repositoryUri": "https://example.com", "revisionId": "c0ffee" }],
    });
    json!({ "version": "2.1.0", "runs": [run] }).to_string().into_bytes()
}

const INJECTION: (&str, &str, &str, &str) =
    ("sql-injection", "src/login.js", "this query depends on what a user sent", "9.8");
const WEAK: (&str, &str, &str, &str) =
    ("weak-hash", "src/hash.js", "md5 does not withstand anybody", "5.0");

/// Uploads a scan and audits it. Returns the audit's facts about findings.
async fn import(client: &Client, repository: &str, content: &[u8]) -> Value {
    let upload = client.upload(repository, "scan.sarif", content).await;
    assert_eq!(upload["validation_stage"], "ready", "{upload:#}");
    audit(client, repository).await
}

/// Audits a repository and waits until its findings are imported.
async fn audit(client: &Client, repository: &str) -> Value {
    let body = json!({ "repository_id": repository });
    let audit = client.post("/v1/workspaces/{ws}/audits", &body).await.expect(201);
    let path = format!("/v1/workspaces/{{ws}}/audits/{}", id_of(&audit));
    let imported = |audit: &Value| audit["parts"]["findings"]["status"] != "pending";
    let audit = client.until(&path, imported).await;
    let part = &audit["parts"]["findings"];
    assert_eq!(part["status"], "succeeded", "{audit:#}");
    part["counts"].clone()
}

async fn rebuild(client: &Client) -> Value {
    send(client.request(Method::POST, REBUILD)).await.expect(200)
}

async fn findings(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("{FINDINGS}?limit=100&{query}")).await.expect(200);
    page["items"].as_array().cloned().expect("items")
}

async fn transition(client: &Client, finding: &Value, version: u64, body: &Value) -> Answer {
    let path = format!("{FINDINGS}/{}/transitions", id_of(finding));
    client.change(Method::POST, &path, version, body).await
}

both_backends! {
    async fn the_room_has_the_contract_s_fields_and_real_values(backend) {
        let (_host, ada) = host(backend).await;
        let contract = Contract::read();
        let empty = rebuild(&ada).await;
        contract.check(15, &empty);
        let repository = ada.repository("acme/web").await;
        let service = json!({
            "name": "shop", "repository_ids": [repository], "environment": "production",
        });
        ada.post("/v1/workspaces/{ws}/services", &service).await.expect(201);
        import(&ada, &repository, &scan("One", &[INJECTION, WEAK])).await;
        import(&ada, &repository, &scan("Two", &[INJECTION])).await;

        let room = rebuild(&ada).await;
        contract.check(15, &room);
        assert_eq!(room["calculation_version"], "control-room-v1");
        let recurring = &room["recurring_findings"][0];
        for (name, value) in recurring.as_object().expect("an object") {
            assert!(!value.is_null() || name == "owner_id", "{name}");
        }
        assert_eq!(recurring["risk_severity"], "critical");
        assert_eq!((&recurring["cvss_score"], &recurring["tool"]), (&json!("9.8"), &json!("One")));
        // 9.8, in a service that runs in production, found twice.
        assert_eq!(recurring["risk_total"], "16.17");
        let suggestion = &room["match_suggestions"][0];
        assert_eq!((&suggestion["similarity"], &suggestion["state"]), (&json!("1.0000"), &json!("pending")));
        let transitions = room["recent_transitions"].as_array().expect("transitions");
        assert_eq!(transitions.len(), 3);
        assert!(transitions.iter().all(|one| one["to_state"] == "new" && one["from_state"].is_null()));
        for (snapshot, window) in room["snapshots"].as_array().expect("three").iter().zip(["24h", "7d", "30d"]) {
            assert_eq!((&snapshot["window"], &snapshot["recurring_count"]), (&json!(window), &json!(2)));
            assert_eq!(snapshot["severity_counts"]["critical"], 2);
            assert_eq!(snapshot["freshness_percent"], "100.00");
        }
        assert_eq!(ada.get(ROOM).await.expect(200), room);
        let mut again = rebuild(&ada).await;
        assert_ne!(again["generated_at"], room["generated_at"]);
        again["generated_at"] = room["generated_at"].clone();
        assert_eq!(again, room, "the same data gives the same content");
    }

    async fn the_same_file_changes_nothing_and_what_is_gone_is_verified(backend) {
        let (_host, ada) = host(backend).await;
        let repository = ada.repository("acme/web").await;
        let both = scan("One", &[INJECTION, WEAK]);
        let first = import(&ada, &repository, &both).await;
        assert_eq!((&first["new"], &first["seen"]), (&json!(2), &json!(2)));
        let before = rebuild(&ada).await;
        let again = import(&ada, &repository, &both).await;
        assert_eq!((&again["new"], &again["gone"], &again["reopened"]), (&json!(0), &json!(0), &json!(0)));
        assert_eq!(rebuild(&ada).await["recent_transitions"], before["recent_transitions"]);

        let fixed = import(&ada, &repository, &scan("One", &[WEAK])).await;
        assert_eq!((&fixed["new"], &fixed["gone"]), (&json!(0), &json!(1)));
        let verified = findings(&ada, "state=verified").await;
        assert_eq!(verified.len(), 1);
        assert_eq!((&verified[0]["rule_id"], &verified[0]["open"]), (&json!("sql-injection"), &json!(false)));
        let room = rebuild(&ada).await;
        assert_eq!(room["outcomes"]["verified_remediations"], 1);
        assert_ne!(room["outcomes"]["remediation_speed_hours"], Value::Null);
        assert_ne!(room["snapshots"][0]["mttr_hours"], Value::Null);
        let last = &room["recent_transitions"][0];
        assert_eq!((&last["to_state"], &last["version"]), (&json!("verified"), &json!(2)));
        assert_ne!(last["verification_audit_id"], Value::Null);
        assert_ne!(last["supersedes_transition_id"], Value::Null);

        let back = import(&ada, &repository, &both).await;
        assert_eq!((&back["new"], &back["reopened"]), (&json!(0), &json!(1)));
        assert_eq!(findings(&ada, "state=reopened").await.len(), 1);
    }

    async fn a_risk_is_accepted_for_a_year_at_most_and_a_critical_one_by_an_admin(backend) {
        let (mut host, ada) = host(backend).await;
        let mia = host.member("mia", &ada.workspace, "member");
        let adam = host.member("adam", &ada.workspace, "admin");
        let repository = ada.repository("acme/web").await;
        import(&ada, &repository, &scan("One", &[INJECTION, WEAK])).await;
        let critical = findings(&ada, "rule=sql-injection").await.remove(0);
        let weak = findings(&ada, "rule=weak-hash").await.remove(0);
        let accept = |days: i64| {
            let until = Timestamp(envelope::now().0).plus_seconds(days * 86_400);
            json!({ "to_state": "accepted_risk", "reason": "small", "expires_at": until })
        };
        let refused = transition(&adam, &weak, 1, &accept(366)).await;
        refused.problem_about(422, "validation_failed", "365 days");
        transition(&mia, &weak, 1, &accept(364)).await.expect(201);
        transition(&mia, &critical, 1, &accept(30)).await.problem(403, "permission_denied");
        transition(&adam, &critical, 1, &accept(30)).await.expect(201);
    }

    async fn people_lead_findings_on_and_decide_about_matches(backend) {
        let (mut host, ada) = host(backend).await;
        let mia = host.member("mia", &ada.workspace, "member");
        let vera = host.member("vera", &ada.workspace, "viewer");
        let repository = ada.repository("acme/web").await;
        import(&ada, &repository, &scan("One", &[INJECTION, WEAK])).await;
        import(&ada, &repository, &scan("Two", &[INJECTION])).await;
        let weak = findings(&vera, "rule=weak-hash").await.remove(0);

        let triage = json!({ "to_state": "triaged", "reason": "real" });
        transition(&vera, &weak, 1, &triage).await.problem(403, "permission_denied");
        transition(&mia, &weak, 1, &triage).await.expect(201);
        transition(&mia, &weak, 1, &triage).await.problem(409, "version_conflict");
        transition(&mia, &weak, 2, &triage).await.problem(409, "transition_not_allowed");
        let verify = json!({ "to_state": "verified" });
        transition(&mia, &weak, 2, &verify).await.problem(422, "validation_failed");
        let accept = json!({ "to_state": "accepted_risk", "reason": "small", "expires_at": null });
        let refused = transition(&mia, &weak, 2, &accept).await;
        refused.problem_about(422, "validation_failed", "/expires_at");
        let until = Timestamp(envelope::now().0).plus_seconds(2);
        let accept = json!({ "to_state": "accepted_risk", "reason": "small", "expires_at": until });
        let accepted = transition(&mia, &weak, 2, &accept).await;
        assert_eq!(accepted.header("etag"), Some("\"3\""));
        accepted.expect(201);
        let path = format!("{FINDINGS}/{}", id_of(&weak));
        let reopened = ada.settled(&path, "state", &["reopened"]).await;
        assert_eq!((&reopened["lifecycle_version"], &reopened["auto_disposition"]), (&json!(4), &json!(true)));
        let history = ada.get(&format!("{path}/transitions")).await.expect(200);
        let states: Vec<&Value> = history["items"].as_array().expect("items").iter().map(|one| &one["to_state"]).collect();
        assert_eq!(states, ["reopened", "accepted_risk", "triaged", "new"]);

        let pending = mia.get(&format!("{SUGGESTIONS}?state=pending")).await.expect(200);
        let suggestion = &pending["items"][0];
        let decision = format!("{SUGGESTIONS}/{}/decision", id_of(suggestion));
        vera.post(&decision, &json!({ "decision": "accepted" })).await.problem(403, "permission_denied");
        let decided = mia.post(&decision, &json!({ "decision": "accepted" })).await.expect(200);
        assert_eq!(decided["state"], "accepted");
        mia.post(&decision, &json!({ "decision": "rejected" })).await.problem(409, "suggestion_decided");
        let duplicate = findings(&ada, "tool=Two").await.remove(0);
        assert_eq!((&duplicate["state"], &duplicate["duplicate_of"]), (&json!("duplicate"), &suggestion["left_finding_id"]));
        for wrong in ["state=odd", "cursor=odd"] {
            ada.get(&format!("{FINDINGS}?{wrong}")).await.problem(422, "validation_failed");
        }

        let room = rebuild(&mia).await;
        Contract::read().check(15, &room);
        assert_eq!(room["outcomes"]["decision_sample_size"], 2);
        assert_eq!(room["outcomes"]["duplicates_collapsed"], 1);
        assert_ne!(room["outcomes"]["current_review_time_hours"], Value::Null);
        assert_ne!(room["match_suggestions"][0]["decided_by"], Value::Null);
        assert_eq!(room["snapshots"][0]["counts"]["duplicate"], 1);
    }

    async fn a_series_of_real_scans_is_recognised(backend) {
        let series = place::corpus().join("series");
        if !series.is_dir() {
            return eprintln!("no corpus: skipped");
        }
        let (_host, ada) = host(backend).await;
        let repository = ada.repository("GitGuardian/ggshield").await;
        let mut names: Vec<_> = std::fs::read_dir(&series).expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sarif"))
            .collect();
        names.sort();
        let mut seen = Vec::new();
        for file in names {
            let counts = import(&ada, &repository, &std::fs::read(file).expect("a file")).await;
            let count = |name: &str| counts[name].as_i64().expect("a count");
            seen.push((count("seen"), count("new"), count("gone")));
        }
        assert_eq!(seen, [(26, 26, 0), (47, 40, 19), (55, 14, 6), (82, 35, 8)]);
        let room = rebuild(&ada).await;
        Contract::read().check(15, &room);
        assert_eq!(room["snapshots"][0]["counts"]["open"], 82);
        assert_eq!(room["snapshots"][0]["counts"]["verified"], 33);
    }
}
