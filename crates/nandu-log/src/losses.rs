//! Programs and erases of which nobody knows how they ended, although the bus can be read.
//!
//! One of them is a fault of a block, or of nothing at all: the page goes to another block, and a block that cannot be erased is retired.
//! Where none gets through any more, the chip hears no writes: its line for write protection is loose, or the driver's time limit is too
//! short. Blocks are sound then, and none may be retired; the log says what the driver said and is poisoned.

/// How many in a row are taken for faults of blocks: as many as the attempts to erase one block.
pub(crate) const LOSSES_MAX: u8 = 3;

/// Losses since a program, and since an erase, got through.
///
/// Apart, since a chip may take the ones and not the others. A dead line for both is found by both together, so that an erase behind
/// a lost program does not pass for a block that cannot be erased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    programs: u8,
    erases: u8,
}

impl Losses {
    pub(crate) const NONE: Losses = Losses { programs: 0, erases: 0 };

    /// A program got through.
    pub(crate) fn forget_programs(&mut self) {
        self.programs = 0;
    }

    /// An erase got through.
    pub(crate) fn forget_erases(&mut self) {
        self.erases = 0;
    }

    /// A program is lost. Whether there are still few losses; the first one too many ends the session.
    pub(crate) fn bear_program(&mut self) -> bool {
        self.programs += 1;
        self.are_few()
    }

    /// The same of an erase.
    pub(crate) fn bear_erase(&mut self) -> bool {
        self.erases += 1;
        self.are_few()
    }

    fn are_few(self) -> bool {
        self.programs + self.erases <= LOSSES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::Losses;

    #[test]
    fn the_fourth_loss_is_one_too_many() {
        let mut losses = Losses::NONE;
        for _ in 0..3 {
            assert!(losses.bear_erase());
        }
        assert!(!losses.clone().bear_erase());
        // The next one gets through, so it is the block.
        losses.forget_erases();
        assert!(losses.bear_erase());
    }

    #[test]
    fn programs_and_erases_are_lost_together() {
        let mut losses = Losses::NONE;
        assert!(losses.bear_program() && losses.bear_erase() && losses.bear_erase() && !losses.bear_erase());
    }

    #[test]
    fn erases_that_get_through_prove_nothing_of_programs() {
        let mut losses = Losses::NONE;
        for _ in 0..3 {
            assert!(losses.bear_program());
            losses.forget_erases();
        }
        assert!(!losses.bear_program());
    }
}
