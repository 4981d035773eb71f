//! A file system to be tested.

use nandu_files::{Capabilities, FileSystem, Time};
use nandu_nand::{Geometry, Nand};
use nandu_sim::{Chip, Sim};

/// Permissions, owner, group and time of making of the root that [`System::format`] makes.
pub const ROOT: Root = Root { mode: 0o755, uid: 1, gid: 2, seconds: 1 };

/// What a root directory begins with.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When it is made, in seconds since 1970.
    pub seconds: i64,
}

/// What opening a file system returns.
pub type Opened<F> = Result<F, <F as FileSystem>::Error>;

/// A step of background work.
#[derive(Clone, Copy, Debug)]
pub struct Stepped {
    /// When it was done.
    pub at: Time,
    /// Whether it moved something to even out wear.
    pub levelled: bool,
}

/// A kind of file system, with the options that it is tested with.
pub trait System: Clone + 'static {
    /// The file system on a chip.
    type Mounted<'m, N: Nand + 'm>: FileSystem<Chip = N>;

    /// Bytes of memory that it takes.
    fn memory_size(&self, geometry: &Geometry) -> usize;

    /// Makes an empty one, whose root is as [`ROOT`] says.
    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>>;

    /// Mounts what is on the chip.
    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Self::Mounted<'m, N>>;

    /// What comes before each operation. `is_synced` is by chance, for systems that ask what kind of request it is.
    fn begin<N: Nand>(&self, fs: &mut Self::Mounted<'_, N>, now: Time, is_synced: bool) {
        let _ = is_synced;
        fs.set_now(now);
    }

    /// What comes after each operation.
    fn end<N: Nand>(&self, fs: &mut Self::Mounted<'_, N>, now: Time) {
        let _ = (fs, now);
    }

    /// Whether there is background work besides [`FileSystem::idle`].
    fn has_steps(&self) -> bool {
        false
    }

    /// Does a step of that, no sooner than this and than it is due; `None` if there is none.
    fn step<N: Nand>(&self, fs: &mut Self::Mounted<'_, N>, now: Time) -> Option<Stepped> {
        let _ = (fs, now);
        None
    }

    /// Whether what was found when it was mounted was not all told of by a commit, where a system has pages that tell of themselves.
    fn has_tail<N: Nand>(&self, fs: &Self::Mounted<'_, N>) -> bool {
        let _ = fs;
        false
    }

    /// Whether a life ends with [`liveness`](crate::liveness): the system promises what that asks.
    fn promises_liveness(&self) -> bool {
        false
    }

    /// Gives up what keeps room and has no name, as snapshots are.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn let_go<'m, N: Nand + 'm>(
        &self,
        fs: &mut Self::Mounted<'m, N>,
    ) -> Result<(), <Self::Mounted<'m, N> as FileSystem>::Error> {
        let _ = fs;
        Ok(())
    }

    /// Memory for it.
    fn memory(&self, geometry: &Geometry) -> Vec<u8> {
        vec![0; self.memory_size(geometry)]
    }

    /// A chip with an empty file system.
    fn formatted(&self, chip: Chip) -> Sim {
        let mut memory = self.memory(&chip.geometry);
        self.format(Sim::new(chip), &mut memory).unwrap().unmount().unwrap()
    }

    /// What it can do on such a chip.
    fn capabilities(&self, chip: Chip) -> Capabilities {
        let mut memory = self.memory(&chip.geometry);
        self.format(Sim::new(chip), &mut memory).unwrap().capabilities()
    }
}
