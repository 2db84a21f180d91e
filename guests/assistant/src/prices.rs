//! Computes the cost of a run from the operator's price table, in exact decimals.

use std::collections::BTreeMap;

use area_sdk::Scope;
use serde::Deserialize;

/// Name of the operator's setting with the price table.
const SETTING: &str = "model_prices";

/// Maximum number of decimals of a price.
const PRICE_DECIMALS: usize = 9;

/// Number of decimals of a cost: those of a price plus six, because prices are for a million
/// tokens.
const COST_DECIMALS: usize = PRICE_DECIMALS + 6;

/// Prices of a model, in US dollars for a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPrices {
    input: String,
    cached_input: Option<String>,
    output: String,
}

/// Token counts of a request to a model.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct TokenCounts {
    /// Number of input tokens, including cached ones.
    pub(crate) input: u32,
    pub(crate) cached_input: u32,
    pub(crate) output: u32,
}

/// Returns the cost of these tokens in US dollars; `None` if the operator sets no price for the
/// model.
pub(crate) fn cost(scope: &Scope, model: &str, tokens: TokenCounts) -> Option<String> {
    let table = scope.setting(SETTING)?;
    let Ok(table) = serde_json::from_str::<BTreeMap<String, ModelPrices>>(&table) else {
        area_sdk::warn!(
            scope,
            "the setting {SETTING} is not a table of prices: no costs are shown"
        );
        return None;
    };
    let cost = table.get(model)?.of(tokens);
    if cost.is_none() {
        area_sdk::warn!(
            scope,
            "the setting {SETTING} has a price of {model} that is not a decimal"
        );
    }
    cost
}

impl ModelPrices {
    fn of(&self, tokens: TokenCounts) -> Option<String> {
        let input = parse(&self.input)?;
        let cached = self.cached_input.as_deref().map_or(Some(input), parse)?;
        let fresh = tokens.input.saturating_sub(tokens.cached_input);
        let cost = u128::from(fresh) * input
            + u128::from(tokens.cached_input) * cached
            + u128::from(tokens.output) * parse(&self.output)?;
        Some(write(cost))
    }
}

/// Parses a decimal with at most [`PRICE_DECIMALS`] decimals. Returns the number of units of 10^-9.
fn parse(text: &str) -> Option<u128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=9).contains(&whole.len()) && decimals.len() <= PRICE_DECIMALS;
    if !fits || !digits(whole) || !digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<PRICE_DECIMALS$}").parse().ok()
}

/// Formats a cost. `cost` is in units of 10^-15 US dollars.
fn write(cost: u128) -> String {
    let digits = format!("{cost:0>width$}", width = COST_DECIMALS + 1);
    let (whole, decimals) = digits.split_at(digits.len() - COST_DECIMALS);
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: &str, cached_input: Option<&str>, output: &str) -> ModelPrices {
        let cached_input = cached_input.map(ToOwned::to_owned);
        ModelPrices { input: input.to_owned(), cached_input, output: output.to_owned() }
    }

    #[test]
    fn costs_are_exact_decimals_without_exponent() {
        let tokens = TokenCounts { input: 1200, cached_input: 1000, output: 345 };
        let cost = |price: &ModelPrices, tokens| price.of(tokens);
        let priced = price("0.15", Some("0.075"), "0.60");
        assert_eq!(cost(&priced, tokens).as_deref(), Some("0.000312"));
        assert_eq!(cost(&price("0.15", None, "0.60"), tokens).as_deref(), Some("0.000387"));
        let one = TokenCounts { input: 1, cached_input: 0, output: 0 };
        let least = price("0.000000001", None, "0");
        assert_eq!(cost(&least, one).as_deref(), Some("0.000000000000001"));
        let most = TokenCounts { input: u32::MAX, cached_input: 0, output: u32::MAX };
        assert_eq!(cost(&price("1000000", None, "1000000"), most).as_deref(), Some("8589934590"));
        assert_eq!(cost(&priced, TokenCounts::default()).as_deref(), Some("0"));
    }

    #[test]
    fn what_is_no_price_gives_no_cost() {
        for wrong in ["", "1e3", "-1", "0.1234567891", ".5", "1,5", "1.2.3", "ten"] {
            assert_eq!(price(wrong, None, "1").of(TokenCounts::default()), None, "{wrong}");
        }
    }
}
