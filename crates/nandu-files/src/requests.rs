//! What can be asked for in more than one way.

/// What happens to a name that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenameMode {
    /// It is replaced: a file by what is no directory, an empty directory by a directory.
    #[default]
    Replace,
    /// The rename fails.
    NoReplace,
    /// Both names change places; the second has to be there.
    Exchange,
}

/// What becomes of a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// It is allocated where it is a hole, and reads as zeros until it is written; the file grows as far as needed. Flash is not set
    /// aside for it: a page that is written takes a new one anyway.
    Extend,
    /// The same, and the file keeps its size.
    KeepSize,
    /// It becomes a hole; the file keeps its size.
    PunchHole,
    /// It becomes zero and stays allocated; the file grows as far as needed.
    Zero,
    /// The same, and the file keeps its size.
    ZeroKeepSize,
}

impl Allocation {
    /// Whether the file grows.
    pub const fn grows(self) -> bool {
        matches!(self, Allocation::Extend | Allocation::Zero)
    }

    /// Whether what is there is lost.
    pub const fn zeroes(self) -> bool {
        !matches!(self, Allocation::Extend | Allocation::KeepSize)
    }
}

/// What is to happen to an extended attribute that is there, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XattrMode {
    /// It is set.
    #[default]
    Set,
    /// It must not be there.
    Create,
    /// It must be there.
    Replace,
}
