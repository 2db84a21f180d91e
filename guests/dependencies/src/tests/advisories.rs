//! Tests of advisories and the components they affect.

use area_shared::testing::{corpus, read_text};

use super::*;

#[test]
fn an_advisory_finds_what_is_imported_before_and_after_it() {
    let world = World::new();
    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let answer = world.import(&advisory("GHSA-1", &["CVE-2026-1"], "1.2.0")).expect("imported");
    assert_eq!(answer.status, 201);
    assert_eq!(answer.body["created"], 1);
    assert_eq!(answer.body["items"][0]["id"], "GHSA-1");
    world.work();
    let item = world.list(&[])["items"][0].clone();
    assert_eq!(ids(&item), ["GHSA-1"]);
    let found = &item["advisories"][0];
    assert_eq!(found.as_object().map(serde_json::Map::len), Some(5));
    assert_eq!(found["match_basis"], "version_range");
    assert_eq!(found["source_tool"], "osv");
    assert_eq!(found["scanner_run_id"], item["scanner_run_id"]);
    let told = world.events("dependency.vulnerable");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["severity"], "critical");
    assert_eq!(told[0]["component_count"], 1);

    world.audit(Some("main"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    assert_eq!(world.audit_report()["facts"]["advisories"], json!(["CVE-2026-1", "GHSA-1"]));
    assert_eq!(world.events("dependency.vulnerable").len(), 1, "it is not new");
    world.audit(Some("next"), &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    assert_eq!(world.events("dependency.vulnerable").len(), 2, "it is new to this branch");
    for name in ["GHSA-1", "ghsa-1", "CVE-2026-1", " cve-2026-1"] {
        assert_eq!(names(&world.list(&[("advisory", json!(name))])).len(), 2, "{name}");
        let history = [("advisory", json!(name)), ("history", json!(true))];
        assert_eq!(names(&world.list(&history)).len(), 3, "{name}");
    }
    assert_eq!(names(&world.list(&[("advisory", json!("CVE-2026-2"))])), [""; 0]);
}

#[test]
fn facts_have_every_name_of_an_advisory() {
    let world = World::new();
    let mut record = advisory("DSA-1", &["CVE-2026-1", "GHSA-35jh-r3h4-6jhm"], "1.2.0");
    record["upstream"] = json!(["CVE-2026-2"]);
    world.import(&record).expect("imported");
    world.import(&advisory("GHSA-35jh-r3h4-6jhn", &["CVE-2026-3"], "0.1")).expect("imported");
    let vex = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "vulnerabilities": [{
            "id": "CVE-2026-1", "analysis": { "state": "in_triage" },
            "affects": [{ "ref": LEFT_PAD }],
        }],
    });
    // The VEX document has the stored components counted again.
    for upload in [sbom("a.json", &bom("shop", &[LEFT_PAD])), sbom("a.vex.json", &vex)] {
        world.audit(Some("main"), &[upload]);
        let told = world.audit_report();
        let names = json!(["CVE-2026-1", "CVE-2026-2", "DSA-1", "GHSA-35jh-r3h4-6jhm"]);
        assert_eq!(told["facts"]["advisories"], names, "{told}");
        assert_eq!(told["counts"]["advisories"], 1);
    }
}

#[test]
fn a_newer_record_takes_the_place_of_an_older_one() {
    let world = World::new();
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let mut record = advisory("GHSA-1", &["CVE-2026-1"], "1.2.0");
    world.ingest(&record);
    assert_eq!(world.import(&record).expect("imported").body["unchanged"], 1);

    let mut older = record.clone();
    older["modified"] = json!("2020-01-01T00:00:00Z");
    assert_eq!(world.import(&older).expect("imported").body["unchanged"], 1);

    record["modified"] = json!("2026-02-01T00:00:00Z");
    record["aliases"] = json!([]);
    assert_eq!(world.import(&record).expect("imported").body["updated"], 1);
    world.work();
    assert_eq!(names(&world.list(&[("advisory", json!("CVE-2026-1"))])), [""; 0]);
    assert_eq!(names(&world.list(&[("advisory", json!("GHSA-1"))])), ["left-pad"]);

    record["modified"] = json!("2026-03-01T00:00:00Z");
    record["withdrawn"] = json!("2026-03-01T00:00:00Z");
    world.ingest(&record);
    assert_eq!(ids(&world.list(&[])["items"][0]), [""; 0]);
    assert_eq!(world.host.documents("matches").len(), 0);
    assert_eq!(world.events("advisory.imported").len(), 3);
}

