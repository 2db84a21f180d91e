//! Programs through a fake host.

mod machine;
mod programs;
mod verification;
mod world;
