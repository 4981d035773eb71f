//! `nandu kv scan`: records in order.

use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;

use clap::Args;
use nandu::{Direction, Entry};

use super::HexArgs;
use crate::index::{self, IndexArgs};
use crate::output::Output;
use crate::view::AtArgs;
use crate::{hexdump, record};

#[derive(Args, Debug)]
pub(crate) struct Scan {
    /// The image; it stays as it is
    image: PathBuf,
    /// Begin at this key
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY")]
    prefix: Option<String>,
    /// From the last to the first
    #[arg(long)]
    reverse: bool,
    /// Print so many records at most
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    index: IndexArgs,
}

/// Keys from the first on, below the second.
struct Bounds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Bounds {
    fn new(from: Option<Vec<u8>>, to: Option<Vec<u8>>, prefix: Option<Vec<u8>>) -> Bounds {
        let beyond = prefix.as_deref().and_then(after_prefix);
        let lower = |a: Option<Vec<u8>>, b: Option<Vec<u8>>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        // `None` is below everything, as it should be for where to begin.
        Bounds { from: from.max(prefix), to: lower(to, beyond) }
    }
}

/// The lowest key that is above all that begin so; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

pub(crate) fn run(args: &Scan, out: &mut Output) -> anyhow::Result<()> {
    let key = |text: &Option<String>| text.as_deref().map(|text| record::argument(text, args.hex.hex)).transpose();
    let bounds = Bounds::new(key(&args.from)?, key(&args.to)?, key(&args.prefix)?);
    let direction = if args.reverse { Direction::Backward } else { Direction::Forward };
    index::look(&args.image, args.index, |index| {
        for key in [&bounds.from, &bounds.to].into_iter().flatten() {
            index.check_bound(key)?;
        }
        let mut left = args.limit.unwrap_or(u64::MAX);
        if left == 0 {
            return Ok(());
        }
        let mut outcome = Ok(());
        let from = bounds.from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let to = bounds.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let visit = |entry: Entry<'_>| {
            outcome = print(&entry, args.hex.hex, out);
            left -= 1;
            if outcome.is_err() || left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut view = args.at.view(&args.image, index)?;
        view.range(from, to, direction, visit).map_err(|error| index::explain(&args.image, error))?;
        Ok(outcome?)
    })
}

fn print(entry: &Entry<'_>, is_hex: bool, out: &mut Output) -> io::Result<()> {
    if out.is_json() {
        let mut json = record::json(entry.key, entry.value);
        if let (Some(size), Some(object)) = (entry.large, json.as_object_mut()) {
            object.remove("value");
            object.insert("value_size".to_owned(), size.into());
        }
        return out.json(&json);
    }
    let text = |bytes: &[u8]| if is_hex { hexdump::digits(bytes) } else { record::shown(bytes) };
    match entry.large {
        Some(size) => writeln!(out, "{}\t({size} bytes)", text(entry.key)),
        None => writeln!(out, "{}\t{}", text(entry.key), text(entry.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_narrows_the_bounds_and_never_widens_them() {
        let bounds = |from: Option<&str>, to: Option<&str>, prefix: &[u8]| {
            let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
            let bounds = Bounds::new(bytes(from), bytes(to), Some(prefix.to_vec()));
            (bounds.from, bounds.to)
        };
        assert_eq!(bounds(None, None, b"ab"), (Some(b"ab".to_vec()), Some(b"ac".to_vec())));
        assert_eq!(bounds(Some("abc"), Some("abd"), b"ab"), (Some(b"abc".to_vec()), Some(b"abd".to_vec())));
        assert_eq!(bounds(Some("a"), Some("z"), b"ab\xff"), (Some(b"ab\xff".to_vec()), Some(b"ac".to_vec())));
        assert_eq!(bounds(None, None, b"\xff\xff"), (Some(b"\xff\xff".to_vec()), None));
    }
}
