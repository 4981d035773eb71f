//! Chains: the pages of a directory's hash table, and the pointers in both ways that hold them together.

use nandu_media::dffs::{self as media, Fields, Kind, NEXT_AT, POINTER_BASE, PREVIOUS_AT};
use nandu_media::{Field, Malformed};
use nandu_nand::{Nand, PageAddr};

use crate::blocks::Area;
use crate::dffs::{Dffs, ROOT, Result};
use crate::error::Error;
use crate::hash::Place;
use crate::pages::{CHAIN, Frame, NODE, OTHER};

/// Which buckets that are behind are brought up to date with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    All,
    /// All but this one: an entry on its way from page to page has to look the same in both.
    Not(u16),
    None,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// What the bucket holds.
    pub(crate) pointer: u32,
    /// Where the inode is.
    pub(crate) page: PageAddr,
    pub(crate) fields: Fields,
    pub(crate) place: Place,
}

impl<N: Nand> Dffs<'_, N> {
    pub(crate) fn place_of(&self, name: &[u8]) -> Place {
        Place::of(name, self.bucket_count)
    }

    /// Where the inode is to which a pointer leads: through the map, or past those that are behind.
    pub(crate) fn target(&self, pointer: u32) -> PageAddr {
        match pointer.checked_sub(POINTER_BASE) {
            Some(address) => self.lags.resolve(address),
            None => self.mapped(pointer),
        }
    }

    /// Loads the page of a directory with this logical number.
    pub(crate) fn load_chain(&mut self, id: u32, frame: Frame) -> Result<Fields, N> {
        let page = self.mapped(id);
        if page.0 == 0 {
            return Err(Error::NotFound);
        }
        let fields = self.load(page, frame)?;
        let is_chain = matches!(fields.kind, Kind::Directory | Kind::Virtual);
        if !is_chain || fields.id != id {
            return Err(Error::Corrupt { page, why: Malformed::Kind(fields.kind as u8) });
        }
        Ok(fields)
    }

    /// Walks the chain of a directory, one page after the other in a frame, until the visitor says so.
    pub(crate) fn walk<T>(
        &mut self,
        directory: u32,
        frame: Frame,
        mut visit: impl FnMut(&mut Self, u32) -> Result<Option<T>, N>,
    ) -> Result<Option<T>, N> {
        let mut id = directory;
        // A chain has no more pages than there are numbers; one that seems longer goes in a circle.
        for _ in 0..self.map.len() {
            let fields = self.load_chain(id, frame)?;
            let owner = if id == directory { Kind::Directory } else { Kind::Virtual };
            if fields.kind != owner || (owner == Kind::Virtual && fields.parent != directory) {
                if id == directory {
                    return Err(Error::NotFound);
                }
                return Err(Error::Corrupt { page: self.mapped(id), why: Malformed::Kind(fields.kind as u8) });
            }
            if let Some(found) = visit(self, id)? {
                return Ok(Some(found));
            }
            id = self.word(frame, NEXT_AT);
            if id == 0 {
                return Ok(None);
            }
        }
        Err(Error::Corrupt { page: self.mapped(directory), why: Malformed::Range(Field::Next) })
    }

    /// The page of a chain that has this pointer in this bucket: its logical number, with the page in the frame.
    pub(crate) fn find_pointer(
        &mut self,
        directory: u32,
        bucket: u16,
        pointer: u32,
        frame: Frame,
    ) -> Result<Option<u32>, N> {
        let mut is_over = false;
        let found = self.walk(directory, frame, |fs, id| {
            let here = fs.pointer(frame, bucket);
            is_over = here == 0;
            Ok((here == pointer || is_over).then_some(id))
        });
        match found {
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
            Ok(found) => Ok(found.filter(|_| !is_over)),
        }
    }

    /// Looks a name up. Its inode is in [`NODE`] then. Costs a read for each page of the chain up to it and each inode whose both hashes
    /// are the same.
    pub(crate) fn find(&mut self, directory: u32, name: &[u8]) -> Result<Option<Found>, N> {
        self.find_in(directory, None, name)
    }

    /// As [`find`](Dffs::find), in the directory that has this generation.
    pub(crate) fn find_in(&mut self, directory: u32, generation: Option<u32>, name: &[u8]) -> Result<Option<Found>, N> {
        let place = self.place_of(name);
        let mut is_over = false;
        let found = self.walk(directory, CHAIN, |fs, id| {
            if id == directory
                && generation.is_some_and(|known| fs.fields(CHAIN).is_ok_and(|fields| fields.size != known))
            {
                return Err(Error::Gone);
            }
            let pointer = fs.pointer(CHAIN, place.bucket);
            is_over = pointer == 0;
            if is_over || fs.second(CHAIN, place.bucket) != place.second {
                return Ok(is_over.then_some(None));
            }
            let page = fs.target(pointer);
            let fields = fs.load(page, NODE)?;
            let is_it = fields.parent == directory && media::name(fs.pages.get(NODE)) == name;
            Ok(is_it.then_some(Some(Found { pointer, page, fields, place })))
        })?;
        Ok(found.flatten())
    }

    /// Looks a file up by its number in a bucket; with a second hash, only what has it is read. Its inode is in [`NODE`] then.
    pub(crate) fn find_number(
        &mut self,
        directory: u32,
        bucket: u16,
        second: Option<u8>,
        number: u32,
    ) -> Result<Option<Found>, N> {
        if usize::from(bucket) >= self.bucket_count {
            return Ok(None);
        }
        let found = self.walk(directory, CHAIN, |fs, _| {
            let pointer = fs.pointer(CHAIN, bucket);
            let here = fs.second(CHAIN, bucket);
            if pointer == 0 {
                return Ok(Some(None));
            }
            if pointer < POINTER_BASE || second.is_some_and(|second| second != here) {
                return Ok(None);
            }
            let page = fs.target(pointer);
            let fields = match (fs.inspect(page, NODE)?, second) {
                (Ok(fields), _) => fields,
                (Err(why), Some(_)) => return Err(Error::Corrupt { page, why }),
                (Err(_), None) => return Ok(None),
            };
            let is_it = fields.kind == Kind::File && fields.id == number && fields.parent == directory;
            let place = Place { bucket, second: here };
            Ok(is_it.then_some(Some(Found { pointer, page, fields, place })))
        });
        match found {
            Err(Error::NotFound) => Ok(None),
            other => other.map(Option::flatten),
        }
    }

    /// Programs the page of a chain that is in a frame, whichever area it belongs to, and lets the map lead to it.
    pub(crate) fn program_chain(&mut self, frame: Frame, fold: Fold) -> Result<(), N> {
        let fields = self.fields(frame)?;
        let directory = if fields.kind == Kind::Virtual { fields.parent } else { fields.id };
        let mut folded = 0;
        let mut at = 0;
        while let Some(lag) = self.lags.all().get(at).copied() {
            let bucket = lag.bucket as u16;
            let may = match fold {
                Fold::All => true,
                Fold::Not(other) => bucket != other,
                Fold::None => false,
            };
            if may && lag.directory == directory && self.pointer(frame, bucket) == lag.behind + POINTER_BASE {
                let second = self.second(frame, bucket);
                self.set_bucket(frame, bucket, lag.current + POINTER_BASE, second)?;
                folded += 1;
            }
            at += 1;
        }
        let area = if fields.kind == Kind::Virtual { Area::Virtual } else { Area::Directory };
        let page = self.append(area, frame)?;
        // What was brought up to date is behind no more. The buckets say which.
        let mut at = 0;
        while let Some(lag) = self.lags.all().get(at).copied().filter(|_| folded > 0) {
            let is_there = self.pointer(frame, lag.bucket as u16) == lag.current + POINTER_BASE;
            if lag.directory == directory && is_there {
                self.lags.remove(lag.behind);
                folded -= 1;
            } else {
                at += 1;
            }
        }
        self.lose(self.mapped(fields.id));
        self.set_mapped(fields.id, page);
        Ok(())
    }

    /// Notes when a directory changed, in a page of it that is programmed anyway, and that it was not renamed by this program.
    pub(crate) fn touch(&mut self, frame: Frame) -> Result<(), N> {
        let mut fields = self.fields(frame)?;
        (fields.mtime, fields.ctime) = (self.now, self.now);
        fields.flags &= !media::FLAG_RENAMED;
        self.set_fields(frame, &fields);
        if fields.kind == Kind::Directory {
            self.set_word(frame, PREVIOUS_AT, 0);
        }
        Ok(())
    }

    /// Whether both pointers are there: what a logical number leads to names its parent, or its predecessor, and that leads to it.
    pub(crate) fn is_mutual(&mut self, id: u32) -> Result<bool, N> {
        let page = self.mapped(id);
        let Some(fields) = self.inspect_again(page, NODE)? else { return Ok(true) };
        self.is_mutual_page(id, &fields)
    }

    /// As [`is_mutual`](Dffs::is_mutual), for the page that is in [`NODE`], whether or not the map leads to it.
    pub(crate) fn is_mutual_page(&mut self, id: u32, fields: &Fields) -> Result<bool, N> {
        match fields.kind {
            _ if fields.id != id => Ok(false),
            Kind::Directory if id == ROOT => Ok(true),
            Kind::Directory => {
                let place = self.place_of(media::name(self.pages.get(NODE)));
                self.has_entry(fields.parent, place, id)
            }
            Kind::Virtual => {
                let before = self.word(NODE, PREVIOUS_AT);
                if self.mapped(before).0 == 0 {
                    return Ok(false);
                }
                // What cannot be asked is taken to lead back.
                let Some(previous) = self.inspect_again(self.mapped(before), CHAIN)? else { return Ok(true) };
                let is_chain = previous.id == before
                    && match previous.kind {
                        Kind::Directory => before == fields.parent,
                        Kind::Virtual => previous.parent == fields.parent,
                        _ => false,
                    };
                Ok(is_chain && self.word(CHAIN, NEXT_AT) == id)
            }
            _ => Ok(false),
        }
    }

    /// Whether a bucket has this pointer with this second hash: with another one, it is an entry for another name of a directory that is being
    /// renamed.
    fn has_entry(&mut self, directory: u32, place: Place, pointer: u32) -> Result<bool, N> {
        let found = self.walk(directory, CHAIN, |fs, _| {
            let here = fs.pointer(CHAIN, place.bucket);
            let is_it = here == pointer && fs.second(CHAIN, place.bucket) == place.second;
            Ok((is_it || here == 0).then_some(is_it))
        });
        match found {
            Err(Error::NotFound) => Ok(false),
            // What cannot be asked is taken to lead back.
            Err(Error::Corrupt { .. }) if self.is_last_attempt => Ok(true),
            other => Ok(other?.unwrap_or(false)),
        }
    }

    /// Whether the inode of a file in [`NODE`], which stands at this page, is the one to which its directory's bucket leads.
    pub(crate) fn is_live_file(&mut self, page: PageAddr, fields: &Fields) -> Result<bool, N> {
        let bucket = self.place_of(media::name(self.pages.get(NODE))).bucket;
        let behind = self.lags.behind(page);
        if self.lags.resolve(behind) != page {
            return Ok(false);
        }
        Ok(self.find_pointer(fields.parent, bucket, behind + POINTER_BASE, CHAIN)?.is_some())
    }

    /// Whether a name can be put into a directory without another page for its chain.
    pub(crate) fn has_bucket(&mut self, directory: u32, bucket: u16) -> Result<bool, N> {
        let empty = self.walk(directory, CHAIN, |fs, _| Ok((fs.pointer(CHAIN, bucket) == 0).then_some(())))?;
        Ok(empty.is_some())
    }

    /// Puts a pointer into the first page of a chain whose bucket is empty, or into a new one at its end.
    pub(crate) fn insert(&mut self, directory: u32, place: Place, pointer: u32) -> Result<(), N> {
        let mut last = directory;
        let empty = self.walk(directory, CHAIN, |fs, id| {
            last = id;
            Ok((fs.pointer(CHAIN, place.bucket) == 0).then_some(()))
        })?;
        self.touch(CHAIN)?;
        if empty.is_some() {
            self.set_bucket(CHAIN, place.bucket, pointer, place.second)?;
            return self.program_chain(CHAIN, Fold::All);
        }
        let id = self.free_logical()?;
        let fields = Fields { id, parent: directory, mtime: self.now, ctime: self.now, ..Fields::new(Kind::Virtual) };
        self.pages.get_mut(OTHER).fill(0);
        self.set_fields(OTHER, &fields);
        self.set_word(OTHER, PREVIOUS_AT, last);
        self.set_bucket(OTHER, place.bucket, pointer, place.second)?;
        self.set_word(CHAIN, NEXT_AT, id);
        // O2: the new page first. Cut after it, nothing leads to it, and recovery takes its number back. The other way round the chain
        // would lead to a page that is not there.
        let is_broken = crate::options::broken!(self, link_before_virtual);
        let order = if is_broken { [CHAIN, OTHER] } else { [OTHER, CHAIN] };
        for frame in order {
            self.program_chain(frame, Fold::All)?;
        }
        Ok(())
    }

    /// Puts another pointer where this one is. One program, so it happens or not.
    pub(crate) fn replace(&mut self, directory: u32, place: Place, old: u32, new: u32) -> Result<(), N> {
        if self.find_pointer(directory, place.bucket, old, CHAIN)?.is_none() {
            return Err(Error::NotFound);
        }
        self.touch(CHAIN)?;
        self.set_bucket(CHAIN, place.bucket, new, place.second)?;
        self.program_chain(CHAIN, Fold::All)
    }

    /// Takes a pointer out of a bucket. The last entry of that bucket along the chain fills the hole, so that a bucket is in use in a
    /// prefix of the chain; a page without entries leaves the chain.
    pub(crate) fn remove(&mut self, directory: u32, place: Place, pointer: u32) -> Result<(), N> {
        let bucket = place.bucket;
        // The second hash too: a directory that is being renamed may be in the bucket under both names.
        let hole = self.walk(directory, CHAIN, |fs, id| {
            let is_it = fs.pointer(CHAIN, bucket) == pointer && fs.second(CHAIN, bucket) == place.second;
            Ok(is_it.then_some(id))
        })?;
        let Some(hole) = hole else { return Err(Error::NotFound) };
        let mut last = hole;
        let mut moved = (0, 0);
        let mut used = 0;
        self.walk(directory, OTHER, |fs, id| {
            let here = fs.pointer(OTHER, bucket);
            if here == 0 {
                return Ok(Some(()));
            }
            last = id;
            moved = (here, fs.second(OTHER, bucket));
            used = fs.fields(OTHER)?.used;
            Ok(None)
        })?;
        self.touch(CHAIN)?;
        if last == hole {
            self.set_bucket(CHAIN, bucket, 0, 0)?;
            return if self.fields(CHAIN)?.used == 0 && hole != directory {
                self.drop_last(hole)
            } else {
                self.program_chain(CHAIN, Fold::All)
            };
        }
        self.set_bucket(CHAIN, bucket, moved.0, moved.1)?;
        let is_neighbour = self.word(CHAIN, NEXT_AT) == last;
        if used == 1 && is_neighbour {
            // The last page becomes empty, and the page with the hole is the one that leads to it: one program does both.
            self.set_word(CHAIN, NEXT_AT, 0);
            self.program_chain(CHAIN, Fold::All)?;
            self.release(last);
            return Ok(());
        }
        // O3: the hole first. Cut after it, the entry stands in two pages of the chain, and recovery takes it out of the second. The other
        // way round it would stand in none.
        let is_broken = crate::options::broken!(self, hole_last);
        if !is_broken {
            self.program_chain(CHAIN, Fold::Not(bucket))?;
        }
        if used == 1 {
            self.load_chain(last, NODE)?;
            self.drop_last_loaded(last)?;
        } else {
            self.load_chain(last, OTHER)?;
            self.touch(OTHER)?;
            self.set_bucket(OTHER, bucket, 0, 0)?;
            self.program_chain(OTHER, Fold::All)?;
        }
        if is_broken {
            self.program_chain(CHAIN, Fold::None)?;
        }
        Ok(())
    }

    /// Takes the last page of a chain out of it: it is in [`CHAIN`].
    fn drop_last(&mut self, id: u32) -> Result<(), N> {
        self.pages.copy(CHAIN, NODE);
        self.drop_last_loaded(id)
    }

    /// Takes the last page of a chain out of it: it is in [`NODE`]. Empty pages are the last of their chain, since a bucket is in use in
    /// a prefix of it.
    pub(crate) fn drop_last_loaded(&mut self, id: u32) -> Result<(), N> {
        let before = self.word(NODE, PREVIOUS_AT);
        self.load_chain(before, OTHER)?;
        self.touch(OTHER)?;
        self.set_word(OTHER, NEXT_AT, 0);
        self.program_chain(OTHER, Fold::All)?;
        self.release(id);
        Ok(())
    }

    /// A logical number leads nowhere from here on.
    pub(crate) fn release(&mut self, id: u32) {
        self.lose(self.mapped(id));
        self.set_mapped(id, PageAddr(0));
    }
}
