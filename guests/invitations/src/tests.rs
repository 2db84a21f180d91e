//! Tests of invitations through a fake host.

use area_sdk::testing::{FakeHost, Request, START, USER, WORKSPACE};
use area_sdk::wit::Outcome;
use area_sdk::{JobError, MailError, Problem, Role, Uuid};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The invited person.
const EVE: Uuid = Uuid::from_u128(5);
const EMAIL: &str = "eve@example.org";
const DAY: i64 = 24 * 3600;

fn host() -> FakeHost {
    let host = FakeHost::new(crate::area());
    host.put_member(USER, "ada@example.org", Role::Owner);
    host
}

fn invite_as(host: &FakeHost, caller: Role, email: &str, role: &str) -> Result<Value, Problem> {
    let request = Request::to("create_invitation").role(caller);
    let request = request.json(json!({ "email": email, "role": role }));
    host.call(request).map(|answer| answer.body)
}

fn invite(host: &FakeHost, email: &str) -> Value {
    invite_as(host, Role::Admin, email, "member").expect("an invitation")
}

fn on(host: &FakeHost, operation: &str, invitation: &Value) -> Result<Value, Problem> {
    let request = Request::to(operation).with("invitation_id", invitation["id"].clone());
    host.call(request.role(Role::Admin)).map(|answer| answer.body)
}

fn answer(host: &FakeHost, operation: &str, invitation: &Value) -> Result<Value, Problem> {
    let claims = json!({ "invitation_id": invitation["id"] });
    let request = Request::to(operation).by(EVE).role(Role::Viewer).link(claims);
    host.call(request).map(|answer| answer.body)
}

fn list(host: &FakeHost) -> Value {
    host.call(Request::to("list_invitations").role(Role::Admin)).expect("a list").body
}

/// Runs all steps of all waiting mail jobs.
fn send_mail(host: &FakeHost) -> Vec<Result<Outcome, JobError>> {
    let jobs = host.take_jobs().into_iter().filter(|job| job.kind == "send_invitation");
    jobs.map(|job| {
        let mut outcome = host.run(&job.kind, job.payload, 1);
        while let Ok(Outcome::Continue(next)) = &outcome {
            assert!(!next.contains("signed."), "no token is kept: {next}");
            outcome = host.run(&job.kind, serde_json::from_str(next).expect("JSON"), 1);
        }
        outcome
    })
    .collect()
}

fn event_names(host: &FakeHost) -> Vec<String> {
    host.events().into_iter().map(|event| event.name).collect()
}

#[test]
fn an_invitation_has_exactly_the_fields_of_the_contract() {
    let host = host();
    let made = invite(&host, "Eve@Example.ORG");
    let expected = json!({
        "created_at": START, "email": EMAIL, "existing_account": false,
        "expires_at": START.plus_seconds(7 * DAY), "id": made["id"], "invited_by": USER,
        "last_sent_at": START, "responded_at": null, "role": "member", "status": "pending",
        "workspace_id": WORKSPACE, "workspace_name": "Test workspace", "workspace_slug": "test",
    });
    assert_eq!(made, expected);
    assert_eq!(list(&host), json!([expected]));
    host.put_account(EVE, EMAIL);
    assert_eq!(list(&host)[0]["existing_account"], true);
    assert_eq!(host.events()[0].name, "invitation.created");
    assert_eq!(host.events()[0].data["email"], EMAIL);
}

