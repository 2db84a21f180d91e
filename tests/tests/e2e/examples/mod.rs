//! Each operation has an example that was recorded from a run of this test, and that fits its schema.
//!
//! The examples are files next to the code of the operations. With the environment variable
//! `ASSURANCE_UPDATE_EXAMPLES` the test writes those that are missing or differ; it passes again when
//! the areas and the host were built with them.

mod account;
mod answers;
mod audit;
mod workspace;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use assurance_tests::examples::{Operation, Recorder, differences, operations, stored};
use assurance_tests::model_server::ModelServer;
use assurance_tests::receiver::Receiver;
use assurance_tests::{Backend, Builder, place};
use serde_json::{Value, json};

use crate::requests::AREAS;

const UPDATE: &str = "ASSURANCE_UPDATE_EXAMPLES";
/// Groups of the host's own operations.
const OF_HOST: [&str; 2] = ["auth", "workspaces"];
/// Operation whose example of a request has a time in the future: that of the document differs from
/// the stored one.
const CREATE_ACCESS_TOKEN: &str = "create_access_token";
const APP: &str = "https://repohost.example.com/apps/assurance/installations/new";

/// Calls every operation with a JSON body. Returns the document and the examples.
async fn record() -> (Value, BTreeMap<String, Value>) {
    let builder = Builder::new(Backend::Sqlite).areas(AREAS).set("egress.allow_loopback", true);
    let mut host = builder.set("areas.settings.repohost.app_url", APP).prepare().await;
    let ada = host.create_person("ada");
    let workspace = host.create_workspace("first", &ada);
    host.start().await;
    let (receiver, models) =
        (Receiver::content().await, ModelServer::start("sk-0123", &["small-1"]).await);
    let nobody = host.nobody().in_workspace(&workspace);
    let mut recorder = Recorder::start(&nobody).await;
    account::sign_in(&mut recorder, &ada).await;
    workspace::people(&mut recorder, &host).await;
    workspace::catalog(&mut recorder).await;
    audit::artifacts(&mut recorder).await;
    audit::results(&mut recorder).await;
    let grace = host.member("grace", &workspace, "admin");
    audit::remediation(&mut recorder, &grace).await;
    answers::evidence(&mut recorder, &host).await;
    answers::questionnaire(&mut recorder).await;
    answers::assistant(&mut recorder, &models).await;
    workspace::systems(&mut recorder, &receiver).await;
    workspace::queue(&mut recorder).await;
    account::second_factor(&mut recorder, &ada).await;
    recorder.finish()
}

/// Returns the file of an operation's example.
fn file(operation: &Operation<'_>) -> PathBuf {
    let group = operation.described["tags"][0].as_str().expect("a tag");
    let folder = match OF_HOST.contains(&group) {
        true => "host/server/src/http/examples".to_owned(),
        false => format!("guests/{}/examples", group.replace('_', "-")),
    };
    place::repository().join(folder).join(operation.id()).with_extension("json")
}

/// Compares the recorded example of an operation with the stored one.
fn compare(operation: &Operation<'_>, recorded: Option<&Value>) -> Vec<String> {
    let Some(recorded) = recorded else { return vec!["is not called".to_owned()] };
    let file = file(operation);
    let kept = fs::read_to_string(&file).ok();
    let kept: Value = kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let same = kept.is_object() && differences(&kept, recorded).is_empty();
    if !same && std::env::var_os(UPDATE).is_some() {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, stored(recorded)).expect("written");
    } else if !kept.is_object() {
        return vec![format!("has no example; run the test with {UPDATE}=1")];
    } else if !same {
        let named = differences(&kept, recorded).into_iter();
        return named.map(|what| format!("{what}; run the test with {UPDATE}=1")).collect();
    }
    Vec::new()
}

/// Checks that the document shows the stored example, and that it fits the schema.
fn check_shown(document: &Value, operation: &Operation<'_>) -> Vec<String> {
    let kept = fs::read_to_string(file(operation)).unwrap_or_default();
    let mut kept: Value = serde_json::from_str(&kept).unwrap_or_default();
    let mut wrong = Vec::new();
    for (member, body) in operation.bodies() {
        if operation.id() == CREATE_ACCESS_TOKEN && member == "request" {
            kept[member]["expires_at"] = body["example"]["expires_at"].clone();
        }
        check_times(&kept[member], &format!("/{member}"), &mut wrong);
        if body["example"] != kept[member] {
            wrong.push(format!("the document does not show the stored {member}"));
        }
        let schema = json!({ "allOf": [body["schema"]], "components": document["components"] });
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let found = validator.iter_errors(&kept[member]);
        wrong.extend(found.map(|error| format!("/{member}{}: {error}", error.instance_path())));
    }
    wrong
}

/// Checks that what expires does so after it was created and issued.
fn check_times(example: &Value, pointer: &str, wrong: &mut Vec<String>) {
    let time = |name: &str| example[name].as_str();
    if let Some(expires_at) = time("expires_at")
        && ["created_at", "issued_at"].into_iter().filter_map(time).any(|begin| begin >= expires_at)
    {
        wrong.push(format!("{pointer}/expires_at is not after its beginning"));
    }
    match example {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| {
                check_times(value, &format!("{pointer}/{name}"), wrong);
            });
        }
        Value::Array(items) => items.iter().for_each(|item| check_times(item, pointer, wrong)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_has_a_recorded_example_that_fits_its_schema() {
    let (document, mut recorded) = record().await;
    let mut wrong = Vec::new();
    for operation in operations(&document).filter(|operation| !operation.bodies().is_empty()) {
        let mut found = compare(&operation, recorded.remove(operation.id()).as_ref());
        found.extend(check_shown(&document, &operation));
        wrong.extend(found.into_iter().map(|what| format!("{}: {what}", operation.id())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
