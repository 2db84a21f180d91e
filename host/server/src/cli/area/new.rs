//! `assurance area new`: copies the example area `notes` under another name.
//! The example is built and tested with this repository, so the copy builds and
//! passes its test.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::super::CommonOptions;

const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../../../../../guests/notes/Cargo.toml")),
    ("src/lib.rs", include_str!("../../../../../guests/notes/src/lib.rs")),
    ("tests/NAME.rs", include_str!("../../../../../guests/notes/tests/notes.rs")),
];

/// Names that Rust, the host, the example or its imports use for something else.
const RESERVED: &str = "abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self static struct super trait true try type typeof unsafe unsized use virtual \
    where while yield author_id ctx host id list paging sdk Area Body Box Capability Collection \
    Created Ctx Deserialize Document Event Job JobCtx JobResult JsonSchema Lane ListParams \
    NoContent Option Outcome Page Paging Params Patch Path Problem Result Role Scope Serialize \
    Stored String Timestamp Uuid Vec Versioned";

#[derive(Debug, Args)]
pub(in crate::cli) struct AreaNewArgs {
    /// The area's name: a plural in snake_case, such as `licences`.
    name: String,
    /// Folder of the new crate; default: guests/NAME.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl AreaNewArgs {
    pub(super) fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let names = TemplateNames::of(&self.name)?;
        let dir = self.dir.unwrap_or_else(|| PathBuf::from("guests").join(names.kebab()));
        anyhow::ensure!(!dir.exists(), "{} exists; name another --dir", dir.display());
        for (path, text) in FILES {
            let path = dir.join(path.replace("NAME", &names.many));
            let folder = path.parent().context("a file in a folder")?;
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, names.put_into(text)))
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        common.print_values(&[
            ("crate", json!(dir)),
            (
                "next",
                json!(format!("name it in Cargo.toml, then cargo test -p area-{}", names.kebab())),
            ),
        ]);
        Ok(())
    }
}

/// Name of a new area in the forms that its generated code needs: plural and
/// singular.
struct TemplateNames {
    many: String,
    one: String,
}

impl TemplateNames {
    fn of(name: &str) -> anyhow::Result<Self> {
        let snake = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 40
            && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        anyhow::ensure!(snake, "{name:?} is not snake_case; an area is called like `licences`");
        let is_reserved = |name: &str| RESERVED.split(' ').any(|word| word == name);
        anyhow::ensure!(
            !is_reserved(name),
            "{name:?} is reserved in Rust or in areas; use another name, such as `{name}_items`"
        );
        let one = name.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let one = one.or_else(|| name.strip_suffix('s').map(str::to_owned));
        let one = one.filter(|one| !one.is_empty() && !is_reserved(one));
        let one = one.filter(|one| !is_reserved(&pascal(one)));
        let one = one.unwrap_or_else(|| format!("{name}_entry"));
        Ok(Self { many: name.to_owned(), one })
    }

    fn kebab(&self) -> String {
        self.many.replace('_', "-")
    }

    /// Replaces the example's names in one pass, because the new names may
    /// contain them.
    fn put_into(&self, text: &str) -> String {
        let names = [
            ("The newcomer's example: ", String::new()),
            ("area-notes", format!("area-{}", self.kebab())),
            ("notes", self.many.clone()),
            ("Notes", pascal(&self.many)),
            ("note", self.one.clone()),
            ("Note", pascal(&self.one)),
        ];
        let (mut made, mut rest) = (String::new(), text);
        while let Some(letter) = rest.chars().next() {
            let found = names.iter().find_map(|(name, new)| Some((rest.strip_prefix(*name)?, new)));
            if let Some((after, new)) = found {
                made.push_str(new);
                rest = after;
            } else {
                made.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        made
    }
}

fn pascal(snake: &str) -> String {
    let words = snake.split('_').map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_ascii_uppercase().to_string() + letters.as_str()
        })
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_example_is_left_but_its_shape() {
        let names = TemplateNames::of("trust_zones").unwrap();
        for (path, text) in FILES {
            let made = names.put_into(text);
            assert!(!made.to_lowercase().contains("note"), "{path}: {made}");
        }
        let code = names.put_into(FILES[1].1);
        for expected in [
            "Area::new(\"trust_zones\"",
            "struct StoredTrustZone",
            "\"trust_zone.created\"",
            "post(\"create_trust_zone\", \"/v1/workspaces/{workspace_id}/trust_zones\")",
        ] {
            assert!(code.contains(expected), "{expected}: {code}");
        }
        assert!(names.put_into(FILES[0].1).contains("name = \"area-trust-zones\""));
    }

    #[test]
    fn a_name_may_contain_those_of_the_example() {
        let names = TemplateNames::of("release_notes").unwrap();
        let manifest = names.put_into(FILES[0].1);
        assert!(manifest.contains("name = \"area-release-notes\""), "{manifest}");
        let code = names.put_into(FILES[1].1);
        for expected in [
            "Area::new(\"release_notes\"",
            "struct StoredReleaseNote {",
            "event!(ReleaseNoteCreated, \"release_note.created\")",
        ] {
            assert!(code.contains(expected), "{expected}: {code}");
        }
        assert!(names.put_into(FILES[2].1).contains("area_release_notes::area()"));
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for name in ["", "Notes", "9lives", "a-b", "a b", "host", "type"] {
            assert!(TemplateNames::of(name).is_err(), "{name}");
        }
        assert_eq!(TemplateNames::of("evidence").unwrap().one, "evidence_entry");
    }

    #[test]
    fn a_singular_is_a_name_that_the_crate_can_have() {
        let one = |name| TemplateNames::of(name).unwrap().one;
        assert_eq!(one("policies"), "policy");
        for name in ["types", "options", "pages", "job_ctxs", "hosts"] {
            assert_eq!(one(name), format!("{name}_entry"));
        }
    }
}