#[test]
fn the_mail_alone_holds_the_tokens() {
    let host = host();
    let made = invite(&host, EMAIL);
    let kinds: Vec<String> = host.jobs().into_iter().map(|job| job.kind).collect();
    assert_eq!(kinds, ["send_invitation", "expire_invitation"]);
    assert_eq!(send_mail(&host), [Ok(Outcome::Done)]);
    let mail = host.mail();
    assert_eq!(
        (mail[0].to.as_str(), mail[0].subject.as_str()),
        (EMAIL, "Invitation to a workspace")
    );
    let text = &mail[0].text;
    for part in [
        "ada@example.org invites you",
        "in the role member",
        "the token as X-CSRF-Token",
        "POST https://assurance.test/v1/invitations/accept?token=signed.1",
        "POST https://assurance.test/v1/invitations/decline?token=signed.2",
        "\"token\": \"voucher-of-eve@example.org-until-",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let links = host.links();
    assert_eq!(links[0].claims, json!({ "invitation_id": made["id"] }));
    assert_eq!(links[0].expires_at, START.plus_seconds(7 * DAY));
    assert_eq!(
        links.iter().map(|link| link.operation.as_str()).collect::<Vec<_>>(),
        ["accept_invitation", "decline_invitation"]
    );
    let kept = format!("{:?} {:?}", host.documents("invitations"), host.events());
    assert!(!kept.contains("signed.") && !kept.contains("voucher"), "{kept}");
}

#[test]
fn who_has_an_account_is_told_to_sign_in_and_an_application_gets_links() {
    let host = host();
    host.put_account(EVE, EMAIL);
    host.set("app_url", "https://app.example.com/join");
    assert_eq!(invite(&host, EMAIL)["existing_account"], true);
    invite(&host, "new@example.org");
    send_mail(&host);
    let texts: Vec<String> = host.mail().into_iter().map(|mail| mail.text).collect();
    assert!(texts[0].contains("https://app.example.com/join#accept=signed.1\n"), "{}", texts[0]);
    assert!(texts[1].contains("#accept=signed.3&register=voucher-of-new"), "{}", texts[1]);
    assert!(!texts[0].contains("register"), "{}", texts[0]);
}

#[test]
fn a_mail_server_that_is_away_is_tried_again_and_one_that_refuses_is_not() {
    let host = host();
    host.mail_server(|message| match message.to.as_str() {
        EMAIL => Err(MailError::Unavailable("away".to_owned())),
        _ => Err(MailError::Rejected("no such mailbox".to_owned())),
    });
    invite(&host, EMAIL);
    invite(&host, "gone@example.org");
    let retry = JobError::Retry("mail: away".to_owned());
    let fail = JobError::Fail("mail: no such mailbox".to_owned());
    assert_eq!(send_mail(&host), [Err(retry), Err(fail)]);
    assert!(host.mail().is_empty());
}

#[test]
fn a_mail_is_tried_as_long_as_the_invitation_is_valid() {
    let host = host();
    host.mail_server(|_| Err(MailError::Unavailable("limit".to_owned())));
    invite(&host, EMAIL);
    let job = host.take_jobs().remove(0);
    let Ok(Outcome::Continue(next)) = host.run(&job.kind, job.payload, 1) else {
        panic!("no second step");
    };
    let step = |attempt| host.run(&job.kind, serde_json::from_str(&next).expect("JSON"), attempt);
    let mut attempt = 13;
    while let Ok(Outcome::Retry((at, why))) = step(attempt) {
        assert_eq!(why, "mail: limit");
        host.advance((at - host.now().0) / 1_000_000);
        attempt += 1;
    }
    assert_eq!(step(attempt), Ok(Outcome::Done));
    assert!(host.now() >= START.plus_seconds(7 * DAY) && attempt <= 100, "{attempt} attempts");
}

#[test]
fn a_mail_is_sent_once_however_often_its_delivery_is_stored() {
    let host = host();
    invite(&host, EMAIL);
    let job = host.take_jobs().remove(0);
    let step = |payload, attempt| match host.run(&job.kind, payload, attempt) {
        Ok(Outcome::Continue(next)) => serde_json::from_str::<Value>(&next).expect("JSON"),
        other => panic!("no further step: {other:?}"),
    };
    let next = step(job.payload.clone(), 1);
    host.advance(60);
    let sent_at = json!(host.now());
    let delivered = step(next, 1);
    assert!(host.documents("deliveries").is_empty());
    host.advance(60);
    for attempt in [1, 2] {
        assert_eq!(host.run(&job.kind, delivered.clone(), attempt), Ok(Outcome::Done));
    }
    assert_eq!(host.mail().len(), 1);
    assert_eq!(list(&host)[0]["last_sent_at"], sent_at);
}

#[test]
fn a_mail_that_waits_is_replaced_by_the_next_one_and_shown_as_sent_after_it_was() {
    let host = host();
    let made = invite(&host, EMAIL);
    let waiting = host.take_jobs().remove(0);
    host.advance(60);
    let resent = on(&host, "resend_invitation", &made).expect("sent again");
    assert_eq!(resent["last_sent_at"], json!(START));
    assert_eq!(host.run(&waiting.kind, waiting.payload, 2), Ok(Outcome::Done));
    assert!(host.mail().is_empty());
    assert_eq!(send_mail(&host), [Ok(Outcome::Done)]);
    let sent_at = json!(host.now());
    host.advance(60);
    assert_eq!(list(&host)[0]["last_sent_at"], sent_at);
    let show = Request::to("get_invitation").with("invitation_id", made["id"].clone());
    let shown = host.call(show.role(Role::Admin)).expect("shown");
    assert_eq!((&shown.body["last_sent_at"], shown.version), (&sent_at, Some(2)));
    let again = on(&host, "resend_invitation", &made).expect("sent again");
    assert_eq!(again["last_sent_at"], sent_at);
    assert_eq!(send_mail(&host), [Ok(Outcome::Done)]);
    let revoked = on(&host, "revoke_invitation", &made).expect("revoked");
    assert_eq!(revoked["last_sent_at"], json!(host.now()));
}

#[test]
fn who_accepts_becomes_a_member_once() {
    let host = host();
    let made = invite(&host, EMAIL);
    host.put_account(EVE, EMAIL);
    host.advance(60);
    let accepted = answer(&host, "accept_invitation", &made).expect("accepted");
    assert_eq!(
        (&accepted["status"], &accepted["existing_account"]),
        (&json!("accepted"), &json!(true))
    );
    assert_eq!(accepted["responded_at"], json!(host.now()));
    let members = host.members();
    let eve = members.iter().find(|member| member.user == EVE.to_string());
    assert_eq!(eve.map(|eve| eve.role), Some(Role::Member));
    assert_eq!(event_names(&host), ["invitation.created", "invitation.accepted"]);
    assert_eq!(host.events()[1].data["user_id"], json!(EVE));

    for operation in ["accept_invitation", "decline_invitation"] {
        let again = answer(&host, operation, &made).expect_err("answered already");
        assert_eq!(again.code.as_deref(), Some("invitation_not_pending"));
        assert!(again.hint.is_some_and(|hint| hint.starts_with("The person became a member.")));
    }
    let again = on(&host, "resend_invitation", &made).expect_err("answered already");
    assert!(again.hint.is_some_and(|hint| hint.starts_with("The person became a member.")));
    let member = invite_as(&host, Role::Admin, EMAIL, "viewer").expect_err("a member");
    assert_eq!(member.code.as_deref(), Some("already_member"));
    // The mail job of an answered invitation does not send a mail.
    assert_eq!(send_mail(&host), [Ok(Outcome::Done)]);
    assert!(host.mail().is_empty());
}

#[test]
fn an_invitation_is_answered_by_the_invited_person_only() {
    let host = host();
    let made = invite(&host, EMAIL);
    let denied = |host: &FakeHost| answer(host, "accept_invitation", &made).expect_err("denied");
    assert_eq!(denied(&host).kind, Problem::permission_denied("").kind);
    host.put_account(Uuid::from_u128(6), EMAIL);
    assert_eq!(denied(&host).kind, Problem::permission_denied("").kind);
    assert_eq!(list(&host)[0]["status"], "pending");
}

#[test]
fn who_declines_can_be_invited_again() {
    let host = host();
    host.put_account(EVE, EMAIL);
    let made = invite(&host, EMAIL);
    let declined = answer(&host, "decline_invitation", &made).expect("declined");
    assert_eq!(declined["status"], "declined");
    assert_eq!(host.members().len(), 1);
    assert_eq!(event_names(&host), ["invitation.created", "invitation.declined"]);
    host.advance(1);
    let again = invite(&host, EMAIL);
    assert_eq!(list(&host)[0]["id"], again["id"], "newest first");
}

#[test]
fn only_one_invitation_of_an_address_is_pending() {
    let host = host();
    let made = invite(&host, EMAIL);
    let second = invite_as(&host, Role::Admin, "EVE@example.org", "viewer").expect_err("pending");
    assert_eq!(second.code.as_deref(), Some("invitation_pending"));
    let revoked = on(&host, "revoke_invitation", &made).expect("revoked");
    assert_eq!((&revoked["status"], &revoked["responded_at"]), (&json!("revoked"), &Value::Null));
    let again = on(&host, "revoke_invitation", &made).expect_err("revoked already");
    assert_eq!(again.code.as_deref(), Some("invitation_not_pending"));
    host.put_account(EVE, EMAIL);
    let late = answer(&host, "accept_invitation", &made).expect_err("revoked");
    assert!(late.detail.contains("revoked"), "{}", late.detail);
    invite(&host, EMAIL);
    let names = event_names(&host);
    assert_eq!(names, ["invitation.created", "invitation.revoked", "invitation.created"]);
}

#[test]
fn only_an_owner_invites_an_owner() {
    let host = host();
    let denied = invite_as(&host, Role::Admin, EMAIL, "owner").expect_err("not by an admin");
    assert_eq!(denied.kind, Problem::permission_denied("").kind);
    assert_eq!(
        invite_as(&host, Role::Owner, EMAIL, "owner").expect("by an owner")["role"],
        "owner"
    );
}

#[test]
fn what_is_no_address_is_refused_by_name() {
    let long = format!("{}@example.org", "ü".repeat(130));
    for email in ["eve", "eve@", "@example.org", "e ve@example.org", "\"a@b\"@example.org", &long] {
        let refused = invite_as(&host(), Role::Admin, email, "member").expect_err("no address");
        assert_eq!(refused.violations[0].pointer, "/email", "{email}");
    }
}

#[test]
fn an_invitation_expires_after_seven_days_from_its_last_sending() {
    let host = host();
    host.put_account(EVE, EMAIL);
    let made = invite(&host, EMAIL);
    let expiry = host.take_jobs().pop().expect("a job");
    assert_eq!(expiry.available_at, Some(START.plus_seconds(7 * DAY)));
    host.advance(6 * DAY);
    let resent = on(&host, "resend_invitation", &made).expect("sent again");
    assert_eq!(resent["expires_at"], json!(host.now().plus_seconds(7 * DAY)));
    assert_eq!(send_mail(&host), [Ok(Outcome::Done)]);

    // The first expiry job runs before the extended expiry, and enqueues another job.
    host.advance(DAY);
    assert_eq!(host.run(&expiry.kind, expiry.payload, 1), Ok(Outcome::Done));
    let expiry = host.take_jobs().pop().expect("another job");
    assert_eq!(expiry.available_at, Some(START.plus_seconds(13 * DAY)));
    assert_eq!(list(&host)[0]["status"], "pending");

    // The invitation counts as expired both before and after the expiry job has run.
    host.advance(6 * DAY);
    assert_eq!(list(&host)[0]["status"], "expired");
    let late = answer(&host, "accept_invitation", &made).expect_err("too late");
    assert_eq!(late.code.as_deref(), Some("invitation_not_pending"));
    assert_eq!(host.run(&expiry.kind, expiry.payload.clone(), 1), Ok(Outcome::Done));
    assert_eq!(host.run(&expiry.kind, expiry.payload, 2), Ok(Outcome::Done));
    assert_eq!(event_names(&host), ["invitation.created", "invitation.expired"]);
    assert!(on(&host, "resend_invitation", &made).is_err());
}

#[test]
fn an_address_is_free_again_before_its_expiry_was_noted() {
    let host = host();
    invite(&host, EMAIL);
    host.advance(8 * DAY);
    invite(&host, EMAIL);
    let names = event_names(&host);
    assert_eq!(names, ["invitation.created", "invitation.expired", "invitation.created"]);
    let statuses = [list(&host)[0]["status"].clone(), list(&host)[1]["status"].clone()];
    assert_eq!(statuses, [json!("pending"), json!("expired")]);
}

#[test]
fn a_change_honours_if_match_and_mail_is_not_sent_for_ever() {
    let host = host();
    let made = invite(&host, EMAIL);
    let stale = Request::to("resend_invitation").with("invitation_id", made["id"].clone());
    assert!(host.call(stale.if_match(7)).is_err());
    for _ in 1..10 {
        on(&host, "resend_invitation", &made).expect("sent again");
    }
    let refused = on(&host, "resend_invitation", &made).expect_err("ten times");
    assert_eq!(refused.code.as_deref(), Some("invitation_sent_often"));
    let shown = Request::to("get_invitation").with("invitation_id", made["id"].clone());
    assert_eq!(host.call(shown.role(Role::Admin)).expect("shown").version, Some(10));
    let page = Request::to("page_invitations").with("limit", 1).role(Role::Admin);
    assert_eq!(host.call(page).expect("a page").body["items"][0]["id"], made["id"]);
}

/// An action on an invitation.
#[derive(Clone, Copy, Debug)]
enum Step {
    Accept,
    Decline,
    Revoke,
    Resend,
    Days(i64),
    NoteExpiry,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Accept),
        Just(Step::Decline),
        Just(Step::Revoke),
        Just(Step::Resend),
        (1..8_i64).prop_map(Step::Days),
        Just(Step::NoteExpiry),
    ]
}

