//! A command's answer: named values, for people or as JSON.

use serde_json::{Map, Value as Json};

/// How answers are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
}

impl Output {
    /// Prints `name: value` lines, or one JSON object of them.
    pub(super) fn values(self, values: &[(&str, Json)]) {
        if self.json {
            let object: Map<String, Json> =
                values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            println!("{}", Json::Object(object));
            return;
        }
        let width = values.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
        for (name, value) in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            println!("{:width$} {text}", format!("{}:", name.replace('_', " ")));
        }
    }
}
