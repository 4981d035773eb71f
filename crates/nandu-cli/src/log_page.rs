//! What a page of a volume of nandu's says of itself: its header, and what its kind holds.

use std::fmt::Write as _;

use nandu_media::change::{ListedChange, TAG_HERE};
use nandu_media::header::{begins_format_one, header_size};
use nandu_media::path::PathBody;
use nandu_media::section::SectionKind;
use nandu_media::table::RECORD_SIZE;
use nandu_media::tree::CellFormat;
use nandu_media::value::ValueBody;
use nandu_media::{Anchor, BlockRecord, BlockState, Malformed, Page, PageKind, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode, Geometry, PageAddr};
use serde_json::{Value, json};

use crate::{hexdump, units};

/// Changes and groups of raw pages that are shown in words, at most. All of them are in what is printed for programs.
const SHOWN_MAX: usize = 12;

/// Bytes of a key that are shown in words, at most.
const KEY_SHOWN_MAX: usize = 40;

/// Bytes for the owner of a raw page: the length of its key, and the key.
const OWNER_SIZE: usize = 12;

/// The length of a key that stands for a summary behind which nothing follows.
const OWNER_END: u8 = u8::MAX;

/// Where in the entries of a tree the number of pages of values stands, and how many bits the two have.
const RECORDS_BITS: u32 = 39;
const PAGES_BITS: u32 = 23;

/// Where a page stands.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) page: PageAddr,
    /// How the cells of its block are used.
    pub(crate) mode: CellMode,
}

/// Checks a page; `None` if it does not begin as one of nandu's.
fn open(bytes: &[u8]) -> Option<Result<Page<'_>, String>> {
    match Page::parse(bytes) {
        Ok(page) => Some(Ok(page)),
        Err(Malformed::Size | Malformed::Magic) => None,
        Err(_) if begins_format_one(bytes) => Some(Err("a page of an anchor block of format 1".to_owned())),
        Err(_) if bytes.get(6) == Some(&1) => Some(Err("a page of format 1".to_owned())),
        Err(why) => Some(Err(format!("begins as a page of nandu, but is none: {why}"))),
    }
}

/// What a page says, in words; `None` if it does not begin as one of nandu's.
pub(crate) fn describe(bytes: &[u8], place: Place<'_>) -> Option<String> {
    let header = match open(bytes)? {
        Ok(header) => header,
        Err(why) => return Some(format!("nandu: {why}")),
    };
    let kind = header.kind();
    let mut text = format!("nandu: {} page, sequence {}", kind_name(kind), units::count_of(header.sequence()));
    for (is_so, what) in [
        (header.is_commit() && kind != PageKind::Commit, ", commit"),
        (header.is_moved(), ", moved"),
        (header.is_clean(), ", nothing was programmed after it"),
    ] {
        if is_so {
            text.push_str(what);
        }
    }
    if header.page() != place.page.0 {
        text.push_str(&format!(", misplaced: it says that it is page {}", header.page()));
    }
    let (volume, stream, count) = (header.volume(), header.stream(), header.stream_count());
    let checkpoint = header.checkpoint();
    // The same field of a block table page names the anchor before it.
    let before = if kind == PageKind::Table { "anchor" } else { "commit" };
    text.push_str(&format!("\n       volume {volume:#010x}, "));
    text.push_str(&match kind.is_of_the_log() {
        true => format!("checkpoint {checkpoint}"),
        false => format!("stream {stream} of {count}, after checkpoint {checkpoint}"),
    });
    match header.committed() {
        Some(page) => text.push_str(&format!(", {before} before it in page {page}")),
        None => text.push_str(&format!(", no {before} before it")),
    }
    for line in content(bytes, &header, place).unwrap_or_else(|why| vec![why]) {
        text.push_str("\n       ");
        text.push_str(&line);
    }
    Some(text)
}

