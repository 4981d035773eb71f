//! The index on the chip of an image, of whichever kind it is: opened, used, left.
//!
//! A verb that changes records works on an open image, leaves the index cleanly and commits the image once. A verb that only
//! looks opens the index on a copy in memory: what a recovery after a power cut repairs there is not committed, and the
//! image is as it was.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use anyhow::{anyhow, bail};
use clap::Args;
use nandu::{Direction, Durability, Edit, Entry, Error, Options, Store};
use nandu_inpage::{Cells, InPage};

use crate::failure::usage;
use crate::flash::Flash;
use crate::inpage;
use crate::kind::{self, Found, Kind};
use crate::session::{self, Session, SessionArgs};
use crate::store::{CacheArgs, Records, StoreError};

/// Which index, and the memory that it is opened in.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct IndexArgs {
    /// Refuse the image if it holds another index than this one; without, what it holds is found out
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) index: Option<Kind>,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// How changes become durable while a verb runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The verb looks, or makes one change.
    Single,
    /// The verb makes many changes, batches among them.
    Many(Durability),
}

/// An open index.
pub(crate) enum Index<'m> {
    Tree(Box<Records<'m>>),
    InPage(Box<inpage::Records<'m>>, Kind, Cells),
}

/// What goes wrong in an index.
pub(crate) enum IndexError {
    Tree(StoreError),
    InPage(inpage::Error),
}

impl From<StoreError> for IndexError {
    fn from(error: StoreError) -> IndexError {
        IndexError::Tree(error)
    }
}

impl From<inpage::Error> for IndexError {
    fn from(error: inpage::Error) -> IndexError {
        IndexError::InPage(error)
    }
}

impl IndexError {
    /// Whether a smaller batch may do.
    pub(crate) fn is_too_much(&self) -> bool {
        matches!(
            self,
            IndexError::Tree(Error::Full)
                | IndexError::InPage(nandu_inpage::Error::Full | nandu_inpage::Error::BatchTooLarge)
        )
    }

    /// Whether something on the chip is not as it should be.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(
            self,
            IndexError::Tree(Error::Corrupt { .. }) | IndexError::InPage(nandu_inpage::Error::Corrupt { .. })
        )
    }
}

/// What an index has to say, for someone who gave it an image.
pub(crate) fn explain(image: &Path, error: impl Into<IndexError>) -> anyhow::Error {
    match error.into() {
        IndexError::Tree(error) => crate::store::explain(image, error),
        IndexError::InPage(error) => {
            let name = image.display();
            match error {
                nandu_inpage::Error::NotFormatted => {
                    anyhow!("{name}: not formatted: run 'nandu kv format {name}'")
                }
                nandu_inpage::Error::Full => {
                    anyhow!("{name}: full: no block can be freed{}", session::as_it_was(image))
                }
                other => anyhow!("{name}: {other}"),
            }
        }
    }
}

/// Finds the index of a chip, and refuses another one than was asked for.
pub(crate) fn identify(image: &Path, flash: &Flash, wanted: Option<Kind>) -> anyhow::Result<Found> {
    kind::refuse_format_one(image, flash)?;
    let name = image.display();
    // The mu-Tree has more to say about a chip on which nothing is found.
    let found = match kind::find(flash) {
        Some(found) => found,
        None if wanted.is_none_or(|wanted| wanted == Kind::Mutree) => Found::NOTHING,
        None => bail!("{name}: not formatted: run 'nandu kv format {name}'"),
    };
    match wanted {
        Some(wanted) if wanted != found.kind => {
            bail!("{name}: holds {} index, not {} one", found.kind.with_article(), wanted.with_article())
        }
        _ => Ok(found),
    }
}

/// Memory for the index of a chip, and what it is opened with.
pub(crate) struct Plan {
    found: Found,
    tree: Options,
    inpage: nandu_inpage::Options,
    pub(crate) memory: Vec<u8>,
}

