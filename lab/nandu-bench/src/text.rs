//! Numbers and names as people read them.

/// A number with as many digits as say something: four after the point below ten, fewer above, none for whole numbers.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 4,
        size if size < 100.0 => 3,
        size if size < 1000.0 => 2,
        _ => 1,
    };
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, part)| (whole, Some(part)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if grouped == "0" && fraction.is_none() { "" } else { sign };
    let fraction = fraction.map(|part| format!(".{part}")).unwrap_or_default();
    format!("{sign}{grouped}{fraction}")
}

/// A share as percent, always with its sign.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent.abs() < 100.0 { 1 } else { 0 };
    let text = format!("{percent:+.decimals$} %");
    if text == "-0.0 %" || text == "+0.0 %" { "0.0 %".to_owned() } else { text }
}

/// A metric's name as words: `reads_per_op` reads `reads per op`.
pub(crate) fn words(metric: &str) -> String {
    metric.replace('_', " ")
}

/// A name as part of an address: what is no letter or digit becomes a hyphen.
pub(crate) fn slug(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let cases = [
            (0.0, "0"),
            (-0.000_01, "0"),
            (1.0, "1"),
            (1.003_92, "1.0039"),
            (-2.5, "-2.5"),
            (12.345_6, "12.346"),
            (2252.0, "2,252"),
            (-1_234_567.89, "-1,234,567.9"),
            (999.999, "1,000"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(
            [percent(0.0123), percent(-0.5), percent(-0.000_01), percent(12.0)],
            ["+1.2 %", "-50.0 %", "0.0 %", "+1200 %"]
        );
    }
}
