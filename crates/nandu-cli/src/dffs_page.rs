//! What a page on a chip with a volume of DFFS says of itself.

use std::fmt::Write as _;

use nandu_media::dffs::{self as media, Fields, Kind, SuperblockFields};
use nandu_nand::{CellMode, PageAddr};
use serde_json::{Map, Value, json};

use crate::flash::Flash;
use crate::{kind, units};

/// A page that holds something.
pub(crate) enum Page {
    /// All but data: what its front says, and all of it.
    Front(Fields, Vec<u8>),
    /// A page of a file, as the summary of its block says.
    Data(media::Owner),
}

/// Flags with their names.
const FLAGS: [(u16, &str); 5] = [
    (media::FLAG_RENAMED, "renamed"),
    (media::FLAG_CLEAN, "unmounted"),
    (media::FLAG_ROUGH, "rough"),
    (media::FLAG_COPY, "copy"),
    (media::FLAG_RECOVERY, "recovery"),
];

/// Reads a page with what protects it; `None` if it is none of DFFS's, or one of data that no summary tells of yet.
pub(crate) fn read(flash: &Flash, page: PageAddr) -> Option<Page> {
    let volume = kind::dffs_volume(flash)?;
    if let Some((fields, bytes)) = open(flash, volume, page) {
        return Some(Page::Front(fields, bytes));
    }
    let geometry = &flash.chip().geometry;
    let block = geometry.block_of(page);
    let in_use = geometry.pages_in_mode(CellMode::Slc);
    let place = |nth| geometry.nth_in_mode(CellMode::Slc, nth).map(|index| geometry.page_at(block, index));
    let (fields, summary) = open(flash, volume, place(in_use.checked_sub(1)?)?)?;
    let nth = (0..in_use).find(|&nth| place(nth) == Some(page))?;
    let owner = media::owner(&summary, nth as usize);
    owner.filter(|_| fields.kind == Kind::Summary).map(Page::Data)
}

fn open(flash: &Flash, volume: u32, page: PageAddr) -> Option<(Fields, Vec<u8>)> {
    let bytes = flash.content(page)?;
    // What says which volume it is has no volume in its checksum.
    let fields = media::open(&bytes, volume, page.0).or_else(|_| media::open(&bytes, 0, page.0)).ok()?;
    Some((fields, bytes))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "directory",
        Kind::Virtual => "virtual directory",
        Kind::File => "file",
        Kind::Map => "map",
        Kind::Summary => "summary",
        Kind::Superblock => "superblock",
        Kind::Checkpoint => "checkpoint",
    }
}

fn flag_names(fields: &Fields) -> Vec<&'static str> {
    FLAGS.iter().filter(|(flag, _)| fields.flags & flag != 0).map(|&(_, name)| name).collect()
}

/// Words of a page that are not 0, each with its place.
fn words(bytes: &[u8], at: usize, count: usize) -> Vec<(usize, u32)> {
    let words = (0..count).map(|nth| (nth, media::word(bytes, at + nth * 4)));
    words.filter(|&(_, word)| word != 0).collect()
}

/// Where the pointer in a bucket leads.
fn target(pointer: u32) -> String {
    match pointer.checked_sub(media::POINTER_BASE) {
        Some(page) => format!("page {page}"),
        None => format!("directory {pointer}"),
    }
}

/// As `3 to page 9, 4 to page 10`.
fn list(pairs: &[(usize, u32)], name: impl Fn(u32) -> String) -> String {
    let pairs: Vec<String> = pairs.iter().map(|&(nth, word)| format!("{nth} to {}", name(word))).collect();
    if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
}

/// In words.
pub(crate) fn describe(page: &Page) -> String {
    let (fields, bytes) = match page {
        Page::Front(fields, bytes) => (fields, bytes),
        Page::Data(owner) => {
            let media::Owner { number, directory, bucket, index } = owner;
            return format!(
                "dffs: data of file {number}, its page {index}; its name was in directory {directory}, bucket {bucket}"
            );
        }
    };
    let sequence = units::count_of(fields.sequence);
    let mut text = format!("dffs: {} page, sequence {sequence}", kind_name(fields.kind));
    for name in flag_names(fields) {
        let _ = write!(text, ", {name}");
    }
    text.push_str("\n      ");
    // Writing to a string does not fail.
    let _ = describe_content(fields, bytes, &mut text);
    text
}