impl Plan {
    pub(crate) fn new(flash: &Flash, found: Found, cache: CacheArgs, how: Use) -> Plan {
        let chip = flash.chip();
        let durability = match how {
            Use::Single => Durability::Immediate,
            Use::Many(durability) => durability,
        };
        let tree = Options { durability, ..cache.options() };
        let mut options = nandu_inpage::Options::DEFAULT;
        let size = match &found.fields {
            None => Store::<Flash>::memory_required(&chip.geometry, &tree),
            Some(fields) => {
                options = inpage::options_of(chip, found.kind, fields, cache.cache);
                if let Use::Many(durability) = how {
                    let durability = match durability {
                        Durability::OnSync => nandu_inpage::Durability::OnSync,
                        _ => nandu_inpage::Durability::Immediate,
                    };
                    options = inpage::with_journal(chip, options, durability);
                }
                InPage::<Flash>::memory_required(&chip.geometry, &options)
            }
        };
        Plan { found, tree, inpage: options, memory: vec![0; size] }
    }

    pub(crate) fn open<'m>(&'m mut self, flash: &'m mut Flash) -> Result<Index<'m>, IndexError> {
        if self.found.kind == Kind::Mutree {
            return Ok(Index::Tree(Box::new(Store::open(flash, self.tree, &mut self.memory)?)));
        }
        let index = InPage::open(flash, self.inpage, &mut self.memory)?;
        Ok(Index::InPage(Box::new(index), self.found.kind, self.inpage.cells))
    }
}