/// Model of an invitation: a second implementation of the rules for the property test.
struct Model {
    status: &'static str,
    days_left: i64,
    sent: u32,
}

impl Model {
    /// Applies an action to the model. Returns whether the action succeeds.
    fn take(&mut self, step: Step) -> bool {
        let (becomes, possible) = match step {
            Step::Days(days) => {
                self.days_left -= days;
                let over = self.status == "pending" && self.days_left <= 0;
                (if over { "expired" } else { self.status }, true)
            }
            Step::NoteExpiry => (self.status, true),
            Step::Accept => ("accepted", self.status == "pending"),
            Step::Decline => ("declined", self.status == "pending"),
            Step::Revoke => ("revoked", self.status == "pending"),
            Step::Resend => ("pending", self.status == "pending" && self.sent < 10),
        };
        if possible {
            self.status = becomes;
        }
        if let (Step::Resend, true) = (step, possible) {
            (self.days_left, self.sent) = (7, self.sent + 1);
        }
        possible
    }
}

proptest! {
    #[test]
    fn an_invitation_goes_its_ways_and_no_others(
        steps in proptest::collection::vec(step(), 1..20),
    ) {
        let host = host();
        host.put_account(EVE, EMAIL);
        let made = invite(&host, EMAIL);
        let payload = json!({ "invitation_id": made["id"] });
        let mut model = Model { status: "pending", days_left: 7, sent: 1 };
        for step in steps {
            let done = match step {
                Step::Accept => answer(&host, "accept_invitation", &made).is_ok(),
                Step::Decline => answer(&host, "decline_invitation", &made).is_ok(),
                Step::Revoke => on(&host, "revoke_invitation", &made).is_ok(),
                Step::Resend => on(&host, "resend_invitation", &made).is_ok(),
                Step::NoteExpiry => host.run("expire_invitation", payload.clone(), 1).is_ok(),
                Step::Days(days) => {
                    host.advance(days * DAY);
                    true
                }
            };
            prop_assert_eq!(done, model.take(step), "{:?}", step);
            prop_assert_eq!(&list(&host)[0]["status"], model.status);
        }
        prop_assert_eq!(host.members().len() == 2, model.status == "accepted");
    }
}
