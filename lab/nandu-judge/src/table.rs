//! Verdicts, and the table of all.

use std::fmt::Write;

use nandu_bench::Heart;

use crate::measure::{Judge, JudgeError, Value};
use crate::promises::{Case, Gate, Promise, Promises};

/// How a number stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps to it.
    Met,
    /// It does not.
    Missed,
    /// The heart has not got so far.
    NotBuilt,
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
            Verdict::NotBuilt => "not built",
            Verdict::FullOnly => "full form only",
            Verdict::NotMeasured => "NOT MEASURED",
        }
    }
}

/// A case of a promise on the hearts that were asked for.
#[derive(Clone, Debug)]
pub struct Row<'p> {
    promise: &'p Promise,
    case: &'p Case,
    /// In the order of [`Heart::ALL`]; `None` if it was not asked for.
    values: [Option<Value>; 2],
}

impl Row<'_> {
    /// What came of it on a heart that was asked for.
    pub fn value(&self, heart: Heart) -> Option<Value> {
        self.values[heart as usize]
    }

    /// How that stands to the limit.
    pub fn verdict(&self, heart: Heart) -> Option<Verdict> {
        Some(match self.value(heart)? {
            Value::Measured(number) if self.promise.direction.is_met(number, self.case.limit) => Verdict::Met,
            Value::Measured(_) => Verdict::Missed,
            Value::NotBuilt => Verdict::NotBuilt,
            Value::FullOnly => Verdict::FullOnly,
            Value::Missing => Verdict::NotMeasured,
        })
    }

    /// Why the command has to fail, if it has to: nobody measured it, or the new heart misses what it must have.
    pub fn failure(&self) -> Option<String> {
        let name = [self.promise.id.as_str(), self.case.case.as_str()].join(" ");
        let missing = Heart::ALL.into_iter().find(|&heart| self.verdict(heart) == Some(Verdict::NotMeasured));
        if let Some(heart) = missing {
            return Some(format!("{} is not measured on the {heart} heart", name.trim_end()));
        }
        let is_held = self.promise.gate == Some(Gate::New) && self.verdict(Heart::New) == Some(Verdict::Missed);
        is_held.then(|| format!("the new heart misses {}", name.trim_end()))
    }

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        let number = |heart| match self.value(heart) {
            Some(Value::Measured(number)) => serde_json::json!(rounded(number)),
            _ => serde_json::Value::Null,
        };
        let verdict = |heart| self.verdict(heart).map(Verdict::name);
        serde_json::json!({
            "promise": self.promise.id,
            "case": self.case.case,
            "unit": self.promise.unit,
            "sign": self.promise.direction.sign(),
            "limit": self.case.limit,
            "aim": self.case.aim,
            "old": number(Heart::Old),
            "old_verdict": verdict(Heart::Old),
            "new": number(Heart::New),
            "new_verdict": verdict(Heart::New),
        })
        .to_string()
    }

    fn columns(&self) -> [String; 6] {
        let (sign, case) = (self.promise.direction.sign(), self.case);
        let aim = case.aim.map(|aim| format!(" (aim {aim})")).unwrap_or_default();
        let value = |heart| match self.value(heart) {
            Some(Value::Measured(number)) if number.is_infinite() => "refused".to_owned(),
            Some(Value::Measured(number)) => rounded(number).to_string(),
            Some(_) => "-".to_owned(),
            None => String::new(),
        };
        let verdicts: Vec<&str> =
            Heart::ALL.into_iter().filter_map(|heart| self.verdict(heart)).map(Verdict::name).collect();
        [
            self.promise.id.clone(),
            case.case.clone(),
            format!("{sign} {} {}{aim}", case.limit, self.promise.unit),
            value(Heart::Old),
            value(Heart::New),
            verdicts.join(", "),
        ]
    }
}

/// Four digits, or three decimals.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Measures every case of every promise on these hearts.
///
/// # Errors
///
/// [`JudgeError`].
pub fn rows<'p>(judge: &Judge, promises: &'p Promises, hearts: &[Heart]) -> Result<Vec<Row<'p>>, JudgeError> {
    let mut rows = Vec::new();
    for promise in &promises.all {
        let mut values = [const { Vec::new() }; 2];
        for &heart in hearts {
            values[heart as usize] = judge.measure(promise, heart)?;
        }
        rows.extend(promise.limits.iter().enumerate().map(|(nth, case)| {
            let values = [values[0].get(nth).copied(), values[1].get(nth).copied()];
            Row { promise, case, values }
        }));
    }
    Ok(rows)
}

/// All rows with a line of heads, and how many were met.
pub fn table(rows: &[Row<'_>]) -> String {
    let head = ["promise", "case", "limit", "old heart", "new heart", "verdict"].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(Row::columns)).collect();
    let mut text = String::new();
    for line in &lines {
        let mut padded = String::new();
        for (column, word) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let is_number = (3..5).contains(&column);
            let _ = if is_number { write!(padded, "{word:>width$}  ") } else { write!(padded, "{word:<width$}  ") };
        }
        let _ = writeln!(text, "{}", padded.trim_end());
    }
    for heart in Heart::ALL {
        let verdicts: Vec<Verdict> = rows.iter().filter_map(|row| row.verdict(heart)).collect();
        if verdicts.is_empty() {
            continue;
        }
        let of = |verdict| verdicts.iter().filter(|&&it| it == verdict).count();
        let _ = write!(text, "{heart} heart:");
        let named = [Verdict::Met, Verdict::Missed, Verdict::NotBuilt, Verdict::FullOnly, Verdict::NotMeasured];
        let counts = named.map(|verdict| (of(verdict), verdict.name()));
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!(" {count} {name}")).collect();
        let _ = writeln!(text, "{}", counts.join(","));
    }
    text
}
