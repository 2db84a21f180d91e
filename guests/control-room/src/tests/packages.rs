//! Test of results about packages: their identity is package and advisory, whatever the version.

use super::identity_at_work::{give_identity, settle};
use super::*;
use crate::identity::ResultKey;

#[test]
fn a_finding_keeps_its_decision_when_the_version_of_its_package_changes() {
    let workspace = Workspace::new();
    let scan = |purl: &str| {
        let mut log = sarif_log("Tool", &[("R1", "image", "m")], json!({}));
        log["runs"][0]["results"][0]["properties"] =
            json!({ "purl": purl, "advisory": "CVE-2026-1" });
        workspace.scan(log.to_string().as_bytes())["counts"].clone()
    };
    let purl = "pkg:deb/debian/curl@7.88-10?arch=amd64";
    scan(purl);
    settle(&workspace);
    let before = workspace.finding("R1");
    let advisory = "CVE-2026-1".to_owned();
    give_identity(&workspace, &ResultKey::Package { purl: purl.to_owned(), advisory });
    for purl in [purl, "pkg:deb/debian/curl@7.88-10%2Bdeb12u5"] {
        let counts = scan(purl);
        assert_eq!((&counts["new"], &counts["gone"]), (&json!(0), &json!(0)), "{purl}");
        let after = workspace.finding("R1");
        for member in ["id", "state", "identity_fingerprint"] {
            assert_eq!(after[member], before[member], "{purl}");
        }
    }
}
