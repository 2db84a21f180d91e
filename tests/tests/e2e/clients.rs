//! Client generators of other projects read `/openapi.json` without a warning,
//! and the generated clients work with the running service.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use assurance_tests::{Backend, Builder, TestHost, artifacts, place, python};

use serde_json::Value;

use crate::requests::AREAS;

const PYTHON_GENERATOR: &str = "openapi-python-client==0.29.1";

/// Name and version of the crate.
const RUST_GENERATOR: (&str, &str) = ("openapi-to-rust", "0.23.0");

/// Manifest of the Rust client, without the dependencies of the generated code.
const RUST_CLIENT: &str = r#"[package]
name = "tour"
version = "0.0.0"
edition = "2024"

[workspace]

[profile.dev]
debug = false

[dependencies.tokio]
version = "1"
features = ["macros", "rt", "time"]

"#;

const NODE_TOOLS: &[&str] = &[
    "@stoplight/spectral-cli@6.16.3",
    "@types/node@20.9.5",
    "openapi-fetch@0.17.0",
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
];

/// A host with all areas, and the arguments for a tour through the API.
struct TourHost {
    host: TestHost,
    document: PathBuf,
    arguments: Vec<String>,
}

impl TourHost {
    async fn start() -> Self {
        let mut host = Builder::new(Backend::Sqlite).areas(AREAS).prepare().await;
        let ada = host.create_person("ada");
        let workspace = host.create_workspace("first", &ada);
        host.start().await;
        let document = host.folder().join("openapi.json");
        fs::write(&document, host.nobody().get("/openapi.json").await.bytes).expect("a document");
        let sarif = artifacts::samples().join("shop.sarif").display().to_string();
        let arguments = vec![host.api.clone(), ada.email, ada.password, workspace, sarif];
        Self { host, document, arguments }
    }

    fn folder(&self) -> &Path {
        self.host.folder()
    }

    /// Returns the ids of the operations that the document describes.
    fn operations(&self) -> Vec<String> {
        let document = fs::read(&self.document).expect("the document");
        let document: Value = serde_json::from_slice(&document).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let operations =
            paths.values().flat_map(|path| path.as_object().expect("methods").values());
        operations.filter_map(|one| Some(one["operationId"].as_str()?.to_owned())).collect()
    }

    fn source(name: &str) -> PathBuf {
        place::repository().join("tests/clients").join(name)
    }
}

/// Runs a program that must succeed. Returns its standard output and standard
/// error.
async fn run(mut command: Command) -> String {
    let shown = format!("{command:?}");
    let ended = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
    let output = ended.expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{shown}\n{text}");
    text
}

#[tokio::test]
async fn the_python_client_loses_nothing_and_makes_the_tour() {
    let served = TourHost::start().await;
    let python = python::with_packages(&[PYTHON_GENERATOR]);
    let (config, client) = (served.folder().join("python.yaml"), served.folder().join("python"));
    fs::write(&config, "post_hooks: []\n").expect("a configuration");
    let mut generate = Command::new(python.with_file_name("openapi-python-client"));
    generate.args(["generate", "--fail-on-warning", "--path"]).arg(&served.document);
    generate.arg("--config").arg(&config).arg("--output-path").arg(&client);
    let printed = run(generate).await;
    assert!(!printed.to_lowercase().contains("warning"), "{printed}");
    let mut tour = Command::new(python);
    tour.arg(TourHost::source("tour.py")).args(&served.arguments).env("PYTHONPATH", client);
    assert_eq!(run(tour).await.trim(), "ok");
}

/// Makes the dependencies of the generated code those of a client without TLS and with cookies.
fn rust_manifest(dependencies: &str) -> String {
    assert!(dependencies.contains(r#""rustls""#), "{dependencies}");
    RUST_CLIENT.to_owned() + &dependencies.replace(r#""rustls""#, r#""cookies""#)
}

#[tokio::test]
async fn the_rust_client_loses_nothing_and_makes_the_tour() {
    let served = TourHost::start().await;
    let (name, version) = RUST_GENERATOR;
    let made = xtask::packages::crates_io(&place::tools(), name, version);
    let mut generate = Command::new(made.unwrap_or_else(|error| panic!("{error:#}")));
    let folder = served.folder().join("rust");
    let generated = folder.join("src/generated");
    generate.args(["generate", "--report-untyped", "--output-dir"]).arg(&generated);
    generate.arg(&served.document);
    let printed = run(generate).await;
    assert!(!printed.to_lowercase().contains("warning"), "{printed}");
    assert!(printed.contains(" 0 of them recoverable"), "{printed}");
    let client = fs::read_to_string(generated.join("client.rs")).expect("a client");
    for operation in served.operations() {
        assert!(client.contains(&format!("pub async fn {operation}(")), "{operation} is lost");
    }
    let dependencies = fs::read_to_string(generated.join("REQUIRED_DEPS.toml")).expect("a list");
    fs::write(folder.join("Cargo.toml"), rust_manifest(&dependencies)).expect("a manifest");
    fs::copy(place::repository().join("Cargo.lock"), folder.join("Cargo.lock")).expect("versions");
    fs::copy(TourHost::source("tour.rs"), folder.join("src/main.rs")).expect("the tour");
    let mut tour = Command::new("cargo");
    tour.current_dir(&folder).env("CARGO_TARGET_DIR", place::tools().join("test-rust"));
    tour.args(["run", "--quiet", "--"]).args(&served.arguments);
    assert_eq!(run(tour).await.trim(), "ok");
}

/// Returns the folder with the installed tools of npm.
fn node_modules() -> PathBuf {
    let made = xtask::packages::npm(&place::tools(), NODE_TOOLS);
    made.unwrap_or_else(|error| panic!("{error:#}"))
}

#[tokio::test]
async fn the_typescript_client_is_typed_and_makes_the_tour() {
    let served = TourHost::start().await;
    let modules = node_modules();
    let folder = served.folder().join("typescript");
    fs::create_dir(&folder).expect("a folder");
    symlink(&modules, folder.join("node_modules")).expect("a link");
    fs::copy(TourHost::source("tour.ts"), folder.join("tour.ts")).expect("the tour");
    fs::write(folder.join("package.json"), r#"{"type": "module"}"#).expect("a package");
    let mut generate = Command::new(modules.join(".bin/openapi-typescript"));
    generate.arg(&served.document).arg("-o").arg(folder.join("api.ts"));
    let printed = run(generate).await;
    assert!(!printed.to_lowercase().contains("warn"), "{printed}");
    let mut compile = Command::new(modules.join(".bin/tsc"));
    compile.current_dir(&folder).args(["--strict", "--target", "es2022", "--module", "nodenext"]);
    run({
        compile.args(["--skipLibCheck", "tour.ts"]);
        compile
    })
    .await;
    let mut tour = Command::new("node");
    tour.arg(folder.join("tour.js")).args(&served.arguments);
    assert_eq!(run(tour).await.trim(), "ok");
}

#[tokio::test]
async fn spectral_finds_nothing_in_the_document() {
    let served = TourHost::start().await;
    let rules = served.folder().join("spectral.yaml");
    fs::write(&rules, "extends: spectral:oas\n").expect("a rule set");
    let mut lint = Command::new(node_modules().join(".bin/spectral"));
    lint.args(["lint", "--fail-severity", "hint", "--ruleset"]).arg(rules).arg(&served.document);
    run(lint).await;
}
