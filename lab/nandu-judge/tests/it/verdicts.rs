//! What the table says of numbers.

use nandu_bench::Heart;
use nandu_judge::{Form, Given, Judge, Promises, Verdict, rows, table};

use crate::promises::promise;

/// Promises of scope `code`, whose numbers are given and need no measuring.
fn judged(text: &str, given: &str, form: Form, look: impl Fn(&[nandu_judge::Row<'_>])) {
    let promises = Promises::parse(text).unwrap();
    let judge = Judge::new(form, Given::parse(given).unwrap());
    look(&rows(&judge, &promises, &Heart::ALL).unwrap());
}

const LIMITS: &str = "limits = [{ case = \"x\", limit = 10, aim = 8 }, { case = \"y\", limit = 20 }]";

#[test]
fn a_number_at_its_limit_is_met_and_one_beyond_is_missed() {
    let given = "code\tx\told\t10\ncode\ty\told\t20.001\n";
    judged(&promise("code", "code", LIMITS), given, Form::Full, |rows| {
        let old: Vec<_> = rows.iter().map(|row| row.verdict(Heart::Old)).collect();
        assert_eq!(old, [Some(Verdict::Met), Some(Verdict::Missed)]);
        assert_eq!(rows[0].verdict(Heart::New), Some(Verdict::NotBuilt));
        // The old heart may miss: the table says so, and no more.
        assert!(rows.iter().all(|row| row.failure().is_none()));
        let text = table(rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
            "promise case limit old heart new heart verdict"
        );
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "code x <= 10 programs (aim 8) 10 - met, not built"
        );
        assert_eq!(lines[3..], ["old heart: 1 met, 1 missed", "new heart: 2 not built"]);
        let json = rows[1].to_json();
        assert!(
            json.contains("\"old\":20.001") && json.contains("\"new\":null") && json.contains("\"missed\""),
            "{json}"
        );
    });
}

#[test]
fn at_least_is_the_other_way_round() {
    let text = promise("code", "code", LIMITS).replace("at most", "at least");
    judged(&text, "code\tx\told\t9.9\ncode\ty\told\t20\n", Form::Full, |rows| {
        let old: Vec<_> = rows.iter().map(|row| row.verdict(Heart::Old)).collect();
        assert_eq!(old, [Some(Verdict::Missed), Some(Verdict::Met)]);
    });
}

#[test]
fn a_promise_without_a_measurement_fails() {
    judged(&promise("code", "code", LIMITS), "code\tx\told\t10\n", Form::Full, |rows| {
        assert_eq!(rows[1].verdict(Heart::Old), Some(Verdict::NotMeasured));
        assert_eq!(rows[1].failure().unwrap(), "code y is not measured on the old heart");
    });
    judged(&promise("nobodys", "store", LIMITS), "", Form::Short, |rows| {
        assert_eq!(rows[0].failure().unwrap(), "nobodys x is not measured on the old heart");
    });
}

#[test]
fn what_takes_long_is_named_in_the_short_form() {
    let text = promise("code", "code", LIMITS).replace("short = true", "short = false");
    judged(&text, "", Form::Short, |rows| {
        assert!(rows.iter().all(|row| row.verdict(Heart::Old) == Some(Verdict::FullOnly) && row.failure().is_none()));
    });
}

#[test]
fn the_new_heart_is_held_to_what_is_gated_and_to_nothing_else() {
    let given = "code\tx\told\t1\ncode\ty\told\t1\ncode\tx\tnew\t11\ncode\ty\tnew\t20\n";
    judged(&promise("code", "code", &format!("gate = \"new\"\n{LIMITS}")), given, Form::Full, |rows| {
        assert_eq!(rows[0].failure().unwrap(), "the new heart misses code x");
        assert_eq!(rows[1].failure(), None);
    });
    judged(&promise("code", "code", LIMITS), given, Form::Full, |rows| {
        assert_eq!(rows[0].verdict(Heart::New), Some(Verdict::Missed));
        assert_eq!(rows[0].failure(), None);
    });
}

#[test]
fn lines_that_are_no_numbers_are_refused() {
    for line in ["code\tx\told", "code\tx\tthird\t1", "code\tx\told\tmany", "code\tx\told\tNaN", "code x old 1"] {
        assert!(Given::parse(line).unwrap_err().to_string().contains(line), "{line}");
    }
}