#[test]
fn a_record_replaces_what_an_earlier_version_of_the_code_read_in_it() {
    let world = World::new();
    let record = advisory("GHSA-1", &[], "2");
    world.import(&record).expect("imported");
    let mut stored = world.host.documents("advisories").remove(0);
    stored["severity"] = Value::Null;
    stored.as_object_mut().expect("an object").remove("reader");
    world.host.put_document("advisories", "GHSA-1", stored);
    for member in ["updated", "unchanged"] {
        assert_eq!(world.import(&record).expect("imported").body[member], 1);
        assert_eq!(world.host.documents("advisories")[0]["severity"], "critical");
    }
    assert_eq!(world.host.documents("affected_packages").len(), 1);
}

#[test]
fn aliases_are_one_vulnerability() {
    let world = World::new();
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let mut listed = advisory("OTHER-7", &["CVE-2026-1"], "0.1.0");
    listed["affected"][0]["versions"] = json!(["1.0.0"]);
    let all = json!([
        advisory("GHSA-1", &["CVE-2026-1"], "2"),
        listed,
        advisory("CVE-2026-1", &[], "2"),
        advisory("GHSA-2", &["CVE-2026-2"], "2"),
    ]);
    world.ingest(&all);
    let item = world.list(&[])["items"][0].clone();
    assert_eq!(ids(&item), ["GHSA-2", "OTHER-7"]);
    assert_eq!(item["advisories"][1]["match_basis"], "purl_exact");
    for name in ["GHSA-1", "OTHER-7", "CVE-2026-1"] {
        assert_eq!(names(&world.list(&[("advisory", json!(name))])), ["left-pad"], "{name}");
    }
}

#[test]
fn what_a_scanner_reports_counts_unless_it_is_dismissed_or_withdrawn() {
    let world = World::new();
    let mut bom = bom("shop", &[LEFT_PAD, "pkg:npm/b@1"]);
    bom["vulnerabilities"] = json!([
        { "id": "CVE-2026-5", "affects": [{ "ref": LEFT_PAD }], "references": [{ "id": "SNYK-5" }] },
        { "id": "CVE-2026-6", "affects": [{ "ref": LEFT_PAD }],
          "analysis": { "state": "not_affected", "justification": "code_not_reachable" } },
        { "id": "CVE-2026-7", "affects": [{ "ref": "urn:cdx:f08a6ccd-4dce-4759-bd84-c626675d60a7/1#pkg%3Anpm%2Fb%401" }] },
    ]);
    world.audit(None, &[sbom("a.json", &bom)]);
    let list = world.list(&[]);
    assert_eq!(ids(&list["items"][0]), ["CVE-2026-7"]);
    assert_eq!(ids(&list["items"][1]), ["CVE-2026-5"]);
    let found = &list["items"][1]["advisories"][0];
    assert_eq!(found["match_basis"], "scanner_reported");
    assert_eq!(found["source_tool"], "syft 1.0.0");
    assert_eq!(found["artifact_sha256"], list["items"][1]["artifact_sha256"]);
    assert_eq!(
        list["items"][1]["limitations"][0],
        "Not listed, since a.json states not_affected: code_not_reachable: CVE-2026-6."
    );
    assert_eq!(names(&world.list(&[("advisory", json!("SNYK-5"))])), ["left-pad"]);

    // An imported advisory GHSA-7 adds its aliases to the match that the scanner reported. When the
    // advisory is withdrawn, the match is removed.
    let mut elsewhere = advisory("GHSA-7", &["CVE-2026-7"], "1");
    world.ingest(&elsewhere);
    assert_eq!(names(&world.list(&[("advisory", json!("GHSA-7"))])), ["b"]);
    elsewhere["modified"] = json!("2026-02-01T00:00:00Z");
    elsewhere["withdrawn"] = json!("2026-02-01T00:00:00Z");
    world.ingest(&elsewhere);
    assert_eq!(ids(&world.list(&[])["items"][0]), [""; 0]);
}

