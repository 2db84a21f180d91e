//! A recipe for each capability: a handler or a job, and its native test. All
//! of them run as tests of this crate.
//!
//! | to | recipe |
//! |---|---|
//! | store, list and change documents; add members to stored ones | [`documents`] |
//! | store content that is too large for a document | [`blobs`] |
//! | inform other areas and webhooks; react to other areas | [`events`] |
//! | do work later, in steps, or each day | [`jobs`] |
//! | keep a key or password of another service | [`secrets`] |
//! | create tokens, digests, and verify signatures | [`crypto`] |
//! | find the people of the workspace | [`directory`] |
//! | compute local times | [`calendar`] |
//! | send HTTP requests | [`egress`] |
//! | log for operators | [`log`] |
//! | scan an upload for malware | [`malware`] |
//! | let somebody call one operation by a link | [`links`] |
//! | read the operator's settings | [`settings`] |
//! | show the jobs of the workspace | [`queue`] |
//! | add members to the workspace | [`membership`] |
//! | send mail | [`mail`] |

pub mod blobs;
pub mod calendar;
pub mod crypto;
pub mod directory;
pub mod documents;
pub mod egress;
pub mod events;
pub mod jobs;
pub mod links;
pub mod log;
pub mod mail;
pub mod malware;
pub mod membership;
pub mod queue;
pub mod secrets;
pub mod settings;

#[cfg(test)]
mod tests {
    #[test]
    fn every_capability_has_a_recipe() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/recipes");
        for capability in contract_codegen::capabilities() {
            let file = format!("{folder}/{}.rs", capability.name.replace('-', "_"));
            let recipe = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(recipe.contains("//! ```\n"), "{file} has no example");
        }
    }
}
