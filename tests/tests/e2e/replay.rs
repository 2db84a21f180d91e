//! A recorded call is replayed elsewhere from only two files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assurance_tests::components::{area, fixture};
use assurance_tests::host::clear_environment;
use assurance_tests::{Answer, Backend, Builder, TestHost, place, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::canary::marked;

const TRAP: &str = "/v1/workspaces/{ws}/fixtures/trap";
const MARKED: &str = "/v1/workspaces/{ws}/fixtures/behaves-as-marked";
const CASES: &str = "/v1/workspaces/{ws}/support/cases";
const WEBHOOKS: &str = "/v1/workspaces/{ws}/webhooks";
const PATIENCE: Duration = Duration::from_secs(60);

/// Another machine: a folder with a recording and components, without a service.
struct OtherMachine {
    folder: TempDir,
}

impl OtherMachine {
    fn with(recording: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(recording, folder.path().join("recording.json")).expect("copied");
        Self { folder }
    }

    /// Returns the exit code and the output.
    fn replay(&self, component: &[u8]) -> (i32, Value) {
        let file = self.folder.path().join("component.wasm");
        std::fs::write(file, component).expect("written");
        // 128 GiB of address space, and no trusted certificates on the network.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 134217728; exec \"$0\" \"$@\""]).arg(place::binary());
        command.env("SSL_CERT_FILE", "/none").env("SSL_CERT_DIR", "/none");
        clear_environment(&mut command);
        command.args(["area", "replay", "recording.json", "--component", "component.wasm"]);
        let output = command.arg("--json").current_dir(self.folder.path()).output().expect("run");
        let told = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| json!({"error": String::from_utf8_lossy(&output.stderr)}));
        (output.status.code().expect("an exit code"), told)
    }
}

fn recordings(host: &TestHost) -> PathBuf {
    host.folder().join("data/recordings")
}

/// Returns the recording of the request with this response.
async fn recording(host: &TestHost, answer: &Answer) -> PathBuf {
    let id = answer.header("x-request-id").expect("an id");
    written(recordings(host).join(format!("{id}.json"))).await
}

async fn written(file: PathBuf) -> PathBuf {
    until(format!("{} is written", file.display()), async || file.exists()).await;
    file
}

