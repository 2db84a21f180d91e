//! Embeds the list of migrations in the binary. `sqlx::migrate!` would do this
//! too, but its macros compile sqlx and both drivers a second time.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../migrations");
    let mut code = String::new();
    for database in ["sqlite", "postgres"] {
        let folder = root.join(database);
        println!("cargo:rerun-if-changed={}", folder.display());
        let files = fs::read_dir(&folder).expect("the folder of migrations").flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        files.sort();
        let _ =
            writeln!(code, "pub(super) const {}: &[(&str, &str)] = &[", database.to_uppercase());
        for file in files {
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8");
            let _ =
                writeln!(code, "    ({name:?}, include_str!({:?})),", file.display().to_string());
        }
        code.push_str("];\n");
    }
    let out = env::var("OUT_DIR").expect("set by cargo");
    fs::write(Path::new(&out).join("migrations.rs"), code).expect("a folder to write to");
}
