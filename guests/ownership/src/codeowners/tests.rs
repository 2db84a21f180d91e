//! Tests with the published pattern table, real files, and each dialect's own rules.

use area_shared::testing::corpus;
use proptest::prelude::*;
use serde_json::Value;

use super::evaluate::PathOwners;
use super::*;

fn read(text: &str, dialect: Dialect) -> Codeowners {
    parse(text.as_bytes(), Some(dialect)).expect("a file that is read")
}

fn owners(file: &Codeowners, path: &str) -> Vec<String> {
    file.owned(path).owners.into_iter().map(ToOwned::to_owned).collect()
}

fn warnings(file: &Codeowners) -> Vec<String> {
    file.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_published_pattern_table_holds() {
    let Some(folder) = corpus("codeowners") else { return };
    let table = std::fs::read(folder.join("hmarr-patterns.json")).expect("the table");
    let table: Vec<Value> = serde_json::from_slice(&table).expect("JSON");
    let (mut checked, mut wrong) = (0, Vec::new());
    for case in &table {
        let text = case["pattern"].as_str().expect("a pattern");
        let pattern = Pattern::compile(text, Dialect::Github);
        for (path, expected) in case["paths"].as_object().expect("paths") {
            checked += 1;
            if pattern.matches(path) != *expected {
                wrong.push(format!("{text} on {path}: {expected} expected ({pattern:?})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "only {checked} paths");
}

#[test]
fn real_files_are_read_without_a_warning() {
    let Some(folder) = corpus("codeowners") else { return };
    for (name, dialect, rules) in [
        ("azure-sdk-for-rust.CODEOWNERS", Dialect::Github, 20),
        ("ggshield.CODEOWNERS", Dialect::Github, 16),
        ("istio.CODEOWNERS", Dialect::Github, 68),
        ("prometheus.CODEOWNERS", Dialect::Github, 18),
        ("wasmtime.CODEOWNERS", Dialect::Github, 13),
        ("scp-firmware.github.CODEOWNERS", Dialect::Github, 7),
        ("scp-firmware.gitlab.CODEOWNERS", Dialect::Gitlab, 9),
    ] {
        let content = std::fs::read(folder.join(name)).expect(name);
        let file = parse(&content, None).expect(name);
        assert_eq!(
            (file.dialect, file.rule_count(), warnings(&file)),
            (dialect, rules, vec![]),
            "{name}"
        );
    }
}

#[test]
fn real_files_say_whose_real_paths_are() {
    let Some(folder) = corpus("codeowners") else { return };
    let file = |name: &str| {
        let content = std::fs::read(folder.join(name)).expect(name);
        parse(&content, None).expect(name)
    };
    let istio = file("istio.CODEOWNERS");
    assert_eq!(owners(&istio, "pkg/config/analysis/x.go").len(), 2);
    assert_eq!(owners(&istio, "releasenotes/notes/1.yaml"), [""; 0]);
    assert_eq!(owners(&istio, "cmd/Makefile.common"), ["@istio/wg-test-and-release-maintainers"]);
    let azure = file("azure-sdk-for-rust.CODEOWNERS");
    assert_eq!(azure.owned("Cargo.lock"), PathOwners { owners: vec![], lines: vec![28] });
    assert_eq!(owners(&azure, "sdk/cosmos/src/lib.rs"), ["@Azure/azure-cosmos-rust-sdk"]);
    let gitlab = file("scp-firmware.gitlab.CODEOWNERS");
    let ci = gitlab.owned(".gitlab/pipeline.yml");
    assert_eq!((ci.owners.len(), ci.lines.len()), (6, 2));
    assert_eq!(gitlab.owned("product/optee/x.c").owners.len(), 8);
    let github = file("scp-firmware.github.CODEOWNERS");
    assert_eq!(github.owned("product/optee/x.c").owners.len(), 2);
}

#[test]
fn owners_files_of_kubernetes_are_another_dialect() {
    let Some(folder) = corpus("codeowners") else { return };
    for name in ["cluster-api.OWNERS", "cluster-api.OWNERS_ALIASES"] {
        let content = std::fs::read(folder.join("owners-files").join(name)).expect(name);
        assert!(is_kubernetes_owners(name, &content), "{name}");
    }
    assert!(is_kubernetes_owners("pkg/OWNERS", b""));
    assert!(is_kubernetes_owners("CODEOWNERS", b"\xef\xbb\xbfapprovers:\n  - a\n"));
    assert!(!is_kubernetes_owners("CODEOWNERS", b"* @a\n"));
}

#[test]
fn the_last_rule_wins_and_one_without_owners_clears() {
    let file = read("* @all\n*.rs @rust # not @you\n/gen/ \n", Dialect::Github);
    assert_eq!(file.owned("src/a.rs"), PathOwners { owners: vec!["@rust"], lines: vec![2] });
    assert_eq!(file.owned("gen/a.rs"), PathOwners { owners: vec![], lines: vec![3] });
    assert_eq!(owners(&file, "README"), ["@all"]);
}

#[test]
fn what_github_does_not_have_is_skipped_with_a_warning() {
    let text =
        "!a @x\n\\#b @x\n[Section] @x\n^[Other][2]\nc @x no-owner\nd @@maintainer\ne[f] @x\n";
    let file = read(text, Dialect::Github);
    assert_eq!(file.rule_count(), 1);
    assert_eq!(
        warnings(&file),
        [
            "Line 1: skipped: GitHub has no exclusions",
            "Line 2: skipped: GitHub has no patterns that begin with #",
            "Line 3: skipped: GitHub has no sections",
            "Line 4: skipped: GitHub has no sections",
            "Line 5: skipped: `no-owner` is not an owner",
            "Line 6: skipped: `@@maintainer` is not an owner",
            "Line 7: GitHub has no character ranges: [ and ] are ordinary characters",
        ]
    );
    assert_eq!(owners(&file, "x/e[f]"), ["@x"]);
}

#[test]
fn gitlab_judges_each_section_by_itself() {
    let text = "* @admin\n[README Owners]\nREADME.md @user1 @user2\ninternal/README.md @user4\n\
                [README other owners]\nREADME.md @user3\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(owners(&file, "README.md"), ["@admin", "@user1", "@user2", "@user3"]);
    assert_eq!(owners(&file, "internal/README.md"), ["@admin", "@user4", "@user3"]);
    assert_eq!(file.owned("internal/README.md").lines, [1, 4, 6]);
}

#[test]
fn gitlab_sections_give_default_owners_and_merge_by_name() {
    let text = "[Docs][2] @docs-team\ndocs/\nREADME.md @me\n^[Database] @db\nmodel/db/\n\
                [DOCS] @late\n*.md\n[Database]\nx.sql\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(file.sections.len(), 3);
    assert_eq!(owners(&file, "docs/a/b.txt"), ["@docs-team"]);
    assert_eq!(owners(&file, "docs/a.md"), ["@late"]);
    // The section has a heading without `^`, so the section is not optional.
    assert!(!file.sections[2].optional);
    assert_eq!(owners(&file, "x.sql"), [""; 0]);
    assert_eq!(file.owned("x.sql").lines, [9]);
}

#[test]
fn gitlab_gives_default_owners_only_to_a_pattern_alone() {
    let text = "[Docs] @docs-team\nplain \ncomment # our docs\nmalformed docs-team\nown @me\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(owners(&file, "plain"), ["@docs-team"]);
    for path in ["comment", "malformed"] {
        assert_eq!(owners(&file, path), [""; 0], "{path}");
    }
    assert_eq!(owners(&file, "own"), ["@me"]);
    assert_eq!(
        warnings(&file),
        [
            "Line 3: GitLab has no comments after a rule: owners in the comment count",
            "Line 4: `docs-team` is not an owner: it is skipped",
        ]
    );
}

#[test]
fn gitlab_reads_a_heading_whatever_follows_it() {
    let text = "[Sec][1] @a # why @b\nx\n[Name]y @d\nx\n[Third]@e\nx\n[0-9]*.rs @f\nx\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(file.sections.len(), 5);
    // Section names ignore case, so these headings do not add sections.
    let again = read(&format!("{text}[SEC]\n[NAME]\n[THIRD]\n[0-9]\n"), Dialect::Gitlab);
    assert_eq!(again.sections.len(), 5);
    assert_eq!(owners(&file, "x"), ["@a", "@d", "@e"]);
    assert_eq!(
        warnings(&file),
        [
            "Line 3: read as a section heading, as GitLab does",
            "Line 3: `y` is not an owner: it is skipped",
            "Line 5: read as a section heading, as GitLab does",
            "Line 7: read as a section heading, as GitLab does",
        ]
    );
}

#[test]
fn gitlab_asks_optional_sections_last() {
    let text = "^[Optional]\n* @maybe\n[Must]\n*.go @must\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(owners(&file, "a.go"), ["@must", "@maybe"]);
}

#[test]
fn gitlab_excludes_for_good_within_a_section() {
    let text = "* @default\n!*.rb\n/special/*.rb @ruby\n[Ruby]\n*.rb @ruby-team\n!/config/**/*.rb\n\
                /config/routes.rb @ops\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(owners(&file, "special/a.rb"), ["@ruby-team"]);
    assert_eq!(owners(&file, "config/routes.rb"), [""; 0]);
    assert_eq!(owners(&file, "config/a.yml"), ["@default"]);
}

#[test]
fn gitlab_patterns_are_those_of_fnmatch() {
    let matches = |text: &str, path: &str| Pattern::compile(text, Dialect::Gitlab).matches(path);
    for (text, path, expected) in [
        ("*", "a/.b", true),
        ("README.md", "a/b/README.md", true),
        ("internal/README.md", "docs/internal/README.md", true),
        ("/docs/README.md", "x/docs/README.md", false),
        ("docs", "docs/a", false),
        ("docs/", "x/docs/a/b", true),
        ("/docs/", "x/docs/a", false),
        ("/docs/*", "docs/a", true),
        ("/docs/*", "docs/a/b", false),
        ("/docs/**", "docs/a/b", false),
        ("/docs/**/*.md", "docs/a.md", true),
        ("/docs/**/*.md", "docs/a/b/c.md", true),
        ("/docs/*/README.md", "docs/api/README.md", true),
        ("*.[ch]", "a/b.c", true),
        ("*.[!ch]", "a/b.c", false),
        ("a[", "a[", true),
        ("a{b,c}", "ab", false),
        ("path\\ with\\ spaces/", "path with spaces/a", true),
        ("\\#x", "#x", true),
        ("/[äö]x/", "öx/a", true),
        ("/[!a]x", "äx", true),
        ("/[!ä]x", "äx", false),
        ("/[а-я]", "б", true),
        ("[a-]b", "-b", true),
        ("[a\\]]b", "]b", true),
    ] {
        assert_eq!(matches(text, path), expected, "{text} on {path}");
    }
}

#[test]
fn a_question_mark_matches_one_character_of_any_alphabet() {
    for dialect in [Dialect::Github, Dialect::Gitlab] {
        let matches = |text: &str, path: &str| Pattern::compile(text, dialect).matches(path);
        for name in ["docs", "döcs", "d本cs", "d🦀cs"] {
            assert!(matches("/d?cs/", &format!("{name}/x")), "{name}");
        }
        assert!(matches("/r?sum?.txt", "résumé.txt"));
        assert!(!matches("/d??cs/", "döcs/x"));
    }
}

#[test]
fn gitlab_tells_of_what_it_reads_otherwise() {
    let text = "[Broken\ndocs/ @docs\n/path/* @group plain @user\n!a @x\nb @x # mail @y now\n[Zero][0] @z\n";
    let file = read(text, Dialect::Gitlab);
    assert_eq!(
        warnings(&file),
        [
            "Line 1: not a section heading: read as a rule",
            "Line 3: `plain` is not an owner: it is skipped",
            "Line 4: an exclusion has no owners: they are ignored",
            "Line 5: GitLab has no comments after a rule: owners in the comment count",
            "Line 6: a section requires at least one approval: 1 is assumed",
        ]
    );
    assert_eq!(owners(&file, "path/z"), ["@group", "@user"]);
    assert_eq!(owners(&file, "b"), ["@x", "@y"]);
}

#[test]
fn the_dialect_is_told_by_sections_and_exclusions() {
    let dialect = |text: &str| parse(text.as_bytes(), None).expect("read").dialect;
    assert_eq!(dialect("* @a\n/[param]/x @b\n"), Dialect::Github);
    assert_eq!(dialect("* @a\n[Docs]\nx @b\n"), Dialect::Gitlab);
    assert_eq!(dialect("* @a\n[Docs] @b # why\n"), Dialect::Gitlab);
    assert_eq!(dialect("[slug].tsx @a\n[0-9]*.rs @b\n"), Dialect::Github);
    assert_eq!(dialect("* @a\n!x\n"), Dialect::Gitlab);
    assert_eq!(dialect("* @@maintainers\n"), Dialect::Gitlab);
}

#[test]
fn hosts_read_places_in_an_order_of_their_own() {
    let order = |host: Option<Dialect>| {
        let mut places =
            ["docs/CODEOWNERS", "CODEOWNERS", ".gitlab/CODEOWNERS", ".github/CODEOWNERS"];
        places.sort_by_key(|path| rank(path, host));
        places.map(|path| path.split('/').next().unwrap_or_default())
    };
    assert_eq!(order(Some(Dialect::Github)), [".github", "CODEOWNERS", "docs", ".gitlab"]);
    assert_eq!(order(Some(Dialect::Gitlab)), ["CODEOWNERS", "docs", ".gitlab", ".github"]);
    assert_eq!(said_by_place("x/.gitlab/CODEOWNERS"), Some(Dialect::Gitlab));
    assert_eq!(said_by_place("docs/CODEOWNERS"), None);
}

#[test]
fn rules_that_do_nothing_are_told() {
    let file = read("* @a\n/gone/ @b\n*.rs @c\n*.rs @d\n/src/ @e\n", Dialect::Github);
    let mut tally = PathCounts::default();
    tally.count(&file, ["src/a.rs", "README"]);
    tally.count(&file, ["build.rs"]);
    let told: Vec<String> = tally.warnings(&file).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["Line 2: `/gone/` matches no path", "Line 3: `*.rs` is hidden by later rules"]
    );
    assert_eq!((tally.paths, tally.unowned), (3, 0));
    let excluded = read("[S] @d\n!*.rb\n*.rb\n", Dialect::Gitlab);
    let mut tally = PathCounts::default();
    tally.count(&excluded, ["a.rb"]);
    let told: Vec<String> = tally.warnings(&excluded).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["Line 3: `*.rb` is hidden by exclusions or later rules"]);
    let sure = tally::hidden_for_sure(&read("a @x\n* @y\na @z\nb @z\na @z\n", Dialect::Github));
    let sure: Vec<String> = sure.iter().map(ToString::to_string).collect();
    assert_eq!(sure, ["Line 1: `a` is hidden by line 2", "Line 3: `a` is hidden by line 5"]);
}

#[test]
fn paths_without_owners_are_counted() {
    let file = read("* @a\n/free/\n[S]\n!x\nx @s\n/free/y @s\n", Dialect::Gitlab);
    let mut tally = PathCounts::default();
    tally.count(&file, ["free/y", "free/z", "x", "free/x"]);
    assert_eq!((tally.paths, tally.unowned), (4, 2));
    assert_eq!(PathCounts::default().warnings(&file).len(), 5);
}

#[test]
fn files_that_are_none_are_refused() {
    assert_eq!(parse(b"* @a\xff", None).err(), Some(ParseError::NotText));
    let many = "a\n".repeat(20_001);
    assert_eq!(parse(many.as_bytes(), None).err(), Some(ParseError::TooManyRules));
    let long = read(&format!("{} @a\n", "x".repeat(1025)), Dialect::Github);
    assert_eq!(warnings(&long), ["Line 1: skipped: a pattern has 1 to 1,024 bytes"]);
    let marked = parse(b"\xef\xbb\xbf* @a\r\n", None).expect("read");
    assert_eq!(owners(&marked, "x"), ["@a"]);
}

#[test]
fn no_pattern_takes_long() {
    let path = format!("{}{}", "a/".repeat(1000), "a".repeat(2000));
    let begun = std::time::Instant::now();
    for text in ["a*".repeat(500) + "b", "**/a*/".repeat(160) + "b", "*".repeat(1000) + "b"] {
        for dialect in [Dialect::Github, Dialect::Gitlab] {
            assert!(!Pattern::compile(&text, dialect).matches(&path));
        }
    }
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

/// Matches with another implementation, which compiles globs to regular expressions.
fn by_globset(pattern: &Pattern, path: &str) -> bool {
    pattern.globs.iter().any(|glob| {
        let glob =
            globset::GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
        glob.expect("a glob").compile_matcher().is_match(path)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn matching_agrees_with_another_implementation(
        text in "/?([ab.]|\\*|\\?|\\*\\*/|/){1,8}/?",
        path in "[ab.]{1,2}(/[ab.]{1,2}){0,4}",
    ) {
        for dialect in [Dialect::Github, Dialect::Gitlab] {
            let pattern = Pattern::compile(&text, dialect);
            prop_assert_eq!(pattern.matches(&path), by_globset(&pattern, &path), "{:?}", pattern);
        }
    }

    #[test]
    fn letters_outside_ascii_match_as_others_do(
        text in "/?([ab.]|\\*|\\?|\\[!?ab\\]|\\*\\*/|/){1,8}/?",
        path in "[ab.]{1,2}(/[ab.]{1,2}){0,4}",
    ) {
        let foreign = |text: &str| text.replace('a', "ä").replace('b', "🦀");
        for dialect in [Dialect::Github, Dialect::Gitlab] {
            let pattern = Pattern::compile(&foreign(&text), dialect);
            let expected = Pattern::compile(&text, dialect).matches(&path);
            prop_assert_eq!(pattern.matches(&foreign(&path)), expected, "{:?}", pattern);
        }
    }

    #[test]
    fn nothing_panics(text in "(?s).{0,200}", path in ".{0,40}") {
        for dialect in [None, Some(Dialect::Github), Some(Dialect::Gitlab)] {
            if let Ok(file) = parse(text.as_bytes(), dialect) {
                let owned = file.owned(&path);
                let mut tally = PathCounts::default();
                tally.count(&file, [path.as_str()]);
                prop_assert_eq!(tally.unowned == 1, owned.owners.is_empty());
            }
        }
    }
}

/// Returns sections with one rule each. The names of one half differ from those of the other only
/// in case.
fn sections(count: usize) -> String {
    let section = |n: usize| format!("[Team {n}] @default\n/{n}/\n[TEAM {n}]\n/{n}/x @x\n");
    (0..count).map(section).collect()
}

#[test]
fn sections_are_counted_by_name_and_a_file_of_too_many_is_refused() {
    let most = sections(999);
    let file = read(&most, Dialect::Gitlab);
    assert_eq!((file.sections.len(), file.rule_count()), (1_000, 1_998));
    assert_eq!(owners(&file, "998/x"), ["@x"]);
    let refused = parse(sections(1_000).as_bytes(), None).err();
    assert_eq!(refused, Some(ParseError::TooManySections));
    assert!(ParseError::TooManySections.code_and_fix().1.contains("1,000 sections"));
}

#[test]
fn a_heading_with_many_owners_is_not_copied_into_each_rule() {
    let heading = format!("[Team]{}\n", " @an-owner".repeat(600));
    let file = read(&(heading + &"/a\n".repeat(10_000)), Dialect::Gitlab);
    let rules = &file.sections[1].rules;
    assert_eq!((rules.len(), rules[0].owners.len()), (10_000, 500));
    assert!(rules.iter().all(|rule| rule.owners.as_ptr() == rules[0].owners.as_ptr()));
    assert!(warnings(&file)[0].contains("at most 500 owners"), "{:?}", warnings(&file)[0]);
}
