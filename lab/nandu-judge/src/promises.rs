//! `promises.toml`.

use std::collections::HashSet;

use serde::Deserialize;

/// All promises.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promises {
    /// In the order of the file.
    #[serde(rename = "promise")]
    pub all: Vec<Promise>,
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// One word, by which it is asked for.
    pub id: String,
    /// What is promised.
    pub sentence: String,
    /// The unit of all its numbers.
    pub unit: String,
    /// Which side of a limit is good.
    pub direction: Direction,
    /// Whose promise it is.
    pub scope: Scope,
    /// Whether the short form measures it.
    pub short: bool,
    /// Whether a miss fails the command.
    #[serde(default)]
    pub held: bool,
    /// Its limits.
    pub limits: Vec<Case>,
}

/// A case of a promise.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Which; empty if there is only one.
    pub case: String,
    /// The limit.
    pub limit: f64,
    /// What is hoped for, where that is more.
    #[serde(default)]
    pub aim: Option<f64>,
    /// Whether the full form alone measures it, though the short form measures other cases.
    #[serde(default)]
    pub full_only: bool,
}

/// Which side of a limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Direction {
    /// The limit and below.
    #[serde(rename = "at most")]
    AtMost,
    /// The limit and above.
    #[serde(rename = "at least")]
    AtLeast,
}

impl Direction {
    /// Whether a number keeps to a limit. Numbers have as many decimals as say something, so a millionth beyond is none.
    pub fn is_met(self, value: f64, limit: f64) -> bool {
        match self {
            Direction::AtMost => value <= limit + 1e-6,
            Direction::AtLeast => value >= limit - 1e-6,
        }
    }

    /// As it stands before a limit.
    pub const fn sign(self) -> &'static str {
        match self {
            Direction::AtMost => "<=",
            Direction::AtLeast => ">=",
        }
    }
}

/// Whose promise it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// A store's.
    Store,
    /// A file system's.
    Files,
    /// Of both.
    Both,
    /// Of the sources and of firmware: measured by whoever calls, not here.
    Code,
}

/// Why the file of promises is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PromiseError {
    /// It is no TOML, or not of this shape.
    #[error("promises.toml: {0}")]
    Syntax(String),
    /// Two promises have one id.
    #[error("promises.toml: two promises are called `{0}`")]
    Twice(String),
    /// A promise has no limit, or one case twice.
    #[error("promises.toml: the cases of `{0}` are none, or two are the same")]
    Cases(String),
    /// Nobody promises this.
    #[error("no promise is called `{0}`; there are: {1}")]
    Unknown(String, String),
}

impl Promises {
    /// Reads the text of `promises.toml`.
    ///
    /// # Errors
    ///
    /// [`PromiseError`], but [`PromiseError::Unknown`].
    pub fn parse(text: &str) -> Result<Promises, PromiseError> {
        let promises: Promises = toml::from_str(text).map_err(|error| PromiseError::Syntax(error.to_string()))?;
        let mut ids = HashSet::new();
        for promise in &promises.all {
            if !ids.insert(&promise.id) {
                return Err(PromiseError::Twice(promise.id.clone()));
            }
            let cases: HashSet<&str> = promise.limits.iter().map(|case| case.case.as_str()).collect();
            if cases.is_empty() || cases.len() < promise.limits.len() {
                return Err(PromiseError::Cases(promise.id.clone()));
            }
        }
        Ok(promises)
    }

    /// Those of these ids only, in the order of the file; all of them if no id is given.
    ///
    /// # Errors
    ///
    /// [`PromiseError::Unknown`].
    pub fn only(mut self, ids: &[String]) -> Result<Promises, PromiseError> {
        if let Some(unknown) = ids.iter().find(|id| !self.all.iter().any(|promise| promise.id == **id)) {
            let known: Vec<&str> = self.all.iter().map(|promise| promise.id.as_str()).collect();
            return Err(PromiseError::Unknown(unknown.clone(), known.join(", ")));
        }
        if !ids.is_empty() {
            self.all.retain(|promise| ids.contains(&promise.id));
        }
        Ok(self)
    }
}
