//! Builds again when a migration changes, since they are part of the binary.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
