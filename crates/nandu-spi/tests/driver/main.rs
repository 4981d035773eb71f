//! The driver against a part that follows its row of the table.

#![expect(clippy::panic, reason = "a test that gets no part has failed")]

mod fake;
mod opening;
mod operations;
mod trouble;

use std::rc::Rc;

use fake::{Broken, Handle};
use nandu_spi::{PARTS, Part, SpiError, SpiNand};

type Chip = SpiNand<Handle>;
type Error = SpiError<Broken>;

fn part(name: &str) -> &'static Part {
    let found = Part::by_name(name, PARTS);
    assert!(found.is_some(), "{name} is not in the table");
    found.unwrap_or(&PARTS[0])
}

/// An open chip, and the part behind it.
fn open(part: &'static Part) -> (Chip, Handle) {
    let handle = Handle::new(part);
    match SpiNand::open(handle.clone()) {
        Ok(chip) => (chip, handle),
        Err(error) => panic!("{}: {error}", part.name),
    }
}

impl Handle {
    #[track_caller]
    fn was_used_rightly(&self) {
        let violations = &self.0.borrow().violations;
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// Opcodes since the last call.
    fn said(&self) -> Vec<u8> {
        let mut fake = self.0.borrow_mut();
        fake.power_at = None;
        fake.broken_at = None;
        std::mem::take(&mut fake.log)
    }

    fn same(&self) -> Handle {
        Handle(Rc::clone(&self.0))
    }
}