/// Opens the index of an image, changes it, leaves it cleanly and commits the image. Nothing is committed if something of it
/// fails.
pub(crate) fn change<T>(
    args: &SessionArgs,
    index: IndexArgs,
    how: Use,
    work: impl FnOnce(&mut Index<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut session = Session::open(args)?;
    session.flash.power_on();
    let found = identify(&args.image, &session.flash, index.index)?;
    let mut plan = Plan::new(&session.flash, found, index.cache, how);
    let mut index = plan.open(&mut session.flash).map_err(|error| explain(&args.image, error))?;
    let result = work(&mut index)?;
    index.unmount().map_err(|error| explain(&args.image, error))?;
    session.finish()?;
    Ok(result)
}

/// Opens the index of an image to look at it; the image stays as it is.
pub(crate) fn look<T>(
    image: &Path,
    index: IndexArgs,
    work: impl FnOnce(&mut Index<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut flash = session::look(image)?;
    flash.power_on();
    let found = identify(image, &flash, index.index)?;
    let mut plan = Plan::new(&flash, found, index.cache, Use::Single);
    let mut index = plan.open(&mut flash).map_err(|error| explain(image, error))?;
    work(&mut index)
}

impl<'m> Index<'m> {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Index::Tree(_) => Kind::Mutree,
            Index::InPage(_, kind, _) => *kind,
        }
    }

    /// The mu-Tree store, which alone has what the words say.
    pub(crate) fn tree(&mut self, image: &Path, what: &str) -> anyhow::Result<&mut Records<'m>> {
        match self {
            Index::Tree(store) => Ok(store),
            Index::InPage(_, kind, _) => {
                bail!("{}: holds {} index, and only a mutree one has {what}", image.display(), kind.with_article())
            }
        }
    }

    pub(crate) fn flash(&self) -> &Flash {
        match self {
            Index::Tree(store) => store.nand(),
            Index::InPage(index, ..) => index.nand(),
        }
    }

    /// Puts a value; it is durable when this returns.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        Ok(match self {
            Index::Tree(store) => store.put(key, value)?,
            Index::InPage(index, ..) => index.put(key, value)?,
        })
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<bool, IndexError> {
        Ok(match self {
            Index::Tree(store) => store.delete(key)?,
            Index::InPage(index, ..) => index.delete(key)?,
        })
    }

    pub(crate) fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), IndexError> {
        match self {
            Index::Tree(store) => store.batch(edits).map_err(Into::into),
            Index::InPage(index, ..) => index.batch(edits).map_err(Into::into),
        }
    }

    pub(crate) fn sync(&mut self) -> Result<(), IndexError> {
        match self {
            Index::Tree(store) => store.sync().map_err(Into::into),
            Index::InPage(index, ..) => index.sync().map_err(Into::into),
        }
    }

    /// Brings all changes to where they stay, so that whoever opens the index next needs no memory for them.
    pub(crate) fn merge(&mut self) -> Result<(), IndexError> {
        match self {
            Index::Tree(store) => store.merge().map_err(Into::into),
            // Leaving it does.
            Index::InPage(index, ..) => index.sync().map_err(Into::into),
        }
    }

    /// Bytes of a key's value.
    pub(crate) fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, IndexError> {
        Ok(match self {
            Index::Tree(store) => store.value_len(key)?,
            Index::InPage(index, ..) => index.get(key)?.map(<[u8]>::len),
        })
    }

    /// Reads a part of a key's value.
    pub(crate) fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, IndexError> {
        Ok(match self {
            Index::Tree(store) => store.read(key, offset, out)?,
            Index::InPage(index, ..) => index.get(key)?.map(|value| {
                let rest = value.get(offset..).unwrap_or_default();
                let size = rest.len().min(out.len());
                out[..size].copy_from_slice(&rest[..size]);
                size
            }),
        })
    }

    pub(crate) fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        match self {
            Index::Tree(store) => store.range(from, to, direction, visit).map_err(Into::into),
            Index::InPage(index, ..) => index.range(from, to, direction, &mut visit).map_err(Into::into),
        }
    }

    /// How many records there are. After a cut an index that logs in its blocks reads all leaves to know.
    pub(crate) fn record_count(&mut self) -> Result<u64, IndexError> {
        Ok(match self {
            Index::Tree(store) => store.record_count(),
            Index::InPage(index, ..) => index.count_records()?,
        })
    }

    pub(crate) fn height(&self) -> u8 {
        match self {
            Index::Tree(store) => store.height(),
            Index::InPage(index, ..) => index.size().height,
        }
    }

    pub(crate) fn key_size_max(&self) -> usize {
        match self {
            Index::Tree(store) => store.key_size_max(),
            Index::InPage(index, ..) => index.key_size_max(),
        }
    }

    pub(crate) fn entry_size_max(&self) -> usize {
        match self {
            Index::Tree(store) => store.entry_size_max(),
            Index::InPage(index, ..) => index.entry_size_max(),
        }
    }

    fn unmount(self) -> Result<(), IndexError> {
        match self {
            Index::Tree(store) => drop(store.unmount()?),
            Index::InPage(index, ..) => drop(index.unmount()?),
        }
        Ok(())
    }

    /// Why the index does not take a key; `None` if it does.
    fn key_refusal(&self, key: &[u8]) -> Option<String> {
        if let Index::InPage(_, kind, Cells::Fixed { key: size, .. }) = self {
            return (key.len() != usize::from(*size))
                .then(|| format!("the key has {} bytes; this {kind} index takes keys of {size}", key.len()));
        }
        let size_max = self.key_size_max();
        (key.len() > size_max)
            .then(|| format!("the key has {} bytes; the longest on this chip has {size_max}", key.len()))
    }

    /// Why the index does not take a record; `None` if it does.
    pub(crate) fn refusal(&self, key: &[u8], value: &[u8]) -> Option<String> {
        if let Some(why) = self.key_refusal(key) {
            return Some(why);
        }
        let size_max = match self {
            Index::Tree(store) => store.value_size_max(key),
            Index::InPage(_, kind, Cells::Fixed { value: size, .. }) => {
                return (value.len() != usize::from(*size))
                    .then(|| format!("the value has {} bytes; this {kind} index takes values of {size}", value.len()));
            }
            Index::InPage(index, ..) => index.entry_size_max() - key.len(),
        };
        let behind = if self.kind() == Kind::Mutree { "on this chip" } else { "behind this key" };
        (value.len() > size_max)
            .then(|| format!("the value has {} bytes; the largest {behind} has {size_max}", value.len()))
    }

    /// Whether a record does not fit a leaf, and so no batch either.
    pub(crate) fn is_large(&self, key: &[u8], value: &[u8]) -> bool {
        matches!(self, Index::Tree(_)) && key.len() + value.len() > self.entry_size_max()
    }

    /// Ends a verb if no key can be so.
    pub(crate) fn check_key(&self, key: &[u8]) -> anyhow::Result<()> {
        self.key_refusal(key).map_or(Ok(()), usage)
    }

    /// Ends a verb if nothing can begin there. With keys of one width any bytes are a bound.
    pub(crate) fn check_bound(&self, key: &[u8]) -> anyhow::Result<()> {
        if matches!(self, Index::InPage(_, _, Cells::Fixed { .. })) { Ok(()) } else { self.check_key(key) }
    }

    /// Ends a verb if the index does not take a record.
    pub(crate) fn check_record(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        self.refusal(key, value).map_or(Ok(()), usage)
    }
}
