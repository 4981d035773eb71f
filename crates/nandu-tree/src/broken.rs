//! Rules that a test can switch off, to show that the power-cut driver then finds a loss.

/// Rules that are not kept.
#[cfg(feature = "_broken")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// T13: a page value is committed before its page is programmed.
    pub commit_first: bool,
    /// T14: the page of a value is superseded when the value is replaced, and not when that is durable.
    pub supersede_first: bool,
    /// T15: a leaf is programmed with the pages that are moved and without its changes.
    pub move_stale: bool,
    /// T16: a copy is named while the program of its partner is still to come.
    pub name_exposed: bool,
    /// A page that carries changes is superseded when its node is, although the changes are needed.
    pub forget_rides: bool,
    /// A leaf that gets the range of one that vanished shows spent entries of that range again.
    pub wake_spent: bool,
    /// A page of a leaf is looked for by the first key in it, which may be spent.
    pub seek_first: bool,
}

/// Without the feature every rule is kept.
#[cfg(not(feature = "_broken"))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Broken;

#[cfg(feature = "_broken")]
impl Broken {
    /// Every rule is kept.
    pub const NONE: Broken = Broken {
        commit_first: false,
        supersede_first: false,
        move_stale: false,
        name_exposed: false,
        forget_rides: false,
        wake_spent: false,
        seek_first: false,
    };

    pub(crate) fn commits_first(self) -> bool {
        self.commit_first
    }

    pub(crate) fn supersedes_first(self) -> bool {
        self.supersede_first
    }

    pub(crate) fn moves_stale(self) -> bool {
        self.move_stale
    }

    pub(crate) fn names_exposed(self) -> bool {
        self.name_exposed
    }

    pub(crate) fn forgets_rides(self) -> bool {
        self.forget_rides
    }

    pub(crate) fn wakes_spent(self) -> bool {
        self.wake_spent
    }

    pub(crate) fn seeks_first(self) -> bool {
        self.seek_first
    }
}

#[cfg(not(feature = "_broken"))]
#[expect(clippy::unused_self, reason = "the twins of test switches")]
impl Broken {
    pub(crate) fn commits_first(self) -> bool {
        false
    }

    pub(crate) fn supersedes_first(self) -> bool {
        false
    }

    pub(crate) fn moves_stale(self) -> bool {
        false
    }

    pub(crate) fn names_exposed(self) -> bool {
        false
    }

    pub(crate) fn forgets_rides(self) -> bool {
        false
    }

    pub(crate) fn wakes_spent(self) -> bool {
        false
    }

    pub(crate) fn seeks_first(self) -> bool {
        false
    }
}
