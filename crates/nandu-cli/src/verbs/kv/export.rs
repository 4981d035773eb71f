//! `nandu kv export`: all records, to be read back.

use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;

use clap::Args;
use nandu::Direction;

use super::formats::{Format, KEY, KEY_HEX, VALUE, VALUE_HEX};
use super::pieces::{Failed, Value};
use crate::index::{self, IndexArgs};
use crate::output::Output;
use crate::progress::Progress;
use crate::view::{AtArgs, View};

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The image; it stays as it is
    image: PathBuf,
    /// How records are written; --json asks for JSON lines as well
    ///
    /// Bytes that are no text are written as hexadecimal digits: in CSV and TSV the whole column, which is then called
    /// key_hex or value_hex; in JSON lines that record's field, called the same.
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    index: IndexArgs,
}

pub(crate) fn run(args: &Export, out: &mut Output) -> anyhow::Result<()> {
    let format = if out.is_json() { Format::Jsonl } else { args.format };
    index::look(&args.image, args.index, |index| {
        let view = &mut args.at.view(&args.image, index)?;
        let outcome = match format {
            Format::Jsonl => each(view, "exporting", |key, value| write_object(key, value, out)),
            Format::Csv | Format::Tsv => write_columns(view, format, out),
        };
        outcome.map_err(|failed| match failed {
            Failed::Index(error) => index::explain(&args.image, error),
            Failed::Output(error) => error.into(),
        })
    })
}

/// A record as a JSON object on a line.
fn write_object(key: &[u8], value: &mut Value<'_, '_, '_>, out: &mut Output) -> Result<(), Failed> {
    let out = out.writer();
    write!(out, "{{")?;
    Value::Lent(key).write_json(KEY, out)?;
    write!(out, ",")?;
    value.write_json(VALUE, out)?;
    Ok(writeln!(out, "}}")?)
}

/// All records as columns with a header. The store is walked through twice: whether a column is text is known at its end.
fn write_columns(view: &mut View<'_, '_>, format: Format, out: &mut Output) -> Result<(), Failed> {
    let (mut keys_are_text, mut values_are_text) = (true, true);
    each(view, "looking for bytes that are no text", |key, value| {
        keys_are_text &= format.takes(key);
        values_are_text = values_are_text && value.is_text(format)?;
        Ok(())
    })?;
    let out = out.writer();
    let separator = if format == Format::Tsv { "\t" } else { "," };
    let (key, value) = (if keys_are_text { KEY } else { KEY_HEX }, if values_are_text { VALUE } else { VALUE_HEX });
    writeln!(out, "{key}{separator}{value}")?;
    each(view, "exporting", |key, value| {
        Value::Lent(key).write_field(format, keys_are_text, out)?;
        write!(out, "{separator}")?;
        value.write_field(format, values_are_text, out)?;
        Ok(writeln!(out)?)
    })
}

/// Visits all records in order, as long as all goes well.
fn each(
    view: &mut View<'_, '_>,
    label: &'static str,
    mut visit: impl FnMut(&[u8], &mut Value<'_, '_, '_>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut progress = Progress::new(label);
    let total = view.record_count()?;
    let mut done = 0;
    let mut from: Option<Vec<u8>> = None;
    let mut outcome = Ok(());
    // A large value is not lent while the store is walked through, so the walk stops there and goes on behind it.
    loop {
        let mut large = None;
        let start = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        view.range(start, Bound::Unbounded, Direction::Forward, |entry| {
            done += 1;
            if let Some(size) = entry.large {
                large = Some((entry.key.to_vec(), size));
                return ControlFlow::Break(());
            }
            outcome = visit(entry.key, &mut Value::Lent(entry.value));
            progress.set(done, total);
            if outcome.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let Some((key, size)) = large else { return outcome };
        visit(&key, &mut Value::Stored { view: &mut *view, key: &key, size })?;
        progress.set(done, total);
        from = Some(key);
    }
}
