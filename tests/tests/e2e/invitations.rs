//! Invitations (operation 21), from the mail to the membership.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assurance_tests::artifacts::path_at;
use assurance_tests::contract::Contract;
use assurance_tests::mail_server::MailServer;
use assurance_tests::operators::items;
use assurance_tests::{Answer, Backend, Builder, Client, TestHost, both_backends, until};
use serde_json::{Value, json};

const INVITATIONS: &str = "/v1/workspaces/{ws}/invitations";
const REGISTER: &str = "/v1/auth/register";
const PASSWORD: &str = "a password that nobody guesses";
const SOON: Duration = Duration::from_secs(30);

async fn host(backend: Backend) -> (TestHost, Client) {
    let builder = Builder::new(backend).areas(&["invitations", "support"]);
    builder.set("mail.recipient_pause_seconds", 1).start_with_owner().await
}

async fn invite(client: &Client, email: &str, role: &str) -> Answer {
    client.post(INVITATIONS, &json!({ "email": email, "role": role })).await
}

fn path(invitation: &Value) -> String {
    path_at(INVITATIONS, invitation)
}

fn action(invitation: &Value, action: &str) -> String {
    format!("{}/{action}", path(invitation))
}

/// Returns the text of the mail to an address from the folder that replaces a mail server, with
/// lines joined as by a mail program.
pub(crate) async fn mail_to(host: &TestHost, email: &str) -> String {
    let folder = host.folder().join("data/mail");
    until(format!("mail to {email} is sent"), async || {
        files(&folder).into_iter().rev().find_map(|file| {
            let text = std::fs::read_to_string(file).expect("a message");
            text.contains(&format!("To: {email}\r\n")).then(|| unfolded(&text))
        })
    })
    .await
}

/// Returns the messages in the folder, oldest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "eml"));
    files.sort();
    files
}

/// Decodes quoted-printable (RFC 2045) if the message uses it.
fn unfolded(text: &str) -> String {
    if text.contains("Content-Transfer-Encoding: quoted-printable") {
        text.replace("=\r\n", "").replace("=3D", "=")
    } else {
        text.to_owned()
    }
}

/// Returns the word after a mark in a mail.
pub(crate) fn word_after<'t>(text: &'t str, mark: &str) -> &'t str {
    let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark} in {text}"));
    rest.split(['\r', '\n', '"', '&']).next().expect("a word")
}

/// Returns the token of an operation's link in a mail.
pub(crate) fn token(text: &str, operation: &str) -> String {
    word_after(text, &format!("/v1/invitations/{operation}?token=")).to_owned()
}

async fn answer(client: &Client, operation: &str, token: &str) -> Answer {
    client.post(&format!("/v1/invitations/{operation}?token={token}"), &json!({})).await
}

async fn register(host: &TestHost, token: &str) -> Answer {
    let body = json!({ "token": token, "display_name": "Eve", "password": PASSWORD });
    host.nobody().post(REGISTER, &body).await
}

/// Calls operation 21 and checks the contract's shape.
async fn list(client: &Client) -> Vec<Value> {
    let list = client.get(INVITATIONS).await.expect(200);
    Contract::read().check(21, &list);
    list.as_array().expect("an array").clone()
}

