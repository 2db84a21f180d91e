//! Checks whether one JSON Schema accepts every value that another accepts.
//!
//! Both schemas are split into alternatives with one type each. A schema fits
//! into another if each of its alternatives fits into one of the other's.
//! Keywords that cannot be compared (`not`, `if`, …) fit only if they are
//! identical. This can report a false difference, which an operator can
//! override, but never misses a real one.

mod alternatives;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Map, Value as Json};

use super::super::schema::{close, compile};
use super::super::walk::below;
use alternatives::{MAX_DEPTH, SingleTypeSchema, resolved, same_kind, split, strip};

/// Clients or areas that rely on the live schema: those that send values, or
/// those that receive them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SchemaUser {
    /// Clients that send values: a value that is valid today must stay valid.
    Writers,
    /// Clients that receive values: the new schema must not allow values that
    /// the live one forbids.
    Readers,
}

/// A location at which the candidate's schema is incompatible with the live
/// schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SchemaMismatch {
    pub(super) pointer: String,
    pub(super) what: String,
}

/// Number of bytes of both schemas that count as one step of their comparison.
const BYTES_PER_STEP: usize = 256;
/// Number of steps that compiling [`BYTES_PER_STEP`] bytes of a schema takes.
const STEPS_PER_VALIDATOR: usize = 32;

const ANYTHING: &Json = &Json::Bool(true);
const LOWER: [&str; 5] = ["minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum"];
const UPPER: [&str; 5] = ["maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum"];
/// JSON Schema keywords that are compatible only if their values are identical.
const EXACT: [&str; 4] = ["pattern", "format", "multipleOf", "uniqueItems"];

/// Returns the locations at which the candidate's schema breaks those who rely
/// on the live schema. If `steps` run out, the schemas count as different.
pub(super) fn mismatches(
    side: SchemaUser,
    live: &Json,
    candidate: &Json,
    steps: &mut usize,
) -> Vec<SchemaMismatch> {
    if live == candidate {
        return Vec::new();
    }
    let weight = 1 + (live.to_string().len() + candidate.to_string().len()) / BYTES_PER_STEP;
    let mut walk = SchemaComparison {
        side,
        live,
        candidate,
        under_way: BTreeSet::new(),
        depth: 0,
        steps,
        weight,
    };
    // Writers: values valid before must stay valid. Readers: values valid now
    // must have been valid before.
    let found = match side {
        SchemaUser::Writers => walk.fit("", live, candidate),
        SchemaUser::Readers => walk.fit("", candidate, live),
    };
    if *walk.steps == 0 {
        return vec![mismatch("", "is too large to be compared with what it was")];
    }
    found
}

/// State of comparing two schemas, with the root schemas in which references
/// are resolved.
struct SchemaComparison<'s, 'w> {
    side: SchemaUser,
    live: &'s Json,
    candidate: &'s Json,
    /// Addresses of the pairs of schemas that are being compared, with
    /// references resolved. A pair that occurs again within itself is not
    /// compared again, so recursive schemas terminate.
    under_way: BTreeSet<(*const Json, *const Json)>,
    depth: usize,
    /// Remaining steps of the comparison; 0 ends it.
    steps: &'w mut usize,
    /// Size of both schemas, as a number of steps of the comparison.
    weight: usize,
}

