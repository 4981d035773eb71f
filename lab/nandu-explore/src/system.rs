//! What is explored: something that lives on a chip, what can be called of it, and what has to be there afterwards.

use std::fmt::{Debug, Display};
use std::hash::DefaultHasher;

use nandu_sim::Sim;

/// Something that lives on a chip. Its calls and contents are few, so that all their sequences can be tried.
pub trait System: Sync {
    /// A call.
    type Call: Copy + Eq + Debug + Display + Send + Sync;
    /// All that a reader sees.
    type Content: Clone + Eq + Debug + Send;
    /// What may be found after a cut.
    type Owed: Clone + Send;

    /// The name by which the command knows it.
    fn name(&self) -> &'static str;

    /// The chip from which all sequences start, which was left in order.
    fn start(&self) -> Sim;

    /// The calls there are.
    fn calls(&self) -> &[Self::Call];

    /// What is owed where this was found, behind an opening that ended: all of it is durable.
    fn begin(&self, found: &Self::Content) -> Self::Owed;

    /// What is owed while a call is under way; `None` if the call cannot change anything, and is no matter of this system's.
    fn under_way(&self, owed: &Self::Owed, call: Self::Call) -> Option<Self::Owed>;

    /// What is owed when a call returned that was under way.
    fn done(&self, under_way: &Self::Owed, call: Self::Call) -> Self::Owed;

    /// What a reader sees.
    fn there(&self, owed: &Self::Owed) -> Self::Content;

    /// Whether this may be found after a cut.
    fn allows(&self, owed: &Self::Owed, found: &Self::Content) -> bool;

    /// Hashes what may be found.
    fn hash(&self, owed: &Self::Owed, hash: &mut DefaultHasher);

    /// Whether a call leaves the system in order.
    fn leaves(&self, call: Self::Call) -> bool;

    /// Opens what is on the chip, makes the calls, and says how the last of them ended. If that does not [leave](System::leaves) the system in order, it is left as it is, as if
    /// the power had gone.
    fn play(&self, chip: &mut Sim, calls: &[Self::Call]) -> Played<Self::Content>;

    /// Opens what is on the chip, checks it as far as it can be checked, reads everything and leaves it as it is.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    fn look(&self, chip: &mut Sim) -> Result<Self::Content, String>;

    /// Whether each page has a header with a checksum over all of it, so that a page without a sound one is as good as any other that reads the same way.
    fn has_headers(&self) -> bool;
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was asked for.
    Done,
    /// It changed nothing, since there is no room.
    Refused,
    /// It failed.
    Failed(String),
}

/// What was seen while calls were made.
#[derive(Clone, Debug)]
pub struct Played<C> {
    /// Number of the chip's first operation behind the opening, and of the first one of the last call.
    pub opened: u64,
    /// See `opened`; the number of the next operation if there was no call.
    pub begun: u64,
    /// How the last call ended, or the opening.
    pub ending: Ending,
    /// What a reader saw behind the last call, if it got there.
    pub content: Option<C>,
}
