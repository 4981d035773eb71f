//! Pages of large values: programmed, found, moved, named when they die.
//!
//! A page of a value says its key and its number, and lives while the head of that key names it under that number. It is programmed before its head, and promises nothing: a cut
//! between leaves pages that no record names.
//!
//! The head of a value of one page may wait, as any other change. A move of its page then makes another change of it: the head names the copy, and the next commit lists it. Memory holds whatever a member
//! lists (W4), so a head that is not there is in its leaf and nowhere else (W6): a move of its page changes the leaf, as a copy of a leaf does.
//!
//! A raw page says nothing of itself. Its head has its checksum, and the log knows whose it was when it was programmed; only the head says that it lives. A move of one whose head is in its leaf makes a change that waits,
//! where memory has room: the source dies with the commit that lists it, so a cut before that leaves the leaf, which names the source.

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_log::{Kind, Log, Victim};
use nandu_media::change::ListedChange;
use nandu_media::features::{FILES, SNAPSHOTS};
use nandu_media::section::SectionKind;
use nandu_media::tree::Malformed;
use nandu_media::value::{ValueBody, ValueFields};
use nandu_nand::{CellMode, Nand, PageAddr};

use crate::changes::Changes;
use crate::commit::tell;
use crate::descend::{Leaf, descend_to_leaf, find_leaf, leaf_in, look, value_at};
use crate::division::{
    CHECK, Division, SINGLE_MAX, name_raw, names_own_page, number, number_at, number_in, numbers_of, rest_in,
};
use crate::edits::Edits;
use crate::error::{Outcome, corrupt};
use crate::list::Waiting;
use crate::numbers::Numbers;
use crate::reader::{Reader, raw_check};
use crate::reserved::slot_key;
use crate::shape::TreeShape;
use crate::siblings::{MOVED_MAX, is_beside, write_moved};
use crate::tree::{Tree, Visit};
use crate::values::Values;
use crate::writer::Change;

/// Programs the next page of the value under way. The value has this key, and these are its bytes there.
pub(crate) fn append<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    values: &mut Values<'_>,
    change: &mut Change,
    (key, bytes): (&[u8], &[u8]),
) -> Outcome<(), N> {
    let mode = values.raw_next().unwrap_or(CellMode::Slc);
    let (Some(division), Some(page)) = (values.division(), values.next()) else { return Ok(()) };
    if division.is_raw() {
        let out = tree.reader.lend();
        debug_assert!(page == 0 && bytes.len() == division.length(), "a raw page has all of it");
        let (first, last) = out.split_at_mut(bytes.len());
        first.copy_from_slice(bytes);
        last.fill(0xFF);
        values.set_check(raw_check(out));
        let programmed = change.append(&mut tree.log, Kind::Raw(key, mode), out)?;
        tree.reader.programmed(programmed);
        values.programmed(programmed);
        return Ok(());
    }
    let header = tree.path.shape().header_size();
    let numbers: &[u8] = if division.is_leader(page) { values.numbers() } else { &[] };
    debug_assert!(bytes.len() == division.part(page).len(), "the bytes that stand there");
    let size = bytes.len() + numbers.len();
    let fields = ValueFields { length: division.length() as u32, stamp: 0, number: page as u32, key, size };
    let out = tree.reader.lend();
    let content = fields.write(out, header);
    let (first, last) = out[content].split_at_mut(bytes.len());
    first.copy_from_slice(bytes);
    last.copy_from_slice(numbers);
    let programmed = change.append(&mut tree.log, Kind::Value, out)?;
    tree.reader.programmed(programmed);
    values.programmed(programmed);
    Ok(())
}

/// The head of a key in a leaf: where it stands there, and how the value is divided.
fn head_in<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, leaf: &Leaf, key: &[u8]) -> Option<(usize, Division)> {
    let (shape, leaf) = (tree.path.shape(), look(tree, leaf));
    let index = shape.cells().leaf_find(leaf, key).ok()?;
    let division = shape.head(key, shape.cells().leaf_value(leaf, index))?;
    Some((index, division))
}