/// The same for programs.
pub(crate) fn json(bytes: &[u8], place: Place<'_>) -> Option<Value> {
    let header = match open(bytes)? {
        Ok(header) => header,
        Err(why) => return Some(json!({ "malformed": why })),
    };
    let positions = (0..usize::from(header.stream_count())).map(|stream| {
        let position = header.position(stream);
        position.slot().map_or(Value::Null, |slot| json!({ "slot": slot, "last": position.last() }))
    });
    let mut object = json!({
        "kind": kind_name(header.kind()),
        "sequence": header.sequence(),
        "page": header.page(),
        "volume": header.volume(),
        "stream": header.stream(),
        "stream_count": header.stream_count(),
        "checkpoint": header.checkpoint(),
        "committed": header.committed(),
        "commit": header.is_commit(),
        "moved": header.is_moved(),
        "clean": header.is_clean(),
        "positions": positions.collect::<Vec<_>>(),
    });
    match content_json(bytes, &header, place) {
        Ok(content) => object["content"] = content,
        Err(why) => object["malformed"] = why.into(),
    }
    Some(object)
}

/// What the kind of a page holds, a line each.
fn content(bytes: &[u8], header: &Page<'_>, place: Place<'_>) -> Result<Vec<String>, String> {
    match header.kind() {
        PageKind::Anchor => anchor(header),
        PageKind::Table => Ok(vec![records(table_records(header))]),
        PageKind::Commit | PageKind::Node => path(bytes, header),
        PageKind::Value => value(bytes, header),
        PageKind::Summary => Ok(summary(header.body(), place)),
        _ => Ok(Vec::new()),
    }
}

fn content_json(bytes: &[u8], header: &Page<'_>, place: Place<'_>) -> Result<Value, String> {
    match header.kind() {
        PageKind::Anchor => anchor_json(header),
        PageKind::Table => Ok(json!({ "records": table_records(header).map(record_json).collect::<Vec<_>>() })),
        PageKind::Commit | PageKind::Node => path_json(bytes, header),
        PageKind::Value => value_json(bytes, header),
        PageKind::Summary => Ok(summary_json(header.body(), place)),
        _ => Ok(Value::Null),
    }
}

fn kind_name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Anchor => "anchor",
        PageKind::Table => "block table",
        PageKind::Value => "value",
        PageKind::Summary => "summary",
        PageKind::Commit => "commit",
        PageKind::Node => "node",
        _ => "unknown",
    }
}

/// Numbers as people list them; "none" if there is none.
fn numbers(numbers: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
}

// Anchors and block tables.

/// What a volume has that not all have.
fn features(anchor: &Anchor<'_>) -> Vec<&'static str> {
    [
        (anchor.raw_streams() > 0, "raw pages"),
        (anchor.mlc_streams() > 0, "two bits a cell"),
        (anchor.tags().is_some(), "tags"),
    ]
    .into_iter()
    .filter_map(|(is_so, name)| is_so.then_some(name))
    .collect()
}

fn anchor(header: &Page<'_>) -> Result<Vec<String>, String> {
    let anchor = Anchor::parse(header).map_err(|why| why.to_string())?;
    let mut volume = format!(
        "{} of {} of {}",
        units::things(anchor.block_count().into(), "block"),
        units::things(anchor.pages_per_block().into(), "page"),
        units::things(anchor.page_size().into(), "byte"),
    );
    for feature in features(&anchor) {
        let _ = write!(volume, ", {feature}");
    }
    if anchor.is_read_only() {
        volume.push_str(", can only be read");
    }
    let base = anchor.anchors().get(usize::from(anchor.base())).copied().flatten();
    let anchors = numbers(anchor.anchors().into_iter().flatten());
    let stable = base.map_or_else(|| "a block that is lost".to_owned(), |block| format!("block {block}"));
    let heads = anchor.heads().enumerate().filter_map(|(stream, head)| {
        let head = head?;
        Some(format!("{stream} in block {} with {}", head.block, units::things(head.next.into(), "page")))
    });
    let heads: Vec<String> = heads.collect();
    let heads = if heads.is_empty() { "none".to_owned() } else { heads.join(", ") };
    let mut lines = vec![
        volume,
        format!("anchor blocks {anchors}; the newest stable checkpoint in {stable}"),
        format!("open streams: {heads}"),
        format!("opened next, {} at most: {}", anchor.ready_max(), numbers(anchor.ready())),
    ];
    if let Some(Some(tail)) = anchor.tags() {
        let due = if tail.is_due { ", which count in any case" } else { "" };
        let commit = units::count_of(tail.commit);
        lines.push(format!("tagged pages from page {} on, behind the commit with sequence {commit}{due}", tail.first));
    }
    lines.push(match anchor.table().len() {
        0 => records(anchor.records().iter().map(|&record| BlockRecord::from_bytes(record))),
        _ => format!("block table in pages {}", numbers(anchor.table())),
    });
    Ok(lines)
}

fn anchor_json(header: &Page<'_>) -> Result<Value, String> {
    let anchor = Anchor::parse(header).map_err(|why| why.to_string())?;
    let heads = anchor
        .heads()
        .map(|head| head.map_or(Value::Null, |head| json!({ "block": head.block, "pages": head.next })))
        .collect::<Vec<_>>();
    let tail = anchor.tags().flatten();
    Ok(json!({
        "features": features(&anchor),
        "read_only": anchor.is_read_only(),
        "page_size": anchor.page_size(),
        "pages_per_block": anchor.pages_per_block(),
        "block_count": anchor.block_count(),
        "anchors": anchor.anchors(),
        "base": anchor.base(),
        "ready_max": anchor.ready_max(),
        "ready": anchor.ready().collect::<Vec<_>>(),
        "heads": heads,
        "tail": tail.map(|tail| json!({ "first": tail.first, "commit": tail.commit, "due": tail.is_due })),
        "table": anchor.table().collect::<Vec<_>>(),
        "records": anchor.records().iter().map(|&record| record_json(BlockRecord::from_bytes(record))).collect::<Vec<_>>(),
    }))
}

/// Records of a page of the block table. What follows the last block is zero, as a free block is that was never erased.
fn table_records<'a>(header: &Page<'a>) -> impl Iterator<Item = BlockRecord> + use<'a> {
    let (records, _) = header.body().as_chunks::<RECORD_SIZE>();
    records.iter().map(|&record| BlockRecord::from_bytes(record))
}