fn describe_content(fields: &Fields, bytes: &[u8], text: &mut String) -> std::fmt::Result {
    let Fields { id, parent, size, used, nlink, .. } = fields;
    let (previous, next) = (media::word(bytes, media::PREVIOUS_AT), media::word(bytes, media::NEXT_AT));
    match fields.kind {
        Kind::Superblock => match SuperblockFields::read(bytes) {
            Ok(block) => write!(
                text,
                "volume {:#010x}, pages of {} bytes, {} in a block, {} blocks, {} logical numbers",
                block.volume, block.page_size, block.pages_per_block, block.block_count, block.directory_max
            ),
            Err(why) => write!(text, "{why}"),
        },
        Kind::Checkpoint => write!(text, "volume {parent:#010x}, part {id} of {nlink}, {size} bytes in all"),
        Kind::Map => {
            let entries = words(bytes, media::ATTRIBUTES_SIZE, media::map_entries(bytes.len()));
            let first = *id as usize * media::map_entries(bytes.len());
            let entries: Vec<_> = entries.into_iter().map(|(nth, page)| (first + nth, page)).collect();
            write!(text, "page {id} of the map; logical numbers {}", list(&entries, |page| format!("page {page}")))
        }
        Kind::Summary => write!(text, "whose the pages of this block are"),
        Kind::Directory | Kind::Virtual => {
            let name = media::name(bytes).escape_ascii().to_string();
            match fields.kind {
                Kind::Directory => write!(text, "directory {id} in directory {parent}, name '{name}'")?,
                _ => write!(text, "directory {id} of directory {parent}, behind {previous}")?,
            }
            describe_inode(fields, text)?;
            if fields.kind == Kind::Directory {
                write!(text, ", generation {size}")?;
            }
            if fields.kind == Kind::Directory && previous != 0 {
                write!(text, "\n      before it was renamed in page {previous}")?;
            }
            let buckets = words(bytes, media::FRONT_SIZE, media::bucket_count(bytes.len()));
            write!(text, "\n      {used} buckets in use: {}", list(&buckets, target))?;
            if next != 0 { write!(text, "\n      goes on in directory {next}") } else { Ok(()) }
        }
        Kind::File => {
            let name = media::name(bytes).escape_ascii().to_string();
            write!(text, "file {id} in directory {parent}, name '{name}', {}", units::things((*size).into(), "byte"))?;
            describe_inode(fields, text)?;
            if previous != 0 {
                write!(text, "\n      its bucket leads to page {previous}")?;
            }
            if next != 0 {
                write!(text, "\n      before it was renamed in page {next}")?;
            }
            let pointers = words(bytes, media::FRONT_SIZE, media::pointer_count(bytes.len()));
            write!(text, "\n      pages of data: {}", list(&pointers, |page| format!("page {page}")))
        }
    }
}

fn describe_inode(fields: &Fields, text: &mut String) -> std::fmt::Result {
    let Fields { mode, uid, gid, atime, mtime, ctime, .. } = fields;
    write!(text, "\n      mode {mode:o}, owner {uid}:{gid}, seconds of access {atime}, content {mtime}, inode {ctime}")
}

/// The same for programs.
pub(crate) fn json(page: &Page) -> Value {
    let (fields, bytes) = match page {
        Page::Front(fields, bytes) => (fields, bytes),
        Page::Data(media::Owner { number, directory, bucket, index }) => {
            return json!({
                "system": "dffs", "kind": "data", "file": number, "directory": directory, "bucket": bucket, "index": index,
            });
        }
    };
    let pairs = |pairs: Vec<(usize, u32)>| -> Value {
        let pairs: Map<String, Value> = pairs.into_iter().map(|(nth, word)| (nth.to_string(), word.into())).collect();
        pairs.into()
    };
    let mut value = json!({
        "system": "dffs",
        "kind": kind_name(fields.kind),
        "id": fields.id,
        "parent": fields.parent,
        "sequence": fields.sequence,
        "flags": flag_names(fields),
    });
    let is_inode = matches!(fields.kind, Kind::Directory | Kind::Virtual | Kind::File);
    if is_inode {
        value["name"] = media::name(bytes).escape_ascii().to_string().into();
        for (name, number) in [("mode", fields.mode), ("uid", fields.uid), ("gid", fields.gid), ("nlink", fields.nlink)]
        {
            value[name] = number.into();
        }
        let (previous, next) = (media::word(bytes, media::PREVIOUS_AT), media::word(bytes, media::NEXT_AT));
        for (name, number) in [
            ("size", fields.size),
            ("atime", fields.atime),
            ("mtime", fields.mtime),
            ("ctime", fields.ctime),
            ("previous", previous),
            ("next", next),
        ] {
            value[name] = number.into();
        }
    }
    match fields.kind {
        Kind::File => value["pages"] = pairs(words(bytes, media::FRONT_SIZE, media::pointer_count(bytes.len()))),
        Kind::Directory | Kind::Virtual => {
            value["used"] = fields.used.into();
            value["buckets"] = pairs(words(bytes, media::FRONT_SIZE, media::bucket_count(bytes.len())));
        }
        Kind::Map => value["pages"] = pairs(words(bytes, media::ATTRIBUTES_SIZE, media::map_entries(bytes.len()))),
        Kind::Checkpoint => value["parts"] = fields.nlink.into(),
        Kind::Superblock | Kind::Summary => {}
    }
    value
}
