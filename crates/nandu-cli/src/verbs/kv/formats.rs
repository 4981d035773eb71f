//! The formats that records are imported from and exported to.
//!
//! All of them mark bytes that are no text in the same way: what would be `key` or `value` is called `key_hex` or
//! `value_hex` and holds pairs of hexadecimal digits. In CSV and TSV that goes for a whole column, in JSON lines for each
//! record. So nothing that is text has to be escaped, and everything is read back as it was.

use std::path::Path;

use clap::ValueEnum;

/// How records stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values, with quotes where needed
    Csv,
    /// One JSON object a line
    Jsonl,
    /// Tab-separated values, without quotes
    Tsv,
}

impl Format {
    /// The format that a file's name ends in.
    pub(super) fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            "tsv" | "tab" => Some(Format::Tsv),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Tsv => "tsv",
        }
    }

    /// Whether bytes can stand in a column of text.
    pub(super) fn takes(self, bytes: &[u8]) -> bool {
        let separates = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r');
        str::from_utf8(bytes).is_ok() && !(self == Format::Tsv && bytes.iter().any(separates))
    }
}

// Names of columns and fields, as export writes them.
pub(super) const KEY: &str = "key";
pub(super) const KEY_HEX: &str = "key_hex";
pub(super) const VALUE: &str = "value";
pub(super) const VALUE_HEX: &str = "value_hex";
