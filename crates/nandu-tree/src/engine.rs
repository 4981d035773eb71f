//! Log and tree together: the calls of a user.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_cells::{Cache, Cells};
use nandu_index::{Direction, Edit, Entry, KeyBuf, Violation};
use nandu_log::{Budget, Choice, Claim, Log, LogError, LogOptions, Tag};
use nandu_media::features::{GROUP, SNAPSHOTS};
use nandu_nand::{CellMode, Nand, PageAddr};

use crate::at::At;
use crate::blobs::put_blob;
use crate::changes::Changes;
use crate::check::{check_beside, check_edits, check_key, check_value};
use crate::commit::limit_window;
use crate::cursor::Cursor;
use crate::debt::{CALL, LAST_PAGE, Most, PUT, REFUSALS_MAX, REMOVALS_MAX, REMOVING_MAX};
use crate::descend::load_root;
use crate::division::SINGLE_MAX;
use crate::edits::Edits;
use crate::error::{EngineError, Outcome};
use crate::growth::is_grown_up;
use crate::idle::{end_idle, leave};
use crate::keep::{keeping, owes, put_alone, put_value, remove_some};
use crate::keeper::Keeper;
use crate::list::{Waiting, may_longest_pass, members_left};
use crate::lookup::{self, copy, entry, lend, nearest};
use crate::make::{make, make_empty, make_one};
use crate::options::{Memory, Options};
use crate::parts::{Parts, shape_of};
use crate::path::Path;
use crate::reader::Reader;
use crate::shape::TreeShape;
use crate::snapshots::{load, release, take};
use crate::standing::{Made, value_of};
use crate::stats::Stats;
use crate::sync::{flush, flush_some, sync};
use crate::tags::{TaggedPage, adopt, end_tail, next_tagged, put_tagged, tag_next};
use crate::tree::Tree;
use crate::under_way::{append_value, begin_value, pages_left};
use crate::values::Values;
use crate::verify::verify;
use crate::window::Window;

/// An ordered index on a log on a chip. Each change is durable when the call returns, or with [`Durability::OnSync`](crate::Durability::OnSync) when [`Engine::sync`] does. After a commit that failed nothing is
/// changed any more (`Poisoned`) until the volume is opened again, which finds the state before it or the one after it.
///
/// The memory holds three page buffers, the nodes that are kept, changes that wait, and what the log needs.
pub struct Engine<'m, N: Nand, C> {
    keeper: Keeper<'m, N, C>,
    /// Whether a call is a part of one of the user's.
    has_parts: bool,
    /// What a snapshot is to keep, and what is removed of one.
    kept: &'m mut [u8],
}

impl<N: Nand, C> fmt::Debug for Engine<'_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("log", &self.keeper.tree().log).finish_non_exhaustive()
    }
}

/// How a log is begun: [`Log::format`] or [`Log::mount`].
pub type Begin<'m, N> = fn(&mut Log<'m, N>, &LogOptions) -> Result<(), LogError<<N as nandu_nand::ErrorType>::Error>>;

impl<'m, N: Nand, C: Cells> Engine<'m, N, C> {
    /// An engine that has not looked at its volume yet: for who keeps it in a place of its own, where it is opened. Cannot fail, so that no other engine is on the stack.
    pub fn unopened(parts: Parts<'m, N, C>) -> Self {
        let Parts { log, shape, memory, durability, has_parts, broken } = parts;
        let Memory { path, side, reading, cache, pending, values, kept, keys } = memory;
        let changes = Changes::new(pending, shape.format());
        let waiting = Waiting { changes, window: Window::EMPTY, durability, is_owed: false, next: 0, broken };
        let reader = Reader::new(shape, reading, Cache::new(cache));
        let tree = Tree { log: Log::unopened(log), path: Path::new(shape, [path, side], keys), reader };
        Engine { keeper: Keeper::new(tree, waiting, Values::new(values)), has_parts, kept }
    }

