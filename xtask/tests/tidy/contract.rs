//! Published generations of the contract never change, because components that are not built again
//! depend on them.

use sha2::{Digest as _, Sha256};

use crate::source::sources;

/// Folder of each former generation, and the digest of its content.
const FROZEN: [(&str, &str); 2] = [
    ("wit/0.1.0/", "18aa5b83127395874bb3c68fa4a237bf5a323773e9438cc16f2acdc37efde0a6"),
    ("wit/0.2.0/", "06ea200feb4cebe63da9c1cb8eb59d182528140cc71a1fa3908f05072753d3af"),
];

#[test]
fn a_published_generation_of_the_contract_stays_as_it_was() {
    let files = sources(&["wit"]);
    let mut wrong = Vec::new();
    for (folder, expected) in FROZEN {
        let mut all = Sha256::new();
        for file in files.iter().filter(|file| file.path.starts_with(folder)) {
            all.update(format!("{}\n{}\n", file.path, file.text));
        }
        let found = hex::encode(all.finalize());
        if found != expected {
            wrong.push(format!("{folder} is {found}: put it back, and cut a new generation"));
        }
    }
    crate::check("frozen", &wrong);
}

#[test]
fn every_folder_of_a_former_generation_is_frozen() {
    let mut wrong = Vec::new();
    for file in sources(&["wit"]) {
        let former = file.path.starts_with("wit/") && file.path.matches('/').count() > 1;
        if former && !FROZEN.iter().any(|(folder, _)| file.path.starts_with(folder)) {
            wrong.push(format!("{} is in no frozen folder", file.path));
        }
    }
    crate::check("folders", &wrong);
}
