//! Audits and schedules through a fake host.

mod audits;
