//! Chips that fail for good: nothing can be written any more, and everything can be read.

use std::collections::BTreeMap;

use nandu_dffs::{Dffs, Error, Node, Options, ParentUpdate};
use nandu_files::FileError;
use nandu_files::errno::EROFS;
use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::{Aging, Chip, Fault, Sim, SimError, Trigger};

use crate::model::{Model, Op, Thing, apply, choose};
use crate::rig::{Chance, Everything, NEW, OPTIONS, SMALL, everything, memory, resolve};

/// A chip whose programs and erases fail from one of them on.
struct Failing {
    sim: Sim,
    /// How the chip says so.
    kind: NandErrorKind,
    /// Programs and erases that are left; `None`: any number.
    left: Option<u64>,
}

impl Failing {
    fn spend(&mut self) -> Result<(), NandErrorKind> {
        match &mut self.left {
            Some(0) => Err(self.kind),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl ErrorType for Failing {
    type Error = NandErrorKind;
}

impl Nand for Failing {
    fn geometry(&self) -> &Geometry {
        Nand::geometry(&self.sim)
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        self.sim.read(page, column, buf).map_err(|error| error.kind())
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
        self.spend()?;
        self.sim.program(page, column, data).map_err(|error| error.kind())
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), NandErrorKind> {
        self.spend()?;
        self.sim.program_tagged(page, data, tag).map_err(|error| error.kind())
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), NandErrorKind> {
        self.spend()?;
        self.sim.erase(block, mode).map_err(|error| error.kind())
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, NandErrorKind> {
        self.sim.is_bad(block).map_err(|error| error.kind())
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), NandErrorKind> {
        self.spend()?;
        self.sim.mark_bad(block).map_err(|error| error.kind())
    }
}

/// What may be read after an operation failed: all that was there, and of the operation what was done of it.
fn is_allowed(found: &Everything, before: &Model, op: &Op, after: Option<&Model>) -> bool {
    let mut found = found.clone();
    if found == before.now() || after.is_some_and(|after| found == after.now()) {
        return true;
    }
    let Some(after) = after else { return false };
    match op {
        Op::Write(path, ..) | Op::Truncate(path, _) => {
            let (Some(Some(content)), Thing::File(versions)) = (found.get(path).cloned(), &after.things[path]) else {
                return false;
            };
            found.insert(path.clone(), versions.last().cloned());
            versions.contains(&content) && found == after.now()
        }
        // The old name of a file may not have gone yet.
        Op::Rename(from, _) => {
            let (old, Some(Thing::File(versions))) = (found.remove(from), before.things.get(from)) else {
                return false;
            };
            found == after.now() && old.flatten().is_some_and(|content| versions.contains(&content))
        }
        _ => false,
    }
}

/// One life up to the operation in which the chip begins to fail. Returns whether something was left half done.
fn live(options: Options, chip: Chip, seed: u64, kind: NandErrorKind) -> bool {
    let (geometry, mut chance) = (chip.geometry, Chance::new(seed));
    let page_size = geometry.page_size as usize;
    let mut memory = memory(&geometry, &options);
    let sim = Failing { sim: Sim::with_seed(chip, seed), kind, left: None };
    let mut fs = Dffs::format(sim, options, &mut memory).unwrap();
    let size_max = fs.file_size_max() as usize;
    let mut model = Model::default();
    let mut steps = 60 + chance.below(500);
    loop {
        let op = choose(&model, &mut chance, 40, page_size);
        let mut next = model.clone();
        let is_made = next.apply(&op, page_size, size_max);
        if steps == 0 && fs.nand().left.is_none() {
            fs.nand_mut().left = Some(chance.below(5) as u64);
        }
        steps = steps.saturating_sub(1);
        match apply(&mut fs, &op) {
            Ok(()) => {
                assert!(is_made);
                model = next;
            }
            Err(Error::Full | Error::TooManyDirectories) if fs.nand().left.is_none() => {
                let found = everything(&mut fs).unwrap();
                model = Model::of(&found);
            }
            Err(_) if !is_made => {}
            Err(error) => {
                let place = format!("seed {seed}: {}: {error}", name(&op));
                let is_refused = matches!(error, Error::Full | Error::ReadOnly);
                let found = everything(&mut fs).unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(
                    is_allowed(&found, &model, &op, is_made.then_some(&next)),
                    "{place}\nfound {:#?}\nexpected {:#?}",
                    sizes(&found),
                    sizes(&model.now())
                );
                // Files are opened as before; those that need the memory push out what was not synced of others.
                for (path, content) in &found {
                    let Node::File(file) = resolve(&mut fs, path).unwrap() else { continue };
                    fs.open(file).unwrap();
                    let mut read = vec![0; 2 * size_max];
                    let size = fs.read(file, 0, &mut read).unwrap();
                    let versions = [&model, &next].map(|model| match model.things.get(path) {
                        Some(Thing::File(versions)) => versions.clone(),
                        _ => Vec::new(),
                    });
                    let is_known = versions.concat().iter().any(|version| *version == read[..size]);
                    assert!(is_known || content.as_deref() == Some(&read[..size]), "{place}: {path}");
                    let _ = fs.close(file);
                }
                let is_half_done = !is_refused || fs.create(fs.root(), b"more", NEW) == Err(Error::Poisoned);
                if is_half_done && !fs.is_read_only() {
                    assert_eq!(fs.create(fs.root(), b"more", NEW), Err(Error::Poisoned), "{place}");
                    assert_eq!(fs.mkdir(fs.root(), b"more", NEW), Err(Error::Poisoned), "{place}");
                }
                // A mount of the chip, should it work again, finds the operation done or not.
                let mut sim = fs.abandon();
                sim.left = None;
                let mut fs = Dffs::mount(sim, options, &mut memory).unwrap_or_else(|error| panic!("{place}: {error}"));
                let found = everything(&mut fs).unwrap();
                if let (Op::Write(path, ..) | Op::Truncate(path, _), true) = (&op, is_made) {
                    model.things.insert(path.clone(), next.things[path].clone());
                }
                assert!(model.allows(&found) || next.allows(&found), "{place}, mounted: {:#?}", sizes(&found));
                return is_half_done;
            }
        }
    }
}

/// Without what is written.
fn name(op: &Op) -> String {
    format!("{op:?}").chars().take(60).collect()
}

fn sizes(found: &Everything) -> BTreeMap<&str, Option<(usize, Option<u8>)>> {
    let size = |content: &Option<Vec<u8>>| content.as_ref().map(|content| (content.len(), content.first().copied()));
    found.iter().map(|(path, content)| (path.as_str(), size(content))).collect()
}

#[test]
fn after_a_write_that_failed_everything_can_still_be_read() {
    let each = Options { parent_update: ParentUpdate::Each, ..OPTIONS };
    let mut half_done = 0;
    for seed in 0..300 {
        let options = if seed % 4 == 0 { each } else { OPTIONS };
        let kinds = [NandErrorKind::Other, NandErrorKind::ProgramFailed, NandErrorKind::Bus];
        half_done += u32::from(live(options, SMALL, seed, kinds[seed as usize % 3]));
    }
    assert!(half_done > 150, "{half_done}");
}

/// Writes files of some pages until that is refused; returns those that were synced.
fn write_until_refused(fs: &mut Dffs<'_, Sim>, size: usize) -> (Everything, Error<SimError>) {
    let mut synced = Everything::new();
    for round in 0..20_000_u32 {
        let name = format!("f{}", round % 20);
        let write = (|| {
            let file = match fs.lookup(fs.root(), name.as_bytes()) {
                Ok(Node::File(file)) => file,
                Err(Error::NotFound) => fs.create(fs.root(), name.as_bytes(), NEW)?,
                other => panic!("{other:?}"),
            };
            if fs.write(file, 0, &vec![round as u8; size])? < size {
                return Err(Error::Full);
            }
            fs.fsync(file)?;
            fs.close(file)
        })();
        match write {
            Ok(()) => synced.insert(name, Some(vec![round as u8; size])),
            Err(error) => {
                // Its content is the old one, the new one, or, where it was new, not there.
                synced.remove(&name);
                return (synced, error);
            }
        };
    }
    panic!("nothing was refused");
}

fn assert_has(fs: &mut Dffs<'_, Sim>, synced: &Everything) {
    let found = everything(fs).unwrap();
    assert!(!synced.is_empty());
    for (path, content) in synced {
        assert!(found.get(path) == Some(content), "{path}: {:?}", sizes(&found).get(path.as_str()));
    }
}

/// Where no more checkpoints can be programmed, the volume says so, and so does every mount after that.
#[test]
fn a_chip_without_blocks_for_checkpoints_can_be_read() {
    for seed in 0..6 {
        let mut memory = memory(&SMALL.geometry, &OPTIONS);
        let mut fs = Dffs::format(Sim::with_seed(SMALL, seed), OPTIONS, &mut memory).unwrap();
        let file = fs.create(fs.root(), b"first", NEW).unwrap();
        fs.write(file, 0, &[9; 700]).unwrap();
        fs.sync().unwrap();
        let fault = if seed % 2 == 0 { Fault::EraseFails } else { Fault::ProgramFails };
        for block in 0..6 {
            fs.nand_mut().inject(fault, Trigger::Block(BlockAddr(block)));
        }
        assert!(!fs.is_read_only());
        let (mut synced, error) = write_until_refused(&mut fs, 700);
        assert!(error == Error::ReadOnly && fs.is_read_only(), "{error}");
        synced.insert("first".to_owned(), Some(vec![9; 700]));
        assert_has(&mut fs, &synced);
        for error in [
            fs.create(fs.root(), b"more", NEW).unwrap_err(),
            fs.write(file, 0, &[1; 3]).unwrap_err(),
            fs.truncate(file, 0).unwrap_err(),
            fs.unlink(fs.root(), b"first").unwrap_err(),
            fs.rename(fs.root(), b"first", fs.root(), b"second", true).unwrap_err(),
        ] {
            assert_eq!((FileError::errno(&error), error), (EROFS, Error::ReadOnly));
        }
        // What cannot be made durable is not said to be.
        if fs.sync().is_ok() {
            synced = everything(&mut fs).unwrap();
        }
        let mut chip = fs.abandon();
        for _ in 0..3 {
            let mut fs = Dffs::mount(chip, OPTIONS, &mut memory).unwrap();
            assert!(fs.is_read_only(), "seed {seed}");
            assert_has(&mut fs, &synced);
            assert_eq!(fs.create(fs.root(), b"more", NEW), Err(Error::ReadOnly));
            let Ok(Node::File(file)) = fs.lookup(fs.root(), b"first") else { panic!("it was there") };
            fs.open(file).unwrap();
            assert_eq!(fs.fsync(file), Ok(()));
            fs.close(file).unwrap();
            chip = fs.unmount().unwrap();
        }
    }
}

/// A chip that is written until it is worn out.
#[test]
fn a_chip_that_is_worn_out_can_be_read() {
    let worn = Chip { geometry: Geometry { endurance: 12, ..SMALL.geometry }, ..SMALL };
    for seed in 0..6 {
        let mut memory = memory(&worn.geometry, &OPTIONS);
        let mut sim = Sim::with_seed(worn, seed);
        sim.set_aging(Aging { failure: 0.2, ..Aging::NONE });
        let mut fs = Dffs::format(sim, OPTIONS, &mut memory).unwrap();
        let (synced, error) = write_until_refused(&mut fs, 700);
        assert!(matches!(error, Error::Full | Error::ReadOnly | Error::Poisoned), "{error}");
        assert!(fs.bad_blocks() > 10, "{}", fs.bad_blocks());
        assert_has(&mut fs, &synced);
        let chip = fs.abandon();
        let mut fs = Dffs::mount(chip, OPTIONS, &mut memory).unwrap();
        assert_has(&mut fs, &synced);
    }
}
