//! What programs do to a file system: the workloads on which the kernel's flash file systems were counted.
//!
//! The same calls with the same bytes as the program that ran on those, for the same seed: a generator of 64 bits (SplitMix64)
//! decides which file goes and fills each file from its number. Whoever takes them is a [`Files`].

use std::fmt;

use crate::BenchError;

/// A file, by the number that the workload gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileName {
    /// The directory below the root; `None`: the root.
    pub directory: Option<u32>,
    /// The file's number.
    pub number: u64,
}

impl FileName {
    /// Its name in its directory.
    pub fn name(&self) -> String {
        format!("f{:08}", self.number)
    }

    /// The name of a directory in the root.
    pub fn directory_name(directory: u32) -> String {
        format!("s{directory:04}")
    }
}

/// A file system that a workload is run on. One file is open at a time.
pub trait Files {
    /// Makes a directory in the root.
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError>;
    /// Removes one.
    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError>;
    /// Makes an empty file and opens it.
    fn create(&mut self, file: FileName) -> Result<(), BenchError>;
    /// Writes to the file that is open; with `is_synced` it is durable when this returns.
    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError>;
    /// Makes the file that is open durable.
    fn fsync(&mut self) -> Result<(), BenchError>;
    /// Closes the file that is open.
    fn close(&mut self) -> Result<(), BenchError>;
    /// Removes a file.
    fn unlink(&mut self, file: FileName) -> Result<(), BenchError>;
    /// Gives a file another name, that no other has.
    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError>;
    /// Reads a whole file and compares it.
    fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError>;
}

impl<F: Files + ?Sized> Files for Box<F> {
    fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        (**self).make_directory(directory)
    }
    fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
        (**self).remove_directory(directory)
    }
    fn create(&mut self, file: FileName) -> Result<(), BenchError> {
        (**self).create(file)
    }
    fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
        (**self).write(offset, bytes, is_synced)
    }
    fn fsync(&mut self) -> Result<(), BenchError> {
        (**self).fsync()
    }
    fn close(&mut self) -> Result<(), BenchError> {
        (**self).close()
    }
    fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
        (**self).unlink(file)
    }
    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
        (**self).rename(from, to)
    }
    fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError> {
        (**self).expect(file, content)
    }
}

/// When a program asks for its data to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// With each write.
    EachWrite,
    /// Before a file is closed.
    OnClose,
}

/// Files of one size, in directories in turn.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// Files there are at first.
    pub files: u64,
    /// Directories in the root; 0: all files stand in the root.
    pub directories: u32,
    /// Bytes of a file.
    pub size: usize,
    /// Bytes written at once.
    pub write_size: usize,
    /// When they become durable.
    pub durable: Durable,
}

/// The generator: 64 bits of state, fully determined by its seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }
}

/// The bytes of a file, or of an update.
fn fill(bytes: &mut [u8], seed: u64, number: u64) {
    let mut random = SplitMix64(seed.wrapping_mul(1_000_003).wrapping_add(number));
    for chunk in bytes.chunks_mut(8) {
        let value = random.next().to_le_bytes();
        chunk.copy_from_slice(&value[..chunk.len()]);
    }
}

/// Postmark as the comparison has it: files are made; then each transaction makes one or removes a random one; then all are
/// removed. Its phases are called one after the other.
pub struct Postmark {
    population: Population,
    seed: u64,
    random: SplitMix64,
    live: Vec<u64>,
    next: u64,
    bytes: Vec<u8>,
}

impl fmt::Debug for Postmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postmark").field("seed", &self.seed).field("live", &self.live.len()).finish_non_exhaustive()
    }
}

impl Postmark {
    /// With files of this kind.
    pub fn new(population: Population, seed: u64) -> Postmark {
        let bytes = vec![0; population.size];
        Postmark { population, seed, random: SplitMix64(seed), live: Vec::new(), next: 0, bytes }
    }

    /// Makes the directories and the first files. `tell` hears how many files there are.
    pub fn create(&mut self, files: &mut dyn Files, tell: &mut dyn FnMut(u64)) -> Result<(), BenchError> {
        for directory in 0..self.population.directories {
            files.make_directory(directory)?;
        }
        for done in 0..self.population.files {
            self.create_one(files)?;
            tell(done + 1);
        }
        Ok(())
    }

