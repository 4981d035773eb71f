//! The index of a file system under the three mixes that the mu-Tree paper counts in its table 4.
//!
//! The paper's traces were never published. What is known is how many retrievals, insertions and deletions each has, what
//! was done, and how high its trees became. These are made up to have exactly those numbers, and the locality that the
//! descriptions imply:
//!
//! * `kernel_compile`: a source tree is unpacked directory by directory, sources and popular headers are read while
//!   objects are written beside them, every other one to be deleted soon, then the objects and at last everything is
//!   removed in order;
//! * `postmark`: a pool of small files in many directories; files are read, extended, created and deleted at random, and
//!   at last all are removed;
//! * `mp3`: a few large files grow one after the other, so that each entry of a file is put twice before the next; five
//!   times half of the files are deleted at random and as many new ones copied, and music is heard in between. The mix has
//!   nine times as many insertions as deletions, so most entries are never deleted, and a file is by its name, its
//!   attributes and two or three others.
//!
//! A file has an entry for its name, one for its attributes, and some for where its data is. As in ReiserFS, names belong to
//! their directory and stand by its number and their hash, far from what belongs to the files; that stands by the
//! directory's number, the file's, and the place in the file. An insertion puts a new entry or one that is there again, as a file
//! grows; a deletion removes an entry that is there. All retrievals find something.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::Operation;
use super::chooser::{Chooser, Skew};

/// How often each operation of a file system's index is done, and the story that they tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMix {
    /// Its name.
    pub name: &'static str,
    /// Lookups.
    pub retrievals: u32,
    /// Puts.
    pub insertions: u32,
    /// Deletions.
    pub deletions: u32,
    story: Story,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    KernelCompile,
    Postmark,
    Mp3,
}

impl FileMix {
    /// Unpack, compile, clean and remove a kernel's sources.
    pub const KERNEL_COMPILE: FileMix = FileMix {
        name: "kernel_compile",
        retrievals: 2_274_867,
        insertions: 260_974,
        deletions: 236_027,
        story: Story::KernelCompile,
    };

    /// A mail server's small files.
    pub const POSTMARK: FileMix = FileMix {
        name: "postmark",
        retrievals: 4_617_494,
        insertions: 574_148,
        deletions: 391_847,
        story: Story::Postmark,
    };

    /// Music is copied to a player, deleted and copied again.
    pub const MP3: FileMix =
        FileMix { name: "mp3", retrievals: 512_986, insertions: 223_188, deletions: 23_950, story: Story::Mp3 };

    /// All three.
    pub const ALL: [FileMix; 3] = [FileMix::KERNEL_COMPILE, FileMix::POSTMARK, FileMix::MP3];

    /// The same story with so many times fewer operations.
    #[must_use]
    pub const fn shrunk(self, divisor: u32) -> FileMix {
        FileMix {
            retrievals: self.retrievals / divisor,
            insertions: self.insertions / divisor,
            deletions: self.deletions / divisor,
            ..self
        }
    }

    /// All operations, in their order. Takes 12 bytes for each.
    pub fn operations(&self, seed: u64) -> Vec<Operation> {
        let mut teller = Teller::new(self, seed);
        match self.story {
            Story::KernelCompile => teller.kernel_compile(),
            Story::Postmark => teller.postmark(),
            Story::Mp3 => teller.mp3(),
        }
        teller.operations
    }
}

/// A file, by directory and number there.
#[derive(Clone, Copy, Debug)]
struct File {
    directory: u32,
    number: u32,
    /// Entries besides the name: attributes first.
    item_count: u32,
}

const NUMBER_BITS: u32 = 11;
const ITEM_BITS: u32 = 8;
const NAME_BITS: u32 = NUMBER_BITS + ITEM_BITS;

impl File {
    /// Where its name is among the names of its directory: an odd factor makes that differ for each number.
    fn name(&self) -> u32 {
        1 << 31 | self.directory << NAME_BITS | (self.number.wrapping_mul(0x9_E37B) & ((1 << NAME_BITS) - 1))
    }

