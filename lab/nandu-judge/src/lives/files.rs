//! Lives of file systems.

use std::collections::BTreeMap;

use nandu::fs::{Format, Fs, FsError, Ino, LogOptions, Options};
use nandu::nand::{Pairing, TearScope};
use nandu_files::errno;
use nandu_sim::{Counters, Sim, SimError};
use nandu_suite::{Chance, NEW, Op, Slots, apply, liveness, resolve, violations};

use super::tally::{Tally, Whose};
use super::{chip, cut_soon, is_asked, pending, power_on};
use crate::files::Files;
use crate::measure::Form;

/// Blocks of the smallest chip.
const BLOCKS_LEAST: usize = 14;

/// Bytes of a tag, where pages have them.
const TAG_SIZE: u32 = 16;

type Failure = FsError<SimError>;

/// What this life does, and how often.
struct Habits {
    /// Pages of a file that takes room.
    file_pages: usize,
    /// Of 16 calls, those on the names of the suite, of every kind.
    varied: usize,
    /// Of 16 others, those that remove or cut.
    removals: usize,
    sync_one_in: usize,
    cut_one_in: usize,
    steps: usize,
}

/// A large file, and what was synced of it: the byte that each page is full of.
struct Large {
    pages: usize,
}

struct Life {
    seed: u64,
    step: usize,
    whose: Whose,
    options: Options,
    page_size: usize,
    chance: Chance,
    habits: Habits,
    /// Files that take room, by number.
    files: BTreeMap<usize, Large>,
    /// Files that were synced and not touched since, with a page of each that has to be found.
    kept: BTreeMap<usize, (usize, u8)>,
    slots: Slots,
    tally: Tally,
    /// Whether the life ends with liveness.
    is_asked: bool,
}

fn name(number: usize) -> Vec<u8> {
    format!("large-{number}").into_bytes()
}

fn options(whose: Whose, cache_size: usize, pending_size: usize) -> Options {
    let (has_tags, has_mlc) = (whose == Whose::Tagged, whose == Whose::Dense);
    let log = LogOptions { has_tags, has_mlc, ..Options::DEFAULT.log };
    Options { log, cache_size, pending_size, open_max: 4, ..Options::DEFAULT }
}

/// Lives a life; what was wrong if something was.
pub(super) fn live(whose: Whose, form: Form, seed: u64) -> Result<Tally, String> {
    live_with(whose, form, (seed, None))
}

/// The same with so much memory for changes that wait, in the place of what the seed says.
fn live_with(whose: Whose, form: Form, (seed, given): (u64, Option<usize>)) -> Result<Tally, String> {
    let mut chance = Chance::new(seed ^ 0xF_11E5);
    let mut chip = chip(&mut chance, form, BLOCKS_LEAST);
    let geometry = &mut chip.geometry;
    if whose == Whose::Tagged {
        geometry.spare_size = geometry.spare_size.max(64);
        geometry.tag_size = TAG_SIZE;
    }
    if whose == Whose::Dense {
        (geometry.pairing, geometry.tear) = (Pairing::SchemeA, TearScope::Pair);
        // As many pages with one bit a cell as those of others have.
        geometry.pages_per_block *= 2;
    }
    let (pages, page_size) = ((geometry.block_count * geometry.pages_per_block) as usize, geometry.page_size as usize);
    let (cache_size, drawn) = ([512, 4_096, 16_384][chance.below(3)], pending(&mut chance));
    let options = options(whose, cache_size, given.unwrap_or(drawn));
    let habits = Habits {
        file_pages: [2, 8, 32, 200][chance.below(4)].min(pages / 8),
        varied: [2, 8, 14][chance.below(3)],
        removals: [1, 3, 6][chance.below(3)],
        sync_one_in: [2, 8, 40, 400][chance.below(4)],
        cut_one_in: [60, 400, 1_500][chance.below(3)],
        steps: form.pick(1_000, 2_000) + pages.min(form.pick(2_000, 20_000)),
    };
    let mut life = Life {
        seed,
        step: 0,
        whose,
        options,
        page_size,
        chance,
        habits,
        files: BTreeMap::new(),
        kept: BTreeMap::new(),
        slots: Slots::default(),
        tally: Tally::default(),
        is_asked: is_asked(form, seed),
    };
    let mut sim = Sim::with_seed(chip, seed);
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    match Fs::format(&mut sim, options, Format::default(), &mut memory) {
        Ok(_) => {}
        // Such a chip is too small.
        Err(FsError::Unsuitable { .. } | FsError::Geometry(_) | FsError::Full) => return Ok(life.tally),
        Err(error) => return Err(life.place(&format!("format: {error}"))),
    }
    life.tally.begin_life(whose);
    let lived = life.live(&mut sim, &mut memory);
    let geometry = &chip.geometry;
    lived.map_err(|what| {
        let (blocks, pages) = (geometry.block_count, geometry.pages_per_block);
        life.place(&format!(
            "{what}; {blocks} blocks of {pages} pages of {page_size}, pending {}",
            options.pending_size
        ))
    })?;
    Ok(life.tally)
}