/// A page number of a head in a leaf.
fn number_of<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, leaf: &Leaf, (index, group): (usize, usize)) -> u32 {
    number_in(tree.path.shape().cells().leaf_value(look(tree, leaf), index), group)
}

/// As [`replace`], of a key of which a change may wait that names a page.
pub(crate) fn replace_waiting<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    key: &[u8],
) -> Outcome<u32, N> {
    let Ok(index) = changes.find(key) else { return replace(tree, key) };
    let page = tree.path.shape().page_of(key, changes.value(index));
    page.map_or(Ok(0), |page| {
        tree.path.replace(page);
        Ok(1)
    })
}

/// Notes the pages that the head of a key in its leaf names: they are replaced. The leaf is on flash as it is. Returns how many pages the value has.
pub(crate) fn replace<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, key: &[u8]) -> Outcome<u32, N> {
    named(tree, key, &mut |tree, page| match page {
        Some(page) => tree.path.replace(page),
        None => tree.path.replaced_mut().is_short_of_some(),
    })
}

/// Whom a page that a head names is told; `None` stands for some that only others name.
type Tell<'v, 'm, N, C> = &'v mut dyn FnMut(&mut Tree<'m, N, C>, Option<u32>);

/// Visits the pages that the head of a key in its leaf names; `None` stands for some that only others name. Returns how many pages the value has.
fn named<'m, N: Nand, C: Cells>(tree: &mut Tree<'m, N, C>, key: &[u8], visit: Tell<'_, 'm, N, C>) -> Outcome<u32, N> {
    if !tree.path.state().counts.may_have_heads() {
        return Ok(0);
    }
    debug_assert!(!tree.path.is_dirty(), "the leaf is as it is on flash");
    let page = find_leaf(tree, key)?;
    let leaf = leaf_in(tree, page)?;
    let Some((index, division)) = head_in(tree, &leaf, key) else { return Ok(0) };
    for group in 0..division.heads() {
        let page = number_of(tree, &leaf, (index, group));
        visit(tree, (page < tree.path.shape().page_count()).then_some(page));
    }
    if division.is_grouped() {
        visit(tree, None);
    }
    Ok(division.pages() as u32)
}

/// Whether one of these changes keeps the value in pages that stands at a key: then these do not die.
pub(crate) fn is_kept_by<C: Cells>(shape: &TreeShape<C>, edits: &Edits<'_>, key: &[u8]) -> bool {
    SNAPSHOTS
        && edits.iter().any(|it| it.key != key && keeps(shape, &it) && shape.user_key(it.key) == shape.user_key(key))
}

/// Whether a change keeps a value in pages that has stood elsewhere.
pub(crate) fn keeps<C: Cells>(shape: &TreeShape<C>, edit: &Edit<'_>) -> bool {
    SNAPSHOTS && shape.is_reserved(edit.key) && edit.value.is_some_and(|value| shape.head(edit.key, value).is_some())
}

/// How many pages of values more records name by a change, without what it replaces.
pub(crate) fn pages_named<C: Cells>(shape: &TreeShape<C>, edit: &Edit<'_>) -> u32 {
    let head = edit.value.filter(|_| !keeps(shape, edit)).and_then(|value| shape.head(edit.key, value));
    head.map_or(0, |division| division.pages() as u32)
}

/// What waits takes the place of what was at a key: the pages that its head names die with the next commit, as far as so many deaths and those of members can be told yet. Returns how many pages, and whether all were told.
pub(crate) fn head_dies<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    (key, kept): (&[u8], usize),
) -> Outcome<(u32, bool), N> {
    let Waiting { changes, window, .. } = waiting;
    let (mut is_all, kept) = (true, kept + window.len());
    let dies = &mut |tree: &mut Tree<'_, N, C>, page| match page {
        // A member dies when it leaves.
        Some(page) if window.leaf_died(page) => {}
        Some(page) if tree.log.dying_room() > kept => tree.log.dies(PageAddr(page)),
        _ => is_all = false,
    };
    let fewer = match changes.find(key) {
        Ok(index) => {
            let page = tree.path.shape().page_of(key, changes.value(index));
            page.map_or(0, |page| {
                dies(tree, Some(page));
                1
            })
        }
        Err(_) => named(tree, key, dies)?,
    };
    Ok((fewer, is_all))
}

