//! What one change cost the chip of an image.

use nandu_nand::Cause;
use serde_json::{Map, Value};

use crate::flash::Flash;
use crate::output::Output;
use crate::units;

/// What one change cost the chip.
pub(crate) struct Cost {
    programs: u64,
    /// Those of the change itself; the others are the checkpoint and the like that come with opening a store, and those below.
    programs_asked: u64,
    /// Those that move what stood in a block, perhaps with the change, to make room.
    programs_moved: u64,
    reads: u64,
    busy_ns: u64,
}

impl Cost {
    pub(crate) fn at(flash: &Flash) -> Cost {
        let (counters, ledger) = (flash.counters(), flash.ledger());
        Cost {
            programs: counters.programs,
            programs_asked: [Cause::Host, Cause::Tree, Cause::Value, Cause::InPageLog]
                .map(|cause| ledger.of(cause).programs)
                .iter()
                .sum(),
            programs_moved: ledger.of(Cause::Gc).programs,
            reads: counters.reads,
            busy_ns: counters.busy_ns,
        }
    }

    pub(crate) fn until(self, flash: &Flash) -> Cost {
        let now = Cost::at(flash);
        Cost {
            programs: now.programs - self.programs,
            programs_asked: now.programs_asked - self.programs_asked,
            programs_moved: now.programs_moved - self.programs_moved,
            reads: now.reads - self.reads,
            busy_ns: now.busy_ns - self.busy_ns,
        }
    }

    pub(crate) fn print_json(&self, mut object: Map<String, Value>, out: &mut Output) -> anyhow::Result<()> {
        object.insert("programs".to_owned(), self.programs.into());
        object.insert("programs_asked".to_owned(), self.programs_asked.into());
        object.insert("reads".to_owned(), self.reads.into());
        object.insert("busy_ns".to_owned(), self.busy_ns.into());
        out.json(&Value::Object(object))?;
        Ok(())
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", units::things(self.programs_asked, "page program"))?;
        let checkpoint = self.programs - self.programs_asked - self.programs_moved;
        let moved = self.programs_moved;
        match (checkpoint, moved) {
            (0, 0) => {}
            (_, 0) => write!(f, " (and {checkpoint} for the checkpoint after opening)")?,
            (0, _) => write!(f, " (and {moved} to make room)")?,
            _ => write!(f, " (and {moved} to make room, {checkpoint} for the checkpoint after opening)")?,
        }
        write!(f, ", {}", units::duration_ns(self.busy_ns))
    }
}
