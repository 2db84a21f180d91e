//! Tests of installations through a fake host.

use area_sdk::testing::{FakeHost, Request, USER};
use serde_json::{Value, json};

const APP: &str = "https://repohost.test/apps/assurance/installations/new";

fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    host.set("app_url", APP);
    host
}

fn start() -> Request {
    let workspace = area_sdk::testing::WORKSPACE;
    Request::to("start_repohost_install").json(json!({ "workspace_id": workspace }))
}

/// Starts an installation and returns the claims of the signed `state` parameter.
fn set_off(host: &FakeHost) -> Value {
    host.call(start()).expect("a URL");
    host.links().pop().expect("a state").claims
}

fn back(state: &Value, installation: &str) -> Request {
    let request = Request::to("complete_repohost_install").link(state.clone());
    request.with("installation_id", installation)
}

#[test]
fn the_url_is_the_application_s_with_a_state_for_fifteen_minutes() {
    let host = host();
    let url = host.call(start()).expect("a URL").body;
    let link = host.links().pop().expect("a state");
    assert_eq!(url, json!({ "installation_url": format!("{APP}?state={}", link.token) }));
    assert_eq!(link.expires_at, host.now().plus_seconds(900));
    host.set("app_url", "https://repohost.test/new?app=7");
    let url = host.call(start()).expect("a URL").body["installation_url"].clone();
    assert!(
        url.as_str().is_some_and(|url| url.starts_with("https://repohost.test/new?app=7&state="))
    );
}

#[test]
fn without_a_sensible_setting_nobody_is_sent_anywhere() {
    let host = FakeHost::new(crate::area());
    for set in ["", "repohost.test/new", "javascript:alert(1)", "https://a b", "https://a/#b"] {
        host.set("app_url", set);
        let refused = host.call(start()).expect_err("no URL");
        assert_eq!(refused.code.as_deref(), Some("not_configured"), "{set}");
        assert!(refused.hint.is_some_and(|hint| hint.contains("areas.settings.repohost.app_url")));
    }
}

#[test]
fn coming_back_binds_the_installation_once() {
    let host = host();
    let state = set_off(&host);
    let bound = host.call(back(&state, "4711")).expect("an installation");
    assert_eq!(bound.version, Some(1));
    assert_eq!(bound.body["external_id"], "4711");
    assert_eq!(bound.body["setup_action"], "install");
    assert_eq!(bound.body["installed_by"], json!(USER));
    let event = host.events().pop().expect("an event");
    assert_eq!(
        (event.name.as_str(), &event.data["external_id"]),
        ("repohost.installed", &json!("4711"))
    );
    let again = host.call(back(&state, "4712")).expect_err("used");
    assert_eq!(again.code.as_deref(), Some("state_used"));
    let listed = host.call(Request::to("list_repohost_installations")).expect("a list").body;
    assert_eq!(listed["items"], json!([bound.body]));
}

#[test]
fn an_installation_that_is_bound_is_updated() {
    let host = host();
    let first = host.call(back(&set_off(&host), "4711")).expect("an installation").body;
    host.advance(60);
    let request = back(&set_off(&host), "4711").with("setup_action", "update");
    let updated = host.call(request).expect("an update");
    assert_eq!((&updated.body["id"], updated.version), (&first["id"], Some(2)));
    assert_eq!(updated.body["setup_action"], "update");
}

#[test]
fn a_request_at_the_repository_host_leaves_the_state_good() {
    let host = host();
    let state = set_off(&host);
    let request = Request::to("complete_repohost_install").link(state.clone());
    let asked = host.call(request.with("setup_action", "request")).expect_err("asked");
    assert_eq!(asked.code.as_deref(), Some("installation_requested"));
    let nothing = Request::to("complete_repohost_install").link(state.clone());
    let missing = host.call(nothing).expect_err("no installation");
    assert_eq!(missing.violations[0].pointer, "installation_id");
    host.call(back(&state, "4711")).expect("an installation");
}

#[test]
fn who_does_not_come_back_is_forgotten() {
    let host = host();
    let state = set_off(&host);
    let job = host.take_jobs().pop().expect("a job");
    assert_eq!(job.available_at, Some(host.now().plus_seconds(900)));
    host.run(&job.kind, job.payload, 1).expect("forgotten");
    assert!(host.documents("pending_installs").is_empty());
    let late = host.call(back(&state, "4711")).expect_err("late");
    assert_eq!(late.code.as_deref(), Some("state_used"));
}

#[test]
fn an_installation_can_be_taken_out() {
    let host = host();
    let bound = host.call(back(&set_off(&host), "4711")).expect("an installation").body;
    let one = |operation| Request::to(operation).with("installation_id", bound["id"].clone());
    let stale = host.call(one("delete_repohost_installation").if_match(7));
    assert!(stale.is_err());
    assert_eq!(host.call(one("get_repohost_installation")).expect("it").body, bound);
    host.call(one("delete_repohost_installation").if_match(1)).expect("gone");
    assert_eq!(host.events().pop().expect("an event").name, "repohost.removed");
    assert!(host.call(one("get_repohost_installation")).is_err());
}
