//! Records read from a file, one after the other.

use std::io::{self, BufRead, BufReader, Read};

use csv::ByteRecord;
use serde_json::{Map, Value};

use super::columns::{Columns, Wishes};
use super::formats::{Format, KEY, KEY_HEX, VALUE, VALUE_HEX};
use crate::record;

/// A record, or what is wrong with it, and the number of its first line, from 1.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) content: Result<(Vec<u8>, Vec<u8>), Bad>,
}

/// Why a line gives no record.
pub(super) enum Bad {
    /// This line is wrong; others may be right.
    Line(String),
    /// There is nothing to be had from the whole file.
    File(String),
}

/// The records of a file. Takes memory for one of them at a time.
pub(super) enum Lines<'a, R> {
    Table(Table<'a, R>),
    Objects { reader: BufReader<R>, number: u64, wishes: Wishes<'a> },
}

/// The rows of a table.
pub(super) struct Table<'a, R> {
    reader: csv::Reader<R>,
    columns: Option<Columns>,
    /// A row that was read before it is asked for, since it says what the first one is.
    ahead: Option<ByteRecord>,
    wishes: Wishes<'a>,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(super) fn new(file: R, format: Format, wishes: Wishes<'a>) -> Lines<'a, R> {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true);
        match format {
            Format::Csv => {}
            Format::Tsv => {
                builder.delimiter(b'\t').quoting(false);
            }
            Format::Jsonl => return Lines::Objects { reader: BufReader::new(file), number: 0, wishes },
        }
        Lines::Table(Table { reader: builder.from_reader(file), columns: None, ahead: None, wishes })
    }

    /// Whether the first row of a table names its columns; `None` if this is no table, or nothing was read.
    pub(super) fn has_header(&self) -> Option<bool> {
        match self {
            Lines::Table(table) => table.columns.as_ref().map(|columns| columns.is_header),
            Lines::Objects { .. } => None,
        }
    }

    /// The next record; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        match self {
            Lines::Table(table) => table.next(),
            Lines::Objects { reader, number, wishes } => next_object(reader, number, *wishes),
        }
    }
}

impl<R: Read> Table<'_, R> {
    fn read(&mut self) -> io::Result<Option<ByteRecord>> {
        if let Some(row) = self.ahead.take() {
            return Ok(Some(row));
        }
        let mut row = ByteRecord::new();
        Ok(self.reader.read_byte_record(&mut row)?.then_some(row))
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        let Some(mut row) = self.read()? else { return Ok(None) };
        if self.columns.is_none() {
            self.ahead = self.read()?;
            match Columns::find(&row, self.ahead.as_ref(), self.wishes) {
                Ok(found) => {
                    let is_header = found.is_header;
                    self.columns = Some(found);
                    if is_header {
                        match self.read()? {
                            Some(second) => row = second,
                            None => return Ok(None),
                        }
                    }
                }
                Err(why) => return Ok(Some(Line { number: line_of(&row), content: Err(Bad::File(why)) })),
            }
        }
        let content = match &self.columns {
            Some(columns) => columns.pick(&row).map_err(Bad::Line),
            None => return Ok(None),
        };
        Ok(Some(Line { number: line_of(&row), content }))
    }
}

fn line_of(row: &ByteRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

fn next_object<R: Read>(reader: &mut BufReader<R>, number: &mut u64, wishes: Wishes<'_>) -> io::Result<Option<Line>> {
    loop {
        let mut bytes = Vec::new();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        *number += 1;
        let line = bytes.trim_ascii();
        if !line.is_empty() {
            return Ok(Some(Line { number: *number, content: object(line, wishes).map_err(Bad::Line) }));
        }
    }
}

fn object(line: &[u8], wishes: Wishes<'_>) -> Result<(Vec<u8>, Vec<u8>), String> {
    let fields: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        // Each line is parsed alone, so the parser's own line number says nothing.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        format!("no JSON object: {what} at column {}", error.column())
    })?;
    let key = match wishes.key {
        Some(name) => text(name, fields.get(name))?,
        None => text_or_digits(&fields, KEY, KEY_HEX).ok_or("no field 'key'; name one with --key")??,
    };
    let value = match wishes.values {
        [one] => text(one, fields.get(one))?,
        [] => match text_or_digits(&fields, VALUE, VALUE_HEX) {
            Some(value) if wishes.key.is_none() => value?,
            _ => line.to_vec(),
        },
        several => {
            let chosen = several.iter().map(|name| match fields.get(name) {
                Some(value) => Ok((name.clone(), value.clone())),
                None => Err(format!("no field '{name}'")),
            });
            Value::Object(chosen.collect::<Result<Map<_, _>, _>>()?).to_string().into_bytes()
        }
    };
    Ok((key, value))
}

/// The text of a field; what is no text, as JSON.
fn text(name: &str, value: Option<&Value>) -> Result<Vec<u8>, String> {
    match value {
        None => Err(format!("no field '{name}'")),
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(other) => Ok(other.to_string().into_bytes()),
    }
}

fn text_or_digits(fields: &Map<String, Value>, name: &str, name_hex: &str) -> Option<Result<Vec<u8>, String>> {
    if let Some(value) = fields.get(name) {
        return Some(text(name, Some(value)));
    }
    let digits = fields.get(name_hex)?.as_str().and_then(|digits| record::from_digits(digits.as_bytes()));
    Some(digits.ok_or_else(|| format!("field '{name_hex}' is not hexadecimal digits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, format: Format, key: Option<&str>) -> Vec<String> {
        let mut lines = Lines::new(text.as_bytes(), format, Wishes { key, values: &[], header: None });
        let mut found = Vec::new();
        while let Some(Line { number, content }) = lines.next().unwrap() {
            found.push(match content {
                Ok((key, value)) => {
                    format!("{number} {}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
                }
                Err(Bad::Line(why) | Bad::File(why)) => format!("{number} {why}"),
            });
        }
        found
    }

    #[test]
    fn rows_keep_their_line_numbers_over_quoted_line_ends() {
        let text = "key,value\na,\"1\n2\"\nb,\"x\"\"y\"\nc\n";
        let expected = ["2 a=1\n2", "4 b=x\"y", "5 1 field, where the first line has 2"];
        assert_eq!(all(text, Format::Csv, None), expected);
        assert_eq!(all("\"a\tb\n", Format::Tsv, None), ["1 \"a=b"]);
    }

    #[test]
    fn objects_give_fields_or_themselves() {
        let text =
            "{\"key\":\"a\",\"value\":1.5}\n\n{\"key_hex\":\"41\",\"value\":\"x\"}\n{\"key\":\"b\"\n[]\n{\"k\":0}\n";
        let found = all(text, Format::Jsonl, None);
        assert_eq!(found[..2], ["1 a=1.5", "3 A=x"]);
        assert!(found[2].starts_with("4 no JSON object: EOF while parsing an object at column"), "{}", found[2]);
        assert!(found[3].starts_with("5 no JSON object: invalid type: sequence"), "{}", found[3]);
        assert_eq!(found[4], "6 no field 'key'; name one with --key");
        assert_eq!(
            all("{ \"id\": 7, \"value\": 1 }\n", Format::Jsonl, Some("id")),
            ["1 7={ \"id\": 7, \"value\": 1 }"]
        );
    }
}
