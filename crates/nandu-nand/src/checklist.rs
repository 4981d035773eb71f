//! What a driver has to get right: a list to go through before a chip is trusted with data.
//!
//! Each line stands for data that somebody lost. `nandu-spi` is a driver that does all of it, and `nandu-spi-sim` shows most of it in
//! a driver that does not.
//!
//! # Setting up
//!
//! * Wait until the chip answers after its power came, then wait for whatever goes on in it, and reset it. An erase that was under way
//!   when the processor started again is waited for: a reset cuts it.
//! * Ask for its identity and refuse what is not known. Take shape, status codes and protected bytes from a table with sources.
//! * Unlock its blocks: many wake up locked, and then every program "fails".
//! * Switch error correction on and continuous read off, in each die. Two parts with the same identity may wake up differently.
//! * Read back what was set.
//!
//! # Waiting
//!
//! * Look whether the chip is busy before anything else is made of a status, and before the next command, after reads too.
//! * Give each operation a time limit. When it has passed, say [`Bus`](crate::NandErrorKind::Bus) and bring the chip to a known state
//!   before the next command: wait, reset, set up again.
//! * Do the same after every error of the bus. Part of a command may have arrived.
//!
//! # Believing success
//!
//! * A bus that is dead reads as zeros or ones, and as a status zero is success. Look at something that is not zero: that a program was
//!   allowed before it began, that a register holds what it should afterwards.
//! * A chip whose power was gone for a moment has forgotten the program that it was doing and says that nothing failed. Its registers are
//!   those of power-up: look at one that differs.
//!
//! # Which error for what
//!
//! | what happened | kind |
//! |---|---|
//! | a transfer failed, a time limit passed, the chip lost its settings, or does not answer | [`Bus`](crate::NandErrorKind::Bus) |
//! | the chip says that a program failed, and it was there all the time | [`ProgramFailed`](crate::NandErrorKind::ProgramFailed) |
//! | the chip says that an erase failed, and it was there all the time | [`EraseFailed`](crate::NandErrorKind::EraseFailed) |
//! | a read found more flipped bits than can be corrected, or a code that no source explains | [`Uncorrectable`](crate::NandErrorKind::Uncorrectable) |
//! | the address or the columns are none of the chip's | [`OutOfBounds`](crate::NandErrorKind::OutOfBounds), before anything is said |
//!
//! `ProgramFailed` and `EraseFailed` take a block out of service for good, so an outage must not be one. `Bus` may be tried again, and
//! keeps the bus's own error for whoever looks for the loose wire: storage retires no block for an outage, hands that error on, and has to
//! be opened again if it was writing. `Gone` says that no further operation will succeed; a driver seldom
//! knows that.
//!
//! Say which, always. A port of Dhara that returns -1 from a read and leaves `*err` alone makes a page that a cut tore look like an outage of
//! the bus, so that no volume opens: `nandu_dhara_ask` in `nandu_dhara.h` asks a port.
//!
//! # Corrected bits
//!
//! * Report them: storage moves a page before its bits are too many ([`ReadStatus::from_bits`](crate::ReadStatus::from_bits)). A driver
//!   that says `Clean` of a corrected read loses the page some months later.
//! * A chip that names a range is taken at its worst. Where it says "corrected" and no more, that is as many as it can.
//! * On chips that correct one bit, each corrected read moves a page: with one read in fifty corrected, a put costs 2.05 programs in
//!   place of 1.00. That is the price of such a chip and no reason to hide the bit.
//! * The parameter page has nothing to do with error correction; do not look at the status after it.
//!
//! # Spare bytes
//!
//! * A tag goes only into bytes that error correction protects, in the same program as the page. A chip that has none has
//!   [`tag_size`](crate::Geometry::tag_size) 0. Bytes that another driver calls free are not thereby protected.
//! * The bad mark is read without error correction, which would mend it away in a page that holds nothing else, and in every page where
//!   the maker may have put it. A single flipped bit is no mark.
//! * The mark is programmed without error correction too: the page may hold data already.
//! * Load the whole cache before a program. Not every chip sets what it is not given to ones, and what a page that was read left there
//!   is programmed too, over the mark of the block for instance.
//!
//! # Addresses
//!
//! * Page size, pages in a block and blocks in a die are three numbers, and two of them are often equal. Program the last page of the
//!   last block and look that the first did not change.
//! * Parts with two planes may want the plane's bit in every column; stacks of dies want the die selected, and have registers for each.
//! * Copies inside the chip only where [`Geometry::may_copy`](crate::Geometry::may_copy) says so, and only of what was read well.
//! * Blocks that a boot loader or somebody else has are kept away from storage by a [`Partition`](crate::Partition), not by marking them
//!   bad. Its first block keeps planes and parity as they are in the chip.
//!
//! # Before it is trusted
//!
//! Run it on a simulated chip with power cuts, errors of the bus in every transaction, and flipped bits; then a day on the real one,
//! with the plug pulled.