/// Reads a page of a value, which says that it is this one of this key's.
fn read_page<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    page: u32,
    (key, number): (&[u8], usize),
) -> Outcome<ValueBody, N> {
    let body = tree.reader.value(&mut tree.log, page)?;
    let key = tree.path.shape().user_key(key);
    let is_it = body.number as usize == number && tree.reader.of_value(body.key.clone()) == key;
    if is_it { Ok(body) } else { Err(corrupt(page, Malformed::Node)) }
}

/// The page of a group's member that a leader names, which was read last.
fn follower<N: Nand, C: Cells>(
    tree: &Tree<'_, N, C>,
    (leader, body): (u32, &ValueBody),
    (pages, place): (usize, usize),
) -> Outcome<u32, N> {
    let numbers = numbers_of(&body.content, pages).ok_or_else(|| corrupt(leader, Malformed::Short))?;
    Ok(number(&tree.reader.of_value(numbers)[4 * place..]))
}

/// What names a page of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namer {
    /// A head in memory.
    Change,
    /// The head in its leaf, which is in the path: it is this one of the value.
    Leaf(usize),
}

/// Of which key a page of a value is, or the value in a commit, which was read last, and which of its pages; `None` for a key that no record has.
pub(crate) fn key_of<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    page: u32,
    key: &mut KeyBuf,
) -> Outcome<Option<usize>, N> {
    if tree.path.shape().has_raw() {
        return Ok(blob_key(tree, page, key)?.then_some(0));
    }
    let body = tree.reader.value(&mut tree.log, page)?;
    Ok(key.set(tree.reader.of_value(body.key)).then_some(body.number as usize))
}

/// The key of the value in a commit: that of the change which says that its value is in the commit that lists it.
fn blob_key<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, page: u32, key: &mut KeyBuf) -> Outcome<bool, N> {
    let Some(range) = tree.reader.sections(&mut tree.log, page)?.find(SectionKind::Changes) else { return Ok(false) };
    let (format, mut rest) = (tree.path.shape().format(), tree.reader.lent(range));
    while !rest.is_empty() {
        let (change, behind) = ListedChange::parse(&format, rest).map_err(|why| corrupt(page, why))?;
        if change.value.is_some_and(names_own_page) {
            return Ok(key.set(change.key));
        }
        rest = behind;
    }
    Ok(false)
}

/// What names a page of a value, which is this one of a user's key: the record of that key, or one in which a snapshot keeps it, whose key that becomes then.
pub(crate) fn find_namer<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (changes, numbers): (&Changes<'_>, &Numbers),
    (page, number): (u32, usize),
    key: &mut KeyBuf,
) -> Outcome<Option<Namer>, N> {
    let named = lives(tree, changes, (page, key.as_slice(), number))?;
    if named.is_some() || !SNAPSHOTS {
        return Ok(named);
    }
    debug_assert!(!tree.path.is_dirty(), "nothing is under way");
    for snapshot in numbers.iter() {
        let kept = slot_key(snapshot.slot);
        // A key that leaves no room for this is none of a user.
        if !key.prepend(&kept) {
            break;
        }
        let named = lives(tree, changes, (page, key.as_slice(), number))?;
        if named.is_some() {
            return Ok(named);
        }
        key.drop_front(kept.len());
    }
    Ok(None)
}

