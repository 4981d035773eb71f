//! Whether every piece of a large value is there, and none too many.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, KeyBuf};
use nandu_nand::Nand;
use nandu_newtree::{Cells, Engine};

use super::records::{CHUNKS_MAX, Head, Layout, Stamp};
use super::values::{Outcome, Values};

/// An invariant that does not hold on the chip, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One of the new log.
    Log(nandu_newlog::Violation),
    /// One of the new tree.
    Tree(nandu_index::Violation),
    /// Of a large value.
    Value {
        /// What does not hold.
        what: &'static str,
        /// The value's stamp, 0 if it is about all of them.
        stamp: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Log(violation) => violation.fmt(f),
            Violation::Tree(violation) => violation.fmt(f),
            Violation::Value { what, stamp: 0 } => f.write_str(what),
            Violation::Value { what, stamp } => write!(f, "large value {stamp}: {what}"),
        }
    }
}

/// Finds each head's pieces, follows the list, and counts: every own record belongs to one of them, or is the mark.
pub(super) fn verify<N: Nand, C: Cells>(
    values: &Values<'_>,
    engine: &mut Engine<'_, N, C>,
    report: &mut dyn FnMut(&'static str, u64),
) -> Outcome<(), N> {
    let layout = values.layout();
    let mut found = u64::from(values.mark().others > 0);
    let mut from = Bound::Unbounded;
    let mut last;
    while let Some((key, head)) = next_head(engine, layout, from)? {
        found += check_value(values, engine, (key.as_slice(), head), report)?;
        last = key;
        from = Bound::Excluded(last.as_slice());
    }
    let own = count(engine, Bound::Included(layout.reserved()), Bound::Unbounded)?;
    let mut stamp = values.mark().first;
    // A list cannot be longer than there are records.
    for index in 0..=own {
        if stamp == Stamp::NONE {
            break;
        }
        if !values.is_named(engine, stamp)? {
            let (low, high) = (layout.chunk_key(stamp, 0), layout.chunk_key(stamp, CHUNKS_MAX));
            found += count(engine, Bound::Included(low.as_slice()), Bound::Included(high.as_slice()))?;
            found += u64::from(values.link_of(engine, stamp)?.is_some());
        }
        // The first one may have lost its link.
        let next = match index {
            0 => values.mark().next,
            _ => values.link_of(engine, stamp)?.map_or(Stamp::NONE, |(next, _)| next),
        };
        if index == own {
            report("the list of what is nobody's does not end", stamp.number());
        }
        stamp = next;
    }
    if own != found {
        report("there are pieces of values that no head and no list names", 0);
    }
    if own != values.own_count() {
        report("the mark says another number of own records than there are", 0);
    }
    Ok(())
}

/// Checks a value's link and chunks; returns how many of them there are.
fn check_value<N: Nand, C: Cells>(
    values: &Values<'_>,
    engine: &mut Engine<'_, N, C>,
    (key, head): (&[u8], Head),
    report: &mut dyn FnMut(&'static str, u64),
) -> Outcome<u64, N> {
    let (layout, stamp) = (values.layout(), head.stamp);
    let link = values.link_of(engine, stamp)?;
    if link.is_none_or(|(_, owner)| owner.as_slice() != key) {
        report("its link is missing, or says another key", stamp.number());
    }
    let begin = layout.head_size(key) - super::records::HEAD;
    let (mut count, mut size, mut is_gapless) = (0_u32, 0, true);
    let (low, high) = (layout.chunk_key(stamp, 0), layout.chunk_key(stamp, CHUNKS_MAX));
    let bounds = (Bound::Included(low.as_slice()), Bound::Included(high.as_slice()));
    engine.range(bounds.0, bounds.1, Direction::Forward, |entry| {
        count += 1;
        // All are full but the last.
        is_gapless &= Layout::chunk_number(entry.key) == count && size == (count as usize - 1) * layout.chunk_size();
        size += entry.value.len();
        ControlFlow::Continue(())
    })?;
    if !is_gapless || begin + size != head.length {
        report("its chunks are not what its head says", stamp.number());
    }
    Ok(u64::from(count) + u64::from(link.is_some()))
}

/// The next user's record with a large value.
fn next_head<N: Nand, C: Cells>(
    engine: &mut Engine<'_, N, C>,
    layout: &Layout,
    from: Bound<&[u8]>,
) -> Outcome<Option<(KeyBuf, Head)>, N> {
    let mut found = None;
    engine.range(from, Bound::Excluded(layout.reserved()), Direction::Forward, |entry| {
        match layout.head(entry.key, entry.value).zip(KeyBuf::new(entry.key)) {
            Some((head, key)) => {
                found = Some((key, head));
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}

/// Records between two bounds.
fn count<N: Nand, C: Cells>(engine: &mut Engine<'_, N, C>, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Outcome<u64, N> {
    let mut count = 0;
    engine.range(from, to, Direction::Forward, |_| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}
