//! Chips, and everything that a volume has.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use nandu_dffs::{Dffs, Directory, Error, Node, Options, Permissions};
use nandu_nand::{Ecc, ErrorType, Geometry, Nand};
use nandu_sim::{Chip, Sim};

/// Small pages and blocks, so that chains grow and blocks are collected soon.
pub(crate) const SMALL: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 512,
        program_unit: 512,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.with_blocks(64).geometry
    },
    ..Chip::TINY
};

pub(crate) const OPTIONS: Options = Options {
    directory_max: 64,
    checkpoint_interval: 40,
    open_files: 5,
    lag_max: 4,
    cache_pages: 8,
    ..Options::DEFAULT
};

pub(crate) const NEW: Permissions = Permissions { mode: 0o644, uid: 3, gid: 4 };

pub(crate) fn memory(geometry: &Geometry, options: &Options) -> Vec<u8> {
    vec![0; Dffs::<Sim>::memory_required(geometry, options)]
}

pub(crate) type Outcome<T, N> = Result<T, Error<<N as ErrorType>::Error>>;

/// What there is at a path: of a file its content, of a directory nothing.
pub(crate) type Everything = BTreeMap<String, Option<Vec<u8>>>;

/// The directory and the name of a path, which begins without a slash.
pub(crate) fn parent<'p, N: Nand>(fs: &mut Dffs<'_, N>, path: &'p str) -> Outcome<(Directory, &'p [u8]), N> {
    let mut directory = fs.root();
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in above.split('/').filter(|part| !part.is_empty()) {
        match fs.lookup(directory, part.as_bytes())? {
            Node::Directory(next) => directory = next,
            Node::File(_) => return Err(Error::NotDirectory),
        }
    }
    Ok((directory, name.as_bytes()))
}

pub(crate) fn resolve<N: Nand>(fs: &mut Dffs<'_, N>, path: &str) -> Outcome<Node, N> {
    let (directory, name) = parent(fs, path)?;
    fs.lookup(directory, name)
}

pub(crate) fn names<N: Nand>(fs: &mut Dffs<'_, N>, directory: Directory) -> Outcome<Vec<(String, Node)>, N> {
    let mut names = Vec::new();
    fs.read_dir(directory, 0, &mut |entry| {
        names.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.node));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

/// Everything below the root. What is listed is looked up as well.
pub(crate) fn everything<N: Nand>(fs: &mut Dffs<'_, N>) -> Outcome<Everything, N> {
    let mut found = Everything::new();
    let mut left = vec![(String::new(), fs.root())];
    while let Some((path, directory)) = left.pop() {
        for (name, node) in names(fs, directory)? {
            assert_eq!(fs.lookup(directory, name.as_bytes())?.number(), node.number());
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            let content = match node {
                Node::Directory(next) => {
                    left.push((below.clone(), next));
                    None
                }
                Node::File(file) => {
                    let size = fs.stat(node)?.size as usize;
                    let mut content = vec![0; size + 1];
                    assert_eq!(fs.read(file, 0, &mut content)?, size);
                    content.truncate(size);
                    Some(content)
                }
            };
            assert!(found.insert(below, content).is_none(), "listed twice");
        }
    }
    Ok(found)
}

pub(crate) fn violations<N: Nand>(fs: &mut Dffs<'_, N>) -> Vec<String> {
    let mut found = Vec::new();
    fs.verify(&mut |violation| found.push(violation.to_string())).unwrap();
    found
}

/// Numbers that look like chance.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
