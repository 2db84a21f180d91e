//! Schemathesis against the running service, from its own OpenAPI document:
//! whatever is sent, no server error, no status the document does not name, no
//! answer outside its schema, and nothing taken that the schema forbids.

use std::fs;
use std::process::Command;

use assurance_tests::{Backend, Builder, Client, TestHost, python};

use crate::requests::{AREAS, Requests};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// All of its checks but `positive_data_acceptance`: a schema cannot say that a
/// cursor must be one of ours or an idempotency key unused.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,negative_data_rejection,\
    missing_required_header,unsupported_method,use_after_free,ensure_resource_availability,\
    ignored_auth";

/// What ends the session it works with, or is limited for good reasons.
const LEFT_OUT: &str = "/v1/auth/(login|logout|register|sessions|mfa|recovery-codes)";

/// Its configuration holds the session, which so appears on no command line.
fn configuration(ada: &Client) -> String {
    let secret = |secret: &Option<String>| secret.clone().expect("signed in");
    format!(
        "[parameters]\n\"path.workspace_id\" = {:?}\n\n\
         [auth.openapi.session]\napi_key = {:?}\n\n[auth.openapi.csrf]\napi_key = {:?}\n",
        ada.workspace,
        secret(&ada.session),
        secret(&ada.csrf),
    )
}

fn command(host: &TestHost, ada: &Client) -> Command {
    let python = python::with_packages(&[SCHEMATHESIS]);
    let file = host.folder().join("schemathesis.toml");
    fs::write(&file, configuration(ada)).expect("a configuration");
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command.current_dir(host.folder()).arg("--config-file").arg(file);
    command.args(["run", &format!("{}/openapi.json", host.api), "--checks", CHECKS]);
    command.args(["--exclude-path-regex", LEFT_OUT, "--phases", "coverage,fuzzing,stateful"]);
    command.args(["--max-examples", "5", "--seed", "1", "--request-timeout", "30"]);
    command.args(["--suppress-health-check", "all", "--max-failures", "20", "--no-color"]);
    command
}

#[tokio::test]
async fn whatever_is_sent_the_document_is_true() {
    let builder = Builder::new(Backend::Sqlite).areas(AREAS).set("egress.allow_loopback", false);
    let (host, ada) = builder.start_with_owner().await;
    Requests::prepare(&host, &ada).await;
    let mut command = command(&host, &ada);
    let run = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
    let output = run.expect("schemathesis runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let log = host.log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains(r#""ERROR""#)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