both_backends! {
    async fn a_person_without_an_account_comes_in_by_mail(backend) {
        let (mut host, ada) = host(backend).await;
        let made = invite(&ada, "Eve@Example.org", "member").await.expect(201);
        assert_eq!((&made["email"], &made["status"]), (&json!("eve@example.org"), &json!("pending")));
        assert_eq!((&made["existing_account"], &made["responded_at"]), (&json!(false), &Value::Null));
        let mail = mail_to(&host, "eve@example.org").await;
        let (voucher, accept) = (word_after(&mail, "\"token\": \"").to_owned(), token(&mail, "accept"));
        for secret in [&voucher, &accept, &token(&mail, "decline")] {
            host.keep_secret(secret);
        }

        let registered = register(&host, &voucher).await;
        let session = registered.expect(201);
        assert_eq!(session["user"]["email"], "eve@example.org");
        assert_eq!(session["user"]["email_verified"], true);
        let eve = host.signed_in(&registered).in_workspace(&ada.workspace);
        assert_eq!(list(&ada).await[0]["existing_account"], true);
        let cases = "/v1/workspaces/{ws}/support/cases";
        eve.get(cases).await.problem(404, "not_found");

        let accepted = answer(&eve, "accept", &accept).await.expect(200);
        assert_eq!((&accepted["status"], &accepted["id"]), (&json!("accepted"), &made["id"]));
        eve.get(cases).await.expect(200);
        let mine = eve.get("/v1/workspaces").await.expect(200);
        assert_eq!(mine["items"][0]["role"], "member");
        let shown = &list(&ada).await[0];
        assert!(shown["responded_at"].is_string() && shown["last_sent_at"].is_string(), "{shown}");
        assert_eq!((&shown["workspace_slug"], &shown["workspace_name"]), (&json!("first"), &json!("first")));

        // The link works once, and the account is created once.
        answer(&eve, "accept", &accept).await.problem(409, "invitation_not_pending");
        register(&host, &voucher).await.problem(409, "conflict");
        invite(&ada, "eve@example.org", "viewer").await.problem(409, "already_member");
        let login = json!({ "email": "eve@example.org", "password": PASSWORD });
        host.nobody().post("/v1/auth/login", &login).await.expect(200);
    }

    async fn a_person_with_an_account_signs_in_and_is_the_only_one_to_answer(backend) {
        let (mut host, ada) = host(backend).await;
        let (eve, mallory) = (host.create_person("eve"), host.create_person("mallory"));
        let made = invite(&ada, &eve.email, "admin").await.expect(201);
        assert_eq!(made["existing_account"], true);
        let mail = mail_to(&host, &eve.email).await;
        assert!(!mail.contains(REGISTER), "{mail}");
        let (accept, decline) = (token(&mail, "accept"), token(&mail, "decline"));

        answer(&host.nobody(), "accept", &accept).await.problem(401, "unauthenticated");
        let mallory = host.sign_in(&mallory, &ada.workspace);
        answer(&mallory, "accept", &accept).await.problem(403, "permission_denied");
        let eve = host.sign_in(&eve, &ada.workspace);
        answer(&eve.without_csrf(), "accept", &accept).await.problem(403, "csrf_failed");
        // A link is valid only for its own operation, and only unchanged.
        answer(&eve, "accept", &decline).await.problem(403, "permission_denied");
        answer(&eve, "accept", &accept[..accept.len() - 4]).await.problem(403, "permission_denied");
        assert_eq!(list(&ada).await[0]["status"], "pending");

        let declined = answer(&eve, "decline", &decline).await.expect(200);
        assert_eq!(declined["status"], "declined");
        answer(&eve, "accept", &accept).await.problem(409, "invitation_not_pending");
        eve.get(INVITATIONS).await.problem(404, "not_found");
        let again = invite(&ada, "eve@example.org", "admin").await.expect(201);
        let ids: Vec<Value> = list(&ada).await.iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids, [again["id"].clone(), made["id"].clone()], "newest first");
    }

    async fn admins_invite_and_only_owners_invite_owners(backend) {
        let (mut host, ada) = host(backend).await;
        let elsewhere = host.elsewhere();
        let admin = host.member("abe", &ada.workspace, "admin");
        let member = host.member("mia", &ada.workspace, "member");
        for path in [INVITATIONS, "/v1/workspaces/{ws}/invitation-history"] {
            member.get(path).await.problem(403, "permission_denied");
            admin.in_workspace(&elsewhere).get(path).await.problem(404, "not_found");
            host.nobody().in_workspace(&ada.workspace).get(path).await.problem(401, "unauthenticated");
        }
        invite(&member, "eve@example.org", "viewer").await.problem(403, "permission_denied");
        invite(&admin, "eve@example.org", "owner").await.problem(403, "permission_denied");
        let owner = invite(&ada, "eve@example.org", "owner").await.expect(201);
        assert_eq!((&owner["role"], &list(&admin).await[0]["role"]), (&json!("owner"), &json!("owner")));
        invite(&ada.without_csrf(), "x@example.org", "viewer").await.problem(403, "csrf_failed");
        for (email, role) in [("eve", "member"), ("e@x@example.org", "member"), ("z@example.org", "king")] {
            invite(&ada, email, role).await.problem(422, "validation_failed");
        }
        invite(&ada, "mia@example.org", "admin").await.problem(409, "already_member");
        invite(&ada, "EVE@example.org", "viewer").await.problem(409, "invitation_pending");
    }

    async fn a_revoked_invitation_is_worth_nothing_and_a_resent_one_comes_again(backend) {
        let (mut host, ada) = host(backend).await;
        let eve = host.create_person("eve");
        let made = invite(&ada, &eve.email, "member").await.expect(201);
        let sent_after = async |shown: &Value| {
            until("the mail is sent", async || {
                list(&ada).await[0]["last_sent_at"].as_str() > shown["last_sent_at"].as_str()
            })
            .await;
        };
        sent_after(&made).await;
        let resent = ada.post(&action(&made, "resend"), &json!({})).await.expect(200);
        assert!(resent["expires_at"].as_str() > made["expires_at"].as_str(), "{resent}");
        sent_after(&resent).await;
        assert_eq!(files(&host.folder().join("data/mail")).len(), 2);
        let mail = mail_to(&host, &eve.email).await;
        let revoked = ada.post(&action(&made, "revoke"), &json!({})).await.expect(200);
        assert_eq!(revoked["status"], "revoked");
        ada.post(&action(&made, "revoke"), &json!({})).await.problem(409, "invitation_not_pending");
        ada.post(&action(&made, "resend"), &json!({})).await.problem(409, "invitation_not_pending");
        let eve = host.sign_in(&eve, &ada.workspace);
        let late = answer(&eve, "accept", &token(&mail, "accept")).await;
        late.problem(409, "invitation_not_pending");
        let page = ada.get("/v1/workspaces/{ws}/invitation-history?limit=1").await.expect(200);
        assert_eq!((&page["items"][0]["status"], &page["next_cursor"]), (&json!("revoked"), &Value::Null));
        let shown = ada.get(&path(&made)).await;
        assert!(shown.header("etag").is_some_and(|tag| tag.starts_with("\"3.")), "{shown:?}");
        assert_eq!(shown.expect(200)["status"], "revoked");
    }

    async fn mail_goes_through_the_operators_server(backend) {
        let server = MailServer::start();
        let builder = Builder::new(backend).areas(&["invitations", "queue"]);
        let builder = builder.set("mail.smtp_url", server.url.clone());
        let builder = builder.set("mail.from", "Assurance Ünit <assurance@example.com>");
        let builder = builder.set("mail.recipient_pause_seconds", 1);
        let (mut host, ada) = builder.start_with_owner().await;
        MailServer::PASSWORD.iter().for_each(|password| host.keep_secret(password));
        for name in ["eve", "gone", "later"] {
            invite(&ada, &format!("{name}@example.org"), "viewer").await.expect(201);
        }
        let mail = server.wait_for("eve@example.org", SOON).await;
        assert_eq!(mail["sender"], "assurance@example.com");
        assert_eq!(mail["from"], "Assurance Ünit <assurance@example.com>");
        assert_eq!((&mail["recipients"], &mail["subject"]), (&json!(["eve@example.org"]), &json!("Invitation to a workspace")));
        let text = mail["text"].as_str().expect("a text");
        let voucher = word_after(text, "\"token\": \"").to_owned();
        let registered = register(&host, &voucher).await;
        registered.expect(201);
        let eve = host.signed_in(&registered).in_workspace(&ada.workspace);
        answer(&eve, "accept", &token(text, "accept")).await.expect(200);

        // A mail that was refused temporarily is sent again; one that was refused permanently fails
        // with the reason.
        server.wait_for("later@example.org", SOON).await;
        let failed = until("a job has failed", async || {
            let page = ada.get("/v1/workspaces/{ws}/queue/jobs?status=failed").await.expect(200);
            page["items"].get(0).cloned()
        })
        .await;
        let why = failed["last_error"].as_str().expect("a reason");
        assert!(why.contains("no such mailbox"), "{why}");
        let sent = |address: &str| server.received().iter().filter(|m| m["to"] == address).count();
        assert_eq!((sent("eve@example.org"), sent("later@example.org")), (1, 1));
        assert!(!host.folder().join("data/mail").exists(), "nothing goes into the folder");
    }
}