    fn item(&self, item: u32) -> u32 {
        self.directory << NAME_BITS | self.number << ITEM_BITS | item
    }

    /// Its last entry, the one that is put again as the file grows.
    fn last(&self) -> u32 {
        if self.item_count == 0 { self.name() } else { self.item(self.item_count - 1) }
    }

    /// The entry of its attributes, or of its name if it has no other.
    fn attributes(&self) -> u32 {
        if self.item_count == 0 { self.name() } else { self.item(0) }
    }

    fn entry_count(&self) -> u32 {
        1 + self.item_count
    }

    fn keys(self) -> impl Iterator<Item = u32> {
        std::iter::once(self.name()).chain((0..self.item_count).map(move |item| self.item(item)))
    }
}

/// What lookups are spread over a stage of a story.
struct Quota {
    /// Lookups of the stage in all.
    retrievals: u32,
    /// Changes of the stage in all, about.
    changes: u32,
    done: u32,
}

impl Quota {
    fn new(retrievals: u32, changes: u32) -> Quota {
        Quota { retrievals, changes: changes.max(1), done: 0 }
    }

    /// Lookups due at the next change.
    fn due(&mut self) -> u32 {
        let at = |changes: u32| {
            let done = u64::from(self.retrievals) * u64::from(changes.min(self.changes));
            (done / u64::from(self.changes)) as u32
        };
        let due = at(self.done + 1) - at(self.done);
        self.done += 1;
        due
    }
}

/// Makes up operations.
struct Teller {
    mix: FileMix,
    seed: u64,
    random: ChaCha8Rng,
    operations: Vec<Operation>,
    next_value: u32,
    retrievals_left: u32,
    insertions_left: u32,
    /// Insertions that put an entry again.
    again_left: u32,
    /// New entries still to be made.
    new_left: u32,
}

