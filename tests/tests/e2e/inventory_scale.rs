//! The dependency inventory with packages that have thousands of advisories, and during an import.
//! `ASSURANCE_SCALE=full` creates as much data as an Ubuntu host with all packages of its kernel's
//! source has.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use assurance_tests::artifacts::id_of;
use assurance_tests::{Client, both_backends, within};
use serde_json::{Value, json};

use crate::dependencies::{DEPENDENCIES, list, start};

/// Time limit of an import with as much data as an Ubuntu host has.
const IMPORT_LIMIT: Duration = Duration::from_secs(280);

/// Returns the number of packages of the source `linux`, and of advisories for each.
fn sizes() -> (usize, usize) {
    match std::env::var("ASSURANCE_SCALE").as_deref() {
        Ok("full") => (48, 4_001),
        _ => (3, 1_201),
    }
}

/// Returns records of Ubuntu's database about the kernel, in files with a maximum number of
/// records.
fn kernel_records(count: usize, of_file: usize) -> Vec<Vec<u8>> {
    let record = |number: usize| {
        let package = json!({ "ecosystem": "Ubuntu:22.04:LTS", "name": "linux" });
        let events = json!([{ "introduced": "0" }]);
        json!({
            "id": format!("UBUNTU-CVE-2030-{number:05}"), "modified": "2030-01-01T00:00:00Z",
            "upstream": [format!("CVE-2030-{number:05}")],
            "affected": [{
                "package": package, "ranges": [{ "type": "ECOSYSTEM", "events": events }],
                "versions": (0..40).map(|n| format!("5.15.0-{n}.{n}")).collect::<Vec<_>>(),
            }],
        })
    };
    let records: Vec<Value> = (0..count).map(record).collect();
    records.chunks(of_file).map(|some| Value::from(some).to_string().into_bytes()).collect()
}

/// A host with these packages of the source `linux`, and one more.
fn kernel_host(packages: usize) -> Vec<u8> {
    let purl = |number: usize| {
        format!(
            "pkg:deb/ubuntu/linux-part-{number:02}@5.15.0-100.110?arch=amd64&distro=ubuntu-22.04\
             &upstream=linux"
        )
    };
    bom((0..packages).map(purl).chain(["pkg:npm/left-pad@1.0.0".to_owned()]))
}

fn bom(purls: impl Iterator<Item = String>) -> Vec<u8> {
    let component =
        |purl: String| json!({ "type": "library", "name": "x", "bom-ref": purl, "purl": purl });
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": { "type": "application", "name": "host", "bom-ref": "root" } },
        "components": purls.map(component).collect::<Vec<_>>(),
        "dependencies": [{ "ref": "root", "dependsOn": [] }],
    })
    .to_string()
    .into_bytes()
}

/// Starts an audit. Returns its path.
async fn begin_audit(client: &Client, repository: &str) -> String {
    let body = json!({ "repository_id": repository, "branch_ref": "main" });
    let audit = client.post("/v1/workspaces/{ws}/audits", &body).await.expect(201);
    format!("/v1/workspaces/{{ws}}/audits/{}", id_of(&audit))
}

/// Waits for an audit's import.
async fn imported(client: &Client, audit: &str) -> Value {
    within(IMPORT_LIMIT, "the dependencies are imported", async || {
        let audit = client.get(audit).await.expect(200);
        let pending = audit["parts"]["dependencies"]["status"] == "pending";
        if pending { Err(audit) } else { Ok(audit) }
    })
    .await
}

fn items(list: &Value) -> &Vec<Value> {
    list["items"].as_array().expect("items")
}