fn state_name(state: BlockState) -> &'static str {
    match state {
        BlockState::Free => "free",
        BlockState::Ready => "ready",
        BlockState::Open => "open",
        BlockState::Full => "full",
        BlockState::Suspect => "suspect",
        BlockState::Failing => "failing",
        BlockState::Bad => "bad",
        BlockState::Anchor => "of anchors",
    }
}

/// How many blocks are in which state, and how often blocks were erased.
fn records(records: impl Iterator<Item = BlockRecord>) -> String {
    const STATES: [BlockState; 8] = [
        BlockState::Anchor,
        BlockState::Open,
        BlockState::Full,
        BlockState::Suspect,
        BlockState::Failing,
        BlockState::Bad,
        BlockState::Ready,
        BlockState::Free,
    ];
    let records: Vec<BlockRecord> = records.collect();
    let count = |which: &dyn Fn(&BlockRecord) -> bool| records.iter().filter(|record| which(record)).count() as u64;
    let is_unused = |record: &BlockRecord| record.to_bytes() == [0; RECORD_SIZE];
    let mut states: Vec<String> = Vec::new();
    for state in STATES {
        let blocks = count(&|record| record.state == state && !is_unused(record));
        if blocks > 0 {
            states.push(format!("{} {}", units::count_of(blocks), state_name(state)));
        }
    }
    for (blocks, what) in [
        (count(&is_unused), "never erased, or behind the last block"),
        (count(&|record| record.is_raw), "with raw pages"),
        (count(&|record| record.is_mlc), "with two bits a cell"),
    ] {
        if blocks > 0 {
            states.push(format!("{} {what}", units::count_of(blocks)));
        }
    }
    let erases = records.iter().map(|record| record.erase_count).max().unwrap_or(0);
    format!("block table: {}; erased {} at most", states.join(", "), units::things(erases.into(), "time"))
}

fn record_json(record: BlockRecord) -> Value {
    json!({
        "state": state_name(record.state),
        "erases": record.erase_count,
        "live": record.live,
        "inexact": record.is_inexact,
        "raw": record.is_raw,
        "mlc": record.is_mlc,
    })
}

// Commits and nodes.

fn body_of(bytes: &[u8], header: &Page<'_>) -> Result<PathBody, String> {
    PathBody::parse(bytes, header_size(header.stream_count()), header.kind()).map_err(|why| why.to_string())
}

fn cells(format: &CellFormat) -> String {
    match format.cells {
        1 => format!("keys of {} bytes, values of {}", format.key_size, format.value_size),
        2 => "keys and values of any length".to_owned(),
        other => format!("cells of the unknown kind {other}"),
    }
}

