//! Areas in other languages, made into components by the tools of their own
//! registries.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::{process, python};

/// QuickJS and what makes a component of it, of the npm registry.
const QUICKJS: &str = "componentize-qjs@0.4.5";
/// CPython and what makes a component of it, of PyPI.
const CPYTHON: &str = "componentize-py==0.25.1";
/// What a component says that belongs to no world of WASI.
const WITHOUT_WASI: &str = "--stub-wasi";
/// The example, written once in each language, and its world.
const EXAMPLE: &str = "announcements";

/// A language that the example is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Run by QuickJS.
    JavaScript,
    /// Run by CPython.
    Python,
}

/// What makes components of one language.
#[derive(Debug)]
pub struct Tool {
    language: Language,
    program: PathBuf,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::JavaScript, Self::Python];

    /// Its tool, below this folder, installed there unless it is already.
    ///
    /// # Errors
    /// The registry's client is not here or cannot reach the registry: why.
    pub fn tool(self, folder: &Path) -> anyhow::Result<Tool> {
        let program = match self {
            Self::JavaScript => from_npm(&folder.join("test-node"))?,
            Self::Python => {
                python::with_packages(folder, &[CPYTHON])?.with_file_name("componentize-py")
            }
        };
        Ok(Tool { language: self, program })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        })
    }
}

impl Tool {
    /// The example of this repository as a component; what that takes is
    /// written below the folder.
    ///
    /// # Errors
    /// The tool does not do what it should: what it said.
    pub fn component(&self, repository: &Path, folder: &Path) -> anyhow::Result<Vec<u8>> {
        let (source, world) = (folder.join("source"), folder.join("wit"));
        lay_out(repository, &source, &world)?;
        let out = folder.join(EXAMPLE).with_extension("wasm");
        let mut componentize = Command::new(&self.program);
        match self.language {
            Language::JavaScript => componentize
                .arg("--wit")
                .arg(world)
                .arg("--js")
                .arg(source.join(EXAMPLE).with_extension("js"))
                .args(["--world", EXAMPLE, "--sync", "--opt-size", WITHOUT_WASI]),
            Language::Python => componentize
                .arg("-d")
                .arg(world)
                .args(["-w", EXAMPLE, "componentize", EXAMPLE, WITHOUT_WASI, "-p"])
                .arg(source),
        };
        process::run_quietly(componentize.arg("-o").arg(&out))?;
        fs::read(&out).with_context(|| format!("{} made nothing", self.program.display()))
    }
}

fn from_npm(folder: &Path) -> anyhow::Result<PathBuf> {
    let program = folder.join("node_modules/.bin/componentize-qjs");
    if !program.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).arg(QUICKJS);
        process::run_quietly(&mut npm)
            .context("nothing from npm; where it is missing, on Debian: apt-get install npm")?;
    }
    Ok(program)
}

/// The example's source, in a folder that Python may write its cache to; and
/// its world beside the contract, as the tools want them.
fn lay_out(repository: &Path, source: &Path, world: &Path) -> anyhow::Result<()> {
    let (example, contract) = (repository.join("guests").join(EXAMPLE), world.join("deps/area"));
    copy_files(&example, "js", source)?;
    copy_files(&example, "py", source)?;
    copy_files(&example, "wit", world)?;
    copy_files(&repository.join("wit"), "wit", &contract)
}

fn copy_files(from: &Path, extension: &str, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = file?.path();
        if path.extension().is_some_and(|found| found == extension) {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