/// What names a page of a value, which is this one of this record's.
fn lives<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    (page, key, number): (u32, &[u8], usize),
) -> Outcome<Option<Namer>, N> {
    if !tree.path.shape().key_fits(key) {
        return Ok(None);
    }
    // What is in memory takes the place of a head.
    if let Ok(index) = changes.find(key) {
        let named = tree.path.shape().page_of(key, changes.value(index));
        return Ok((named == Some(page) && number == 0).then_some(Namer::Change));
    }
    descend_to_leaf(tree, key)?;
    let Some((index, division)) = head_in(tree, &Leaf::OfPath, key) else { return Ok(None) };
    if number >= division.pages() {
        return Ok(None);
    }
    let (group, place) = division.place(number);
    let leader = number_of(tree, &Leaf::OfPath, (index, group));
    let is_named = match division.is_leader(number) {
        true => leader == page,
        false => {
            let pages = division.pages_of(group);
            let body = read_page(tree, leader, (key, number - place + pages - 1))?;
            follower(tree, (leader, &body), (pages, place))? == page
        }
    };
    Ok(is_named.then_some(Namer::Leaf(number)))
}

/// Programs a page elsewhere that a head in memory names: the head names the copy from now on. The next commit has room for what it has to say of that, and the source dies with it: after a cut before it what is on flash names the source.
fn copy_waiting<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &mut Changes<'_>,
    (key, victim): (&[u8], &Victim),
) -> Outcome<u32, N> {
    let Ok(index) = changes.find(key) else { return Ok(0) };
    let head = changes.value(index).unwrap_or_default();
    let shape = tree.path.shape();
    let (page, head) =
        (victim.page().0, if shape.has_raw() { shape.head(key, head).map(|it| (head, it)) } else { None });
    let new = match head {
        Some((head, division)) => {
            let check = load_checked((&mut tree.log, &mut tree.reader), (page, head), &division)?;
            let new = program_copy(tree, (key, true), victim)?;
            changes.set_raw(index, (new, check));
            new
        }
        None => {
            tree.reader.value(&mut tree.log, page)?;
            let new = program_copy(tree, (key, false), victim)?;
            changes.set_page(index, new);
            new
        }
    };
    tree.log.dies(victim.page());
    tree.path.stats_mut().moves += 1;
    debug_assert!(tree.path.shape().page_of(key, changes.value(index)) == Some(new), "the head says so");
    Ok(1)
}

/// Programs a raw page elsewhere that a head in its leaf names, which is in the path: a change waits that the head names the copy.
fn copy_and_wait<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &mut Changes<'_>,
    (key, victim): (&[u8], &Victim),
) -> Outcome<u32, N> {
    debug_assert!(changes.find(key).is_err(), "what waits of the key is changed where it is");
    let Some((index, division)) = head_in(tree, &Leaf::OfPath, key) else { return Ok(0) };
    debug_assert!(division.has_check(), "its page says nothing of itself");
    let mut room = [0; SINGLE_MAX];
    let value = tree.path.shape().cells().leaf_value(tree.path.held_leaf(), index);
    let head = &mut room[..value.len()];
    head.copy_from_slice(value);
    let check = load(tree, (index, victim.page().0), (key, 0), &division)?;
    let new = program_copy(tree, (key, true), victim)?;
    name_raw(head, (new, check.unwrap_or_default()));
    changes.set_unsynced(&Edit { key, value: Some(head) }, 0);
    tree.log.dies(victim.page());
    tree.path.stats_mut().moves += 1;
    debug_assert!(!tree.path.is_dirty(), "the leaf stays as it is");
    Ok(1)
}

/// Programs a page of a value elsewhere, which is named so, and says so in memory, if that may be, or in its leaf. Returns how many of the block's pages moved. The memory of the key holds other keys then.
pub(crate) fn copy<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    (key, named, waits): (&mut KeyBuf, Namer, bool),
    (victim, most): (&Victim, usize),
) -> Outcome<u32, N> {
    match named {
        Namer::Change => copy_waiting(tree, &mut waiting.changes, (key.as_slice(), victim)),
        Namer::Leaf(_) if waits => copy_and_wait(tree, &mut waiting.changes, (key.as_slice(), victim)),
        Namer::Leaf(number) => copy_in_leaf(tree, waiting, (key, number), (victim, most)),
    }
}