/// What a page says of all entries: how many there are, how many pages of values they name, whether there may be records of snapshots.
fn entries(records: u64) -> (u64, u64, bool) {
    let pages = records >> RECORDS_BITS & ((1 << PAGES_BITS) - 1);
    (records & ((1 << RECORDS_BITS) - 1), pages, records >> 62 & 1 == 1)
}

/// What a change says of its key.
#[derive(Clone, Copy)]
enum What {
    Deleted,
    Put(usize),
    /// What the leaf has counts.
    InLeaf,
}

/// The changes that a commit lists.
fn changes(format: &CellFormat, mut list: &[u8]) -> Result<Vec<(Vec<u8>, What)>, String> {
    let mut changes = Vec::new();
    while !list.is_empty() {
        let (change, rest) = ListedChange::parse(format, list).map_err(|why| why.to_string())?;
        let what = match change.value {
            _ if change.tag == TAG_HERE => What::InLeaf,
            None => What::Deleted,
            Some(value) => What::Put(value.len()),
        };
        changes.push((change.key.to_vec(), what));
        list = rest;
    }
    Ok(changes)
}

/// What the sections of a commit hold: changes, commits of the window, and bytes of a value.
struct Said {
    changes: Vec<(Vec<u8>, What)>,
    window: Vec<u32>,
    value: usize,
}

fn said(bytes: &[u8], body: &PathBody) -> Result<Said, String> {
    let sections = body.sections(bytes).map_err(|why| why.to_string())?;
    let of = |kind| sections.find(kind).map_or(&[][..], |range| &bytes[range]);
    let (window, _) = of(SectionKind::Window).as_chunks::<4>();
    Ok(Said {
        changes: changes(&body.format(), of(SectionKind::Changes))?,
        window: window.iter().map(|page| u32::from_le_bytes(*page)).collect(),
        value: of(SectionKind::Value).len(),
    })
}

fn path(bytes: &[u8], header: &Page<'_>) -> Result<Vec<String>, String> {
    let body = body_of(bytes, header)?;
    let height = units::things(body.height().into(), "level");
    let nodes: Vec<String> = (body.lowest()..body.lowest() + body.levels())
        .filter_map(|level| Some(format!("level {level} ({} bytes)", body.node(level).ok()?.len())))
        .collect();
    let holds = match body.named_root() {
        Some(root) => format!("no node, the root is in page {root}"),
        None if body.root_present() => format!("nodes of {}, the root among them", nodes.join(", ")),
        None => format!("nodes of {}", nodes.join(", ")),
    };
    let mut lines = vec![format!("tree of {height}, {}; {holds}", cells(&body.format()))];
    if header.kind() != PageKind::Commit {
        return Ok(lines);
    }
    let (records, pages, has_snapshots) = entries(body.records());
    let mut counts = units::things(records, "record");
    if pages > 0 {
        let _ = write!(counts, ", {} of values", units::things(pages, "page"));
    }
    if has_snapshots {
        counts.push_str(", records of snapshots");
    }
    lines.push(counts);
    let said = said(bytes, &body)?;
    if !said.changes.is_empty() {
        let mut shown: Vec<String> =
            said.changes.iter().take(SHOWN_MAX).map(|(key, what)| change(key, *what)).collect();
        if said.changes.len() > SHOWN_MAX {
            shown.push(format!("{} more", said.changes.len() - SHOWN_MAX));
        }
        lines.push(format!("lists {}: {}", units::things(said.changes.len() as u64, "change"), shown.join(", ")));
    }
    if said.value > 0 {
        lines.push(format!("holds a value of {}", units::things(said.value as u64, "byte")));
    }
    if !said.window.is_empty() {
        lines.push(format!("commits that are still needed: pages {}", numbers(said.window.into_iter())));
    }
    Ok(lines)
}

fn change(key: &[u8], what: What) -> String {
    let key = key_in_words(key);
    match what {
        What::Deleted => format!("{key} deleted"),
        What::Put(size) => format!("{key} put ({})", units::things(size as u64, "byte")),
        What::InLeaf => format!("{key} in its leaf"),
    }
}

