//! Tests of format detection.

use super::*;

#[test]
fn formats_are_told_by_what_is_in_them() {
    let known = [
        (r#"{"version":"2.1.0","runs":[]}"#, "sarif"),
        (r#"{"$schema":"https://json.schemastore.org/sarif-2.1.0.json"}"#, "sarif"),
        ("\u{feff} {\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\"}", "cyclonedx"),
        (r#"{"spdxVersion":"SPDX-2.3"}"#, "spdx"),
        (r#"{"id":"GHSA-1","modified":"2026-01-01T00:00:00Z"}"#, "osv"),
        (r#"[{"id":"A","affected":[]},{"id":"B","schema_version":"1.6.0"}]"#, "osv"),
        (r#"{"vulns":[{"id":"A-1","modified":"2024-01-01T00:00:00Z"}]}"#, "osv"),
        ("src/main.rs\nsrc/a b/lib.rs\nMakefile\n", "path_list"),
        ("# who\n*.rs @org/rust\n/docs/ docs@example.org\n", "code_owners"),
        ("[Section][2] @org/team\n*.go\n", "code_owners"),
    ];
    for (content, format) in known {
        assert_eq!(fate("file.txt", content.as_bytes()), format, "{content}");
    }
    assert_eq!(fate(".github/CODEOWNERS", b"*.rs\n"), "code_owners");
}

#[test]
fn what_git_lists_is_a_list_of_paths() {
    for list in [
        "src/app.js\nassets/icon@2x.png\nREADME.md\n",
        "src/app.js\npackages/@acme/core/index.ts\n",
        "src/app.js\ndocs/Logo @2x.png\n",
        "@types\nindex@1.d.ts\n",
        "src/app.js\nRelease Notes.txt\nREADME.md\n",
        "COPYING MIT\nsrc/app.js\n",
        "src/app.js\n\"docs/\\303\\274ber \\\"x\\\".md\"\n",
        "src/List<T>.cs\nREADME.md\n",
        "#src/app.js#\r\nREADME.md\r\n",
        "[slug].tsx\napp/[id]/page.tsx\n",
        "[slug].tsx\ndocs/Logo @2x.png\n",
        "{{cookiecutter.repo}}/setup.py\nREADME.md\n",
        "a/b==c.txt\nday=1/x>=y\nname=a @ b.txt\n",
        "\"\\303\\274.md\"\n\"\\303\\266.md\"\n",
    ] {
        assert_eq!(fate("paths.txt", list.as_bytes()), "path_list", "{list}");
    }
}

#[test]
fn rules_under_another_name_are_told_by_their_owners() {
    for rules in
        ["src @a\n", "*.rs @org/rust # the core\n/vendor/\n/docs/\n", "[Docs]\ndocs @a\nsrc\n"]
    {
        assert_eq!(fate("rules.txt", rules.as_bytes()), "code_owners", "{rules}");
    }
}

#[test]
fn a_list_of_paths_is_refused_by_the_line_that_is_none() {
    for (list, line) in [
        ("src/app.js\nsrc/b.js\n\nsay \"hello\"\n", "line 4 is not a path"),
        ("[slug].tsx\n\"a\" b\n", "line 2 is not a path"),
        ("src/app.js\nsrc/\u{1b}b.js\n", "line 2 is not a path"),
    ] {
        assert_eq!(fate("paths.txt", list.as_bytes()), "unsupported_format", "{list}");
        assert!(detail("paths.txt", list.as_bytes()).contains(line), "{list}");
    }
}

#[test]
fn other_forms_of_known_formats_are_named() {
    for (content, said) in [
        ("# made by hand\nSPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\n", "tag-value"),
        ("SPDXID: SPDXRef-DOCUMENT\nspdxVersion: SPDX-2.3\n", "as YAML"),
        ("---\n\"spdxVersion\": \"SPDX-2.3\"\n", "YAML"),
        ("<bom/>", "XML"),
        (r#"{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld"}"#, "SPDX 3"),
        (r#"{"@context":"https://openvex.dev/ns/v0.2.0","statements":[]}"#, "only CycloneDX"),
        (r#"{"document":{"category":"csaf_vex","csaf_version":"2.0"}}"#, "only CycloneDX"),
        ("{\n  \"sbom\": { \"spdxVersion\": \"SPDX-2.3\" }\n}", "`jq .sbom`"),
        (r#"{"Document":{"spdxVersion":"SPDX-2.2"}}"#, "`jq .Document`"),
        (r#"{"$schema":"https://a.b/sarif-external-property-file-2.1.0.json"}"#, "one log"),
        (r#"{"version":"1.0.0","runs":[]}"#, "`sarif-multitool rewrite "),
        (r#"{"bomFormat":"CycloneDX","specVersion":"1.1"}"#, "`cyclonedx convert "),
        (r#"{"spdxVersion":"SPDX-2.1"}"#, "as SPDX 2.3."),
        ("flask==2.0.1\nrequests>=2\nrich\n", "Send an SBOM"),
        ("example.com/a v1.0.0 h1:b=\nexample.com/a v1.0.0/go.mod h1:c=\n", "Send an SBOM"),
        ("pkg:npm/a@1\npkg:npm/b@2\n", "Send an SBOM"),
        ("src\\a.c\r\nlib\\b.c\r\nREADME.md\r\n", "with `/`"),
        (" M src/a.c\nA  b.c\n?? c.c\n", "output of git status"),
        ("d41d8cd98f00b204e9800998ecf8427e  a.tar.gz\n", "checksums"),
    ] {
        let detail = detail("sbom.spdx", content.as_bytes());
        assert!(detail.contains(said), "{content}: {detail}");
    }
}

#[test]
fn what_an_audit_cannot_read_is_refused_with_what_to_send_instead() {
    let refused: [(&[u8], &str); 17] = [
        (b"{\"version\":\"2.0.0\",\"runs\":[]}", "unsupported_version"),
        (b"{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.1\"}", "unsupported_version"),
        (b"{\"spdxVersion\":\"SPDX-2.1\"}", "unsupported_version"),
        (b"{\"bomFormat\":\"Other\"}", "unsupported_format"),
        (b"[{\"id\":\"A\",\"affected\":[]},7]", "unsupported_format"),
        (b"[]", "unsupported_format"),
        (b"[\"a\",\"b\"]", "unsupported_format"),
        (b"{\"id\":{\"id\":1},\"modified\":2}", "unsupported_format"),
        (b"<bom xmlns='http://cyclonedx.org/schema/bom/1.6'/>", "unsupported_format"),
        (b"SPDXVersion: SPDX-2.3\nDataLicense: CC0-1.0\n", "unsupported_format"),
        (b"{\"version\":\"2.1.0\",\"runs\":[}", "malformed_json"),
        (b"{} {}", "malformed_json"),
        (b" \n\t", "content_empty"),
        (b"{\"name\":\"\xff\"}", "not_utf8"),
        (b"\xff\xfe{\0}\0", "not_utf8"),
        (b"{\0}\0", "not_utf8"),
        (b"\0{\0}", "not_utf8"),
    ];
    for (content, code) in refused {
        assert_eq!(fate("file.json", content), code, "{}", String::from_utf8_lossy(content));
    }
    for depth in [68, 129, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(fate("deep.json", deep.as_bytes()), "unsupported_format");
    }
    let prose = b"This is a sentence.\nAnd another one.\n";
    assert_eq!(fate("notes.txt", prose), "unsupported_format");
    assert_eq!(fate("README.md", b"README\n"), "unsupported_format");
}

#[test]
fn evidence_may_be_anything() {
    for content in [&b"\x89PNG\r\n"[..], b"{broken", b"a sentence, no more"] {
        let host = host();
        let mut wish = announcement("proof", content);
        wish["purpose"] = json!("evidence");
        let upload = upload_as(&host, wish, content);
        assert_eq!(upload["validation_stage"], "ready");
        assert_eq!(stored(&host)["format"], "unknown");
    }
}

#[test]
fn members_of_any_depth_are_skipped() {
    for member in ["version", "vulns", "id", "other"] {
        for depth in [1, 68, 1_000] {
            let (begin, end) = ("{\"vulns\":[".repeat(depth), "]}".repeat(depth));
            let content =
                format!("{{\"runs\":[],\"{member}\":{begin}{end},\"version\":\"2.1.0\"}}");
            assert_eq!(fate("deep.sarif", content.as_bytes()), "sarif", "{member} {depth}");
        }
    }
}

#[test]
fn an_sbom_that_nests_too_deeply_for_audits_is_refused() {
    let nested = |levels: usize| {
        let inner = r#"{"type":"library","name":"a","components":["#.repeat(levels);
        let end = "]}".repeat(levels);
        format!(r#"{{"bomFormat":"CycloneDX","specVersion":"1.5","components":[{inner}{end}]}}"#)
    };
    assert_eq!(fate("flat.json", nested(19).as_bytes()), "cyclonedx");
    assert_eq!(fate("deep.json", nested(25).as_bytes()), "nested_too_deeply");
}