impl Life {
    fn place(&self, what: &str) -> String {
        format!("life {} of {:?}, step {}: {what}", self.seed, self.whose, self.step)
    }

    /// Where this is, for whoever wants to look.
    fn here(&self) -> impl Fn() -> String + use<> {
        let (seed, step) = (self.seed, self.step);
        move || format!("life {seed}, step {step}")
    }

    fn live(&mut self, chip: &mut Sim, memory: &mut [u8]) -> Result<(), String> {
        while self.step < self.habits.steps {
            let fs = self.mount(chip, memory)?;
            if let Some(before) = self.until_it_ends(fs)? {
                let done = chip.counters().since(&before);
                self.tally.call((self.whose, "unmount"), &done, 1, &self.here());
            }
            power_on(chip);
        }
        let mut fs = self.mount(chip, memory)?;
        if let Some(violation) = violations(&mut fs).first() {
            return Err(format!("an invariant is violated: {violation}"));
        }
        let _ = fs.abandon();
        if !self.is_asked {
            return Ok(());
        }
        let system = Files::with(self.options);
        let found = liveness::measured(&liveness::Files(&system), chip)?;
        self.tally.liveness(self.whose, &found, &self.here());
        Ok(())
    }

    /// Mounts, with cuts in the recovery by chance, and looks at what has to be there.
    fn mount<'m>(&mut self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Result<Fs<'m, &'m mut Sim>, String> {
        while self.chance.below(3) == 0 {
            cut_soon(chip, &mut self.chance, 60);
            let outcome = Fs::mount(&mut *chip, self.options, memory).map(drop);
            if let Err(error) = outcome
                && !chip.is_off()
            {
                return Err(error.to_string());
            }
            power_on(chip);
        }
        let before = *chip.counters();
        let mut fs = Fs::mount(chip, self.options, memory).map_err(|error| error.to_string())?;
        let reads = fs.nand().counters().since(&before).reads;
        self.tally.mount(self.whose, reads, &self.here());
        self.slots = Slots::default();
        let mut bytes = vec![0; self.page_size];
        for (number, (page, byte)) in &self.kept {
            let ino = fs.lookup(Ino::ROOT, &name(*number));
            let count = ino.and_then(|ino| fs.read_at(ino, (page * self.page_size) as u64, &mut bytes));
            if count != Ok(self.page_size) || bytes.iter().any(|it| it != byte) {
                return Err(format!("page {page} of file {number} is not what was synced: {count:?}"));
            }
        }
        self.files.clear();
        let mut found = Vec::new();
        let visited = fs.read_dir(Ino::ROOT, 2, |entry| {
            if let Some(number) = entry.name.strip_prefix(b"large-").and_then(|it| std::str::from_utf8(it).ok()) {
                found.extend(number.parse::<usize>());
            }
            std::ops::ControlFlow::Continue(())
        });
        visited.map_err(|error| error.to_string())?;
        for number in found {
            let ino = fs.lookup(Ino::ROOT, &name(number)).map_err(|error| error.to_string())?;
            let size = fs.stat(ino).map_err(|error| error.to_string())?.size as usize;
            self.files.insert(number, Large { pages: size / self.page_size });
        }
        Ok(fs)
    }

    /// Calls until the power goes or the file system is unmounted; then what the chip had done before that.
    fn until_it_ends(&mut self, mut fs: Fs<'_, &mut Sim>) -> Result<Option<Counters>, String> {
        let mut cut_in = 1 + self.chance.below(2 * self.habits.cut_one_in);
        loop {
            self.step += 1;
            cut_in -= 1;
            let is_over = self.step >= self.habits.steps;
            if is_over || cut_in == 0 {
                if !is_over && self.chance.below(4) > 0 {
                    cut_soon(fs.nand_mut(), &mut self.chance, 40);
                    self.tally.cut();
                    cut_in = usize::MAX;
                } else {
                    fs.nand_mut().clear_cuts();
                    let before = *fs.nand().counters();
                    let outcome = fs.unmount().map(drop);
                    self.tally.tried("unmounts of files", outcome == Err(FsError::Full), &self.here());
                    return match outcome {
                        Ok(()) => Ok(Some(before)),
                        Err(FsError::Full) => Ok(None),
                        Err(error) => Err(error.to_string()),
                    };
                }
            }
            self.call(&mut fs)?;
            if fs.nand().is_off() {
                return Ok(None);
            }
        }
    }

    /// One call of any kind.
    fn call(&mut self, fs: &mut Fs<'_, &mut Sim>) -> Result<(), String> {
        if self.chance.below(self.habits.sync_one_in) == 0 {
            let number = self.any_file();
            return match number {
                Some(number) if self.chance.below(2) == 0 => self.fsync(fs, number),
                _ => self.op(fs, &Op::Sync),
            };
        }
        if self.chance.below(16) < self.habits.varied {
            let capabilities = nandu_files::FileSystem::capabilities(fs);
            let op = self.chance.op(self.page_size, &capabilities);
            return self.op(fs, &op);
        }
        match (self.chance.below(16) < self.habits.removals, self.any_file()) {
            (true, Some(number)) => self.remove(fs, number),
            (false, Some(number)) if self.chance.below(2) == 0 => self.write_page(fs, number),
            _ => self.grow(fs),
        }
    }

    fn any_file(&mut self) -> Option<usize> {
        let count = self.files.len();
        (count > 0).then(|| self.chance.below(count)).and_then(|nth| self.files.keys().nth(nth).copied())
    }

    /// What a call takes, if it was not cut, for each of so many pages.
    fn count<T>(
        &mut self,
        fs: &mut Fs<'_, &mut Sim>,
        kind: &'static str,
        bytes: usize,
        call: impl FnOnce(&mut Fs<'_, &mut Sim>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let before = *fs.nand().counters();
        let outcome = call(fs);
        if !fs.nand().is_off() {
            let done = fs.nand().counters().since(&before);
            let pages = bytes.div_ceil(self.page_size) as u64;
            self.tally.call((self.whose, kind), &done, pages, &self.here());
        }
        outcome
    }

    /// An operation on the names of the suite. What it is told is not looked at: the suite does that.
    fn op(&mut self, fs: &mut Fs<'_, &mut Sim>, op: &Op) -> Result<(), String> {
        let must = match op {
            Op::Unlink(_) | Op::Rmdir(_) => Some("unlinks"),
            Op::Close(_) => Some("closes"),
            Op::Truncate(path, size) => {
                let size_now = resolve(fs, path).and_then(|ino| fs.stat(ino)).map_or(0, |stat| stat.size);
                (size_now > *size).then_some("truncations to less")
            }
            _ => None,
        };
        let outcome = match op {
            Op::Write(path, offset, bytes) => {
                resolve(fs, path).and_then(|file| self.write_all(fs, file, *offset as usize, bytes))
            }
            Op::WriteOpen(slot, offset, bytes) => {
                let file = self.slots[*slot];
                file.map_or(Ok(()), |file| self.write_all(fs, file, *offset as usize, bytes))
            }
            _ => {
                let mut slots = self.slots;
                let outcome = self.count(fs, kind(op), written(op), |fs| apply(fs, &mut slots, op));
                self.slots = slots;
                outcome
            }
        };
        if let Some(must) = must {
            self.tally.tried(must, outcome == Err(FsError::Full), &self.here());
        }
        end(fs, outcome)
    }

    /// Calls until all is written: on a full chip one may write less than it was given, and the next one is refused.
    fn write_all(&mut self, fs: &mut Fs<'_, &mut Sim>, file: Ino, at: usize, bytes: &[u8]) -> Result<(), Failure> {
        let mut done = 0;
        while done < bytes.len() {
            let (at, left) = ((at + done) as u64, &bytes[done..]);
            let count = self.count(fs, "Write", left.len(), |fs| fs.write_at(file, at, left))?;
            assert!(count > 0, "a write of nothing is refused with an error");
            done += count;
        }
        Ok(())
    }

    fn fsync(&mut self, fs: &mut Fs<'_, &mut Sim>, number: usize) -> Result<(), String> {
        let file = match fs.lookup(Ino::ROOT, &name(number)) {
            Ok(file) => file,
            Err(error) => return end(fs, Err(error)),
        };
        let outcome = self.count(fs, "Fsync", 0, |fs| fs.fsync(file));
        end(fs, outcome)
    }

    /// A page of a file is written over, and sometimes synced.
    fn write_page(&mut self, fs: &mut Fs<'_, &mut Sim>, number: usize) -> Result<(), String> {
        let page = self.chance.below(self.files.get(&number).map_or(1, |file| file.pages.max(1)));
        self.kept.remove(&number);
        let byte = 1 + self.chance.below(255) as u8;
        let bytes = vec![byte; self.page_size];
        let file = match fs.lookup(Ino::ROOT, &name(number)) {
            Ok(file) => file,
            Err(error) => return end(fs, Err(error)),
        };
        let at = (page * bytes.len()) as u64;
        let outcome = self.count(fs, "Write", bytes.len(), |fs| fs.write_at(file, at, &bytes));
        let is_whole = outcome == Ok(bytes.len());
        end(fs, outcome.map(drop))?;
        if is_whole && !fs.nand().is_off() && self.chance.below(2) == 0 {
            let outcome = self.count(fs, "Fsync", 0, |fs| fs.fsync(file));
            if outcome.is_ok() {
                self.kept.insert(number, (page, byte));
            }
            end(fs, outcome)?;
        }
        Ok(())
    }

    /// A new file, or some pages more of one.
    fn grow(&mut self, fs: &mut Fs<'_, &mut Sim>) -> Result<(), String> {
        let number = self.chance.below(4_000);
        self.kept.remove(&number);
        let file = match fs.lookup(Ino::ROOT, &name(number)) {
            Ok(file) => file,
            Err(FsError::NotFound { .. }) => {
                match self.count(fs, "Create", 0, |fs| fs.create(Ino::ROOT, &name(number), NEW)) {
                    Ok(file) => file,
                    Err(error) => return end(fs, Err(error)),
                }
            }
            Err(error) => return end(fs, Err(error)),
        };
        let count = 1 + self.chance.below(self.habits.file_pages);
        let mut pages = self.files.get(&number).map_or(0, |file| file.pages);
        let bytes = vec![1 + self.chance.below(255) as u8; self.page_size];
        for _ in 0..count {
            let at = (pages * bytes.len()) as u64;
            let outcome = self.count(fs, "Write", bytes.len(), |fs| fs.write_at(file, at, &bytes));
            if outcome != Ok(bytes.len()) {
                self.files.insert(number, Large { pages });
                return end(fs, outcome.map(drop));
            }
            pages += 1;
        }
        self.files.insert(number, Large { pages });
        Ok(())
    }

    /// A file goes, or is cut.
    fn remove(&mut self, fs: &mut Fs<'_, &mut Sim>, number: usize) -> Result<(), String> {
        self.kept.remove(&number);
        let pages = self.files.get(&number).map_or(0, |file| file.pages);
        if self.chance.below(2) == 0 && pages > 1 {
            let left = self.chance.below(pages);
            let file = match fs.lookup(Ino::ROOT, &name(number)) {
                Ok(file) => file,
                Err(error) => return end(fs, Err(error)),
            };
            let size = (left * self.page_size) as u64;
            let outcome = self.count(fs, "Truncate", 0, |fs| fs.truncate(file, size));
            self.tally.tried("truncations to less", outcome == Err(FsError::Full), &self.here());
            if outcome.is_ok() {
                self.files.insert(number, Large { pages: left });
            }
            return end(fs, outcome);
        }
        let outcome = self.count(fs, "Unlink", 0, |fs| fs.unlink(Ino::ROOT, &name(number)));
        self.tally.tried("unlinks", outcome == Err(FsError::Full), &self.here());
        if outcome.is_ok() {
            self.files.remove(&number);
        }
        end(fs, outcome)
    }
}