/// A key as text, not too long.
fn key_in_words(key: &[u8]) -> String {
    let text = key.escape_ascii().to_string();
    match text.char_indices().nth(KEY_SHOWN_MAX) {
        Some((end, _)) => format!("'{}...'", &text[..end]),
        None => format!("'{text}'"),
    }
}

fn path_json(bytes: &[u8], header: &Page<'_>) -> Result<Value, String> {
    let body = body_of(bytes, header)?;
    let format = body.format();
    let nodes = (body.lowest()..body.lowest() + body.levels()).filter_map(|level| {
        let range = body.node(level).ok()?;
        Some(json!({ "level": level, "offset": range.start, "size": range.len() }))
    });
    let mut object = json!({
        "height": body.height(),
        "cells": if format.cells == 1 { "fixed" } else { "bytes" },
        "key_size": format.key_size,
        "value_size": format.value_size,
        "page_bits": format.page_bits,
        "nodes": nodes.collect::<Vec<_>>(),
        "locator": hexdump::digits(&bytes[body.locator()]),
    });
    if header.kind() == PageKind::Commit {
        let (records, pages, has_snapshots) = entries(body.records());
        let said = said(bytes, &body)?;
        let changes = said.changes.iter().map(|(key, what)| match what {
            What::Deleted => json!({ "key": hexdump::digits(key), "what": "delete" }),
            What::Put(size) => json!({ "key": hexdump::digits(key), "what": "put", "size": size }),
            What::InLeaf => json!({ "key": hexdump::digits(key), "what": "in its leaf" }),
        });
        object["root"] = body.named_root().unwrap_or(header.page()).into();
        object["records"] = records.into();
        object["value_pages"] = pages.into();
        object["snapshots"] = has_snapshots.into();
        object["changes"] = changes.collect();
        object["window"] = said.window.into();
        object["blob_size"] = said.value.into();
    }
    Ok(object)
}

// Values.

fn value_of(bytes: &[u8], header: &Page<'_>) -> Result<ValueBody, String> {
    ValueBody::parse(bytes, header_size(header.stream_count())).map_err(|why| why.to_string())
}

fn value(bytes: &[u8], header: &Page<'_>) -> Result<Vec<String>, String> {
    let body = value_of(bytes, header)?;
    let size = units::things(body.content.len() as u64, "byte");
    let length = units::things(body.length.into(), "byte");
    let key = key_in_words(&bytes[body.key.clone()]);
    Ok(vec![format!("page {} of a value of {length}, with {size}; key {key}", body.number)])
}

fn value_json(bytes: &[u8], header: &Page<'_>) -> Result<Value, String> {
    let body = value_of(bytes, header)?;
    Ok(json!({
        "length": body.length,
        "number": body.number,
        "size": body.content.len(),
        "key": hexdump::digits(&bytes[body.key.clone()]),
    }))
}

// Raw pages and their summaries.

/// Raw pages of a group and its summary, at most.
fn span(geometry: &Geometry, mode: CellMode) -> u32 {
    if mode == CellMode::Mlc {
        return geometry.pages_per_block;
    }
    let owners = (geometry.page_size as usize).saturating_sub(header_size(STREAM_COUNT_MAX as u8)) / OWNER_SIZE;
    geometry.pages_in_mode(mode).min(owners as u32 + 1)
}

/// Which page of its block a page is, counting those of the mode.
fn nth(place: Place<'_>) -> Option<u32> {
    let index = place.geometry.index_in_block(place.page);
    (0..place.geometry.pages_in_mode(place.mode))
        .find(|&nth| place.geometry.nth_in_mode(place.mode, nth) == Some(index))
}

fn page_at(place: Place<'_>, nth: u32) -> Option<PageAddr> {
    let block: BlockAddr = place.geometry.block_of(place.page);
    Some(place.geometry.page_at(block, place.geometry.nth_in_mode(place.mode, nth)?))
}

/// The pages that a summary tells of, and the key of each; `None`: nobody's.
fn owners(body: &[u8], place: Place<'_>) -> Vec<(PageAddr, Option<Vec<u8>>)> {
    let Some(own) = nth(place) else { return Vec::new() };
    let first = own - own % span(place.geometry, place.mode);
    let (owners, _) = body.as_chunks::<OWNER_SIZE>();
    let pages = (first..own).zip(owners).filter_map(|(nth, owner)| {
        let [size, key @ ..] = owner;
        let key = key.get(..usize::from(*size)).filter(|key| !key.is_empty() && *size != OWNER_END);
        Some((page_at(place, nth)?, key.map(<[u8]>::to_vec)))
    });
    pages.collect()
}

