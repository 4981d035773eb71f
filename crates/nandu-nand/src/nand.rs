//! The contract itself.

use crate::{BlockAddr, Cause, CellMode, ErrorType, Geometry, PageAddr, ReadStatus};

/// A raw NAND flash chip.
///
/// # Pages
///
/// A page has a main area, columns `0..page_size`, and a spare area behind it, columns `page_size..page_size +
/// spare_size`. The main area is protected by error correction below this contract. The spare area holds the bad-block
/// mark of its block and is the driver's to use otherwise; storage code neither programs it nor depends on it, but for a
/// *tag* where [`Geometry::tag_size`] says that the part has protected bytes for one.
///
/// # Rules for the caller
///
/// Storage code that breaks one of these has a bug; a driver may answer with an error, a chip may answer with silent
/// damage, and the simulator panics with the block's history.
///
/// * A page is programmed only after its block was erased, and at most
///   [`programs_per_page`](Geometry::programs_per_page) times until the next erase; no byte of it twice.
/// * The pages of a block are programmed in the order of [`Geometry::order`].
/// * In a block erased for [`CellMode::Slc`] on a chip with paired pages, MSB pages are not programmed.
/// * A bad block is neither programmed nor erased.
/// * A page is copied inside the chip only where [`Geometry::may_copy`] says that the chip does it.
///
/// # Buffers
///
/// Slices may begin at any address and have any length. Stores and files of nandu move whole pages between the chip and buffers at
/// multiples of 8, or of 32 if their options say so, from the beginning of the memory that they were handed, such as [`Aligned`](crate::Aligned); where data
/// of files goes straight, the user's own buffers are what they are. A driver with DMA on a processor with a data cache looks at address and
/// length, and moves what does not fit its lines, a header for instance, with the processor.
///
/// # What a power cut may do
///
/// Everything that was complete before the cut stays, apart from what this list takes away:
///
/// * **During a program**, the page may be untouched, hold a prefix, hold some or most of its bits, or hold all of them
///   although nobody was told. Error correction may pass over such a page or not. It may read well now and badly later
///   ("unstable bits"): a page that was being programmed at a cut is not to be relied on, however it reads, and neither
///   is its block to be programmed further before the next erase.
/// * With [`TearScope::Page`](crate::TearScope::Page), parts of the same page programmed earlier may be damaged. With
///   [`TearScope::Pair`](crate::TearScope::Pair), cutting the program of an MSB page may destroy its LSB partner,
///   however long ago that was programmed and acknowledged.
/// * **During an erase**, the block may hold its old content, a mixture, or look erased; in the last case pages
///   programmed into it may decay. A block is erased only if an erase of it is known to have returned.
/// * **During a read**, nothing is lost.
///
/// An erased page reads as ones in every column; a few bits of it may read as zero, and its status says nothing. A
/// driver whose error correction cannot tell an erased page from a damaged one may report it as
/// [`Uncorrectable`](crate::NandErrorKind::Uncorrectable).
pub trait Nand: ErrorType {
    /// The shape and the abilities of the chip. Always the same for one chip.
    fn geometry(&self) -> &Geometry;

    /// Reads `buf.len()` bytes of a page from a column on. Costs one array read and the transfer of those bytes.
    ///
    /// # Errors
    ///
    /// [`Uncorrectable`](crate::NandErrorKind::Uncorrectable), [`Bus`](crate::NandErrorKind::Bus),
    /// [`Gone`](crate::NandErrorKind::Gone), and [`OutOfBounds`](crate::NandErrorKind::OutOfBounds) for an address or range outside
    /// the chip.
    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, Self::Error>;