/// Programs a page that lives elsewhere, with other pages of its block that heads of the same leaf name, so many in all, and then that leaf, which is in the path. Returns how many
/// of the block's pages moved.
fn copy_in_leaf<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    (key, page): (&mut KeyBuf, usize),
    (victim, most): (&Victim, usize),
) -> Outcome<u32, N> {
    debug_assert!(!tree.path.is_dirty() && tree.path.leaf().is_some(), "the leaf is as it is on flash");
    let most = most.clamp(1, MOVED_MAX);
    let Some((first, division)) = head_in(tree, &Leaf::OfPath, key.as_slice()) else { return Ok(0) };
    let mut moved = match division.is_grouped() {
        true => copy_grouped(tree, (key.as_slice(), page), (first, &division), (victim, most))?,
        false => copy_named(tree, (key.as_slice(), page), (first, &division), victim)?,
    };
    let cells = tree.path.shape().cells();
    let other = key;
    for index in 0..cells.leaf_count(tree.path.held_leaf()) {
        cells.leaf_key(tree.path.held_leaf(), index, other);
        if waiting.changes.find(other.as_slice()).is_ok() {
            // Its pages are dying, or it is named in memory.
            continue;
        }
        let Some((_, division)) = head_in(tree, &Leaf::OfPath, other.as_slice()) else { continue };
        for number in 0..division.heads() {
            let old = number_of(tree, &Leaf::OfPath, (index, number));
            // What cannot be read the log asks for yet.
            let is_free = is_beside(tree, old, victim) && !waiting.window.contains(old);
            let may_move = moved < most && !division.is_grouped() && is_free;
            if may_move && load(tree, (index, old), (other.as_slice(), number), &division).is_ok() {
                moved += copy_named(tree, (other.as_slice(), number), (index, &division), victim)?;
            }
        }
    }
    debug_assert!((1..=most + 1).contains(&moved), "the page that was asked about moved");
    tree.path.touch(0);
    moved += write_moved(tree, victim, most.saturating_sub(moved))?;
    tree.path.stats_mut().moves += moved as u64;
    let is_all = tell(tree, waiting, None);
    debug_assert!(is_all, "a move is made where there is room for its deaths");
    Ok(moved as u32)
}

/// Programs a page that a head names elsewhere, in whose leaf that is then said.
fn copy_named<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (key, number): (&[u8], usize),
    (index, division): (usize, &Division),
    victim: &Victim,
) -> Outcome<usize, N> {
    let old = number_of(tree, &Leaf::OfPath, (index, number));
    let check = load(tree, (index, old), (key, number), division)?;
    let new = program_copy(tree, (key, check.is_some()), victim)?;
    tree.path.replace(old);
    match check {
        Some(check) => name_raw(head_mut(tree, index), (new, check)),
        None => patch(tree, (index, number), new),
    }
    Ok(1)
}

/// Reads a page that a head of the leaf in the path names. Returns the checksum that it has as a raw page, if it is to be one.
fn load<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (index, page): (usize, u32),
    of: (&[u8], usize),
    division: &Division,
) -> Outcome<Option<u32>, N> {
    let Tree { log, path, reader } = tree;
    let head = path.shape().cells().leaf_value(path.held_leaf(), index);
    if division.has_check() {
        return load_checked((log, reader), (page, head), division).map(Some);
    }
    read_page(tree, page, of).map(|_| None)
}

/// Where the head of a key stands in the leaf in the path.
pub(crate) fn head_in_path<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, key: &[u8]) -> Option<usize> {
    head_in(tree, &Leaf::OfPath, key).map(|(index, _)| index)
}