/// Waits until a job's fault is recorded.
async fn recording_of_a_job(host: &TestHost) -> PathBuf {
    until("the fault is recorded", async || {
        let mut files = std::fs::read_dir(recordings(host)).expect("a folder");
        let is_kept = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("job-") && name.ends_with(".json")
        };
        files.find_map(|entry| Some(entry.ok()?.path()).filter(is_kept))
    })
    .await
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_fault_replays_to_the_same_trap_elsewhere() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["trap", "echo"]);
    let (mut host, ada) = builder.argument("--record=faults").start_with_owner().await;
    let sound = ada.post("/v1/workspaces/{ws}/fixtures/echo", &json!({})).await;
    let fell = ada.post(TRAP, &json!({})).await;
    let file = recording(&host, &fell).await;
    fell.problem(502, "area_fault");
    assert_eq!((mode(&file), mode(&recordings(&host))), (0o600, 0o700));
    let sound = sound.header("x-request-id").expect("an id").to_owned();
    assert!(!recordings(&host).join(format!("{sound}.json")).exists(), "that was no fault");

    let elsewhere = OtherMachine::with(&file);
    host.kill9();
    let (code, told) = elsewhere.replay(&fixture("trap"));
    assert_eq!((code, &told["verdict"]), (0, &json!("same")), "{told}");
    assert_eq!((&told["same_component"], &told["host_calls"]), (&json!(true), &json!(1)));
    let fault = &told["replayed"]["fault"];
    assert_eq!(fault["kind"], "trap");
    assert!(fault["frames"].to_string().contains("fall_over"), "{fault}");
    assert_eq!(fault, &told["recorded"]["fault"]);

    let (code, told) = elsewhere.replay(&fixture("echo"));
    assert_eq!((code, &told["verdict"]), (1, &json!("different")), "{told}");
    let (code, told) = elsewhere.replay(b"no component");
    assert_eq!(code, 2, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_panic_is_shown_before_its_stack() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["panics-as-marked"]);
    let (host, ada) = builder.argument("--record=faults").start_with_owner().await;
    let fell = ada.post("/v1/workspaces/{ws}/things", &json!({"text": "a thing"})).await;
    let file = recording(&host, &fell).await;
    let component = place::fixtures().join("panics-as-marked.wasm");
    let mut replay = Command::new(place::binary());
    replay.args(["area", "replay"]).arg(file).arg("--component").arg(component);
    let text = String::from_utf8(replay.output().expect("run").stdout).expect("text");
    let place = "recorded:       FAULT panicked at guests/fixtures/panics-as-marked/src/lib.rs:";
    assert!(text.contains(place), "{text}");
    assert!(text.contains(": a thing has no number\n    0: "), "{text}");
    assert!(text.contains("replayed:       as recorded\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_recorded_changes_while_the_host_runs() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["trap"]);
    let (host, ada) = builder.start_with_owner().await;
    let before = ada.post(TRAP, &json!({})).await;
    assert!(!recordings(&host).exists(), "nothing is recorded where nobody wants it");

    host.configure(&[("areas.record.faults", toml::Value::from(true))]);
    host.signal(Signal::HUP);
    host.wait_for_log("reload applied", PATIENCE).await;
    assert!(host.log().contains(r#""applied":"areas.record.faults""#), "{}", host.log());
    assert!(!host.log().contains("restart_required"), "{}", host.log());
    let after = ada.post(TRAP, &json!({})).await;
    recording(&host, &after).await;
    let before = before.header("x-request-id").expect("an id");
    assert!(!recordings(&host).join(format!("{before}.json")).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_success_replays_bit_for_bit() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support"]).argument("--record=100");
    let (host, ada) = builder.start_with_owner().await;
    let body = json!({ "subject": "It is slow", "description": "Since this morning." });
    let opened = ada.post_once(CASES, "recorded-1", &body).await;
    let file = recording(&host, &opened).await;
    let opened = opened.expect(201);
    let (code, told) = OtherMachine::with(&file).replay(&area("support"));
    assert_eq!((code, &told["verdict"]), (0, &json!("same")), "{told}");
    let said = told["replayed"]["answered"]["body"].as_str().expect("a body");
    assert_eq!(serde_json::from_str::<Value>(said).expect("JSON"), opened);
    assert_eq!(told["replayed"]["answered"]["status"], 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_does_otherwise_is_shown_where() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["behaves-as-marked"]);
    let (host, ada) = builder.argument("--record=100").start_with_owner().await;
    let answer = ada.post(MARKED, &json!({"do": "tell"})).await;
    let elsewhere = OtherMachine::with(&recording(&host, &answer).await);
    let (code, told) = elsewhere.replay(&marked("another."));
    assert_eq!((code, &told["same_component"]), (1, &json!(false)), "{told}");
    let found = &told["differences"];
    let mark =
        found.as_array().expect("a list").iter().find(|found| {
            found["pointer"] == "/answered/body/mark" && found["replayed"] == "another."
        });
    assert!(mark.is_some(), "{found}");
    let (code, told) = elsewhere.replay(&marked("trapping"));
    assert_eq!((code, &told["replayed"]["fault"]["kind"]), (1, &json!("trap")), "{told}");

    // Random bytes may become a secret, so the recording withholds them and everything after them.
    let kept = ada.post(MARKED, &json!({"do": "keep"})).await;
    let (code, told) =
        OtherMachine::with(&recording(&host, &kept).await).replay(&marked("soundly."));
    assert_eq!((code, &told["verdict"]), (2, &json!("withheld")), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_recorded_too() {
    let builder = Builder::new(Backend::Sqlite).fixtures(&["behaves-as-marked"]);
    let builder = builder.set("jobs.enabled", false).argument("--record=faults");
    let (mut host, ada) = builder.start_with_owner().await;
    ada.post(MARKED, &json!({"do": "run"})).await.expect(200);
    host.terminate().await;
    std::fs::write(host.areas().join("behaves-as-marked.wasm"), marked("trapping"))
        .expect("written");
    host.configure(&[("jobs.enabled", true.into())]);
    host.start().await;
    let elsewhere = OtherMachine::with(&recording_of_a_job(&host).await);
    let (code, told) = elsewhere.replay(&marked("trapping"));
    assert_eq!((code, &told["replayed"]["fault"]["kind"]), (0, &json!("trap")), "{told}");
    assert_eq!(elsewhere.replay(&marked("soundly.")).0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_a_recording() {
    const SECRET: &str = "the client secret of this test";
    let builder = Builder::new(Backend::Sqlite).areas(&["identity", "support", "webhooks"]);
    let builder = builder.argument("--record=faults,100").set("egress.allow_loopback", true);
    let (mut host, ada) = builder.start_with_owner().await;
    host.keep_secret(SECRET);
    let provider = json!({
        "name": "Main", "issuer": "http://127.0.0.1:9", "client_id": "workspace",
        "client_secret": SECRET, "domains": ["example.com"],
        "claims_mapping": { "groups": "groups" }, "role_mapping": {},
    });
    let made = ada.post("/v1/workspaces/{ws}/identity/providers", &provider).await;
    let hooked = ada.subscribe("http://127.0.0.1:9/hook").await;
    let files = [recording(&host, &made).await, recording(&host, &hooked).await];
    made.expect(201);
    let shown = hooked.expect(201)["secret"].as_str().expect("a secret").to_owned();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a recording");
        for secret in [SECRET, &shown, shown.trim_start_matches("whsec_")] {
            assert!(!text.contains(secret), "{text}");
        }
        let recording: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&recording["input"], &recording["wasi_seed"]), (&Value::Null, &Value::Null));
        let calls = recording["calls"].to_string();
        assert!(calls.contains("secrets.put"), "{calls}");
        let (code, told) = OtherMachine::with(&file).replay(&area("identity"));
        assert_eq!(code, 2, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_s_step_made_with_a_secret_is_in_no_recording_of_the_next() {
    let builder = Builder::new(Backend::Sqlite).areas(&["support", "webhooks"]);
    let builder = builder.argument("--record=faults").set("egress.allow_loopback", true);
    let (host, ada) = builder.start_with_owner().await;
    let hooked = ada.subscribe("http://127.0.0.1:9/hook").await.expect(201);
    // Enough host calls to sign in the first step, but not to store the response in the second.
    host.configure(&[("areas.limits.webhooks.max_host_calls", toml::Value::from(3))]);
    host.signal(Signal::HUP);
    host.wait_for_log("reload applied", PATIENCE).await;
    let id = hooked["id"].as_str().expect("an id");
    ada.post(&format!("{WEBHOOKS}/{id}/test"), &json!({})).await.expect(201);

    let text = std::fs::read_to_string(recording_of_a_job(&host).await).expect("a recording");
    let recording: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(recording["about"]["operation"], "deliver");
    assert_eq!(recording["outcome"]["fault"]["kind"], "limit", "{text}");
    assert!(recording["calls"].to_string().contains("egress.send"), "{text}");
    assert!(!text.contains("webhook-signature") && !text.contains("v1,"), "{text}");
    assert_eq!((&recording["input"], &recording["wasi_seed"]), (&Value::Null, &Value::Null));
}
