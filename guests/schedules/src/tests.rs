//! Tests of audits and schedules through a fake host.

mod audits;
mod recurrence;
mod schedules;
mod world;