/// Reads a page that is named so as a raw page. Returns its checksum.
pub(crate) fn load_named<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    (key, named): (&[u8], Namer),
    page: u32,
) -> Outcome<u32, N> {
    let Tree { log, path, reader } = tree;
    let index = if named == Namer::Change { changes.find(key).ok() } else { None };
    let head = match index {
        Some(index) => changes.value(index).unwrap_or_default(),
        None => {
            let (cells, leaf) = (path.shape().cells(), path.held_leaf());
            cells.leaf_find(leaf, key).map_or(&[][..], |index| cells.leaf_value(leaf, index))
        }
    };
    let division = path.shape().head(key, head).ok_or_else(|| corrupt(page, Malformed::Node))?;
    load_checked((log, reader), (page, head), &division)
}

/// Reads the value in one page that a head names, as a raw page. Returns its checksum.
fn load_checked<N: Nand, C: Cells>(
    (log, reader): (&mut Log<'_, N>, &mut Reader<'_, C>),
    (page, head): (u32, &[u8]),
    division: &Division,
) -> Outcome<u32, N> {
    let check = check_in(head, division).unwrap_or_default();
    if division.is_blob() {
        return reader.blob_as_raw(log, (page, check), division.length());
    }
    reader.raw(log, (page, check))?;
    Ok(check)
}

/// The checksum of the value in one page that a head names.
fn check_in(head: &[u8], division: &Division) -> Option<u32> {
    let check = head.get(CHECK).filter(|_| division.has_check())?;
    Some(number(check))
}

/// The same for a page of a group, with its leader.
fn copy_grouped<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (key, page): (&[u8], usize),
    (index, division): (usize, &Division),
    (victim, most): (&Victim, usize),
) -> Outcome<usize, N> {
    let (group, place) = division.place(page);
    let pages = division.pages_of(group);
    debug_assert!(division.is_grouped() && place < pages, "a page of a group");
    let first = page - place;
    let leader = number_of(tree, &Leaf::OfPath, (index, group));
    let mut moved = [(0, 0); MOVED_MAX];
    let mut count = 0;
    let others = (0..pages - 1).filter(|&other| other != place);
    for other in core::iter::once(place).filter(|&place| place + 1 < pages).chain(others) {
        if count == most {
            break;
        }
        let body = read_page(tree, leader, (key, first + pages - 1))?;
        let old = follower(tree, (leader, &body), (pages, other))?;
        if !is_beside(tree, old, victim) {
            continue;
        }
        match read_page(tree, old, (key, first + other)) {
            Err(_) if other != place => continue,
            read => read?,
        };
        moved[count] = (other, program(tree, old, victim)?);
        count += 1;
    }
    let body = read_page(tree, leader, (key, first + pages - 1))?;
    let numbers = numbers_of(&body.content, pages).ok_or_else(|| corrupt(leader, Malformed::Short))?;
    let is_leader_beside = is_beside(tree, leader, victim);
    let bytes = tree.reader.lend();
    for (other, new) in &moved[..count] {
        bytes[numbers.start + 4 * other..][..4].copy_from_slice(&new.to_le_bytes());
    }
    let new = program(tree, leader, victim)?;
    patch(tree, (index, group), new);
    Ok(count + usize::from(is_leader_beside))
}

/// A head of the leaf in the path.
pub(crate) fn head_mut<'t, N: Nand, C: Cells>(tree: &'t mut Tree<'_, N, C>, index: usize) -> &'t mut [u8] {
    let leaf = tree.path.held_leaf();
    let head = tree.path.shape().cells().leaf_value(leaf, index);
    let (start, size) = (head.as_ptr().addr() - leaf.as_ptr().addr(), head.len());
    debug_assert!(start + size <= leaf.len(), "a value in the leaf");
    &mut tree.path.held_leaf_mut()[start..start + size]
}

/// A head of the leaf in the path names another page from now on.
fn patch<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, (index, number): (usize, usize), page: u32) {
    head_mut(tree, index)[number_at(number)].copy_from_slice(&page.to_le_bytes());
    debug_assert!(number_of(tree, &Leaf::OfPath, (index, number)) == page, "the head says so");
}