#[tokio::test]
async fn a_registration_says_what_is_wrong_with_it() {
    let (host, ada) = host(Backend::Sqlite).await;
    invite(&ada, "eve@example.org", "member").await.expect(201);
    let mail = mail_to(&host, "eve@example.org").await;
    let voucher = word_after(&mail, "\"token\": \"").to_owned();
    let altered = format!("x{voucher}");
    for (body, pointer) in [
        (json!({ "token": altered, "display_name": "Eve", "password": PASSWORD }), "/token"),
        (json!({ "token": voucher, "display_name": "Eve", "password": "short" }), "/password"),
        (json!({ "token": voucher, "display_name": "\n", "password": PASSWORD }), "/display_name"),
        (json!({ "token": voucher, "password": PASSWORD }), "/display_name"),
    ] {
        let refused = host.nobody().post(REGISTER, &body).await;
        refused.problem_about(422, "validation_failed", pointer);
    }
    let foreign = host.nobody().request(reqwest::Method::POST, REGISTER);
    let foreign = foreign.header("origin", "https://evil.example").json(&json!({}));
    assurance_tests::client::send(foreign).await.problem(403, "csrf_failed");
    register(&host, &voucher).await.expect(201);
}

both_backends! {
    async fn an_invitation_is_worth_what_its_inviter_may_do_when_it_is_accepted(backend) {
        let (mut host, ada) = host(backend).await;
        let (bob, eve) = (host.create_person("bob"), host.create_person("eve"));
        host.add_member(&ada.workspace, &bob, "owner");
        let by_bob = host.sign_in(&bob, &ada.workspace);
        let made = invite(&by_bob, &eve.email, "owner").await.expect(201);
        let first = mail_to(&host, &eve.email).await;
        host.add_member(&ada.workspace, &bob, "viewer");

        let eve_client = host.sign_in(&eve, &ada.workspace);
        let late = answer(&eve_client, "accept", &token(&first, "accept")).await;
        late.problem(409, "inviter_not_allowed");
        eve_client.get(INVITATIONS).await.problem(404, "not_found");

        // An admin cannot act for an owner; an owner can.
        let admin = host.member("abe", &ada.workspace, "admin");
        admin.post(&action(&made, "resend"), &json!({})).await.problem(403, "permission_denied");
        ada.post(&action(&made, "resend"), &json!({})).await.expect(200);
        answer(&eve_client, "accept", &token(&first, "accept")).await.expect(200);
        assert_eq!(eve_client.get("/v1/workspaces").await.expect(200)["items"][0]["role"], "owner");
    }

    async fn a_removed_member_comes_back_by_a_new_invitation_and_gives_none(backend) {
        let (mut host, ada) = host(backend).await;
        let (bob, eve) = (host.create_person("bob"), host.create_person("eve"));
        invite(&ada, &bob.email, "admin").await.expect(201);
        let first = mail_to(&host, &bob.email).await;
        let by_bob = host.sign_in(&bob, &ada.workspace);
        answer(&by_bob, "accept", &token(&first, "accept")).await.expect(200);
        invite(&by_bob, &eve.email, "member").await.expect(201);
        let to_eve = mail_to(&host, &eve.email).await;
        ada.delete(&format!("/v1/workspaces/{{ws}}/members/{}", bob.id)).await.expect(204);

        by_bob.get(INVITATIONS).await.problem(404, "not_found");
        invite(&by_bob, "mallory@example.org", "admin").await.problem(404, "not_found");
        answer(&by_bob, "accept", &token(&first, "accept")).await.problem(409, "invitation_not_pending");
        let by_eve = host.sign_in(&eve, &ada.workspace);
        answer(&by_eve, "accept", &token(&to_eve, "accept")).await.problem(409, "inviter_not_allowed");

        let folder = host.folder().join("data/mail");
        let mails = files(&folder).len();
        invite(&ada, &bob.email, "viewer").await.expect(201);
        until("he is invited again", async || files(&folder).len() != mails).await;
        let second = mail_to(&host, &bob.email).await;
        answer(&by_bob, "accept", &token(&second, "accept")).await.expect(200);
        assert_eq!(by_bob.get("/v1/workspaces").await.expect(200)["items"][0]["role"], "viewer");
    }

    async fn a_member_removed_while_an_invitation_waits_stays_out_once_it_is_revoked(backend) {
        let (mut host, ada) = host(backend).await;
        let bob = host.create_person("bob");
        let made = invite(&ada, &bob.email, "member").await.expect(201);
        let mail = mail_to(&host, &bob.email).await;
        host.add_member(&ada.workspace, &bob, "viewer");
        let by_bob = host.sign_in(&bob, &ada.workspace);
        let members = "/v1/workspaces/{ws}/members";
        by_bob.get(members).await.expect(200);
        ada.delete(&format!("{members}/{}", bob.id)).await.expect(204);
        by_bob.get(members).await.problem(404, "not_found");
        assert_eq!(list(&ada).await[0]["status"], "pending");
        ada.post(&action(&made, "revoke"), &json!({})).await.expect(200);
        answer(&by_bob, "accept", &token(&mail, "accept")).await.problem(409, "invitation_not_pending");
        by_bob.get(members).await.problem(404, "not_found");
    }

    async fn an_account_that_is_disabled_has_no_way_in_by_mail(backend) {
        let (mut host, ada) = host(backend).await;
        let (bob, mallory) = (host.create_person("bob"), host.create_person("mallory"));
        invite(&ada, "eve@example.org", "member").await.expect(201);
        let mail = mail_to(&host, "eve@example.org").await;
        let voucher = word_after(&mail, "\"token\": \"").to_owned();
        let registered = register(&host, &voucher).await;
        registered.expect(201);
        host.add_member(&ada.workspace, &bob, "owner");
        let by_bob = host.sign_in(&bob, &ada.workspace);
        invite(&by_bob, &mallory.email, "owner").await.expect(201);
        let by_bob_mail = mail_to(&host, &mallory.email).await;

        for email in ["eve@example.org", &bob.email] {
            host.cli(&["user", "disable", "--user", email]);
        }
        let eve = host.signed_in(&registered).in_workspace(&ada.workspace);
        until("her session has ended", async || {
            answer(&eve, "accept", &token(&mail, "accept")).await.status == 401
        })
        .await;
        register(&host, &voucher).await.problem(409, "conflict");
        let login = json!({ "email": "eve@example.org", "password": PASSWORD });
        host.nobody().post("/v1/auth/login", &login).await.problem(401, "invalid_credentials");
        // Nobody can use an invitation of a disabled owner.
        let mallory = host.sign_in(&mallory, &ada.workspace);
        let late = answer(&mallory, "accept", &token(&by_bob_mail, "accept")).await;
        late.problem(409, "inviter_not_allowed");
    }

    async fn an_address_gets_few_mails_a_day_whoever_invites_it(backend) {
        let builder = Builder::new(backend).areas(&["invitations", "queue"]);
        let builder = builder.set("mail.max_per_recipient_per_day", 3);
        let builder = builder.set("mail.max_per_workspace_per_day", 5);
        let builder = builder.set("mail.recipient_pause_seconds", 1);
        let (mut host, ada) = builder.start_with_owner().await;
        let elsewhere = host.elsewhere();
        let other = host.member("bob", &elsewhere, "owner");
        let sent = |host: &TestHost| files(&host.folder().join("data/mail")).len();
        // Invites spellings of one mailbox, from two workspaces; resends and revokes the
        // invitations.
        for n in 0..3 {
            for client in [&ada, &other] {
                let made = invite(client, &format!("Eve+{n}@example.org"), "viewer").await.expect(201);
                client.post(&action(&made, "resend"), &json!({})).await.expect(200);
                client.post(&action(&made, "revoke"), &json!({})).await.expect(200);
                invite(client, &format!("eve+{n}@example.org"), "viewer").await.expect(201);
            }
        }
        let waits = async |clients: &[&Client], why: &str| {
            until(format!("a job waits because of {why:?}"), async || {
                let mut jobs = vec![];
                for client in clients {
                    let page = client.get("/v1/workspaces/{ws}/queue/jobs?status=retrying").await.expect(200);
                    jobs.extend_from_slice(items(&page["items"]));
                }
                let mut reasons = jobs.iter().filter_map(|job| job["last_error"].as_str());
                if reasons.any(|reason| reason.contains(why)) { Ok(()) } else { Err(json!(jobs)) }
            })
            .await;
        };
        // All three may be of one workspace.
        waits(&[&ada, &other], "3 mails went to this address within a day").await;
        assert_eq!(sent(&host), 3);
        // Other addresses still receive invitations, up to the workspace's limit.
        for n in 0..6 {
            invite(&ada, &format!("new{n}@example.org"), "viewer").await.expect(201);
        }
        waits(&[&ada], "mail.max_per_workspace_per_day").await;
        assert!((4..=8).contains(&sent(&host)), "{}", sent(&host));
    }
}
