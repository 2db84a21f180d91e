//! Connections to other services: HTTP requests, mail, malware scanner, OCI
//! registries, rate limits in Redis.

pub mod egress;
pub mod mail;
pub mod malware;
pub mod oci;
pub mod rate_store;