#[test]
fn a_report_of_a_withdrawn_advisory_is_a_limitation() {
    let world = World::new();
    let mut bom = bom("shop", &[LEFT_PAD]);
    bom["vulnerabilities"] = json!([{ "id": "CVE-2026-7", "affects": [{ "ref": LEFT_PAD }] }]);
    let mut record = advisory("GHSA-7", &["CVE-2026-7"], "1");
    record["withdrawn"] = json!("2026-02-01T00:00:00Z");
    world.import(&record).expect("imported");
    world.audit(None, &[sbom("a.json", &bom)]);
    let item = world.list(&[])["items"][0].clone();
    assert_eq!(ids(&item), [""; 0]);
    let expected = "Not listed, since the advisory is withdrawn: CVE-2026-7 (GHSA-7).";
    assert_eq!(item["limitations"], json!([expected]));
}

#[test]
fn a_withdrawal_counts_from_its_time_on() {
    let world = World::new();
    let mut bom = bom("shop", &[LEFT_PAD, "pkg:npm/b@1"]);
    bom["vulnerabilities"] = json!([{ "id": "CVE-2026-1", "affects": [{ "ref": "pkg:npm/b@1" }] }]);
    world.audit(None, &[sbom("a.json", &bom)]);
    let withdrawn = world.host.now().plus_seconds(600);
    let mut record = advisory("GHSA-1", &["CVE-2026-1"], "2");
    record["withdrawn"] = json!(withdrawn);
    world.import(&record).expect("imported");
    let affected = || {
        let items = world.list(&[])["items"].clone();
        items.as_array().expect("items").iter().map(ids).collect::<Vec<_>>()
    };

    let jobs = world.host.take_jobs();
    let (later, now): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| job.available_at == Some(withdrawn));
    let run = |jobs: Vec<area_sdk::testing::EnqueuedJob>| {
        jobs.into_iter().for_each(|job| drop(world.host.run_to_end(&job.kind, job.payload, 1)));
    };
    run(now);
    assert_eq!(affected(), [["CVE-2026-1"], ["GHSA-1"]]);
    world.host.advance(600);
    run(later);
    assert_eq!(affected(), [[""; 0], [""; 0]]);
}

/// Creates an OSV advisory of Ubuntu, which names the CVE in `upstream` instead of `aliases`.
fn of_ubuntu(id: &str, cve: &str, fixed: &str) -> Value {
    let mut record = advisory(id, &[], fixed);
    record["upstream"] = json!([cve]);
    record
}

#[test]
fn an_advisory_is_found_by_what_it_names_and_by_what_names_it() {
    let world = World::new();
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD, "pkg:npm/b@1"]))]);
    let mut related = advisory("DSA-1", &[], "2");
    related["affected"][0]["package"]["name"] = json!("b");
    related["related"] = json!(["CVE-2026-1"]);
    let all = json!([
        of_ubuntu("UBUNTU-CVE-2026-1", "CVE-2026-1", "2"),
        of_ubuntu("UBUNTU-CVE-2026-2", "CVE-2026-2", "0.1"),
        related,
    ]);
    world.ingest(&all);
    let found = |name: &str| names(&world.list(&[("advisory", json!(name))]));
    assert_eq!(found("cve-2026-1"), ["b", "left-pad"]);
    assert_eq!(found("UBUNTU-CVE-2026-1"), ["left-pad"], "one step, not two");
    assert_eq!(found("CVE-2026-2"), [""; 0], "the version is not affected");

    // A component that matches CVE-2026-2 is also found by the id of the Ubuntu advisory that names
    // CVE-2026-2.
    world.ingest(&advisory("CVE-2026-2", &["GHSA-2"], "2"));
    assert_eq!(found("UBUNTU-CVE-2026-2"), ["left-pad"]);
    // Several advisories affect `left-pad`, but the list contains this component only once.
    world.ingest(&advisory("CVE-2026-1", &["GHSA-1"], "2"));
    for name in ["CVE-2026-1", "UBUNTU-CVE-2026-1", "GHSA-1"] {
        let item = world.list(&[("advisory", json!(name)), ("q", json!("left"))]);
        assert_eq!(names(&item), ["left-pad"], "{name}");
        let unmerged = ["CVE-2026-1", "CVE-2026-2", "UBUNTU-CVE-2026-1"];
        assert_eq!(ids(&item["items"][0]), unmerged, "{name}");
    }
    let pages = world.pages(&listing(&[("advisory", json!("CVE-2026-1"))]), 1);
    assert_eq!(texts(&pages, "name"), ["b", "left-pad"]);

    let mut newer = of_ubuntu("UBUNTU-CVE-2026-1", "CVE-2026-9", "2");
    newer["modified"] = json!("2026-02-01T00:00:00Z");
    world.ingest(&newer);
    assert_eq!(found("CVE-2026-9"), ["left-pad"]);
}

