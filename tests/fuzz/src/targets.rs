//! Parsers of external input as functions of bytes.

use artifact_formats::{nesting, packing};

/// A parser of external input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// Parses an input. Returns the size of the result in bytes.
    pub run: fn(&[u8]) -> usize,
    /// Folders and files of the corpus with seeds.
    pub corpus: &'static [&'static str],
    /// Small seeds of the target, in addition to files of the corpus.
    pub samples: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sarif",
        run: area_control_room::fuzzing::sarif,
        corpus: &["sarif", "series"],
        samples: &[
            r#"{"version":"2.1.0","inlineExternalProperties":[{"guid":"a","results":[{"ruleId":"A"},{"ruleId":"B"}]}],"runs":[{"tool":{"driver":{"name":"T"}},"externalPropertyFileReferences":{"results":[{"guid":"a"},{"guid":"A"}]}}]}"#,
        ],
    },
    Target {
        name: "sbom",
        run: area_dependencies::fuzzing::sbom,
        corpus: &["cyclonedx", "spdx"],
        samples: &[
            r#"{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"type":"library","bom-ref":"a","name":"a","version":"1","purl":"pkg:npm/a@1"}],"dependencies":[{"ref":"a","dependsOn":["a"]}]}"#,
            r#"{"spdxVersion":"SPDX-2.3","SPDXID":"SPDXRef-DOCUMENT","packages":[{"SPDXID":"SPDXRef-a","name":"a","versionInfo":"1"}],"relationships":[{"spdxElementId":"SPDXRef-DOCUMENT","relationshipType":"DESCRIBES","relatedSpdxElement":"SPDXRef-a"}]}"#,
        ],
    },
    Target {
        name: "osv",
        run: area_dependencies::fuzzing::osv,
        corpus: &["osv"],
        samples: &[
            r#"{"id":"X-1","modified":"2026-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"Maven","name":"a:b"},"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"1.p.a.1"},{"introduced":"1.0.b1"},{"fixed":"1"}]}],"versions":["1.0.b1"]}],"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]}"#,
        ],
    },
    Target {
        name: "purl",
        run: area_dependencies::fuzzing::purl,
        corpus: &[],
        samples: &[
            "pkg:npm/%40angular/animation@12.3.1?a=b#src/lib",
            "pkg:maven/org.apache/commons@1.0?classifier=x&type=jar",
            "pkg:golang/google.golang.org/genproto#googleapis/api",
            "pkg:deb/debian/curl@7.50.3-1?arch=i386&distro=jessie",
            "pkg:pypi/Django_Rest@1.11",
        ],
    },
    Target {
        name: "versions",
        run: area_dependencies::fuzzing::versions,
        corpus: &[],
        samples: &[
            "1.p.a.1\n1.0.b1\n1\n1-alpha-1\n1.0.0\n1.0.rc.1",
            "1.0.0-alpha.1\n1.0.0+build\n1.0\nv1\n2.0.0.1",
            "1!0.1.dev1\n1.0a1.post2\n1.0+abc.5\n1.0",
            "1:1.0~beta1-1+b1\n1.0-0\n1.0a\n0~~",
            "1.0_alpha2\n1.0-r1\n1.0b\n1.0_git2020_p1\n1.01",
            "1.0^git1-1.el8\n1.0~rc1-1\n1:0.1-1\n1.0..1\n1.0_1",
            "1.8.2.a10\n1.0.b1\n1-1\n1.0.rc.1",
            "1.0.0-RC1\n1.0b\n1.0-p1\n1.0-dev\n1.0.0.0",
            "vers:maven/>=1.0|<2.0|!=1.5|3",
        ],
    },
    Target {
        name: "cvss",
        run: area_dependencies::fuzzing::cvss,
        corpus: &[],
        samples: &[
            "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
            "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N/E:A",
            "AV:N/AC:L/Au:N/C:C/I:C/A:C",
        ],
    },
    Target {
        name: "codeowners",
        run: area_ownership::fuzzing::codeowners,
        corpus: &["codeowners"],
        samples: &["[A][2] @a\n/x/\n^[B] @b\n!y\n*.rs @c c@example.com\n[a]\n**/z @@role\n"],
    },
    Target {
        name: "csv",
        run: area_questionnaires::fuzzing::csv,
        corpus: &["csv", "questionnaires"],
        samples: &["ID,Question,Answer\n1,\"Is it \"\"on\"\"?\",Yes\n2,=1+1;,\n"],
    },
    Target {
        name: "envelope",
        run: area_evidence::fuzzing::envelope,
        corpus: &["rfc8785/input", "jsontestsuite"],
        samples: &[r#"{"b":[1e21,-0.0,1E-7,"\u20ac"],"a":{"c":null}}"#],
    },
    Target {
        name: "cel",
        run: area_remediation::fuzzing::cel,
        corpus: &[],
        samples: &[
            "findings.by_severity.critical == 0 && !('js/1' in findings.by_rule)",
            "[[1, 1]].map(x, x + x).map(x, x + x).size() == 1",
            "findings.by_rule.all(rule, rule.matches('^(js|py)/[a-z-]{1,30}$'))",
            "dependencies.advisories.filter(id, id.contains('CVE')).exists(x, x in ['a'])",
            "audit.branch_ref == \"main\" ? findings.gone > 0 : 1.5 < double(findings.open)",
        ],
    },
    Target { name: "packing", run: packed, corpus: &[], samples: &["[[[{\"a\":1}]]]"] },
    Target {
        name: "json",
        run: assurance::http::fuzzing::json,
        corpus: &["jsontestsuite", "blns"],
        samples: &[r#"{"a":3.0,"b":"\ud83d\ude00","c":[1e400]}"#],
    },
    Target {
        name: "multipart",
        run: assurance::http::fuzzing::multipart,
        corpus: &[],
        samples: &[
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nabc\r\n--x\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nT\r\n--x--\r\n",
        ],
    },
    Target {
        name: "query",
        run: assurance::http::fuzzing::query,
        corpus: &[],
        samples: &["limit=7&cursor=a%2Bb+c&q=&x=1&x=2"],
    },
    Target {
        name: "body",
        run: assurance::http::fuzzing::compressed,
        corpus: &[],
        samples: &["plain"],
    },
    Target {
        name: "schema",
        run: assurance::http::fuzzing::schema,
        corpus: &[],
        samples: &[
            r##"{"schema":{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"string","pattern":"^a{1,9}$"}]},"b":{"type":"integer","minimum":1}},"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]},"value":{"x":1}}"##,
        ],
    },
    Target {
        name: "manifest",
        run: assurance_contract::fuzzing::manifest,
        corpus: &[],
        samples: &[
            r##"{"at":"/routes/1/body/json","put":{"type":"object","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}}}]},"b":{"type":"array","items":{"$ref":"#/$defs/a"},"maxItems":3}},"properties":{"x":{"$ref":"#/$defs/a"}},"required":["x"]}}
{"at":"/routes/1/body/json/properties/x","put":{"type":"string","pattern":"^[a-z]{1,30}$"}}
{"x":[[{"x":[]}],"a"]}"##,
            r#"{"at":"/routes/0/response","put":{"type":"object","properties":{"items":{"type":"array","prefixItems":[{"const":1},{"enum":["a",null]}],"contains":{"type":"integer","multipleOf":2}}},"patternProperties":{"^x-":{"type":["string","null"],"format":"email"}},"minProperties":1}}
{"at":"/routes/2/response","put":{"oneOf":[{"type":"object","required":["a"],"unevaluatedProperties":false},{"not":{"type":"object"}}]}}"#,
            r#"{"at":"/routes/0/path","put":"/v1/workspaces/{workspace_id}/notes/{note_id}/x"}
{"at":"/routes/0/parameters","put":[{"name":"note_id","place":"path","summary":"s","kind":{"type":"text","min_length":1,"max_length":4294967295},"required":true,"default":null},{"name":"n","place":"query","summary":"s","kind":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807},"required":false,"default":-5}]}
"2026-02-30T24:00:00Z""#,
            r#"{"at":"/collections/0/fields","put":[{"name":"title","kind":"integer"},{"name":"done","kind":"text"}]}
{"at":"/collections/0/indexes","put":[{"fields":["done"],"unique":true}]}
{"at":"/publishes/0/name","put":"note.changed"}
{"at":"/jobs/0/timeout_ms","put":4294967295}
{"at":"/subscriptions","put":["*"]}
{"at":"/version","put":"2.0.0-rc.1"}"#,
        ],
    },
    Target {
        name: "component",
        run: assurance_runtime::fuzzing::component,
        corpus: &[],
        samples: &[
            // A component nested in a component and instantiated three times.
            "\u{4}\u{f}\u{5}\u{a}\u{3}\0\0\0\0\0\0\0\0\0",
            // A module that is instantiated twice.
            "\u{1}\u{8}\0asm\u{1}\0\0\0\u{2}\u{7}\u{2}\0\0\0\0\0\0",
        ],
    },
    Target {
        name: "config",
        run: assurance::http::fuzzing::config,
        corpus: &[],
        samples: &[
            "data_dir = \"./data\"\n[api]\nlisten = \"127.0.0.1:8080\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n[limits]\nmax_body_bytes = 1048576\n[areas.grants]\nnotes = [\"documents\"]\n",
        ],
    },
];

/// Unpacks gzip, zstd and zip with a limit, and measures the nesting.
fn packed(bytes: &[u8]) -> usize {
    let read = packing::read(bytes, |reader| {
        let mut content = Vec::new();
        let _ = std::io::Read::read_to_end(&mut std::io::Read::take(reader, 1 << 20), &mut content);
        content
    });
    let content = read.map(|unpacked| unpacked.result).unwrap_or_default();
    nesting::depth(&content).min(content.len())
}
