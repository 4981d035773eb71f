//! The index as it is, or as a snapshot keeps it, for the verbs that look.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use nandu::{At, Direction, Entry, Snapshot};

use crate::flash::Flash;
use crate::index::{self, Index, IndexError};
use crate::store::Records;

/// Which of both a verb looks at.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct AtArgs {
    /// As the snapshot with this number keeps it, see 'nandu kv snapshot'
    #[arg(long, value_name = "NUMBER")]
    at: Option<u32>,
}

impl AtArgs {
    pub(crate) fn view<'s, 'm>(self, image: &Path, index: &'s mut Index<'m>) -> anyhow::Result<View<'s, 'm>> {
        match self.at {
            None => Ok(View::Now(index)),
            Some(number) => {
                let store = index.tree(image, "snapshots")?;
                let snapshot = find(image, store, number)?;
                let mut at = store.at(&snapshot);
                let records = at.record_count().map_err(|error| index::explain(image, error))?;
                Ok(View::Then(at, records))
            }
        }
    }
}

/// The snapshot with this number.
pub(crate) fn find(image: &Path, store: &Records<'_>, number: u32) -> anyhow::Result<Snapshot> {
    let found = store.snapshots().find(|snapshot| snapshot.number() == number);
    found.ok_or_else(|| anyhow!("{}: there is no snapshot {number}", image.display()))
}

/// What a verb looks at.
pub(crate) enum View<'s, 'm> {
    /// The index as it is.
    Now(&'s mut Index<'m>),
    /// What a snapshot keeps, and how many records that are.
    Then(At<'s, 'm, &'m mut Flash>, u64),
}

impl View<'_, '_> {
    pub(crate) fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, IndexError> {
        match self {
            View::Now(index) => index.value_len(key),
            View::Then(at, _) => Ok(at.value_len(key)?),
        }
    }

    pub(crate) fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, IndexError> {
        match self {
            View::Now(index) => index.read(key, offset, out),
            View::Then(at, _) => Ok(at.read(key, offset, out)?),
        }
    }

    pub(crate) fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        match self {
            View::Now(index) => index.range(from, to, direction, visit),
            View::Then(at, _) => Ok(at.range(from, to, direction, visit)?),
        }
    }

    pub(crate) fn record_count(&mut self) -> Result<u64, IndexError> {
        match self {
            View::Now(index) => index.record_count(),
            View::Then(_, records) => Ok(*records),
        }
    }
}
