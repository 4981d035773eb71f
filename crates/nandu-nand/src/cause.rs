//! Why an operation is done, for ledgers.

/// Why storage code asks the chip for an operation.
///
/// Storage code announces a cause with [`Nand::attribute`](crate::Nand::attribute); a simulator or a tracing driver
/// books each operation to the cause announced last, so that the shares add up to everything the chip did. A driver of
/// a real part ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing was announced.
    Other = 0,
    /// Making a chip ready for first use.
    Format = 1,
    /// Opening: search for anchors, replay.
    Mount = 2,
    /// Putting right what a power cut left: copying out of suspect blocks, erasing what may be half erased.
    Recovery = 3,
    /// Reading what the user asked for.
    Lookup = 4,
    /// What the user asked to be stored: records, file data.
    Host = 5,
    /// Index pages beyond what the user's data needed.
    Tree = 6,
    /// Pages of large values.
    Value = 7,
    /// Directory pages.
    Directory = 8,
    /// Inode pages.
    Inode = 9,
    /// Log pages of in-place structures.
    InPageLog = 10,
    /// Checkpoints and anchors.
    Checkpoint = 11,
    /// Moving live pages to free a block, and the erase after it.
    Gc = 12,
    /// Moving pages to even out wear.
    Levelling = 13,
    /// Moving pages whose bits begin to flip.
    Refresh = 14,
    /// Moving data from SLC-mode blocks to MLC-mode blocks.
    Migration = 15,
    /// Emptying and marking a block that failed.
    Retire = 16,
    /// Verification by the user's wish.
    Verify = 17,
}

impl Cause {
    /// Every cause, in the order of its number.
    pub const ALL: [Cause; 18] = [
        Cause::Other,
        Cause::Format,
        Cause::Mount,
        Cause::Recovery,
        Cause::Lookup,
        Cause::Host,
        Cause::Tree,
        Cause::Value,
        Cause::Directory,
        Cause::Inode,
        Cause::InPageLog,
        Cause::Checkpoint,
        Cause::Gc,
        Cause::Levelling,
        Cause::Refresh,
        Cause::Migration,
        Cause::Retire,
        Cause::Verify,
    ];

    /// The number of causes; every cause as a number is below it.
    pub const COUNT: usize = Cause::ALL.len();

    /// The cause with this number.
    pub const fn from_index(index: u8) -> Option<Cause> {
        if (index as usize) < Cause::COUNT { Some(Cause::ALL[index as usize]) } else { None }
    }

    /// One lower-case word, as ledgers and machine-readable output print it.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Other => "other",
            Cause::Format => "format",
            Cause::Mount => "mount",
            Cause::Recovery => "recovery",
            Cause::Lookup => "lookup",
            Cause::Host => "host",
            Cause::Tree => "tree",
            Cause::Value => "value",
            Cause::Directory => "directory",
            Cause::Inode => "inode",
            Cause::InPageLog => "inpagelog",
            Cause::Checkpoint => "checkpoint",
            Cause::Gc => "gc",
            Cause::Levelling => "levelling",
            Cause::Refresh => "refresh",
            Cause::Migration => "migration",
            Cause::Retire => "retire",
            Cause::Verify => "verify",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn numbers_and_names_are_distinct_and_in_order() {
        for (index, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, index);
            assert_eq!(Cause::from_index(index as u8), Some(*cause));
            assert_eq!(Cause::ALL.iter().filter(|other| other.name() == cause.name()).count(), 1);
        }
        assert_eq!(Cause::from_index(Cause::COUNT as u8), None);
    }
}