/// Programs what the reader holds of a page anew, which is replaced.
fn program<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, old: u32, victim: &Victim) -> Outcome<u32, N> {
    let new = program_copy(tree, (&[], false), victim)?;
    tree.path.replace(old);
    Ok(new)
}

/// Programs what the reader holds of a page anew; a raw page is of this key.
pub(crate) fn program_copy<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (key, is_raw): (&[u8], bool),
    victim: &Victim,
) -> Outcome<u32, N> {
    let kind = if is_raw { Kind::Raw(tree.path.shape().user_key(key), CellMode::Slc) } else { Kind::Value };
    let PageAddr(new) = tree.log.copy(tree.reader.lend(), kind, victim)?;
    tree.reader.programmed(new);
    Ok(new)
}

/// How many heads there are, and how many pages their values have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadCounts {
    pub(crate) count: u32,
    pub(crate) pages: u32,
    /// Leaves of records of a user, where they were counted, and of those that the youngest snapshot kept.
    pub(crate) leaves: u32,
    pub(crate) kept: u32,
}

/// Visits the pages that the heads of a leaf name, unless something waits that takes their place, and counts them. Reads the leaders of groups.
pub(crate) fn visit_leaf<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (page, changes): (u32, &Changes<'_>),
    visit: Visit<'_, N>,
) -> Outcome<HeadCounts, N> {
    let cells = tree.path.shape().cells();
    let mut leaf = leaf_in(tree, page)?;
    let count = cells.leaf_count(look(tree, &leaf));
    let mut heads = HeadCounts::default();
    for index in 0..count {
        let Some(division) = visit_head(tree, (&leaf, index, changes), &mut heads, visit) else { continue };
        for group in 0..division.heads() {
            let leader = number_of(tree, &leaf, (index, group));
            visit_group(tree, (leader, division.pages_of(group)), visit)?;
            leaf = leaf_in(tree, page)?;
        }
    }
    Ok(heads)
}

/// Visits the pages that an entry of a leaf names if it is a head, unless something waits that takes its place, and counts it. Returns how the value is divided where leaders name more of its pages. The key is off the stack when these are read.
#[inline(never)]
fn visit_head<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (leaf, index, changes): (&Leaf, usize, &Changes<'_>),
    heads: &mut HeadCounts,
    visit: Visit<'_, N>,
) -> Option<Division> {
    let cells = tree.path.shape().cells();
    let (bytes, mut key) = (look(tree, leaf), KeyBuf::EMPTY);
    cells.leaf_key(bytes, index, &mut key);
    let division = tree.path.shape().head(key.as_slice(), cells.leaf_value(bytes, index))?;
    heads.count += 1;
    if changes.find(key.as_slice()).is_ok() {
        return None;
    }
    heads.pages += division.pages() as u32;
    for group in 0..division.heads() {
        let leader = number_of(tree, leaf, (index, group));
        visit(&mut tree.log, PageAddr(leader), tree.path.shape().user_key(key.as_slice()));
    }
    division.is_grouped().then_some(division)
}

/// Whether a head in memory names a page.
pub(crate) fn waits_for<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, changes: &Changes<'_>, page: u32) -> bool {
    let shape = tree.path.shape();
    shape.has_raw() && changes.edits(0..changes.len()).any(|it| shape.page_of(it.key, it.value) == Some(page))
}

/// Visits the pages that heads in memory name.
pub(crate) fn visit_waiting<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    visit: Visit<'_, N>,
) -> u32 {
    debug_assert!(!tree.path.is_dirty(), "what lives is on flash");
    let mut count = 0;
    if tree.path.shape().has_values() {
        for edit in changes.edits(0..changes.len()) {
            if let Some(page) = tree.path.shape().page_of(edit.key, edit.value) {
                visit(&mut tree.log, PageAddr(page), tree.path.shape().user_key(edit.key));
                count += 1;
            }
        }
    }
    count
}

