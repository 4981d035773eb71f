//! Numbers as people read them.

/// Bytes, in the largest binary unit that leaves no fraction.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{} {}", count_of(value), UNITS[unit])
}

/// A whole number with its thousands apart.
pub(crate) fn count_of(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, whose name takes an "s" unless there is one.
pub(crate) fn things(count: u64, name: &str) -> String {
    format!("{} {name}{}", count_of(count), if count == 1 { "" } else { "s" })
}

/// Nanoseconds, in the unit that leaves at most three digits before the point.
pub(crate) fn duration_ns(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (size, unit) in UNITS {
        if ns >= size {
            let whole = ns / size;
            let thousandths = ns % size * 1000 / size;
            let fraction = format!("{thousandths:03}");
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{}{point}{fraction} {unit}", count_of(whole));
        }
    }
    format!("{ns} ns")
}

/// A share in percent, to two decimals.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 10_000.0 / whole as f64).round() / 100.0 }
}

/// Shares in percent, to two decimals, that add up to exactly 100, unless there is nothing to share.
pub(crate) fn percents(parts: &[u64]) -> Vec<f64> {
    const WHOLE: u128 = 10_000;
    let total: u128 = parts.iter().map(|&part| u128::from(part)).sum();
    if total == 0 {
        return vec![0.0; parts.len()];
    }
    let mut shares: Vec<u128> = parts.iter().map(|&part| u128::from(part) * WHOLE / total).collect();
    // What rounding down left over goes to those that lost most by it.
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(u128::from(parts[index]) * WHOLE % total));
    let left = WHOLE - shares.iter().sum::<u128>();
    for &index in order.iter().take(left as usize) {
        shares[index] += 1;
    }
    shares.into_iter().map(|share| share as f64 / 100.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_as_people_write_them() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(134_217_728), "128 MiB");
        assert_eq!(bytes(2112), "2,112 B");
        assert_eq!(bytes(135_168), "132 KiB");
        assert_eq!(count_of(1_234_567), "1,234,567");
        assert_eq!(count_of(999), "999");
        assert_eq!((things(1, "page"), things(1024, "page")), ("1 page".into(), "1,024 pages".into()));
        assert_eq!(duration_ns(0), "0 ns");
        assert_eq!(duration_ns(250_000), "250 us");
        assert_eq!(duration_ns(165_600), "165.6 us");
        assert_eq!(duration_ns(2_000_000), "2 ms");
        assert_eq!(duration_ns(5_000_000_000_000), "5,000 s");
    }

    #[test]
    fn shares_add_up_to_a_hundred() {
        assert_eq!(percents(&[1, 1, 1]), [33.34, 33.33, 33.33]);
        assert_eq!(percents(&[1, 0, 99_999]), [0.0, 0.0, 100.0]);
        assert_eq!(percents(&[2, 1_000_000, 2]), [0.0, 100.0, 0.0]);
        assert_eq!(percents(&[0, 0]), [0.0, 0.0]);
        assert_eq!(percents(&[u64::MAX, u64::MAX]), [50.0, 50.0]);
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert_eq!(percent(0, 0), 0.0);
        assert_eq!(percent(20, 1024), 1.95);
    }
}