    /// Makes or removes a file, so many times; returns how many were made.
    pub fn transact(
        &mut self,
        count: u64,
        files: &mut dyn Files,
        tell: &mut dyn FnMut(u64),
    ) -> Result<u64, BenchError> {
        let mut made = 0;
        for done in 0..count {
            if self.live.is_empty() || self.random.below(2) == 1 {
                self.create_one(files)?;
                made += 1;
            } else {
                let index = self.random.below(self.live.len() as u64) as usize;
                let number = self.live.swap_remove(index);
                files.unlink(self.population.name(number))?;
            }
            tell(done + 1);
        }
        Ok(made)
    }

    /// Reads every file and compares it.
    pub fn verify(&mut self, files: &mut dyn Files) -> Result<(), BenchError> {
        for &number in &self.live {
            fill(&mut self.bytes, self.seed, number);
            files.expect(self.population.name(number), &self.bytes)?;
        }
        Ok(())
    }

    /// Removes all files and directories; returns how many files there were.
    pub fn delete(&mut self, files: &mut dyn Files) -> Result<u64, BenchError> {
        let count = self.live.len() as u64;
        for number in self.live.drain(..) {
            files.unlink(self.population.name(number))?;
        }
        for directory in 0..self.population.directories {
            files.remove_directory(directory)?;
        }
        Ok(count)
    }

    fn create_one(&mut self, files: &mut dyn Files) -> Result<(), BenchError> {
        fill(&mut self.bytes, self.seed, self.next);
        self.population.create(self.next, &self.bytes, files)?;
        self.live.push(self.next);
        self.next += 1;
        Ok(())
    }
}

impl Population {
    /// Makes the directories, and all files.
    pub fn create_all(&self, seed: u64, files: &mut dyn Files, tell: &mut dyn FnMut(u64)) -> Result<(), BenchError> {
        let mut bytes = vec![0; self.size];
        for directory in 0..self.directories {
            files.make_directory(directory)?;
        }
        for number in 0..self.files {
            fill(&mut bytes, seed, number);
            self.create(number, &bytes, files)?;
            tell(number + 1);
        }
        Ok(())
    }

    /// The name of a file.
    pub fn name(&self, number: u64) -> FileName {
        let directory = number.checked_rem(u64::from(self.directories)).map(|directory| directory as u32);
        FileName { directory, number }
    }

    /// Makes one file.
    pub fn create(&self, number: u64, bytes: &[u8], files: &mut dyn Files) -> Result<(), BenchError> {
        files.create(self.name(number))?;
        let mut offset = 0;
        for part in bytes.chunks(self.write_size) {
            files.write(offset, part, self.durable == Durable::EachWrite)?;
            offset += part.len() as u64;
        }
        if self.durable == Durable::OnClose {
            files.fsync()?;
        }
        files.close()
    }
}

