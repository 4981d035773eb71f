//! Verdicts, and the table of all.

use std::fmt::Write;

use crate::measure::{Judge, JudgeError, Value};
use crate::promises::{Case, Promise, Promises};

/// How a number stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps to it.
    Met,
    /// It does not.
    Missed,
    /// The short form does not measure it.
    FullOnly,
    /// There is no number: an error.
    NotMeasured,
}

impl Verdict {
    /// As it stands in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::FullOnly => "full form only",
            Verdict::NotMeasured => "NOT MEASURED",
        }
    }
}

/// A case of a promise, and what came of it.
#[derive(Clone, Debug)]
pub struct Row<'p> {
    promise: &'p Promise,
    case: &'p Case,
    value: Value,
}

impl Row<'_> {
    /// What came of it.
    pub fn value(&self) -> Value {
        self.value
    }

    /// How that stands to the limit.
    pub fn verdict(&self) -> Verdict {
        match self.value {
            Value::Measured(number) if self.promise.direction.is_met(number, self.case.limit) => Verdict::Met,
            Value::Measured(_) => Verdict::Missed,
            Value::FullOnly => Verdict::FullOnly,
            Value::Missing => Verdict::NotMeasured,
        }
    }

    /// Why the command has to fail, if it has to: nobody measured it, or it is missed and has to be held.
    pub fn failure(&self) -> Option<String> {
        let name = [self.promise.id.as_str(), self.case.case.as_str()].join(" ");
        match self.verdict() {
            Verdict::NotMeasured => Some(format!("{} is not measured", name.trim_end())),
            Verdict::Missed if self.promise.held => Some(format!("{} is missed", name.trim_end())),
            _ => None,
        }
    }

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        let number = match self.value {
            Value::Measured(number) => serde_json::json!(rounded(number)),
            _ => serde_json::Value::Null,
        };
        serde_json::json!({
            "promise": self.promise.id,
            "case": self.case.case,
            "unit": self.promise.unit,
            "sign": self.promise.direction.sign(),
            "limit": self.case.limit,
            "aim": self.case.aim,
            "measured": number,
            "verdict": self.verdict().name(),
        })
        .to_string()
    }

    fn columns(&self) -> [String; 5] {
        let (sign, case) = (self.promise.direction.sign(), self.case);
        let aim = case.aim.map(|aim| format!(" (aim {aim})")).unwrap_or_default();
        let value = match self.value {
            Value::Measured(number) if number.is_infinite() => "refused".to_owned(),
            Value::Measured(number) => rounded(number).to_string(),
            _ => "-".to_owned(),
        };
        [
            self.promise.id.clone(),
            case.case.clone(),
            format!("{sign} {} {}{aim}", case.limit, self.promise.unit),
            value,
            self.verdict().name().to_owned(),
        ]
    }
}

/// Four digits, or three decimals.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Measures every case of every promise.
///
/// # Errors
///
/// [`JudgeError`].
pub fn rows<'p>(judge: &Judge, promises: &'p Promises) -> Result<Vec<Row<'p>>, JudgeError> {
    let mut rows = Vec::new();
    for promise in &promises.all {
        let values = judge.measure(promise)?;
        rows.extend(promise.limits.iter().zip(values).map(|(case, value)| Row { promise, case, value }));
    }
    Ok(rows)
}

/// All rows with a line of heads, and how many were met.
pub fn table(rows: &[Row<'_>]) -> String {
    let head = ["promise", "case", "limit", "measured", "verdict"].map(str::to_owned);
    let lines: Vec<[String; 5]> = std::iter::once(head).chain(rows.iter().map(Row::columns)).collect();
    let mut text = String::new();
    for line in &lines {
        let mut padded = String::new();
        for (column, word) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let is_number = column == 3;
            let _ = if is_number { write!(padded, "{word:>width$}  ") } else { write!(padded, "{word:<width$}  ") };
        }
        let _ = writeln!(text, "{}", padded.trim_end());
    }
    let of = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let named = [Verdict::Met, Verdict::Missed, Verdict::FullOnly, Verdict::NotMeasured];
    let counts = named.map(|verdict| (of(verdict), verdict.name())).into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
    let _ = writeln!(text, "{}", counts.join(", "));
    text
}