/// Returns all advisories of a dependency, by its id.
async fn advisories_of(client: &Client, id: &str) -> Vec<String> {
    let path = format!("{DEPENDENCIES}/components/{id}/advisories?limit=100");
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}{cursor}")).await.expect(200);
        let ids = items(&page).iter().map(|item| item["advisory_id"].as_str().expect("an id"));
        all.extend(ids.map(ToOwned::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

both_backends! {
    async fn packages_with_thousands_of_advisories_are_whole_and_listed(backend) {
        let (packages, records) = sizes();
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("host").await;
        for (at, file) in kernel_records(records, 2_000).iter().enumerate() {
            ada.upload(&repository, &format!("ubuntu-{at}.json"), file).await;
        }
        ada.upload(&repository, "host.cdx.json", &kernel_host(packages)).await;
        let begun = Instant::now();
        let audit = imported(&ada, &begin_audit(&ada, &repository).await).await;
        eprintln!("{packages} packages of {records} advisories: {:.1?}", begun.elapsed());
        let facts = &audit["facts"]["dependencies"];
        assert_eq!((&facts["total"], &facts["vulnerable"]), (&json!(packages + 1), &json!(packages)), "{audit:#}");

        let mut times = Vec::new();
        for _ in 0..30 {
            let begun = Instant::now();
            list(&ada, "").await;
            times.push(begun.elapsed());
        }
        times.sort();
        eprintln!("default list: p50 {:.1?}, most {:.1?}", times[15], times[29]);
        let listed = list(&ada, "?limit=100").await;
        assert_eq!(items(&listed).len(), packages + 1);
        let of_kernel = &items(&listed)[1];
        assert_eq!(of_kernel["advisories"].as_array().map(Vec::len), Some(50));
        let said = format!("{records} advisories affect this package; the 50 most severe");
        let limitations = of_kernel["limitations"].as_array().expect("limitations");
        assert!(limitations.iter().any(|text| text.as_str().expect("text").starts_with(&said)), "{limitations:?}");

        for number in [0, records / 2, records - 1] {
            for name in [format!("UBUNTU-CVE-2030-{number:05}"), format!("cve-2030-{number:05}")] {
                let found = list(&ada, &format!("?limit=100&advisory={name}")).await;
                assert_eq!(items(&found).len(), packages, "{name}");
            }
        }
        let all = advisories_of(&ada, &id_of(of_kernel)).await;
        assert_eq!(all.len(), records);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), records);
        assert!(all.is_sorted());
        let none = advisories_of(&ada, &id_of(&items(&listed)[0])).await;
        assert_eq!(none, [""; 0]);
        let path = format!("{DEPENDENCIES}/components/{}/advisories", audit["id"].as_str().expect("an id"));
        ada.get(&path).await.problem(404, "not_found");
        let path = format!("{DEPENDENCIES}/components/x/advisories");
        ada.get(&path).await.problem(422, "validation_failed");
    }

    async fn a_list_is_of_one_inventory_while_the_next_is_imported(backend) {
        let (_host, ada) = start(backend).await;
        let repository = ada.repository("shop").await;
        let bill = |name: &str, count: usize| {
            let name = name.to_owned();
            bom((0..count).map(move |n| format!("pkg:npm/{name}-{n:04}@1.0.0")))
        };
        ada.upload(&repository, "shop.cdx.json", &bill("b", 60)).await;
        let first = imported(&ada, &begin_audit(&ada, &repository).await).await;
        ada.upload(&repository, "shop.cdx.json", &bill("a", 6_000)).await;
        let path = begin_audit(&ada, &repository).await;
        let mut reported = 0;
        loop {
            let list = list(&ada, &format!("?repository_id={repository}&limit=100")).await;
            let audits: BTreeSet<&str> =
                items(&list).iter().map(|item| item["audit_id"].as_str().expect("an id")).collect();
            let limitations = list["limitations"].as_array().expect("limitations").iter();
            let said = limitations.filter(|text| text.as_str().is_some_and(|text| text.contains("has not ended")));
            reported += said.count();
            if items(&list).len() == 100 {
                assert!(!audits.contains(first["id"].as_str().expect("an id")), "{audits:?}");
                break;
            }
            assert!(audits.iter().all(|audit| *audit == first["id"]), "{audits:?}");
        }
        assert!(reported > 0, "the import is never reported");
        imported(&ada, &path).await;
        let whole = list(&ada, "?q=a-5999").await;
        assert_eq!(items(&whole).len(), 1);
        assert!(!whole["limitations"].to_string().contains("has not ended"), "{whole}");
    }
}
