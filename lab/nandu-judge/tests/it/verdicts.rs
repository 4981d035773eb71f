//! What the table says of numbers.

use nandu_judge::{Form, Given, Judge, Promises, Row, Value, Verdict, rows, table};

use crate::promises::promise;

/// Promises of scope `code`, whose numbers are given and need no measuring.
fn judged(text: &str, given: &str, form: Form, look: impl Fn(&[Row<'_>])) {
    let promises = Promises::parse(text).unwrap();
    let judge = Judge::new(form, Given::parse(given).unwrap());
    look(&rows(&judge, &promises).unwrap());
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

const LIMITS: &str = "limits = [{ case = \"x\", limit = 10, aim = 8 }, { case = \"y\", limit = 20 }]";

#[test]
fn a_number_at_its_limit_is_met_and_one_beyond_is_missed() {
    let given = "code\tx\t10\ncode\ty\t20.001\n";
    judged(&promise("code", "code", LIMITS), given, Form::Full, |rows| {
        let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
        assert_eq!(verdicts, [Verdict::Met, Verdict::Missed]);
        assert_eq!(rows[0].value(), Value::Measured(10.0));
        let text = table(rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(words(lines[0]), "promise case limit measured verdict");
        assert_eq!(words(lines[1]), "code x <= 10 programs (aim 8) 10 met");
        assert_eq!(lines[3..], ["1 met, 1 missed"]);
        let json = rows[1].to_json();
        assert!(json.contains("\"measured\":20.001") && json.contains("\"verdict\":\"missed\""), "{json}");
    });
}

#[test]
fn at_least_is_the_other_way_round() {
    let text = promise("code", "code", LIMITS).replace("at most", "at least");
    judged(&text, "code\tx\t9.9\ncode\ty\t20\n", Form::Full, |rows| {
        let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
        assert_eq!(verdicts, [Verdict::Missed, Verdict::Met]);
    });
}

#[test]
fn a_promise_without_a_measurement_fails() {
    judged(&promise("code", "code", LIMITS), "code\tx\t10\n", Form::Full, |rows| {
        assert_eq!(rows[1].verdict(), Verdict::NotMeasured);
        assert_eq!(rows[1].failure().unwrap(), "code y is not measured");
    });
    judged(&promise("nobodys", "store", LIMITS), "", Form::Short, |rows| {
        assert_eq!(rows[0].failure().unwrap(), "nobodys x is not measured");
    });
}

#[test]
fn what_takes_long_is_named_in_the_short_form() {
    let text = promise("code", "code", LIMITS).replace("short = true", "short = false");
    judged(&text, "", Form::Short, |rows| {
        assert!(rows.iter().all(|row| row.verdict() == Verdict::FullOnly && row.failure().is_none()));
    });
}

#[test]
fn a_miss_fails_where_a_promise_is_held_and_is_told_elsewhere() {
    let given = "code\tx\t11\ncode\ty\t20\n";
    judged(&promise("code", "code", &format!("held = true\n{LIMITS}")), given, Form::Full, |rows| {
        assert_eq!(rows[0].failure().unwrap(), "code x is missed");
        assert_eq!(rows[1].failure(), None);
    });
    judged(&promise("code", "code", LIMITS), given, Form::Full, |rows| {
        assert_eq!(rows[0].verdict(), Verdict::Missed);
        assert_eq!(rows[0].failure(), None);
    });
}

#[test]
fn lines_that_are_no_numbers_are_refused() {
    for line in ["code\tx", "code\tx\told\t1", "code\tx\tmany", "code\tx\tNaN", "code x 1"] {
        assert!(Given::parse(line).unwrap_err().to_string().contains(line), "{line}");
    }
}