/// Which page of which file a key of a raw page names.
fn file_page(key: &[u8]) -> Option<(u64, u32)> {
    let &[a, b, c, d, e, f, 0x20, i, j, k, l] = key else { return None };
    Some((u64::from_be_bytes([0, 0, a, b, c, d, e, f]), u32::from_be_bytes([i, j, k, l])))
}

/// Raw pages one after the other whose keys are, too.
struct Run {
    first: PageAddr,
    count: u32,
    key: Vec<u8>,
}

impl Run {
    fn takes(&self, page: PageAddr, key: &[u8]) -> bool {
        let follows = match (file_page(&self.key), file_page(key)) {
            (Some((file, index)), Some((other, next))) => file == other && index.checked_add(self.count) == Some(next),
            _ => false,
        };
        follows && self.first.0 + self.count == page.0
    }

    fn in_words(&self) -> String {
        let last = self.first.0 + self.count - 1;
        let pages = if self.count == 1 { format!("{last}") } else { format!("{} to {last}", self.first.0) };
        match file_page(&self.key) {
            Some((file, index)) if self.count == 1 => format!("{pages}: page {index} of inode {file}"),
            Some((file, index)) => format!("{pages}: pages {index} to {} of inode {file}", index + self.count - 1),
            None => format!("{pages}: key {}", key_in_words(&self.key)),
        }
    }
}

fn summary(body: &[u8], place: Place<'_>) -> Vec<String> {
    let owners = owners(body, place);
    let mut runs: Vec<Run> = Vec::new();
    let mut nobodys = 0;
    for (page, key) in &owners {
        match key {
            None => nobodys += 1,
            Some(key) => match runs.last_mut().filter(|run| run.takes(*page, key)) {
                Some(run) => run.count += 1,
                None => runs.push(Run { first: *page, count: 1, key: key.clone() }),
            },
        }
    }
    let pages = units::things(owners.len() as u64, "raw page");
    let mut lines = vec![format!("whose the {pages} before it are, {} of them nobody's", units::count_of(nobodys))];
    lines.extend(runs.iter().take(SHOWN_MAX).map(Run::in_words));
    if runs.len() > SHOWN_MAX {
        lines.push(format!("{} more", runs.len() - SHOWN_MAX));
    }
    lines
}

fn summary_json(body: &[u8], place: Place<'_>) -> Value {
    let owners = owners(body, place).into_iter().map(|(page, key)| {
        let file = key.as_deref().and_then(file_page);
        json!({
            "page": page.0,
            "key": key.map(|key| hexdump::digits(&key)),
            "inode": file.map(|(file, _)| file),
            "index": file.map(|(_, index)| index),
        })
    });
    json!({ "owners": owners.collect::<Vec<_>>() })
}

/// Whose a raw page is, by the summary of its group, where there is one: a page is read by `read`.
pub(crate) fn owner(place: Place<'_>, read: impl Fn(PageAddr) -> Option<Vec<u8>>) -> Option<String> {
    let own = nth(place)?;
    let (span, pages) = (span(place.geometry, place.mode), place.geometry.pages_in_mode(place.mode));
    let first = own - own % span;
    // The last page of the group is its summary, or an earlier one, if the volume was left or the group ends there.
    for nth in (own + 1..(first + span).min(pages)).rev() {
        let Some(page) = page_at(place, nth) else { continue };
        let Some(bytes) = read(page) else { continue };
        let Ok(header) = Page::parse(&bytes) else { continue };
        if header.kind() != PageKind::Summary || header.page() != page.0 {
            continue;
        }
        let owners = owners(header.body(), Place { page, ..place });
        let key = owners.into_iter().find(|(owned, _)| *owned == place.page)?.1;
        let Some(key) = key else { return Some("nandu: a raw page of nobody's".to_owned()) };
        let run = Run { first: place.page, count: 1, key };
        return Some(format!("nandu: a raw page, programmed as {}", run.in_words().split_once(": ")?.1));
    }
    None
}