impl Teller {
    fn new(mix: &FileMix, seed: u64) -> Teller {
        let count = mix.retrievals + mix.insertions + mix.deletions;
        Teller {
            mix: *mix,
            seed,
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x66_696C_6573),
            operations: Vec::with_capacity(count as usize),
            next_value: 0,
            retrievals_left: mix.retrievals,
            insertions_left: mix.insertions,
            again_left: mix.insertions.saturating_sub(mix.deletions),
            new_left: mix.deletions,
        }
    }

    fn get(&mut self, key: u32) {
        if self.retrievals_left > 0 {
            self.retrievals_left -= 1;
            self.operations.push(Operation::Get { key });
        }
    }

    fn put(&mut self, key: u32) {
        self.insertions_left -= 1;
        self.operations.push(Operation::Put { key, value: self.next_value });
        self.next_value += 1;
    }

    /// Puts an entry again, if the mix has room for it.
    fn put_again(&mut self, key: u32) {
        if self.again_left > 0 {
            self.again_left -= 1;
            self.put(key);
        }
    }

    /// A file with this many entries, or as many as are left to make. With each its name is looked up, as often as the quota
    /// says.
    fn create(&mut self, file: File, quota: &mut Quota) -> File {
        let entry_count = file.entry_count().min(self.new_left);
        let file = File { item_count: entry_count.saturating_sub(1), ..file };
        self.new_left -= entry_count;
        for key in file.keys().take(entry_count as usize) {
            self.put(key);
            for _ in 0..quota.due() {
                self.get(file.name());
            }
        }
        file
    }

    /// Removes a file's entries, its name last. Before each the name is looked up, as often as the quota says.
    fn delete(&mut self, file: File, quota: &mut Quota) {
        let keys: Vec<u32> = file.keys().collect();
        for &key in keys.iter().rev() {
            for _ in 0..quota.due() {
                self.get(file.name());
            }
            self.operations.push(Operation::Delete { key });
        }
    }

    /// What is left of the lookups, spread evenly over files.
    fn get_rest(&mut self, files: &[File]) {
        for file in files.iter().cycle() {
            if self.retrievals_left == 0 {
                break;
            }
            file.keys().for_each(|key| self.get(key));
        }
    }

    fn kernel_compile(&mut self) {
        const FILES_IN_DIRECTORY: u32 = 20;
        let (all, retrievals) = (self.mix.deletions, self.mix.retrievals);
        let share = |share: f64| (f64::from(retrievals) * share) as u32;

        // Unpack: some 19,000 files with three or four entries each are 27 % of all entries ever made.
        let mut sources = Vec::new();
        let unpacked = all / 100 * 27;
        let mut quota = Quota::new(share(0.15), unpacked);
        while all - self.new_left < unpacked {
            let nth = sources.len() as u32;
            let item_count = self.random.random_range(2..=3);
            let file = File { directory: nth / FILES_IN_DIRECTORY, number: nth % FILES_IN_DIRECTORY, item_count };
            let file = self.create(file, &mut quota);
            if nth.is_multiple_of(3) {
                self.put_again(file.attributes());
            }
            sources.push(file);
        }

        // Compile: objects and notes about them are written beside each source, after the source and popular headers were
        // read.
        let mut objects: Vec<File> = Vec::new();
        let mut quota = Quota::new(share(0.70), self.new_left);
        let headers = (sources.len() / 20).max(1);
        let mut chooser = Chooser::new(headers as u32, Skew::Zipf(0.99), self.seed).ok();
        let object_count = (self.new_left / 4).div_ceil(sources.len().max(1) as u32) + 1;
        let mut nth = 0;
        while self.new_left > 0 {
            let source = sources[nth as usize / object_count as usize % sources.len()];
            let number = FILES_IN_DIRECTORY + source.number * object_count + nth % object_count;
            let wanted = File { directory: source.directory, number, item_count: 3 };
            let due: u32 = (0..wanted.entry_count()).map(|_| quota.due()).sum();
            let end = self.retrievals_left.saturating_sub(due);
            source.keys().for_each(|key| self.get(key));
            while self.retrievals_left > end {
                let header = chooser.as_mut().map_or(0, Chooser::choose) as usize;
                sources[header * 20 % sources.len()].keys().for_each(|key| self.get(key));
            }
            let object = self.create(wanted, &mut Quota::new(0, 1));
            if nth.is_multiple_of(3) {
                self.put_again(object.last());
            }
            // Every other file is there only until the next one is made from it.
            if nth % 2 == 0 {
                objects.push(object);
            } else {
                self.delete(object, &mut Quota::new(0, 1));
            }
            nth += 1;
        }
        // The rest of what is put again: attributes, as sources are touched once more.
        for nth in (0..sources.len()).cycle().take(self.again_left as usize) {
            self.put_again(sources[nth].attributes());
        }

        // Clean and remove, directory by directory.
        objects.sort_by_key(|file| (file.directory, file.number));
        let object_entries = objects.iter().map(File::entry_count).sum();
        let mut quota = Quota::new(share(0.05), object_entries);
        for &object in &objects {
            self.delete(object, &mut quota);
        }
        let source_entries = sources.iter().map(File::entry_count).sum();
        let mut quota = Quota::new(self.retrievals_left, source_entries);
        for &source in &sources {
            self.delete(source, &mut quota);
        }
    }

    fn postmark(&mut self) {
        const DIRECTORIES: u32 = 100;
        const ITEMS: u32 = 2;
        let (all, retrievals) = (self.mix.deletions, self.mix.retrievals);
        let share = |share: f64| (f64::from(retrievals) * share) as u32;
        let directories = DIRECTORIES.min(all / 30 + 1);
        // Numbers that are free, for each directory.
        let mut free: Vec<Vec<u32>> = vec![(0..1 << NUMBER_BITS).rev().collect(); directories as usize];
        let mut files: Vec<File> = Vec::new();

        // The pool takes 60 % of all entries ever made.
        let mut quota = Quota::new(share(0.10), all / 10 * 6);
        while all - self.new_left < all / 10 * 6 {
            files.extend(self.create_somewhere(&mut free, ITEMS, &mut quota));
        }

        // Transactions: read or extend a file, create or delete one.
        let mut quota = Quota::new(share(0.75), self.new_left * 2);
        while self.new_left > 0 {
            if self.random.random_bool(0.5) || files.len() < 2 {
                files.extend(self.create_somewhere(&mut free, ITEMS, &mut Quota::new(0, 1)));
            } else {
                let place = self.random.random_range(0..files.len());
                let file = files.swap_remove(place);
                free[file.directory as usize].push(file.number);
                self.delete(file, &mut Quota::new(0, 1));
            }
            let due: u32 = (0..3).map(|_| quota.due()).sum();
            let end = self.retrievals_left.saturating_sub(due);
            while self.retrievals_left > end {
                let file = files[self.random.random_range(0..files.len())];
                file.keys().for_each(|key| self.get(key));
            }
            // Extending a file puts its last entry and its attributes again.
            let again_end = self.again_left - self.again_left / (self.new_left / 3 + 1);
            while self.again_left > again_end {
                let file = files[self.random.random_range(0..files.len())];
                self.put_again(file.last());
                self.put_again(file.attributes());
            }
        }
        self.get_rest_but(share(0.15), &files);

        let entries = files.iter().map(File::entry_count).sum();
        let mut quota = Quota::new(self.retrievals_left, entries);
        files.sort_by_key(|file| (file.directory, file.number));
        for file in files {
            self.delete(file, &mut quota);
        }
    }

    /// Looks files up until only so many lookups are left.
    fn get_rest_but(&mut self, left: u32, files: &[File]) {
        let kept = left.min(self.retrievals_left);
        self.retrievals_left -= kept;
        self.get_rest(files);
        self.retrievals_left += kept;
    }

    /// A file in a random directory.
    fn create_somewhere(&mut self, free: &mut [Vec<u32>], item_count: u32, quota: &mut Quota) -> Option<File> {
        let directory = self.random.random_range(0..free.len());
        let number = free[directory].pop()?;
        Some(self.create(File { directory: directory as u32, number, item_count }, quota))
    }

    fn mp3(&mut self) {
        const FILES_IN_DIRECTORY: u32 = 13;
        /// Times that half of the files are replaced.
        const ROUNDS: u32 = 5;
        // A file is deleted by its name, its attributes and, seven times of ten, three other entries, else two: 4.7. With 4.79
        // for each that is deleted in the rounds, some deletions are left for the end.
        let half = (u64::from(self.mix.deletions) * 100 / 479 / u64::from(ROUNDS)).max(1) as u32;
        let created_files = half * (2 + ROUNDS);
        self.new_left = u32::MAX;
        self.again_left = u32::MAX;
        let mut quota = Quota::new(self.mix.retrievals / 20 * 13, self.mix.insertions);
        let mut deletions = Quota::new(self.mix.retrievals / 20, self.mix.deletions);
        let (mut files, mut created, mut deleted): (Vec<File>, u32, u32) = (Vec::new(), 0, 0);
        for round in 0..=ROUNDS {
            for nth in 0..if round == 0 { 0 } else { half } {
                let file = files.swap_remove(self.random.random_range(0..files.len()));
                let gone = File { item_count: if nth % 10 < 7 { 4 } else { 3 }, ..file };
                deleted += gone.entry_count();
                self.delete(gone, &mut deletions);
            }
            for _ in 0..if round == 0 { half * 2 } else { half } {
                let (directory, number) = (created / FILES_IN_DIRECTORY, created % FILES_IN_DIRECTORY);
                let puts = self.insertions_left / (created_files - created);
                let file = File { directory, number, item_count: (puts / 2).max(5) };
                self.copy(file, puts, &mut quota);
                files.push(file);
                created += 1;
            }
            // In between music is heard: all entries of random files are looked up.
            let end = self.retrievals_left.saturating_sub(self.mix.retrievals / 20 * 6 / (ROUNDS + 1));
            while self.retrievals_left > end {
                let file = files[self.random.random_range(0..files.len())];
                file.keys().for_each(|key| self.get(key));
            }
        }
        // Some of the last files are deleted, the last of these in part.
        let mut rest = self.mix.deletions.saturating_sub(deleted);
        while let Some(file) = files.pop_if(|_| rest > 0) {
            let keys: Vec<u32> = file.keys().take(rest as usize).collect();
            rest -= keys.len() as u32;
            self.operations.extend(keys.into_iter().map(|key| Operation::Delete { key }));
        }
        self.get_rest(&files);
    }

    /// A file grows to all its entries with so many puts, so that each of them is put about twice. After a put the name is
    /// looked up.
    fn copy(&mut self, file: File, puts: u32, quota: &mut Quota) {
        let keys: Vec<u32> = file.keys().collect();
        for nth in 0..puts {
            let place = (u64::from(nth) * keys.len() as u64 / u64::from(puts)) as usize;
            self.put(keys[place]);
            for _ in 0..quota.due() {
                self.get(file.name());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    /// What a mix consists of, and the most entries that are there at one time. Everything that is looked up or deleted must
    /// be there.
    fn told(mix: FileMix) -> (FileMix, usize) {
        let mut index = BTreeMap::new();
        let mut told = FileMix { retrievals: 0, insertions: 0, deletions: 0, ..mix };
        let mut most = 0;
        for operation in mix.operations(11) {
            match operation {
                Operation::Get { key } => {
                    told.retrievals += 1;
                    assert!(index.contains_key(&key), "{}: {operation:?}", mix.name);
                }
                Operation::Put { key, value } => {
                    told.insertions += 1;
                    index.insert(key, value);
                    most = most.max(index.len());
                }
                Operation::Delete { key } => {
                    told.deletions += 1;
                    assert!(index.remove(&key).is_some(), "{}: {operation:?}", mix.name);
                }
                Operation::Scan { .. } => panic!("{operation:?}"),
            }
        }
        (told, most)
    }

    #[test]
    fn mixes_have_the_counts_of_the_paper_to_the_last_operation() {
        for mix in FileMix::ALL {
            assert_eq!(told(mix).0, mix);
            let small = mix.shrunk(50);
            assert_eq!(told(small).0, small);
        }
    }

    /// A leaf of the paper's B+-tree has 512 entries, half of them after ascending inserts: its height was three for two of
    /// the traces and two for the third.
    #[test]
    fn as_many_entries_live_as_the_heights_of_the_paper_imply() {
        let most = FileMix::ALL.map(|mix| told(mix).1);
        assert!(most[0] > 131_072 && most[1] > 131_072, "{most:?}");
        assert!(most[2] < 131_072, "{most:?}");
    }

    /// Share of the operations whose key is within 64 of one of the last 64 keys.
    fn locality(operations: &[Operation]) -> f64 {
        let mut recent: VecDeque<u32> = VecDeque::new();
        let mut near = 0;
        for operation in operations {
            let key = operation.key();
            near += u32::from(recent.iter().any(|other| other.abs_diff(key) <= 64));
            recent.push_back(key);
            recent.truncate(64);
            if recent.len() == 64 {
                recent.pop_front();
            }
        }
        f64::from(near) / operations.len() as f64
    }

    #[test]
    fn music_is_the_most_local_and_mail_the_least() {
        let [kernel, mail, music] = FileMix::ALL.map(|mix| locality(&mix.shrunk(20).operations(3)));
        assert!(music > 0.9 && music > kernel && kernel > mail, "kernel {kernel}, mail {mail}, music {music}");
    }
}
