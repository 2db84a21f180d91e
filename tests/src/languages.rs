//! Areas in other languages, made into components by the tools of their own
//! registries.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{place, python};

/// QuickJS and what makes a component of it, of the npm registry.
const QUICKJS: &str = "componentize-qjs@0.4.5";
/// CPython and what makes a component of it, of PyPI.
const CPYTHON: &str = "componentize-py==0.25.1";
/// What a component says that belongs to no world of WASI.
const WITHOUT_WASI: &str = "--stub-wasi";

/// The folder of the example in two languages.
fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/announcements")
}

/// The example in JavaScript.
///
/// # Errors
/// npm is not here, or cannot reach its registry: why.
///
/// # Panics
/// Where the tool does not do what it should.
pub fn javascript(folder: &Path) -> Result<Vec<u8>, String> {
    let tools = place::areas().with_file_name("test-node");
    let tool = tools.join("node_modules/.bin/componentize-qjs");
    if !tool.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&tools).arg(QUICKJS);
        let output = npm.output().map_err(|error| {
            format!("npm does not start ({error}); on Debian: apt-get install npm")
        })?;
        if !output.status.success() {
            return Err(format!("{npm:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    let (world, out) = (world(folder), folder.join("javascript.wasm"));
    let mut componentize = Command::new(tool);
    componentize.arg("--wit").arg(world).arg("--js").arg(example().join("announcements.js"));
    componentize.args(["--world", "announcements", "--sync", "--opt-size", WITHOUT_WASI]);
    must(componentize.arg("-o").arg(&out));
    Ok(std::fs::read(out).expect("a component"))
}

/// The example in Python.
///
/// # Panics
/// Where the tools do not do what they should.
#[must_use]
pub fn python(folder: &Path) -> Vec<u8> {
    let tool = python::with_packages(&[CPYTHON]).with_file_name("componentize-py");
    let (world, out) = (world(folder), folder.join("python.wasm"));
    let mut componentize = Command::new(tool);
    componentize.arg("-d").arg(world).args(["-w", "announcements", "componentize"]);
    componentize.args(["announcements", WITHOUT_WASI, "-p"]).arg(example());
    must(componentize.arg("-o").arg(&out));
    std::fs::read(out).expect("a component")
}

/// The example's world beside the contract, as the tools want them.
fn world(folder: &Path) -> PathBuf {
    let (world, contract) = (folder.join("wit"), folder.join("wit/deps/area"));
    std::fs::create_dir_all(&contract).expect("a folder");
    std::fs::copy(example().join("world.wit"), world.join("world.wit")).expect("the world");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    for file in std::fs::read_dir(files).expect("the contract") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "wit") {
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, contract.join(name)).expect("a copy");
        }
    }
    world
}

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}