impl<'s> SchemaComparison<'s, '_> {
    /// Takes steps from the budget of the comparison; returns false if none are
    /// left.
    fn spend(&mut self, steps: usize) -> bool {
        *self.steps = self.steps.saturating_sub(steps);
        *self.steps > 0
    }

    fn sub_root(&self) -> &'s Json {
        if self.side == SchemaUser::Writers { self.live } else { self.candidate }
    }

    fn super_root(&self) -> &'s Json {
        if self.side == SchemaUser::Writers { self.candidate } else { self.live }
    }

    /// Returns the locations at which `sup` rejects values that `sub` accepts.
    fn fit(&mut self, at: &str, sub: &'s Json, sup: &'s Json) -> Vec<SchemaMismatch> {
        if !self.spend(1) {
            return vec![mismatch(at, "is too large to be compared")];
        }
        if sup == ANYTHING {
            return Vec::new();
        }
        if self.depth >= MAX_DEPTH {
            return vec![mismatch(at, "is nested too deep to be compared")];
        }
        let of = |root, schema| std::ptr::from_ref(resolved(root, schema));
        let pair = (of(self.sub_root(), sub), of(self.super_root(), sup));
        if !self.under_way.insert(pair) {
            return Vec::new();
        }
        self.depth += 1;
        let found = self.fit_resolved(at, sub, sup);
        self.depth -= 1;
        self.under_way.remove(&pair);
        found
    }

    fn fit_resolved(&mut self, at: &str, sub: &'s Json, sup: &'s Json) -> Vec<SchemaMismatch> {
        let mut alternatives = Vec::new();
        let mut possible = Vec::new();
        let (sub_root, super_root) = (self.sub_root(), self.super_root());
        let taken_apart = split(sub_root, sub, &mut alternatives, 0, self.steps)
            .and_then(|()| split(super_root, sup, &mut possible, 0, self.steps));
        if let Err(keyword) = taken_apart {
            let same = self.spend(self.weight) && self.is_the_same(sub, sup);
            return if same { Vec::new() } else { vec![self.incomparable(at, &keyword)] };
        }
        alternatives.iter().flat_map(|one| self.fit_into_one_of(at, one, &possible)).collect()
    }

    /// Returns whether both schemas and everything they refer to are written
    /// identically, except for annotations.
    fn is_the_same(&self, sub: &Json, sup: &Json) -> bool {
        let definitions = |root: &Json| strip(&root["$defs"]);
        let alike = strip(sub) == strip(sup);
        alike
            && (!sub.to_string().contains("\"$ref\"")
                || definitions(self.sub_root()) == definitions(self.super_root()))
    }

    /// Compares one alternative with the `possible` alternatives of the other
    /// schema. Returns no mismatch if it fits into one of them; otherwise the
    /// mismatches with the closest one.
    fn fit_into_one_of(
        &mut self,
        at: &str,
        sub: &SingleTypeSchema<'s>,
        possible: &[SingleTypeSchema<'s>],
    ) -> Vec<SchemaMismatch> {
        let mut nearest: Option<Vec<SchemaMismatch>> = None;
        for sup in possible.iter().filter(|sup| same_kind(sub.kind, sup.kind)) {
            if !self.spend(1) {
                break;
            }
            let found = self.fit_alternative(at, sub, sup);
            if found.is_empty() {
                return found;
            }
            if nearest.as_ref().is_none_or(|known| found.len() < known.len()) {
                nearest = Some(found);
            }
        }
        nearest.unwrap_or_else(|| vec![self.other_type(at, sub)])
    }

    fn fit_alternative(
        &mut self,
        at: &str,
        sub: &SingleTypeSchema<'s>,
        sup: &SingleTypeSchema<'s>,
    ) -> Vec<SchemaMismatch> {
        if let Some(found) = self.fit_values(at, sub, sup) {
            return found;
        }
        let mut found = self.fit_bounds(at, sub.members, sup.members);
        found.extend(self.fit_items(at, sub.members, sup.members));
        if matches!(sub.kind, None | Some("object")) {
            found.extend(self.fit_members(at, sub.members, sup.members));
        }
        found
    }

    /// Compares the lists of allowed values of two alternatives; `None` if
    /// neither lists values.
    fn fit_values(
        &mut self,
        at: &str,
        sub: &SingleTypeSchema<'_>,
        sup: &SingleTypeSchema<'_>,
    ) -> Option<Vec<SchemaMismatch>> {
        match (&sub.values, &sup.values) {
            (None, None) => None,
            (None, Some(_)) => Some(vec![mismatch(
                at,
                self.say("accepts only some values now", "may have other values now"),
            )]),
            (Some(values), None) => {
                let Some(valid) = self.validator(sup.members) else {
                    return Some(vec![self.incomparable(at, "enum")]);
                };
                Some(self.unless(at, values, |value| valid.is_valid(value)))
            }
            (Some(values), Some(known)) => {
                if !self.spend(values.len().saturating_mul(known.len()) / BYTES_PER_STEP) {
                    return Some(vec![mismatch(at, "is too large to be compared")]);
                }
                Some(self.unless(at, values, |value| known.contains(&value)))
            }
        }
    }

    /// Returns a mismatch for each listed value for which `is_valid` returns
    /// false.
    fn unless(
        &self,
        at: &str,
        values: &[&Json],
        is_valid: impl Fn(&Json) -> bool,
    ) -> Vec<SchemaMismatch> {
        let new = values.iter().filter(|value| !is_valid(value));
        let said = new.map(|value| {
            let less = format!("does not accept {value} any more");
            mismatch(at, self.say(&less, &format!("may be {value} now")))
        });
        said.collect()
    }

    /// Compiles an alternative of the schema `sup` into a validator, as the
    /// host compiles it; `None` if that fails or no steps are left.
    fn validator(&mut self, members: &Map<String, Json>) -> Option<Validator> {
        if !self.spend(self.weight.saturating_mul(STEPS_PER_VALIDATOR)) {
            return None;
        }
        let mut schema = members.clone();
        for definitions in ["$defs", "definitions"] {
            if let Some(found) = self.super_root().get(definitions) {
                schema.insert(definitions.to_owned(), found.clone());
            }
        }
        let mut schema = Json::Object(schema);
        if self.side == SchemaUser::Writers {
            close(&mut schema);
        }
        compile(&schema).ok()
    }

    fn fit_bounds(
        &self,
        at: &str,
        sub: &Map<String, Json>,
        sup: &Map<String, Json>,
    ) -> Vec<SchemaMismatch> {
        let number =
            |schema: &Map<String, Json>, keyword| schema.get(keyword).and_then(Json::as_f64);
        let mut found = Vec::new();
        let mut tell = |keyword: &str| found.push(self.bound(at, keyword, sub, sup));
        for keyword in LOWER {
            let floor = if keyword.contains("imum") { f64::NEG_INFINITY } else { 0.0 };
            if number(sub, keyword).unwrap_or(floor) < number(sup, keyword).unwrap_or(floor) {
                tell(keyword);
            }
        }
        for keyword in UPPER {
            let top = f64::INFINITY;
            if number(sub, keyword).unwrap_or(top) > number(sup, keyword).unwrap_or(top) {
                tell(keyword);
            }
        }
        for keyword in EXACT {
            let demanded = sup.get(keyword).filter(|value| **value != Json::Bool(false));
            if demanded.is_some() && demanded != sub.get(keyword) {
                tell(keyword);
            }
        }
        found
    }

    fn fit_items(
        &mut self,
        at: &str,
        sub: &'s Map<String, Json>,
        sup: &'s Map<String, Json>,
    ) -> Vec<SchemaMismatch> {
        let mut found = Vec::new();
        if let Some(items) = sup.get("items") {
            let sub_items = sub.get("items").unwrap_or(ANYTHING);
            found.extend(self.fit(&format!("{at}/*"), sub_items, items));
        }
        found.extend(self.fit_prefix_items(at, sub, sup));
        found
    }

    /// Compares the items that have schemas of their own by their position.
    fn fit_prefix_items(
        &mut self,
        at: &str,
        sub: &'s Map<String, Json>,
        sup: &'s Map<String, Json>,
    ) -> Vec<SchemaMismatch> {
        let items =
            |schema: &'s Map<String, Json>| schema.get("prefixItems").and_then(Json::as_array);
        match (items(sub), items(sup)) {
            (None, None) => Vec::new(),
            (Some(own), Some(schemas)) if own.len() == schemas.len() => {
                let pairs = own.iter().zip(schemas).enumerate();
                let fit = |(index, (own, schema)): (usize, (&'s Json, &'s Json))| {
                    self.fit(&format!("{at}/{index}"), own, schema)
                };
                pairs.flat_map(fit).collect()
            }
            _ => vec![self.incomparable(at, "prefixItems")],
        }
    }

    fn fit_members(
        &mut self,
        at: &str,
        sub: &'s Map<String, Json>,
        sup: &'s Map<String, Json>,
    ) -> Vec<SchemaMismatch> {
        let mut found = Vec::new();
        for (name, schema) in properties(sup) {
            match property(sub, name) {
                Some(own) => found.extend(self.fit(&below(at, name), own, schema)),
                None if self.side == SchemaUser::Readers => {
                    found.push(mismatch(&below(at, name), "is gone"));
                }
                None => {
                    if let Some(own) = others(sub) {
                        found.extend(self.fit(&below(at, name), own, schema));
                    }
                }
            }
        }
        for (name, own) in properties(sub).filter(|(name, _)| !has_property(sup, name)) {
            match others(sup) {
                Some(schema) => found.extend(self.fit(&below(at, name), own, schema)),
                None if self.side == SchemaUser::Writers => {
                    found.push(mismatch(&below(at, name), "is not accepted any more"));
                }
                None => {}
            }
        }
        let certain: BTreeSet<&str> = required(sub).collect();
        for name in required(sup).filter(|name| !certain.contains(name)) {
            // The missing property has already been reported.
            if self.side == SchemaUser::Writers || has_property(sub, name) {
                let what = self.say("is required now", "is not always there any more");
                found.push(mismatch(&below(at, name), what));
            }
        }
        found.extend(self.fit_other_members(at, sub, sup));
        found
    }

    /// Compares the schemas of object members that are not listed in
    /// `properties`.
    fn fit_other_members(
        &mut self,
        at: &str,
        sub: &'s Map<String, Json>,
        sup: &'s Map<String, Json>,
    ) -> Vec<SchemaMismatch> {
        let at = format!("{at}/*");
        match (others(sub), others(sup)) {
            (Some(own), Some(schema)) => self.fit(&at, own, schema),
            (Some(_), None) if self.side == SchemaUser::Writers => {
                vec![mismatch(&at, "does not accept arbitrary members any more")]
            }
            _ => Vec::new(),
        }
    }

    fn bound(
        &self,
        at: &str,
        keyword: &str,
        sub: &Map<String, Json>,
        sup: &Map<String, Json>,
    ) -> SchemaMismatch {
        let said = |schema: &Map<String, Json>| {
            schema.get(keyword).map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        let (before, now) = match self.side {
            SchemaUser::Writers => (said(sub), said(sup)),
            SchemaUser::Readers => (said(sup), said(sub)),
        };
        mismatch(at, format!("{keyword} is {now} now, and was {before}"))
    }

    fn other_type(&self, at: &str, sub: &SingleTypeSchema<'_>) -> SchemaMismatch {
        let kind = sub.kind.unwrap_or("value of any type");
        mismatch(
            at,
            self.say(
                &format!("does not accept a {kind} any more"),
                &format!("may be a {kind} now"),
            ),
        )
    }

    fn incomparable(&self, at: &str, keyword: &str) -> SchemaMismatch {
        mismatch(at, format!("`{keyword}` is not what it was, and cannot be compared"))
    }

    fn say(&self, to_writers: &str, to_readers: &str) -> String {
        match self.side {
            SchemaUser::Writers => to_writers.to_owned(),
            SchemaUser::Readers => to_readers.to_owned(),
        }
    }
}

fn mismatch(at: &str, what: impl Into<String>) -> SchemaMismatch {
    SchemaMismatch { pointer: at.to_owned(), what: what.into() }
}

fn properties(schema: &Map<String, Json>) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

fn property<'s>(schema: &'s Map<String, Json>, name: &str) -> Option<&'s Json> {
    schema.get("properties")?.get(name)
}

fn has_property(schema: &Map<String, Json>, name: &str) -> bool {
    property(schema, name).is_some()
}

fn required(schema: &Map<String, Json>) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Json::as_array).into_iter().flatten();
    names.filter_map(Json::as_str)
}

/// Returns the schema of object members that are not listed in `properties`;
/// `None` if they are rejected. The host rejects them if the schema lists any
/// members.
fn others(schema: &Map<String, Json>) -> Option<&Json> {
    match schema.get("additionalProperties") {
        Some(others) => Some(others).filter(|others| **others != Json::Bool(false)),
        None => (!schema.contains_key("properties")).then_some(ANYTHING),
    }
}
