//! The tail that grows, the one that is due, and what a checkpoint says of them.

use nandu_media::anchor::Tail;
use nandu_media::features::TAGS;
use nandu_nand::PageAddr;

/// The tail behind the newest commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTail {
    /// Sequence of the commit.
    pub(crate) commit: u64,
    /// Where its first page is, or is going to be.
    pub(crate) first: PageAddr,
    /// Pages of it.
    pub(crate) count: u16,
}

/// What is known of tagged pages.
#[derive(Clone, Copy, Debug)]
struct State {
    /// What the newest checkpoint says.
    stored: Option<Tail>,
    /// The tail that the owner has to take over.
    due: Option<Tail>,
    /// The tail that grows. `None` if no tagged page would be found.
    open: Option<OpenTail>,
}

/// What is known of tagged pages, in no memory where tags are not compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags([State; TAGS as usize]);

impl Tags {
    pub(crate) const NONE: Tags = Tags([State { stored: None, due: None, open: None }; TAGS as usize]);

    /// What a checkpoint made now says.
    pub(crate) fn to_store(self) -> Option<Tail> {
        let open = self.open().map(|open| Tail { first: open.first.0, commit: open.commit, is_due: false });
        self.due().or(open)
    }

    /// Takes over what a checkpoint says.
    pub(crate) fn load(&mut self, stored: Option<Tail>) {
        self.0.iter_mut().for_each(|state| state.stored = stored);
    }

    /// After a clean mount the tail that is due is the one that the checkpoint calls so.
    pub(crate) fn take_stored_due(&mut self) {
        self.set_due(self.stored().filter(|tail| tail.is_due));
    }

    pub(crate) fn stored(&self) -> Option<Tail> {
        self.0.first()?.stored
    }

    /// The tail that the owner has to take over.
    pub(crate) fn due(&self) -> Option<Tail> {
        self.0.first()?.due
    }

    pub(crate) fn set_due(&mut self, due: Option<Tail>) {
        self.0.iter_mut().for_each(|state| state.due = due);
    }

    pub(crate) fn open(&self) -> Option<OpenTail> {
        self.0.first()?.open
    }

    pub(crate) fn set_open(&mut self, open: Option<OpenTail>) {
        self.0.iter_mut().for_each(|state| state.open = open);
    }
}