    /// With [`Log::format`] makes an empty volume, whatever the chip holds, and an empty tree on it; with [`Log::mount`] opens the tree that a volume holds, or makes an
    /// empty one where nothing was committed: a format that was cut between making the log and making the tree left such a volume. The engine was good for nothing
    /// before. Costs what that costs, and 1 program for an empty tree, or reads 1 page, or 2 if the newest commit holds no node.
    ///
    /// # Errors
    ///
    /// [`EngineError::OtherFormat`]; [`EngineError::NotCompiled`]; [`EngineError::Corrupt`]; those of the log.
    pub fn begin(&mut self, options: &Options, begin: Begin<'m, N>) -> Outcome<(), N> {
        let (tree, waiting) = self.keeper.parts();
        begin(&mut tree.log, &options.log)?;
        let shape = shape_of::<N, C>(tree.log.geometry(), tree.log.header_size(), tree.path.shape().cells(), options)?;
        tree.path.reshape(&shape);
        tree.reader.reshape(&shape);
        limit_window(tree, waiting);
        debug_assert!(may_longest_pass(waiting, &shape), "what is put at once has a way");
        match self.log().committed() {
            Some(committed) => self.keeper.load(committed)?,
            None => make_empty(&mut self.keeper)?,
        }
        if self.keeper.working().counts.has_snapshots {
            if !SNAPSHOTS || self.kept.is_empty() {
                return Err(EngineError::NotCompiled { feature: &"snapshots" });
            }
            load(&mut self.keeper)?;
        }
        debug_assert!(self.keeper.tree().path.holds_root(), "the root is here");
        self.keeper.begin();
        Ok(())
    }

    /// Makes every change durable and what was moved count, and gives the chip back. What is durable needs no unmount; without one the next mount has something to
    /// recover. Costs an [unmount](Log::unmount) of the log, a [sync](Engine::sync), and 1 program if pages were moved since the newest commit.
    ///
    /// # Errors
    ///
    /// Those of [`sync`](Engine::sync) and of the log, with the chip: what was durable is so all the same.
    ///
    /// ```compile_fail,E0382
    /// # use nandu_tree::{Engine, FixedCells};
    /// # use nandu_nand::Nand;
    /// fn wrong<N: Nand>(engine: Engine<'_, N, FixedCells<4, 4>>) {
    ///     let mut engine = engine;
    ///     let _ = engine.unmount();
    ///     let _ = engine.get(&[0; 4]); // There is no engine any more.
    /// }
    /// ```
    pub fn unmount(mut self) -> Result<N, (EngineError<N::Error>, N)> {
        let left = self.unmount_here();
        let nand = self.abandon();
        if let Err(error) = left { Err((error, nand)) } else { Ok(nand) }
    }

    /// The same of an engine that lies in a place of its own, and is good for nothing afterwards.
    ///
    /// # Errors
    ///
    /// As [`Engine::unmount`].
    pub fn unmount_here(&mut self) -> Outcome<(), N> {
        leave(&mut self.keeper)
    }

    /// Gives the chip back as it is, as if the power had gone.
    pub fn abandon(self) -> N {
        self.keeper.into_tree().log.abandon_log()
    }

    /// The value of a key, lent until the engine is used again. Reads at most as many pages as the tree has levels not in memory.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeySize`], [`EngineError::LargeValue`], [`EngineError::Corrupt`], those of the log.
    ///
    /// ```compile_fail,E0499
    /// # use nandu_tree::{Engine, FixedCells};
    /// # use nandu_nand::Nand;
    /// fn wrong<N: Nand>(engine: &mut Engine<'_, N, FixedCells<4, 4>>) {
    ///     let value = engine.get(&[0; 4]).unwrap_or(None);
    ///     let _ = engine.put(&[0; 4], &[1; 4]); // What was lent may be overwritten.
    ///     let _ = value.is_some();
    /// }
    /// ```
    pub fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>, N> {
        self.check_key(key)?;
        lend(&mut self.keeper, key)
    }

    /// Copies what the value of a key has from `offset` on into `out`, as far as both go. Returns the bytes of the whole value; `None` if there is none. Reads what a get does, and of a
    /// large value each page concerned, and a page more for each group of them where its pages stand in groups.
    ///
    /// # Errors
    ///
    /// As [`Engine::get`], but for [`EngineError::LargeValue`].
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Outcome<Option<usize>, N> {
        self.check_key(key)?;
        copy(&mut self.keeper, (key, offset), out)
    }