/// Random records of one large file overwritten, each update durable before the next.
pub struct Updates {
    /// Bytes of the file.
    pub size: usize,
    /// Bytes of a record.
    pub record: usize,
    seed: u64,
    random: SplitMix64,
    content: Vec<u8>,
    done: u64,
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates")
            .field("size", &self.size)
            .field("record", &self.record)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Updates {
    const FILE: FileName = FileName { directory: None, number: 0 };

    /// Of a file of this size.
    pub fn new(size: usize, record: usize, seed: u64) -> Updates {
        Updates { size, record, seed, random: SplitMix64(seed), content: vec![0; size], done: 0 }
    }

    /// Writes the file and leaves it open.
    pub fn fill(&mut self, files: &mut dyn Files, write_size: usize) -> Result<(), BenchError> {
        fill(&mut self.content, self.seed, 0);
        files.create(Updates::FILE)?;
        let mut offset = 0;
        for part in self.content.chunks(write_size) {
            files.write(offset, part, false)?;
            offset += part.len() as u64;
        }
        files.fsync()
    }

    /// One update, durable when this returns.
    pub fn update(&mut self, files: &mut dyn Files) -> Result<(), BenchError> {
        self.update_synced(files, true)
    }

    /// One update, with or without a sync.
    pub fn update_synced(&mut self, files: &mut dyn Files, is_synced: bool) -> Result<(), BenchError> {
        let at = self.random.below((self.size / self.record) as u64) as usize * self.record;
        self.done += 1;
        let record = &mut self.content[at..at + self.record];
        fill(record, self.seed, self.done);
        files.write(at as u64, record, is_synced)
    }

    /// Closes the file, reads it and compares it.
    pub fn verify(&mut self, files: &mut dyn Files) -> Result<(), BenchError> {
        files.close()?;
        files.expect(Updates::FILE, &self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what is called.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Files for Notes {
        fn make_directory(&mut self, directory: u32) -> Result<(), BenchError> {
            self.0.push(format!("mkdir {}", FileName::directory_name(directory)));
            Ok(())
        }
        fn remove_directory(&mut self, directory: u32) -> Result<(), BenchError> {
            self.0.push(format!("rmdir {}", FileName::directory_name(directory)));
            Ok(())
        }
        fn create(&mut self, file: FileName) -> Result<(), BenchError> {
            self.0.push(format!("create {:?} {}", file.directory, file.name()));
            Ok(())
        }
        fn write(&mut self, offset: u64, bytes: &[u8], is_synced: bool) -> Result<(), BenchError> {
            self.0.push(format!("write {offset} {bytes:02x?} {is_synced}"));
            Ok(())
        }
        fn fsync(&mut self) -> Result<(), BenchError> {
            self.0.push("fsync".into());
            Ok(())
        }
        fn close(&mut self) -> Result<(), BenchError> {
            self.0.push("close".into());
            Ok(())
        }
        fn unlink(&mut self, file: FileName) -> Result<(), BenchError> {
            self.0.push(format!("unlink {:?} {}", file.directory, file.name()));
            Ok(())
        }
        fn rename(&mut self, from: FileName, to: FileName) -> Result<(), BenchError> {
            self.0.push(format!("rename {} {}", from.name(), to.name()));
            Ok(())
        }
        fn expect(&mut self, file: FileName, content: &[u8]) -> Result<(), BenchError> {
            self.0.push(format!("expect {} {content:02x?}", file.name()));
            Ok(())
        }
    }

    /// What a program writes is fixed by its seed: numbers worked out by hand from the definition of the generator would be as
    /// long as it is, so its first one, which is published, stands for it.
    #[test]
    fn the_generator_is_the_one_it_is_said_to_be() {
        assert_eq!(SplitMix64(1_234_567).next(), 6_457_827_717_110_365_317);
    }

    #[test]
    fn files_are_made_in_turn_in_each_directory_and_removed_by_chance() {
        let population = Population { files: 3, directories: 2, size: 3, write_size: 2, durable: Durable::EachWrite };
        let (mut postmark, mut notes) = (Postmark::new(population, 1), Notes::default());
        postmark.create(&mut notes, &mut |_| {}).unwrap();
        assert_eq!(notes.0[..3], ["mkdir s0000", "mkdir s0001", "create Some(0) f00000000"]);
        assert!(notes.0[3].starts_with("write 0 [") && notes.0[4].starts_with("write 2 ["));
        assert_eq!(notes.0.iter().filter(|line| line.starts_with("create Some(1)")).count(), 1);
        let made = postmark.transact(20, &mut notes, &mut |_| {}).unwrap();
        let removed = notes.0.iter().filter(|line| line.starts_with("unlink")).count() as u64;
        assert!(made + removed == 20 && removed > 0, "{made} made");
        assert_eq!(postmark.delete(&mut notes).unwrap(), 3 + made - removed);
        assert_eq!(notes.0.last().unwrap(), "rmdir s0001");
    }

    #[test]
    fn what_is_expected_at_the_end_is_what_was_written() {
        let (mut updates, mut notes) = (Updates::new(4, 2, 1), Notes::default());
        updates.fill(&mut notes, 4).unwrap();
        for _ in 0..9 {
            updates.update(&mut notes).unwrap();
        }
        updates.verify(&mut notes).unwrap();
        let last = |offset: usize| {
            let lines = notes.0.iter().filter_map(|line| line.strip_prefix(&format!("write {offset} [")));
            lines.filter_map(|line| line.strip_suffix("] true")).next_back().unwrap()
        };
        assert_eq!(*notes.0.last().unwrap(), format!("expect f00000000 [{}, {}]", last(0), last(2)));
    }
}
