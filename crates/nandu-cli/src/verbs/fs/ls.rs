//! `nandu fs ls`: a directory.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use nandu_files::{FileKind, FileSystem, Stat, Time};
use serde_json::json;

use crate::files::{self, LookArgs};
use crate::output::Output;
use crate::volume::Volume;

#[derive(Args, Debug)]
pub(crate) struct List {
    /// The image
    image: PathBuf,
    /// The directory, or a file
    #[arg(default_value = "/")]
    path: String,
    /// Type and permissions, links, owner, group, size and time as well
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    look: LookArgs,
}

/// A line of the list.
struct Line {
    name: Vec<u8>,
    stat: Stat,
    target: Option<Vec<u8>>,
}

pub(crate) fn run(args: &List, out: &mut Output) -> anyhow::Result<()> {
    let mut lines = files::look(&args.image, args.look, |fs| list(fs, &args.image, &args.path))?;
    lines.sort_by(|one, other| one.name.cmp(&other.name));
    for line in &lines {
        if out.is_json() {
            print_json(line, out)?;
        } else if args.long {
            print_long(line, out)?;
        } else {
            out.bytes(&line.name)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn list(fs: &mut Volume<'_>, image: &Path, path: &str) -> anyhow::Result<Vec<Line>> {
    let stat = files::find(fs, image, path)?;
    let complain = |error| files::complain(image, path, error);
    let mut names = Vec::new();
    if stat.kind == FileKind::Directory {
        let visited = fs.read_dir(stat.ino, 2, &mut |entry| {
            names.push((entry.name.to_vec(), entry.ino));
            ControlFlow::Continue(())
        });
        visited.map_err(complain)?;
    } else {
        names.push((path.as_bytes().to_vec(), stat.ino));
    }
    let mut lines = Vec::with_capacity(names.len());
    for (name, ino) in names {
        let stat = fs.stat(ino).map_err(complain)?;
        let target = if stat.kind == FileKind::Symlink {
            let mut target = vec![0; stat.size as usize];
            fs.read_link(ino, &mut target).map_err(complain)?;
            Some(target)
        } else {
            None
        };
        lines.push(Line { name, stat, target });
    }
    Ok(lines)
}

fn print_json(line: &Line, out: &mut Output) -> anyhow::Result<()> {
    let Line { name, stat, target } = line;
    out.json(&json!({
        "name": String::from_utf8_lossy(name),
        "ino": stat.ino.0,
        "mode": format!("{:06o}", stat.mode),
        "nlink": stat.nlink,
        "uid": stat.uid,
        "gid": stat.gid,
        "size": stat.size,
        "allocated_size": stat.allocated_size,
        "mtime": stat.mtime.seconds,
        "target": target.as_ref().map(|target| String::from_utf8_lossy(target).into_owned()),
    }))?;
    Ok(())
}

fn print_long(line: &Line, out: &mut Output) -> anyhow::Result<()> {
    let Line { name, stat, target } = line;
    let (mode, when) = (mode(stat), date(stat.mtime));
    write!(out, "{mode} {:>3} {:>5} {:>5} {:>10} {when} ", stat.nlink, stat.uid, stat.gid, stat.size)?;
    out.bytes(name)?;
    if let Some(target) = target {
        out.bytes(b" -> ")?;
        out.bytes(target)?;
    }
    writeln!(out)?;
    Ok(())
}

/// Type and permissions in ten letters.
fn mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        FileKind::Fifo => 'p',
        FileKind::CharDevice => 'c',
        FileKind::Directory => 'd',
        FileKind::BlockDevice => 'b',
        FileKind::File => '-',
        FileKind::Symlink => 'l',
        FileKind::Socket => 's',
    };
    let mut letters = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = stat.mode >> shift;
        letters.push(if bits & 4 > 0 { 'r' } else { '-' });
        letters.push(if bits & 2 > 0 { 'w' } else { '-' });
        letters.push(match (bits & 1 > 0, stat.mode & special > 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    letters
}

/// A time in UTC, to the minute; what no calendar has a year for stays seconds.
fn date(when: Time) -> String {
    match time::OffsetDateTime::from_unix_timestamp(when.seconds) {
        Ok(date) => {
            let (month, day) = (u8::from(date.month()), date.day());
            format!("{:04}-{month:02}-{day:02} {:02}:{:02}", date.year(), date.hour(), date.minute())
        }
        Err(_) => when.seconds.to_string(),
    }
}
