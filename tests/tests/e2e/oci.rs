//! Components in an OCI registry: pushed, deployed by tag and by digest, and refused if they were
//! altered.

use assurance_core::signing::Ed25519PrivateKey;
use assurance_tests::components::fixture;
use assurance_tests::operators::{digest, stamped};
use assurance_tests::registry::{TestRegistry, USER};
use assurance_tests::{Backend, Builder, TestHost};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";

/// Writes a version of the echo area to a file of this host.
fn version(host: &TestHost, stamp: u8) -> (String, Vec<u8>) {
    let component = stamped(&fixture("echo"), stamp);
    let file = format!("echo-{stamp}.wasm");
    host.write(&file, &component);
    (file, component)
}

fn push(host: &TestHost, file: &str, to: &str) -> Value {
    host.cli(&["area", "push", file, to])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_travels_through_a_registry_with_its_signature() {
    let key = Ed25519PrivateKey::generate();
    let builder = Builder::new(Backend::Sqlite)
        .set("development", false)
        .set("areas.publishers.team.public_key", key.public_key_base64())
        .set("areas.publishers.team.areas", vec!["echo"]);
    let host = builder.start().await;
    let registry = TestRegistry::start();
    let repository = format!("oci://{}/acme/echo", registry.address);
    let (file, component) = version(&host, 1);
    host.sign_component(&file, &key);
    let tag = format!("{repository}:1.0");
    let pushed = push(&host, &file, &tag);
    assert_eq!(
        (&pushed["digest"], &pushed["publisher"]),
        (&json!(digest(&component)), &json!("team"))
    );
    assert_eq!(push(&host, &file, &tag), pushed, "the same again is the same");
    let told = host.cli(&["area", "check", &tag]);
    assert_eq!((&told["area"], &told["digest"]), (&json!("echo"), &pushed["digest"]));
    let deployed = host.cli(&["area", "deploy", &tag, "--activate"]);
    assert_eq!((&deployed["result"], &deployed["area"]["name"]), (&json!("live"), &json!("echo")));
    assert_eq!(deployed["artifact"], pushed["artifact"], "the digest that the tag meant");
    assert_eq!(host.live_digest("echo").await, Some(digest(&component)));

    // The tag moves to the second version; the digest does not.
    let (second, _) = version(&host, 2);
    push(&host, &second, &tag);
    let unsigned = host.refused(&["area", "deploy", &tag, "--activate"]);
    assert!(unsigned.contains("assurance area sign"), "{unsigned}");
    host.sign_component(&second, &key);
    let moved = push(&host, &second, &tag);
    assert_eq!(host.cli(&["area", "deploy", &tag, "--activate"])["digest"], moved["digest"]);
    let by_digest = pushed["artifact"].as_str().expect("an address");
    assert!(by_digest.starts_with(&format!("{repository}@sha256:")), "{by_digest}");
    let deployed = host.cli(&["area", "deploy", by_digest, "--activate"]);
    assert_eq!((&deployed["result"], &deployed["artifact"]), (&json!("live"), &json!(by_digest)));
    assert_eq!(host.live_digest("echo").await, Some(digest(&component)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_absent_changed_or_of_another_kind_is_not_deployed() {
    let host =
        Builder::new(Backend::Sqlite).set("limits.max_component_bytes", 1_000_000).start().await;
    let registry = TestRegistry::start();
    let repository = format!("oci://{}/echo", registry.address);
    let (file, component) = version(&host, 1);
    let pushed = push(&host, &file, &format!("{repository}:good"));
    let large = vec![0; 1_000_001];
    let image = "application/vnd.oci.image.config.v1+json";
    registry.put("echo", "image", image, &[(LAYER, &component)]).await;
    registry.put("echo", "two", CONFIG, &[(LAYER, &component), (LAYER, b"x")]).await;
    registry.put("echo", "text", CONFIG, &[("text/plain", b"x")]).await;
    registry.put("echo", "large", CONFIG, &[(LAYER, &large)]).await;
    registry.put("echo", "junk", CONFIG, &[(LAYER, b"no component")]).await;
    let absent = format!("{repository}@sha256:{}", digest(b"nothing"));
    for (reference, expected) in [
        (format!("{repository}:none"), "does not exist; the registry lists"),
        (absent, "does not exist; the registry lists"),
        (format!("oci://{}/other:1", registry.address), "does not exist; the registry lists"),
        (format!("{repository}:image"), "its configuration is application/vnd.oci.image"),
        (format!("{repository}:two"), "2 layers instead of one"),
        (format!("{repository}:text"), "its layer is text/plain"),
        (format!("{repository}:large"), "1000001 bytes; the limit is 1000000"),
        (format!("{repository}:junk"), "component"),
        (repository.clone(), "neither a tag nor a digest"),
        ("oci://127.0.0.1:1/echo:1".to_owned(), "no registry responds at http://127.0.0.1:1"),
    ] {
        let said = host.refused(&["area", "deploy", &reference, "--area", "echo"]);
        assert!(said.contains(expected), "{reference}: {said}");
    }
    host.put_area("echo", &large).await.problem(413, "payload_too_large");
    let to_digest = pushed["artifact"].as_str().expect("an address");
    let said = host.refused(&["area", "push", &file, to_digest]);
    assert!(said.contains("push to a tag"), "{said}");

    // Alters the last byte of the component, and then the manifest, which stays valid JSON.
    let manifest = to_digest.rsplit_once(':').expect("a digest").1;
    for (content, dropped) in [(digest(&component).as_str(), 1), (manifest, 0)] {
        let kept = registry.file_of(content);
        let mut bytes = std::fs::read(&kept).expect("kept by its digest");
        bytes.truncate(bytes.len() - dropped);
        bytes.push(b'\n');
        std::fs::write(&kept, bytes).expect("written");
        let said = host.refused(&["area", "deploy", to_digest]);
        assert!(said.contains("does not match its digest"), "{content}: {said}");
    }
    assert_eq!(host.live_digest("echo").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_is_asked_with_the_credentials_that_docker_has() {
    let host = Builder::new(Backend::Sqlite).prepare().await;
    let registry = TestRegistry::guarded();
    let to = format!("oci://{}/echo:1", registry.address);
    let (file, _) = version(&host, 1);
    let arguments = ["area", "push", &file, &to];
    let docker = host.folder().join("docker");
    std::fs::create_dir(&docker).expect("a folder");
    let with = |user: [&str; 2]| {
        let auth = json!({"auths": {&registry.address: {"auth": STANDARD.encode(user.join(":"))}}});
        std::fs::write(docker.join("config.json"), auth.to_string()).expect("written");
        let output = host.command(&arguments).env("DOCKER_CONFIG", &docker).output();
        let output = output.expect("the binary starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (taken, said) = with(["nobody", "wrong"]);
    assert!(!taken && said.contains("refuses the credentials in Docker's"), "{said}");
    assert!(said.contains(&format!("docker login {}", registry.address)), "{said}");
    let (taken, said) = with(USER);
    assert!(taken && !said.contains(USER[1]), "{said}");
    let output = host.command(&arguments).env("DOCKER_CONFIG", "/nowhere").output();
    let said = String::from_utf8_lossy(&output.expect("the binary starts").stderr).into_owned();
    assert!(said.contains("refuses a caller without credentials"), "{said}");
}
