//! `nandu kv export`: all records, to be read back.

use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;

use clap::Args;
use nandu::Direction;

use super::formats::{Format, KEY, KEY_HEX, VALUE, VALUE_HEX};
use crate::index::{self, IndexArgs, IndexError};
use crate::output::Output;
use crate::progress::Progress;
use crate::view::{AtArgs, View};
use crate::{hexdump, record};

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
        let explain = |error| index::explain(&args.image, error);
        let view = &mut args.at.view(&args.image, index)?;
        match format {
            Format::Jsonl => {
                let mut outcome = Ok(());
                each(view, "exporting", &mut outcome, |key, value| out.json(&record::json(key, value)))
                    .map_err(explain)?;
                outcome?;
            }
            Format::Csv | Format::Tsv => {
                let (mut keys_are_text, mut values_are_text) = (true, true);
                each(view, "looking for bytes that are no text", &mut Ok(()), |key, value| {
                    keys_are_text &= format.takes(key);
                    values_are_text &= format.takes(value);
                    Ok(())
                })
                .map_err(explain)?;
                let mut writer = writer(format, out);
                let mut outcome = writer
                    .write_record([
                        if keys_are_text { KEY } else { KEY_HEX },
                        if values_are_text { VALUE } else { VALUE_HEX },
                    ])
                    .map_err(io::Error::from);
                each(view, "exporting", &mut outcome, |key, value| {
                    Ok(writer.write_record([column(key, keys_are_text), column(value, values_are_text)])?)
                })
                .map_err(explain)?;
                outcome.and_then(|()| writer.flush())?;
            }
        }
        Ok(())
    })
}

fn writer(format: Format, out: &mut Output) -> csv::Writer<&mut dyn io::Write> {
    let mut builder = csv::WriterBuilder::new();
    if format == Format::Tsv {
        builder.delimiter(b'\t').quote_style(csv::QuoteStyle::Never);
    }
    builder.from_writer(out.writer())
}

fn column(bytes: &[u8], is_text: bool) -> Vec<u8> {
    if is_text { bytes.to_vec() } else { hexdump::digits(bytes).into_bytes() }
}

/// Visits all records in order, as long as all goes well. Takes memory for one value at a time.
fn each(
    view: &mut View<'_, '_>,
    label: &'static str,
    outcome: &mut io::Result<()>,
    mut visit: impl FnMut(&[u8], &[u8]) -> io::Result<()>,
) -> Result<(), IndexError> {
    let mut progress = Progress::new(label);
    let total = view.record_count()?;
    let mut done = 0;
    let mut from: Option<Vec<u8>> = None;
    // A large value is not lent while the store is walked through, so the walk stops there and goes on behind it.
    while outcome.is_ok() {
        let mut large = None;
        let start = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        view.range(start, Bound::Unbounded, Direction::Forward, |entry| {
            done += 1;
            if let Some(size) = entry.large {
                large = Some((entry.key.to_vec(), size));
                return ControlFlow::Break(());
            }
            *outcome = visit(entry.key, entry.value);
            progress.set(done, total);
            if outcome.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let Some((key, size)) = large else { break };
        let mut value = vec![0; size];
        view.read(&key, 0, &mut value)?;
        *outcome = visit(&key, &value);
        progress.set(done, total);
        from = Some(key);
    }
    Ok(())
}
