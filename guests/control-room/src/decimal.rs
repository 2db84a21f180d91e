//! Exact decimal arithmetic on integers, formatted without an exponent.

/// Formats a decimal number with `places` decimals. `value` is the number in units of 10^-`places`.
pub(crate) fn fixed(value: i64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let (sign, value) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    if places == 0 {
        return format!("{sign}{value}");
    }
    let width = usize::try_from(places).unwrap_or_default();
    format!("{sign}{}.{:0width$}", value / unit, value % unit)
}

/// Returns the quotient as text with `places` decimals, rounded half away from zero; `None` if the
/// divisor is zero.
pub(crate) fn quotient(dividend: i64, divisor: i64, places: u32) -> Option<String> {
    Some(fixed(rounded(i128::from(dividend) * 10_i128.pow(places), i128::from(divisor))?, places))
}

/// Divides and rounds the quotient half away from zero; `None` if the divisor is zero.
fn rounded(dividend: i128, divisor: i128) -> Option<i64> {
    if divisor == 0 {
        return None;
    }
    let half = divisor.abs() / 2 * dividend.signum() * divisor.signum();
    i64::try_from((dividend + half * divisor.signum()) / divisor).ok()
}

/// Formats the mean of `count` durations as hours with four decimals; `None` if there are no
/// durations.
pub(crate) fn hours(total_seconds: i64, count: i64) -> Option<String> {
    quotient(total_seconds, count.checked_mul(3600)?, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_have_no_exponent() {
        assert_eq!(fixed(5, 2), "0.05");
        assert_eq!(fixed(-1234, 2), "-12.34");
        assert_eq!(fixed(7, 0), "7");
        assert_eq!(quotient(2, 3, 4).as_deref(), Some("0.6667"));
        assert_eq!(quotient(-2, 3, 4).as_deref(), Some("-0.6667"));
        assert_eq!(quotient(1, 8, 2).as_deref(), Some("0.13"));
        assert_eq!(quotient(1, 0, 2), None);
        assert_eq!(hours(3 * 129_600, 3).as_deref(), Some("36.0000"));
        assert_eq!(hours(1, 0), None);
    }
}