/// Visits the pages that a leader names.
fn visit_group<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (leader, pages): (u32, usize),
    visit: Visit<'_, N>,
) -> Outcome<(), N> {
    debug_assert!(pages > 0, "a group has a leader");
    let body = tree.reader.value(&mut tree.log, leader)?;
    for place in 0..pages - 1 {
        let page = follower(tree, (leader, &body), (pages, place))?;
        visit(&mut tree.log, PageAddr(page), &[]);
    }
    Ok(())
}

/// Visits the pages of the value under way.
pub(crate) fn visit_open<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    values: &Values<'_>,
    visit: Visit<'_, N>,
) -> Outcome<(), N> {
    let Some(division) = values.division() else { return Ok(()) };
    for group in 0..values.leaders() {
        let leader = values.leader(group);
        // Of a raw page the log is to know whose it is: it does not ask again when the value is whole.
        let owner = values.owner();
        visit(&mut tree.log, PageAddr(leader), if FILES { owner.key().unwrap_or_default() } else { &[] });
        if division.is_grouped() {
            visit_group(tree, (leader, division.pages_of(group)), visit)?;
        }
    }
    for page in values.numbers().chunks_exact(4) {
        visit(&mut tree.log, PageAddr(number(page)), &[]);
    }
    Ok(())
}

/// Copies what a value has from `offset` on into `out`, as far as both go. Returns the bytes of the whole value; `None` if the key has no large one. Reads a page for each page of the value, and for each leader.
pub(crate) fn read<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (changes, scratch): (&Changes<'_>, &mut [u8]),
    (key, offset): (&[u8], usize),
    out: &mut [u8],
) -> Outcome<Option<usize>, N> {
    let shape = *tree.path.shape();
    let Some((head, division)) = value_at(tree, changes, key)?.and_then(|value| Some((value, shape.head(key, value)?)))
    else {
        return Ok(None);
    };
    let (head_room, numbers) = scratch.split_at_mut(head.len());
    head_room.copy_from_slice(head);
    let end = offset.saturating_add(out.len()).min(division.length());
    let mut at = offset;
    // The numbers of a group are read once.
    let mut group_read = None;
    while at < end.min(division.rest().start) {
        let number_of_page = division.page_at(at);
        let (group, place) = division.place(number_of_page);
        let mut page = number_in(head_room, group);
        if !division.is_leader(number_of_page) {
            let pages = division.pages_of(group);
            if group_read != Some(group) {
                let body = read_page(tree, page, (key, number_of_page - place + pages - 1))?;
                let from = numbers_of(&body.content, pages).ok_or_else(|| corrupt(page, Malformed::Short))?;
                numbers[..from.len()].copy_from_slice(tree.reader.of_value(from));
                group_read = Some(group);
            }
            page = number(&numbers[4 * place..]);
        }
        let part = division.part(number_of_page);
        let to = part.end.min(end);
        if let Some(check) = check_in(head_room, &division) {
            let bytes = if division.is_blob() {
                let range = tree.reader.blob(&mut tree.log, (page, check), division.length())?;
                &tree.reader.lent(range)[at..to]
            } else {
                tree.reader.raw(&mut tree.log, (page, check))?;
                tree.reader.of_value(at..to)
            };
            out[at - offset..to - offset].copy_from_slice(bytes);
            at = to;
            continue;
        }
        let body = read_page(tree, page, (key, number_of_page))?;
        let from = body.content.start + at - part.start;
        if body.length as usize != division.length() || from + (to - at) > body.content.end {
            return Err(corrupt(page, Malformed::Short));
        }
        out[at - offset..to - offset].copy_from_slice(tree.reader.of_value(from..from + (to - at)));
        at = to;
    }
    if at < end {
        let rest = rest_in(head_room, &division);
        let from = at - division.rest().start;
        out[at - offset..end - offset].copy_from_slice(&rest[from..from + end - at]);
    }
    Ok(Some(division.length()))
}