    /// Begins to put a value of so many bytes, at least one, into pages of its own; the calls that go on with it name the same key. Nothing has changed before [`Engine::end_value`] returns. A call of another kind that changes something gives
    /// it up. One that takes a page in the place of one that has some is begun on a full chip too. Costs a count of the live pages where it is not known whether there is room.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeySize`]; [`EngineError::ValueSize`] for more than a head can name; [`EngineError::NotCompiled`]; `Full`; those of the log.
    pub fn begin_value(&mut self, key: &[u8], length: usize) -> Outcome<(), N> {
        self.begin_value_in(key, length, CellMode::Slc)
    }

    /// The same with so many bits in a cell, if the value takes a raw page and the log has such blocks.
    ///
    /// # Errors
    ///
    /// As [`Engine::begin_value`].
    pub fn begin_value_in(&mut self, key: &[u8], length: usize, mode: CellMode) -> Outcome<(), N> {
        self.check_key(key)?;
        self.keeper.check_writable()?;
        let of = (key, length);
        let begun = self.with_room(|engine| begin_value(&mut engine.keeper, of, (Claim::Grow, mode)));
        match begun {
            Err(EngineError::Log(LogError::Full)) if self.replaces_page(key, length)? => {
                begin_value(&mut self.keeper, of, (Claim::Replace, mode))
            }
            begun => begun,
        }
    }

    /// Whether a value of so many bytes takes one page, and comes in the place of one that has some.
    fn replaces_page(&mut self, key: &[u8], length: usize) -> Outcome<bool, N> {
        let shape = *self.keeper.tree().path.shape();
        let is_single = shape.division(key, length).is_some_and(|division| division.pages() == 1);
        let replaces = value_of(&mut self.keeper, key)?.is_some_and(|value| shape.head(key, value).is_some());
        // What a snapshot is to keep is not replaced.
        Ok(is_single && replaces && !self.owes(key, &[])?)
    }

