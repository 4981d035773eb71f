//! What a mount asks of a file system besides what any can do.

use nandu::LogStats;
use nandu::fs::placement::Class;
use nandu::fs::{Fs, Regions};
use nandu_dffs::Dffs;
use nandu_files::{FileSystem, Ino, Time};
use nandu_nand::Nand;

/// A file system that can be mounted. The methods with a body are of what a system may lack.
pub trait Volume: FileSystem + Send + 'static {
    /// Comes before each request.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn request_begin(&mut self, now: Time) -> Result<(), Self::Error> {
        self.set_now(now);
        Ok(())
    }

    /// Comes after each request.
    fn request_end(&mut self, _now: Time) {}

    /// Says before a write whether it is to be durable when it returns.
    fn set_synced(&mut self, _is_synced: bool) {}

    /// Whether policies say when background work is done.
    fn is_placed(&self) -> bool {
        false
    }

    /// Does a step of background work. Returns whether there was one to do.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn step(&mut self, _now: Time) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// When the next step is due.
    fn step_due(&self) -> Option<Time> {
        None
    }

    /// Notes that an inode was read.
    ///
    /// # Errors
    ///
    /// Those of the chip.
    fn note_read(&mut self, _ino: Ino) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether reads change times.
    fn notes_reads(&self) -> bool {
        false
    }

    /// Whether the chip fails so that nothing can be changed any more.
    fn is_read_only(&self) -> bool {
        false
    }

    /// What the log of the chip counts, where there is one.
    fn log_stats(&self) -> Option<LogStats> {
        None
    }

    /// What the blocks of the chip are used for, where pages go to regions.
    fn regions(&self) -> Option<Regions> {
        None
    }
}

impl<N: Nand + Send + 'static> Volume for Fs<'static, N> {
    fn request_begin(&mut self, now: Time) -> Result<(), Self::Error> {
        Fs::request_begin(self, now)
    }

    fn request_end(&mut self, now: Time) {
        Fs::request_end(self, now);
    }

    fn set_synced(&mut self, is_synced: bool) {
        self.set_class(if is_synced { Class::Synced } else { Class::Normal });
    }

    fn is_placed(&self) -> bool {
        self.placement().is_some()
    }

    fn step(&mut self, now: Time) -> Result<bool, Self::Error> {
        Fs::step(self, now)
    }

    fn step_due(&self) -> Option<Time> {
        Fs::step_due(self)
    }

    fn note_read(&mut self, ino: Ino) -> Result<(), Self::Error> {
        Fs::note_read(self, ino)
    }

    fn notes_reads(&self) -> bool {
        true
    }

    fn log_stats(&self) -> Option<LogStats> {
        Some(self.stats())
    }

    fn regions(&self) -> Option<Regions> {
        Some(Fs::regions(self))
    }
}

impl<N: Nand + Send + 'static> Volume for Dffs<'static, N> {
    fn is_read_only(&self) -> bool {
        Dffs::is_read_only(self)
    }
}
