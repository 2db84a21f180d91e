//! Builds areas in other languages with the tools of their registries.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::{packages, process};

/// npm package with QuickJS that builds components.
const QUICKJS: &str = "componentize-qjs@0.4.5";
/// PyPI package with CPython that builds components.
const CPYTHON: &str = "componentize-py==0.25.1";
/// Name of the example area in each language, and of its world.
const EXAMPLE: &str = "announcements";

/// A language other than Rust in which the example area is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonRustLanguage {
    /// JavaScript, executed by QuickJS.
    JavaScript,
    /// Python, executed by CPython.
    Python,
}

/// The installed tool that builds components of one language.
#[derive(Debug)]
pub struct ComponentBuildTool {
    language: NonRustLanguage,
    program: PathBuf,
}

impl NonRustLanguage {
    /// All languages other than Rust that have the example.
    pub const ALL: [Self; 2] = [Self::JavaScript, Self::Python];

    /// Returns the tool that builds components of this language, installed below the folder.
    /// Installs it if it is missing.
    ///
    /// # Errors
    /// The registry's client is missing or cannot reach the registry.
    pub fn tool(self, folder: &Path) -> anyhow::Result<ComponentBuildTool> {
        let program = match self {
            Self::JavaScript => packages::npm(folder, &[QUICKJS])?.join(".bin/componentize-qjs"),
            Self::Python => packages::pypi(folder, &[CPYTHON])?.with_file_name("componentize-py"),
        };
        Ok(ComponentBuildTool { language: self, program })
    }

    fn extension(self) -> &'static str {
        match self {
            Self::JavaScript => "js",
            Self::Python => "py",
        }
    }
}

impl fmt::Display for NonRustLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        })
    }
}

impl ComponentBuildTool {
    /// Builds the example of this repository as a component, of a source that `edit` has changed.
    /// Intermediate files are written below the folder.
    ///
    /// # Errors
    /// The tool failed; has its output.
    pub fn component(
        &self,
        repository: &Path,
        folder: &Path,
        edit: impl FnOnce(String) -> String,
    ) -> anyhow::Result<Vec<u8>> {
        let (source, world) = (folder.join("source"), folder.join("wit"));
        lay_out(repository, &source, &world)?;
        let main = source.join(EXAMPLE).with_extension(self.language.extension());
        fs::write(&main, edit(fs::read_to_string(&main)?))?;
        let out = folder.join(EXAMPLE).with_extension("wasm");
        let mut componentize = Command::new(&self.program);
        match self.language {
            NonRustLanguage::JavaScript => componentize
                .arg("--wit")
                .arg(world)
                .arg("--js")
                .arg(&main)
                .args(["--world", EXAMPLE, "--sync", "--opt-size"]),
            NonRustLanguage::Python => componentize
                .arg("-d")
                .arg(world)
                .args(["-w", EXAMPLE, "componentize", EXAMPLE, "-p"])
                .arg(source),
        };
        process::run_quietly(componentize.arg("-o").arg(&out))?;
        fs::read(&out).with_context(|| format!("{} made nothing", self.program.display()))
    }
}

/// Copies the example's source to a folder in which Python may write its cache, and its world next
/// to the contract, as the tools require.
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