/// Bytes that an operation writes: of content, of attributes, of a link's target.
fn written(op: &Op) -> usize {
    match op {
        Op::Append(_, bytes) => bytes.len(),
        Op::SetXattr(_, _, bytes) | Op::SetBoth(_, _, Some(bytes), _) | Op::Symlink(_, bytes) => bytes.len(),
        Op::CreateWith(_, xattrs) | Op::MkdirWith(_, xattrs) => xattrs.iter().map(|(_, bytes)| bytes.len()).sum(),
        _ => 0,
    }
}

fn kind(op: &Op) -> &'static str {
    match op {
        Op::Create(_) | Op::CreateWith(..) => "Create",
        Op::Mkdir(_) | Op::MkdirWith(..) => "Mkdir",
        Op::Symlink(..) => "Symlink",
        Op::Link(..) => "Link",
        Op::Unlink(_) => "Unlink",
        Op::Rmdir(_) => "Rmdir",
        Op::Rename(..) => "Rename",
        Op::Write(..) | Op::WriteOpen(..) => "Write",
        Op::Append(..) => "Append",
        Op::Truncate(..) => "Truncate",
        Op::Allocate(..) => "Allocate",
        Op::Set(..) => "Set",
        Op::SetXattr(..) | Op::RemoveXattr(..) | Op::SetBoth(..) => "SetXattr",
        Op::Open(..) => "Open",
        Op::Close(_) => "Close",
        Op::Fsync(_) => "Fsync",
        Op::Sync => "Sync",
        Op::Idle => "Idle",
    }
}

/// A call that failed: only what the chip or nandu did is a fault, and a cut is none.
fn end(fs: &Fs<'_, &mut Sim>, outcome: Result<(), Failure>) -> Result<(), String> {
    match outcome {
        Err(error) if !fs.nand().is_off() && error.errno() == errno::EIO => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Whose, live_with};

    /// While memory was made free for a file that is synced, the tree grew, and less could wait from then on. Commits alone make no room then: there were 4,096.
    #[test]
    fn no_call_commits_for_ever_where_the_tree_grows() {
        let tally = live_with(Whose::Dense, Form::Short, (3, Some(2_000))).unwrap();
        let worst = tally.programs()["files, two bits a cell"];
        assert!(worst <= 64.0, "{worst} programs");
    }
}
