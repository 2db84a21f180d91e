//! Connections to other services: HTTP requests, mail, malware scanner, OCI
//! registries.

pub mod egress;
pub mod mail;
pub mod malware;
pub mod oci;
