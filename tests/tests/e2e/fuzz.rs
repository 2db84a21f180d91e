//! Schemathesis against the running service with its OpenAPI document: no input causes a server
//! error, an undocumented status, a response outside its schema, or acceptance of input that the
//! schema forbids.

use std::fs;
use std::process::Command;

use assurance_tests::{Backend, Builder, Client, TestHost, python};

use crate::requests::{AREAS, Requests};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// All checks except `positive_data_acceptance`: a schema cannot express that a cursor must come
/// from the service or that an idempotency key must be unused.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,negative_data_rejection,\
    missing_required_header,unsupported_method,use_after_free,ensure_resource_availability,\
    ignored_auth";

/// Operations that end the session or have low rate limits.
const LEFT_OUT: &str = "/v1/auth/(login|logout|register|sessions|mfa|recovery-codes)";

/// The session is in the configuration file, so that it is on no command line.
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
    let builder = builder.set("areas.settings.repohost.app_url", "https://repohost.example/app");
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