    /// Whether so many pages of values more may live, and so many others; where values are asked for, beside pages that members of the window may need. What grows is refused where not. Costs a count of the
    /// live pages where it is not known.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn has_room(&mut self, values: u32, others: u32) -> Outcome<bool, N> {
        let members = if values > 0 { members_left(self.keeper.waiting()) } else { 0 };
        self.keeper.has_room(values, others + members)
    }

    /// Whether the tree could not grow if its root took so many bytes more: a page holds only so long a path. Reads the root where it is not in memory; one that cannot be read has no room.
    pub fn is_grown_up(&mut self, more: usize) -> bool {
        let tree = self.keeper.parts().0;
        load_root(tree).is_err() || is_grown_up(&tree.path, more)
    }

    /// Pages of values that may be put yet beside so many others, at least. Costs nothing on flash.
    pub fn pages_left(&mut self, others: u32) -> u32 {
        pages_left(&mut self.keeper, others)
    }

    /// Bytes of the value under way that come next: those of a page, or the last ones, which its head takes; `None` if it is whole. They may be none.
    pub fn value_part(&self) -> Option<usize> {
        self.keeper.values().part()
    }

    /// Takes the next [`Engine::value_part`] bytes of the value under way. 1 program, and a commit after some hundred pages; nothing for bytes that the head takes.
    ///
    /// # Errors
    ///
    /// [`EngineError::ValueSize`] for another number of bytes, before anything was programmed; those of [`Engine::put`], after which the value is given up.
    pub fn append_value(&mut self, key: &[u8], bytes: &[u8]) -> Outcome<(), N> {
        if self.value_part() != Some(bytes.len()) {
            return Err(EngineError::ValueSize(bytes.len()));
        }
        if self.keeper.values_mut().take_rest(bytes) {
            return Ok(());
        }
        let appended = self.call_for_value(|engine| append_value(&mut engine.keeper, key, bytes));
        if appended.is_err() {
            self.keeper.give_up_value();
        }
        appended
    }

    /// Puts the value under way, which is whole. Returns whether the key was there. Durable when it returns, with all before it; but with [`Durability::OnSync`](crate::Durability::OnSync) one of one page waits, as any other
    /// change. 1 program, or what a put takes.
    ///
    /// # Errors
    ///
    /// [`EngineError::ValueSize`] if pages are missing, or no value is under way; those of [`Engine::put`], after which the value is given up.
    pub fn end_value(&mut self, key: &[u8]) -> Outcome<bool, N> {
        self.end_value_by(|engine| match SNAPSHOTS {
            true => put_value(&mut engine.keeper, engine.kept, key),
            false => Ok(put_alone(&mut engine.keeper, key)? == Made::Existed(true)),
        })
    }

    /// Puts the value under way, which is whole and has one page, and makes other changes, at most [`BESIDE_MAX`](crate::BESIDE_MAX), none of which is of this key: all of it or nothing, as [`Engine::batch`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::end_value`] and [`Engine::batch`]; [`EngineError::NotAscending`] also of too many changes, and of one of this key; [`EngineError::ValueSize`] also of a value of more pages. The value is
    /// given up then.
    pub fn end_value_with(&mut self, key: &[u8], beside: &[Edit<'_>]) -> Outcome<(), N> {
        let checked = check_beside(self.keeper.tree().path.shape(), key, beside);
        if checked.is_err() {
            self.keeper.give_up_value();
            return checked;
        }
        let mut room = [0; SINGLE_MAX];
        let values = self.keeper.values();
        let (want, head) = (values.claim(), values.single_head(&mut room));
        let edits = Edits::beside(Edit { key, value: head }, beside);
        self.end_value_by(|engine| match head {
            None => Err(EngineError::ValueSize(0)),
            Some(_) => engine.make(&edits, want).map(drop),
        })
    }

    /// Puts the value under way, which is whole.
    fn end_value_by<T>(&mut self, put: impl FnMut(&mut Self) -> Outcome<T, N>) -> Outcome<T, N> {
        let values = self.keeper.values();
        if values.division().is_none() || values.part().is_some() {
            return Err(EngineError::ValueSize(0));
        }
        let put = self.call_for_value(put);
        match put {
            // One whose head waits is not under way any more.
            Ok(_) => self.keeper.end_value(),
            Err(_) => self.keeper.give_up_value(),
        }
        put
    }

    /// Checks that the pages of a large value are there and have what its head says; `false` if not. `None` if the key has none. Reads each page, and what leads to it.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn verify_value(&mut self, key: &[u8]) -> Outcome<Option<bool>, N> {
        self.check_key(key)?;
        lookup::verify_value(&mut self.keeper, key)
    }

    /// Whether a value goes to pages of its own: it is larger than an entry may be, or looks like what says where such a value is.
    pub fn is_large(&self, key: &[u8], value: &[u8]) -> bool {
        let shape = self.keeper.tree().path.shape();
        shape.has_values() && shape.key_fits(key) && !shape.value_fits(key, value)
    }

    /// Bytes of the largest value that a key may have.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        self.keeper.tree().path.shape().value_size_max(key)
    }

    /// Puts a value at a key. Returns whether the key was there before. Durable when it returns: 1 program; where a leaf is split 1 or 2 more, and one for each
    /// inner node that is split. With [`Durability::OnSync`](crate::Durability::OnSync) it programs that only where the leaf is split, which makes all changes before it durable, too; else nothing, or what
    /// [`Engine::sync`] does if there was no room for it to wait.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeySize`], [`EngineError::ValueSize`], [`EngineError::TooHigh`], [`EngineError::Corrupt`]; those of the log, among them `Full`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool, N> {
        self.check_key(key)?;
        check_value(self.keeper.tree().path.shape(), key, value)?;
        let edit = Edit { key, value: Some(value) };
        self.call(PUT, |engine| engine.make_one(edit, Claim::Grow))
    }

    /// Deletes a key. Returns whether it was there. Durable when it returns; programs nothing if the key was not there. 1 program, or 2 if the leaf does not fit beside its ancestors; with
    /// [`Durability::OnSync`](crate::Durability::OnSync) nothing, or what [`Engine::sync`] does. Not refused for want of room, but in states that chapter 11 of the design names as not kept yet.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeySize`], [`EngineError::Corrupt`]; those of the log but `Full`.
    pub fn delete(&mut self, key: &[u8]) -> Outcome<bool, N> {
        self.check_key(key)?;
        self.call(PUT, |engine| engine.make_one(Edit { key, value: None }, Claim::Free))
    }

    /// Puts a value that fits beside what a commit lists, and makes other changes with it, as [`Engine::end_value_with`] does: the commit has the value, so that all of it is durable when this returns, with everything
    /// before it. False if that cannot be: nothing was changed then. 1 program, and what a [sync](Engine::sync) takes besides where memory is nearly full.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::end_value_with`] but `Full`.
    pub fn put_blob(&mut self, key: &[u8], bytes: &[u8], beside: &[Edit<'_>]) -> Outcome<bool, N> {
        let shape = *self.keeper.tree().path.shape();
        if !shape.has_raw() || !(1..shape.bare_room()).contains(&bytes.len()) {
            return Ok(false);
        }
        check_beside(&shape, key, beside)?;
        if self.owes(key, beside)? {
            return Ok(false);
        }
        self.call(CALL, |engine| put_blob(&mut engine.keeper, key, bytes, beside))
    }

    /// Makes all these changes or none. The keys must strictly ascend. Programs about one page for each leaf concerned, [`BATCH_PAGES_MAX`](crate::BATCH_PAGES_MAX) at most; with
    /// [`Durability::OnSync`](crate::Durability::OnSync) what so many puts do.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotAscending`], [`EngineError::BatchTooLarge`]; those of [`put`](Engine::put). Nothing has changed then.
    pub fn batch(&mut self, edits: &[Edit<'_>]) -> Outcome<(), N> {
        let frees = edits.iter().all(|edit| edit.value.is_none());
        self.batch_by(edits, if frees { Claim::Free } else { Claim::Grow })
    }

    /// The same of changes that leave no less room than there was: not refused for want of room, as a delete is not, though a leaf may have to be divided for them.
    ///
    /// # Errors
    ///
    /// As [`Engine::batch`], but `Full`.
    pub fn batch_freeing(&mut self, edits: &[Edit<'_>]) -> Outcome<(), N> {
        self.batch_by(edits, Claim::Free)
    }

    fn batch_by(&mut self, edits: &[Edit<'_>], want: Claim) -> Outcome<(), N> {
        check_edits(self.keeper.tree().path.shape(), edits)?;
        if edits.is_empty() {
            return Ok(());
        }
        self.call(CALL, |engine| engine.make(&Edits::of(edits), want).map(drop))
    }

    /// Makes every change so far durable, in order. Programs 1 page, or nothing if there is no change since the last sync but what tags tell of; 1 more if a leaf that goes with it leaves no
    /// room for what is to be listed. Where memory for changes is nearly full leaves are programmed besides, until as many changes again have room.
    ///
    /// # Errors
    ///
    /// [`EngineError::Corrupt`]; those of the log but `Full`.
    pub fn sync(&mut self) -> Outcome<(), N> {
        self.call(CALL, |engine| match engine.keeper.is_owed() {
            true => sync(&mut engine.keeper),
            false => Ok(()),
        })
    }

    /// Whether a raw page that is put next can be durable by a tag: then its place in the tail, and how many members the window has. A mount reads all of them.
    pub fn tag_next(&self) -> Option<(u32, usize)> {
        tag_next(&self.keeper)
    }

    /// Puts a value of a whole page at a key by one program, and makes other changes with it, as [`Engine::end_value_with`] does; all of it is durable when this returns. Its tag says this: a mount after a cut hands it out
    /// ([`Engine::next_tagged`]), and whoever mounts makes the same changes again. False if that cannot be, since the chip has no tags, or something else has to be done first: nothing was changed then.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::end_value_with`] but `Full`.
    pub fn put_tagged(&mut self, key: &[u8], of: (&[u8], &Tag), beside: &[Edit<'_>]) -> Outcome<bool, N> {
        if of.0.len() != self.log().page_size() || tag_next(&self.keeper).is_none() {
            return Ok(false);
        }
        check_beside(self.keeper.tree().path.shape(), key, beside)?;
        if self.owes(key, beside)? {
            return Ok(false);
        }
        self.keeper.give_up_value();
        self.call_with_share(|engine| put_tagged(&mut engine.keeper, key, of, beside), |_| CALL)
    }

    /// After a mount: the next page that its tag makes durable, from this place on, at first 0; the buffer, a whole page, gets its bytes, and keeps them where there is none. For each, in order, [`Engine::adopt`] makes the changes again, and for the last one
    /// [`Engine::end_tail`] ends that. Nothing else is changed before. A read for each place, nine at most.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn next_tagged(&mut self, place: &mut u16, bytes: &mut [u8]) -> Outcome<Option<TaggedPage>, N> {
        if bytes.len() == self.log().page_size() { next_tagged(&mut self.keeper, place, bytes) } else { Ok(None) }
    }

    /// Makes the changes in memory again that were made with a tagged page: it is the value of this key, which is a new one or not, and with it go these, which put no new keys. Reads nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Engine::end_value_with`] but `Full`; [`EngineError::PendingSize`].
    pub fn adopt(&mut self, key: &[u8], page: (&TaggedPage, bool), beside: &[Edit<'_>]) -> Outcome<(), N> {
        check_beside(self.keeper.tree().path.shape(), key, beside)?;
        adopt(&mut self.keeper, key, page, beside)
    }

    /// Ends that: of the pages that were handed out this one was the last, and has this key and these bytes. It is programmed elsewhere, since it may be torn, and what was made again becomes durable in another way. 1 program, and 1 for a commit.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn end_tail(&mut self, last: (&TaggedPage, &[u8], &[u8])) -> Outcome<(), N> {
        end_tail(&mut self.keeper, last)
    }

    /// Brings every change to its leaf, so that the volume can be opened without memory for changes. Programs about one page for each leaf concerned, on a full chip too.
    ///
    /// # Errors
    ///
    /// As [`Engine::sync`].
    pub fn merge(&mut self) -> Outcome<(), N> {
        self.call(CALL, |engine| flush(&mut engine.keeper))
    }

    /// Frees some of what nobody needs, for who was refused: what a released snapshot kept; and pages that live until deletions reach their leaves, or members leave. Returns whether there was any; not where the call has taken
    /// half of what it may, which is about what this takes.
    ///
    /// # Errors
    ///
    /// As [`Engine::sync`].
    #[cold]
    pub fn free_some(&mut self) -> Outcome<bool, N> {
        if self.keeper.spent().0 > CALL.0 / 2 {
            return Ok(false);
        }
        let is_removed = SNAPSHOTS && remove_some(&mut self.keeper, self.kept)?;
        Ok(is_removed || GROUP && flush_some(&mut self.keeper, CALL.0 / 2)?)
    }

    /// Changes that are in no leaf yet, synced or not. Costs nothing.
    pub fn pending_count(&self) -> usize {
        let changes = &self.keeper.waiting().changes;
        changes.waits_in(0..changes.len())
    }

    /// Visits the entries between two bounds in order, until `visit` breaks off. Reads each leaf concerned once, and each inner node above them once.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeySize`], [`EngineError::Corrupt`], those of the log.
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Outcome<(), N> {
        lookup::range(&mut self.keeper, (from, to, direction), &mut visit)
    }

    /// The entry above a cursor, which goes behind it; `None` at the end. Reads what [`Engine::get`] does, and a leaf more where the cursor is at the last key of one.
    ///
    /// # Errors
    ///
    /// As [`Engine::range`].
    pub fn next(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        self.step(cursor, Direction::Forward)
    }

    /// The entry below a cursor, which goes before it; `None` at the beginning. Reads as [`Engine::next`].
    ///
    /// # Errors
    ///
    /// As [`Engine::range`].
    pub fn previous(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        self.step(cursor, Direction::Backward)
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    ///
    /// As [`Engine::range`].
    pub fn first(&mut self) -> Outcome<Option<Entry<'_>>, N> {
        self.next(&mut Cursor::default())
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    ///
    /// As [`Engine::range`].
    pub fn last(&mut self) -> Outcome<Option<Entry<'_>>, N> {
        let mut cursor = Cursor::END;
        self.previous(&mut cursor)
    }

    /// Entries in the tree. Costs nothing.
    pub fn record_count(&self) -> u64 {
        self.keeper.records()
    }

    /// Levels in the tree, leaves included.
    pub fn height(&self) -> u8 {
        self.keeper.working().height
    }

    /// The page that the root is in.
    pub fn root(&self) -> PageAddr {
        PageAddr(self.keeper.working().root)
    }

    /// Bytes in the longest key that can be put.
    pub fn key_size_max(&self) -> usize {
        self.shape().key_size_max()
    }

    /// Bytes that key and value of an entry may have together.
    pub fn entry_size_max(&self) -> usize {
        self.shape().entry_size_max()
    }

    /// What the tree did since it was opened.
    pub fn stats(&self) -> &Stats {
        self.keeper.tree().path.stats()
    }

    /// The log, for inspection.
    pub fn log(&self) -> &Log<'m, N> {
        &self.keeper.tree().log
    }

    /// The choice of a block to empty, for a user that has a policy.
    pub fn choice(&mut self) -> Choice<'_, 'm, N> {
        self.keeper.parts().0.log.choice()
    }

    /// Whether a user's change waits for a sync. Moves do not count.
    pub fn is_owed(&self) -> bool {
        self.keeper.waiting().is_owed
    }

    /// The chip, for attribution and inspection. Programming or erasing past the engine destroys the volume.
    pub fn nand_mut(&mut self) -> &mut N {
        self.keeper.parts().0.log.nand_mut()
    }

    /// Checks T1 to T6 and reports each violation. Reads each live page once, a page whose nodes serve several paths again when it no longer is the page read last, and nothing from memory.
    ///
    /// # Errors
    ///
    /// Those of the log but `Corrupt`.
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Outcome<(), N> {
        let count = self.keeper.records();
        let (tree, waiting) = self.keeper.parts();
        verify(tree, (&waiting.changes, count), report)
    }

    /// Checks the log under the tree, see [`Log::verify`] for cost and errors.
    pub fn verify_log(&mut self, report: &mut dyn FnMut(nandu_log::Violation)) -> Outcome<u32, N> {
        Ok(self.keeper.parts().0.log.verify(report)?)
    }

    /// Visits each live page once: those of the tree, commits whose changes are still needed, and the newest commit if it holds no node. Reads the inner nodes that are not in memory.
    ///
    /// # Errors
    ///
    /// [`EngineError::Corrupt`], those of the log.
    pub fn live_pages(&mut self, visit: &mut dyn FnMut(PageAddr)) -> Outcome<(), N> {
        self.keeper.resolve()?;
        self.keeper.visit_live(&mut |_, page, _| visit(page)).map(drop)
    }

    /// Does some of what would be due later: at most so many programs, two where a page of a large value is moved, and a commit where pages were moved. Returns whether anything was programmed
    /// or erased; if not, nothing will be until something changes, unless a cut left owners of raw pages unknown: a call reads all leaves for one group of them.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn idle(&mut self, programs: u32) -> Outcome<bool, N> {
        self.idle_with(Budget::idle(programs), true)
    }

    /// The same with this budget; where nothing is left to do, moves are made to count only if that is wanted.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn idle_with(&mut self, mut budget: Budget, buries: bool) -> Outcome<bool, N> {
        self.keeper.give_up_value();
        let before = self.log().spent();
        self.keeper.ready()?;
        // What is removed may wait in memory.
        let is_removed = SNAPSHOTS && remove_some(&mut self.keeper, self.kept)?;
        self.keeper.collect(&mut budget)?;
        let has_moved = self.log().spent().0 != before.0;
        end_idle(&mut self.keeper, has_moved, (buries, !budget.is_chosen()))?;
        self.keeper.begin();
        Ok(is_removed || self.log().spent() != before)
    }

    /// Takes a snapshot of what there is, with what waits; both are durable when this returns. Returns its number. Nothing is copied: what stands at a key is kept before the first change there. 1 program, or 2 where something waits.
    ///
    /// # Errors
    ///
    /// [`EngineError::TooManySnapshots`]; [`EngineError::NotCompiled`] without [`Options::has_snapshots`], and where keys have one length; those of [`Engine::put`] and [`Engine::sync`].
    pub fn snapshot(&mut self) -> Outcome<u32, N> {
        if !SNAPSHOTS || self.kept.is_empty() || self.shape().cells().key_size() > 0 {
            return Err(EngineError::NotCompiled { feature: &"snapshots" });
        }
        self.call(CALL, |engine| take(&mut engine.keeper))
    }

    /// Releases a snapshot; durable when it returns. What it kept is removed with the calls that follow, some records each. 1 program, or 2 where something waits.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; those of the log but `Full`.
    pub fn release(&mut self, number: u32) -> Outcome<(), N> {
        self.call(CALL, |engine| release(&mut engine.keeper, number))
    }

    /// The snapshots that there are, the oldest first. Costs nothing.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = u32> + use<'m, N, C> {
        self.keeper.values().snapshots().held_numbers()
    }

    /// The engine as it was when a snapshot was taken.
    pub fn at(&mut self, number: u32) -> At<'_, 'm, N, C> {
        At::new(&mut self.keeper, number)
    }

    fn step(&mut self, cursor: &mut Cursor, direction: Direction) -> Outcome<Option<Entry<'_>>, N> {
        let (bound, mut key) = (cursor.bound(direction), KeyBuf::EMPTY);
        match bound.map_or(Ok(false), |bound| nearest(&mut self.keeper, (bound, direction), &mut key))? {
            true => cursor.go_past(key.as_slice(), direction),
            false => return Ok(None),
        }
        entry(&mut self.keeper, cursor.key())
    }

    fn shape(&self) -> &TreeShape<C> {
        self.keeper.tree().path.shape()
    }

    /// Whether a snapshot has to keep something before a change of a key, or of those beside it.
    fn owes(&mut self, key: &[u8], beside: &[Edit<'_>]) -> Outcome<bool, N> {
        Ok(SNAPSHOTS && owes(&mut self.keeper, &Edits::beside(Edit { key, value: None }, beside))?)
    }

    /// As [`Engine::make`], of one. Where there are no snapshots a put and a delete need nothing of batches.
    fn make_one(&mut self, edit: Edit<'_>, want: Claim) -> Outcome<bool, N> {
        match SNAPSHOTS {
            true => self.make(&Edits::of(&[edit]), want),
            false => Ok(make_one(&mut self.keeper, &edit)? == Made::Existed(true)),
        }
    }

    /// Makes changes, and keeps what snapshots need of what stood there. Returns whether the key of the last was there, where it is one.
    fn make(&mut self, edits: &Edits<'_>, want: Claim) -> Outcome<bool, N> {
        let Engine { keeper, kept, .. } = self;
        if !SNAPSHOTS {
            return Ok(make(keeper, edits, want)? == Made::Existed(true));
        }
        keeping(keeper, kept, (edits, want), &mut |keeper, edits| make(keeper, edits, want))
    }

    /// A call that changes something, with its share of collecting: so much together, at most, where the call itself takes less.
    fn call<T>(&mut self, most: Most, work: impl FnMut(&mut Self) -> Outcome<T, N>) -> Outcome<T, N> {
        self.keeper.give_up_value();
        // What a snapshot keeps is more work, and asks for more collecting.
        let has_snapshots = |engine: &Self| SNAPSHOTS && !engine.keeper.values().snapshots().is_empty();
        self.call_with_share(work, |engine| if has_snapshots(engine) { CALL } else { most })
    }

    /// A call for the value under way. The last page and the head are one page's work together: that of a put.
    fn call_for_value<T>(&mut self, work: impl FnMut(&mut Self) -> Outcome<T, N>) -> Outcome<T, N> {
        self.call_with_share(work, |engine| match engine.keeper.values().next() {
            Some(_) => PUT,
            None => LAST_PAGE,
        })
    }

    fn call_with_share<T>(
        &mut self,
        work: impl FnMut(&mut Self) -> Outcome<T, N>,
        most: impl FnOnce(&Self) -> Most,
    ) -> Outcome<T, N> {
        self.keeper.check_writable()?;
        if !self.has_parts {
            self.keeper.begin();
        }
        let done = self.with_room(work)?;
        let most = most(self);
        // What it changed stays changed, if that fails.
        for _ in 0..if SNAPSHOTS { REMOVALS_MAX } else { 0 } {
            let is_whole = self.keeper.values().division().is_none();
            let may_remove = is_whole && self.keeper.spent().0 <= REMOVING_MAX;
            if !may_remove || !matches!(remove_some(&mut self.keeper, self.kept), Ok(true)) {
                break;
            }
        }
        if !self.has_parts {
            self.keeper.end(most);
        }
        Ok(done)
    }

    /// A call of the user's ends, of which the calls before were parts, where they are ([`Options::has_parts`]): its share of collecting is done. What it changed stays changed, if that fails.
    pub fn end_call(&mut self) {
        self.keeper.end(CALL);
    }

    /// Work that may find no room: then something is freed that nobody needs, and it is done again.
    fn with_room<T>(&mut self, mut work: impl FnMut(&mut Self) -> Outcome<T, N>) -> Outcome<T, N> {
        let mut refusals = 0;
        loop {
            match work(self) {
                Err(EngineError::Log(LogError::Full)) if refusals < REFUSALS_MAX && self.free_some()? => refusals += 1,
                outcome => return outcome,
            }
        }
    }

    fn check_key(&self, key: &[u8]) -> Outcome<(), N> {
        check_key(self.keeper.tree().path.shape(), key)
    }
}