    /// Reads a page, its main area and its tag, with one array read: `data` has the main area's size, `tag` at most
    /// [`tag_size`](Geometry::tag_size) bytes. Costs one array read and the transfer of both; the default reads twice. After a cut a mount reads a few
    /// pages so.
    ///
    /// # Errors
    ///
    /// As [`read`](Nand::read).
    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        let column = self.geometry().tag_column();
        let main = self.read(page, 0, data)?;
        let spare = self.read(page, column, tag)?;
        Ok(main.worst(spare))
    }

    /// Programs `data` into a page from a column on and waits for the chip to report success. The other columns keep
    /// what they hold: ones, if they were not programmed yet. Costs the transfer of those bytes and one program.
    ///
    /// `column` and the length are multiples of [`program_unit`](Geometry::program_unit). Data that reaches the end of
    /// the main area may go on into the spare area.
    ///
    /// # Errors
    ///
    /// [`ProgramFailed`](crate::NandErrorKind::ProgramFailed), after which the page is lost;
    /// [`Bus`](crate::NandErrorKind::Bus), after which it may be programmed or not; [`Gone`](crate::NandErrorKind::Gone);
    /// [`OutOfBounds`](crate::NandErrorKind::OutOfBounds) and [`NotAligned`](crate::NandErrorKind::NotAligned) before anything
    /// happened.
    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), Self::Error>;

    /// Programs a page, its main area and its tag, with one program: `data` has the main area's size, `tag` at most
    /// [`tag_size`](Geometry::tag_size) bytes. Costs the transfer of both and one program. A cut may tear them like any other
    /// bytes of one program. Never called where `tag_size` is 0: a driver for such chips only answers with an error of kind
    /// [`Unsupported`](crate::NandErrorKind::Unsupported).
    ///
    /// There is no default, since one that programs the page without its tag loses data that was acknowledged: after a cut the
    /// tag is all that says whose the page is. A driver that leaves it out does not compile:
    ///
    /// ```compile_fail,E0046
    /// # use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, ReadStatus};
    /// # struct Untagged(Geometry);
    /// # impl ErrorType for Untagged {
    /// #     type Error = NandErrorKind;
    /// # }
    /// impl Nand for Untagged {
    /// #   fn geometry(&self) -> &Geometry { &self.0 }
    /// #   fn read(&mut self, _: PageAddr, _: u32, _: &mut [u8]) -> Result<ReadStatus, NandErrorKind> { unimplemented!() }
    /// #   fn erase(&mut self, _: BlockAddr, _: CellMode) -> Result<(), NandErrorKind> { unimplemented!() }
    /// #   fn is_bad(&mut self, _: BlockAddr) -> Result<bool, NandErrorKind> { unimplemented!() }
    /// #   fn mark_bad(&mut self, _: BlockAddr) -> Result<(), NandErrorKind> { unimplemented!() }
    ///     fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
    ///         // ...
    /// #       unimplemented!()
    ///     }
    ///     // Every other method, and no `program_tagged`.
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`program`](Nand::program).
    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), Self::Error>;

    /// Erases a block and says how its cells are used until its next erase. Costs one erase.
    ///
    /// A chip that does not remember the mode leaves it to its driver to know it; the first page of a block is an LSB
    /// page in every mode, so storage code that records the mode there can always find it.
    ///
    /// # Errors
    ///
    /// [`EraseFailed`](crate::NandErrorKind::EraseFailed), after which the block is unusable; [`Bus`](crate::NandErrorKind::Bus),
    /// after which it may be erased again; [`Gone`](crate::NandErrorKind::Gone); [`OutOfBounds`](crate::NandErrorKind::OutOfBounds);
    /// [`Unsupported`](crate::NandErrorKind::Unsupported) for a mode the chip does not have.
    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), Self::Error>;

    /// Whether the block carries a bad-block mark, set by the factory or by [`mark_bad`](Nand::mark_bad). Costs one
    /// array read, or none in a driver that keeps a table. A mark in an unprotected spare area can be wrong either way.
    ///
    /// # Errors
    ///
    /// As [`read`](Nand::read).
    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, Self::Error>;

    /// Marks a block as bad, for good. Costs one program. Works on a block in any condition, as far as the chip still
    /// obeys.
    ///
    /// # Errors
    ///
    /// As [`program`](Nand::program); then the mark may be missing, and the caller's own table has to remember it.
    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), Self::Error>;

    /// Copies a whole page inside the chip, without the transfer, to a block to which [`Geometry::may_copy`] lets it. `Ok(None)`,
    /// the default, says that driver or chip does not copy and nothing happened: read and program instead. Costs one array read
    /// and one program.
    ///
    /// Bits are corrected on the way only where the chip does so itself; then the status says how many.
    ///
    /// # Errors
    ///
    /// As [`read`](Nand::read) of the first and [`program`](Nand::program) of the second page.
    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, Self::Error> {
        let _ = (from, to);
        Ok(None)
    }

    /// Tries to read an LSB page that a cut program of its MSB partner damaged, by the vendor's own procedure.
    /// `Ok(None)`, the default, says that the chip has none. A last resort: nothing may be planned on it.
    ///
    /// # Errors
    ///
    /// As [`read`](Nand::read).
    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, Self::Error> {
        let _ = (page, buf);
        Ok(None)
    }

    /// Announces why the operations from here on are done, for a driver that keeps a ledger, and returns the cause
    /// announced before, so that it can be restored. Does nothing by default.
    fn attribute(&mut self, cause: Cause) -> Cause {
        let _ = cause;
        Cause::Other
    }
}

impl<T: Nand + ?Sized> Nand for &mut T {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        (**self).read(page, column, buf)
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        (**self).read_tagged(page, data, tag)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), Self::Error> {
        (**self).program(page, column, data)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), Self::Error> {
        (**self).program_tagged(page, data, tag)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), Self::Error> {
        (**self).erase(block, mode)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, Self::Error> {
        (**self).is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), Self::Error> {
        (**self).mark_bad(block)
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, Self::Error> {
        (**self).copy(from, to)
    }

    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, Self::Error> {
        (**self).recover_lsb(page, buf)
    }

    fn attribute(&mut self, cause: Cause) -> Cause {
        (**self).attribute(cause)
    }
}
