//! Tests of programs through a fake host.

mod facts;
mod machine;
mod programs;
mod verification;
mod world;