#[test]
fn what_the_version_before_imported_is_indexed_and_until_then_a_limitation_says_so() {
    let world = World::new();
    world.audit(None, &[sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    for n in 1..=45 {
        let record = of_ubuntu(&format!("UBUNTU-CVE-{n}"), &format!("CVE-{n}"), "2");
        world.import(&record).expect("imported");
    }
    world.work();
    world.host.delete_documents("advisory_mentions");
    world.host.delete_documents("mention_indexes");
    let asked = [("advisory", json!("CVE-45"))];
    let list = world.list(&asked);
    assert_eq!(names(&list), [""; 0]);
    let said = list["limitations"][0].as_str().expect("a limitation");
    assert!(said.starts_with("Not all advisories are indexed yet"), "{said}");
    assert_eq!(world.list(&[])["limitations"], json!([]));
    world.audit(None, &[]);
    let list = world.list(&asked);
    assert_eq!((names(&list), &list["limitations"]), (vec!["left-pad".to_owned()], &json!([])));
    assert_eq!(world.host.documents("advisory_mentions").len(), 45);
}

#[test]
fn files_of_advisories_come_with_audits_and_uploads() {
    let world = World::new();
    let records = json!([advisory("GHSA-1", &[], "2"), { "id": "x y", "modified": "never" }]);
    world.audit(None, &[osv(&records), sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
    let told = world.audit_report();
    assert_eq!(told["facts"]["vulnerable"], 1);
    assert_eq!(told["counts"]["imported_advisories"], 1);
    assert_eq!(told["errors"][0]["code"], "invalid_osv");
    assert!(
        told["errors"][0]["detail"].as_str().is_some_and(|text| text.starts_with("/1/modified: "))
    );

    let many: Vec<Value> = (0..250).map(|n| advisory(&format!("MANY-{n}"), &[], "2")).collect();
    let content = json!({ "vulns": many }).to_string().into_bytes();
    let sha256 = sha256(&content);
    world.host.put_shared_blob("uploads", "blob", &content);
    let upload = Uuid::from_u128(0xc000);
    let body = json!({ "blob": "blob", "content_sha256": sha256, "validation_stage": "ready" });
    world.host.put_document("uploads.uploads", &upload.to_string(), body);
    let ready = json!({ "upload_id": upload, "format": "osv", "content_sha256": sha256 });
    world.deliver("upload.ready", ready.clone());
    world.deliver("upload.ready", ready);
    assert_eq!(world.host.documents("advisories").len(), 251);
    let item = world.list(&[])["items"][0].clone();
    assert_eq!(ids(&item).len(), 50);
    assert!(item["limitations"][0].as_str().is_some_and(|text| text.starts_with("251 advisories")));
    let last = [("advisory", json!("MANY-249"))];
    assert_eq!(names(&world.list(&last)), ["left-pad"]);
}

#[test]
fn of_several_records_in_a_file_with_one_id_the_newest_counts() {
    let record = |month: u8, fixed: &str| {
        let mut record = advisory("GHSA-1", &[], fixed);
        record["modified"] = json!(format!("2026-0{month}-01T00:00:00Z"));
        record
    };
    let [old, new] = [record(1, "0.1.0"), record(2, "2.0.0")];
    for records in [json!([old, new]), json!([new, old]), json!([old, new, old, new])] {
        let world = World::new();
        world.audit(None, &[osv(&records), sbom("a.json", &bom("shop", &[LEFT_PAD]))]);
        assert_eq!(ids(&world.list(&[])["items"][0]), ["GHSA-1"], "{records}");
    }
}

#[test]
fn records_that_became_smaller_are_imported_in_steps() {
    let world = World::new();
    for (month, entries) in [(1, 30), (2, 1)] {
        let record = |n: u8| {
            let mut record = advisory(&format!("GHSA-{n}"), &[], "2");
            record["modified"] = json!(format!("2026-0{month}-01T00:00:00Z"));
            record["affected"] = vec![record["affected"][0].clone(); entries].into();
            record
        };
        let records: Vec<Value> = (0..200).map(record).collect();
        world.audit(None, &[osv(&records.into())]);
        assert_eq!(world.host.documents("affected_packages").len(), 200 * entries);
    }
}

#[test]
fn records_that_do_not_fit_into_memory_together_are_imported_in_steps() {
    let world = World::new();
    let record = |n: u8| {
        let mut record = advisory(&format!("GHSA-{n}"), &[], "2");
        record["details"] = json!("x".repeat(5 << 20));
        record
    };
    let content = gzip(json!((0..3).map(record).collect::<Vec<Value>>()).to_string());
    world.audit(None, &[Upload { filename: "osv.json.gz", format: "osv", content }]);
    assert_eq!(world.host.documents("advisories").len(), 3);
}

#[test]
fn wrong_records_are_refused_whole_and_by_pointer() {
    let world = World::new();
    let pointer = |body: Value| {
        let problem = world.import(&body).expect_err("a refusal");
        problem.violations[0].pointer.clone()
    };
    let good = advisory("GHSA-1", &[], "2");
    let mut wrong = advisory("GHSA-2", &[], "2");
    wrong["affected"][0]["ranges"][0]["type"] = json!("NUMBERS");
    assert_eq!(pointer(wrong.clone()), "/affected/0/ranges/0/type");
    assert_eq!(pointer(json!([good.clone(), wrong])), "/1/affected/0/ranges/0/type");
    assert_eq!(pointer(json!([good.clone(), good])), "/1/id");
    assert_eq!(world.host.documents("advisories").len(), 0);
}

#[test]
fn advisories_are_listed_and_shown_by_any_name() {
    let world = World::new();
    world.import(&advisory("GHSA-1", &["CVE-2026-1"], "2")).expect("imported");
    let list = world.host.call(Request::to("list_advisories").with("limit", 50));
    let list = list.expect("a list").body;
    assert_eq!(list["items"][0]["id"], "GHSA-1");
    assert_eq!(list["items"][0]["cvss_score"], "9.8");
    assert_eq!(list["items"][0]["packages"], json!([{ "ecosystem": "npm", "name": "left-pad" }]));
    for name in ["GHSA-1", "CVE-2026-1", "cve-2026-1"] {
        let shown = world.host.call(Request::to("get_advisory").with("advisory_id", name));
        let shown = shown.expect("an advisory").body;
        assert_eq!((&shown["id"], &shown["severity"]), (&json!("GHSA-1"), &json!("critical")));
        assert_eq!(shown["affected"][0]["ranges"][0]["events"][1], json!({ "fixed": "2" }));
    }
    let absent = world.host.call(Request::to("get_advisory").with("advisory_id", "CVE-1"));
    assert!(absent.is_err());
}

#[test]
fn log4shell_is_found_by_its_id_and_its_alias() {
    let Some(folder) = corpus("") else { return };
    let read = |path: &str| read_text(&folder.join(path)).into_bytes();
    let world = World::new();
    let bom = Upload {
        filename: "log4j.cdx.json",
        format: "cyclonedx",
        content: read("cyclonedx/log4j-defectdojo.cdx.json"),
    };
    let osv = Upload {
        filename: "GHSA-jfh8-c2jp-5v3q.json",
        format: "osv",
        content: read("osv/github-advisory/GHSA-jfh8-c2jp-5v3q.json"),
    };
    world.audit(Some("main"), &[bom, osv]);
    for name in ["GHSA-jfh8-c2jp-5v3q", "CVE-2021-44228"] {
        let list = world.list(&[("advisory", json!(name))]);
        assert_eq!(names(&list), ["org.apache.logging.log4j:log4j-core"], "{name}");
        let found = list["items"][0]["advisories"].as_array().expect("advisories").clone();
        let log4shell = found.iter().find(|a| a["advisory_id"] == "GHSA-jfh8-c2jp-5v3q");
        assert_eq!(log4shell.expect("Log4Shell")["match_basis"], "version_range");
        assert!(!found.iter().any(|a| a["advisory_id"] == "CVE-2021-44228"), "it is the same");
    }
    assert_eq!(names(&world.list(&[("advisory", json!("CVE-2021-45046"))])).len(), 1);
}
