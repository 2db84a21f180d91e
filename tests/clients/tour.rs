//! A tour with the client that openapi-to-rust makes of `/openapi.json`.
//!
//! Arguments: base URL, e-mail, password, workspace, a SARIF file.

#[expect(dead_code, reason = "the tour uses a part of the client")]
mod generated;

use std::time::Duration;

use generated::client::{CreateSupportCaseApiError, GetSessionApiError, HttpClient};
use generated::types::{
    AuditState, Login, NewAudit, NewRepository, NewSupportCase, NewUpload, Purpose, Stage,
    SupportStatus,
};

/// Value of an optional header or parameter that is not sent.
const NONE: Option<&str> = None;

/// Pause between two reads of a resource that changes.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Waits until the file is validated and the audit is complete. Returns the repository's id.
async fn import(client: &HttpClient, workspace: &str, sarif: &str) -> String {
    let new = NewRepository {
        name: "rust".into(),
        provider: Some("github".into()),
        default_branch: Some("main".into()),
        external_id: None,
        url: None,
    };
    let repository = client.create_repository(workspace, NONE, new).await.expect("a repository");
    let content = std::fs::read(sarif).expect("the file");
    let announced = NewUpload {
        filename: "shop.sarif".into(),
        content_type: "application/json".into(),
        compressed_bytes: content.len() as u64,
        content_sha256: None,
        repository_id: Some(Some(repository.id)),
        branch_ref: None,
        commit_sha: None,
        purpose: Purpose::Audit,
    };
    let upload = client.create_upload(workspace, NONE, announced).await.expect("an upload");
    let id = upload.id.to_string();
    let url = upload.upload_url.expect("a URL");
    let (_, signature) = url.as_str().split_once("signature=").expect("a signature");
    client.put_upload_content(&id, signature, content).await.expect("stored");
    client.complete_upload(workspace, &id, NONE).await.expect("complete");
    while client.get_upload(workspace, &id).await.expect("it").validation_stage != Stage::Ready {
        pause().await;
    }
    let new = NewAudit { repository_id: repository.id, branch_ref: None, commit_sha: None };
    let audit = client.start_audit(workspace, NONE, new).await.expect("an audit");
    let id = audit.id.to_string();
    while client.get_audit(workspace, &id, NONE).await.expect("it").state != AuditState::Completed {
        pause().await;
    }
    repository.id.to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("five arguments");
    let (base, email, password, workspace, sarif) = (next(), next(), next(), next(), next());
    let http = reqwest::Client::builder().cookie_store(true).no_proxy().build().expect("a client");
    let client = HttpClient::with_client(http).with_base_url(base);

    let refused = client.get_session().await.expect_err("no session");
    let typed = refused.api().and_then(|answer| answer.typed.as_ref());
    let Some(GetSessionApiError::Status401(problem)) = typed else { panic!("{refused}") };
    assert_eq!(problem.code, "unauthenticated");

    let login = Login { email: email.clone(), password, code: None };
    let session = client.login(login).await.expect("a session");
    assert_eq!(session.user.email, email);
    let client = client.with_header("X-CSRF-Token", session.csrf_token);

    let repository = import(&client, &workspace, &sarif).await;
    let room = client.rebuild_control_room(&workspace, NONE).await.expect("a control room");
    assert!(!room.snapshots[0].severity_counts.additional_properties.is_empty());
    let inventory = client
        .list_dependencies(
            &workspace,
            NONE,
            NONE,
            NONE,
            None,
            NONE,
            Some(repository),
            Some(5),
            NONE,
        )
        .await
        .expect("an inventory");
    assert!(inventory.items.is_empty());

    let case = |subject: &str| NewSupportCase {
        subject: subject.into(),
        description: "Since this morning.".into(),
    };
    let refused = client.create_support_case(&workspace, "rust-tour-0", case("")).await;
    let refused = refused.expect_err("no subject");
    let typed = refused.api().and_then(|answer| answer.typed.as_ref());
    let Some(CreateSupportCaseApiError::Status422(problem)) = typed else { panic!("{refused}") };
    assert_eq!(problem.code, "validation_failed");
    let made = client.create_support_case(&workspace, "rust-tour-1", case("Login fails")).await;
    let made = made.expect("a case");
    assert_eq!(made.status, SupportStatus::Open);
    let cases = client.list_support_cases(&workspace).await.expect("cases");
    assert_eq!(cases.iter().map(|one| one.id).collect::<Vec<_>>(), [made.id]);
    println!("ok");
}
