//! A chip that is driven by callbacks.

use core::error::Error;
use core::ffi::{c_int, c_void};
use core::fmt;

use nandu::nand::{
    BlockAddr, CellMode, CopyRule, Ecc, ErrorType, Geometry, Nand, NandError, NandErrorKind, PageAddr, Pairing,
    ProgramOrder, ReadStatus, TearScope,
};

use crate::error::{Answer, Code};

/// `nandu_geometry` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CGeometry {
    pub(crate) page_size: u32,
    pub(crate) spare_size: u32,
    pub(crate) tag_size: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) block_count: u32,
    pub(crate) program_unit: u32,
    pub(crate) codeword_size: u32,
    pub(crate) endurance: u32,
    pub(crate) bad_block_max: u32,
    pub(crate) correctable_bits: u16,
    pub(crate) programs_per_page: u8,
    pub(crate) plane_count: u8,
    pub(crate) die_count: u8,
    pub(crate) pairing: u8,
    pub(crate) order: u8,
    pub(crate) tear_scope: u8,
}

type Read = unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, u32) -> c_int;
type Program = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void, u32) -> c_int;
type ProgramTagged = unsafe extern "C" fn(*mut c_void, u32, *const c_void, *const c_void, u32) -> c_int;
type Erase = unsafe extern "C" fn(*mut c_void, u32, c_int) -> c_int;
type OfBlock = unsafe extern "C" fn(*mut c_void, u32) -> c_int;
type Wait = unsafe extern "C" fn(*mut c_void) -> c_int;
type Take = unsafe extern "C" fn(*mut c_void) -> c_int;
type Give = unsafe extern "C" fn(*mut c_void);

/// `nandu_chip` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CChip {
    pub(crate) geometry: CGeometry,
    pub(crate) context: *mut c_void,
    pub(crate) read: Option<Read>,
    pub(crate) program: Option<Program>,
    pub(crate) program_tagged: Option<ProgramTagged>,
    pub(crate) erase: Option<Erase>,
    pub(crate) is_bad: Option<OfBlock>,
    pub(crate) mark_bad: Option<OfBlock>,
    pub(crate) wait: Option<Wait>,
    pub(crate) lock: Option<Take>,
    pub(crate) unlock: Option<Give>,
}

/// Most blocks of a chip, so that sizes of memory fit 32 bits.
const BLOCK_COUNT_MAX: u32 = 1 << 24;

fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

impl CGeometry {
    fn geometry(&self) -> Answer<Geometry> {
        let geometry = Geometry {
            page_size: self.page_size,
            spare_size: self.spare_size,
            tag_size: self.tag_size,
            pages_per_block: self.pages_per_block,
            block_count: self.block_count,
            pairing: match self.pairing {
                0 => Pairing::None,
                1 => Pairing::SchemeA,
                2 => Pairing::Dist3,
                _ => return Err(Code::GEOMETRY),
            },
            order: match self.order {
                0 => ProgramOrder::Ascending,
                1 => ProgramOrder::Any,
                _ => return Err(Code::GEOMETRY),
            },
            programs_per_page: self.programs_per_page.max(1),
            program_unit: or(self.program_unit, self.page_size),
            tear: match self.tear_scope {
                0 => TearScope::Page,
                1 => TearScope::Range,
                2 => TearScope::Pair,
                _ => return Err(Code::GEOMETRY),
            },
            ecc: Ecc {
                codeword_size: or(self.codeword_size, self.page_size.min(512)),
                correctable_bits: self.correctable_bits.max(1),
            },
            endurance: or(self.endurance, 60_000),
            bad_block_max: or(self.bad_block_max, self.block_count.div_ceil(50)),
            plane_count: self.plane_count.max(1),
            die_count: self.die_count.max(1),
            copies: CopyRule::Never,
        };
        match geometry.validate() {
            Ok(()) if geometry.block_count <= BLOCK_COUNT_MAX => Ok(geometry),
            _ => Err(Code::GEOMETRY),
        }
    }
}

/// Why a callback failed: what it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChipError(Code);

impl ChipError {
    pub(crate) fn code(self) -> Code {
        self.0
    }
}

impl fmt::Display for ChipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl Error for ChipError {}

impl NandError for ChipError {
    fn kind(&self) -> NandErrorKind {
        self.0.kind()
    }
}

/// What the program shares a volume among tasks by: taken before a call touches anything, given back when the call is over.
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    context: *mut c_void,
    calls: Option<(Take, Give)>,
}

impl Lock {
    /// A pair, or none.
    fn of(chip: &CChip) -> Answer<Lock> {
        let calls = match (chip.lock, chip.unlock) {
            (Some(take), Some(give)) => Some((take, give)),
            (None, None) => None,
            _ => return Err(Code::ARGUMENT),
        };
        Ok(Lock { context: chip.context, calls })
    }

    pub(crate) fn is_there(&self) -> bool {
        self.calls.is_some()
    }

    /// Takes the lock; what the program answers instead is handed on.
    pub(crate) fn take(&self) -> Answer<()> {
        let Some((take, _)) = self.calls else { return Ok(()) };
        // SAFETY: the header has the C side promise a function of this type, to be called with its context.
        done(unsafe { take(self.context) }).map_err(ChipError::code)
    }

    /// Gives it back.
    pub(crate) fn give(&self) {
        if let Some((_, give)) = self.calls {
            // SAFETY: the same.
            unsafe { give(self.context) };
        }
    }
}

/// A chip behind its callbacks.
pub(crate) struct Chip {
    geometry: Geometry,
    context: *mut c_void,
    read: Read,
    program: Program,
    program_tagged: Option<ProgramTagged>,
    erase: Erase,
    is_bad: OfBlock,
    mark_bad: OfBlock,
    wait: Option<Wait>,
    lock: Lock,
}

impl Chip {
    pub(crate) fn new(chip: &CChip) -> Answer<Chip> {
        let geometry = chip.geometry.geometry()?;
        if geometry.tag_size > 0 && chip.program_tagged.is_none() {
            return Err(Code::ARGUMENT);
        }
        Ok(Chip {
            geometry,
            context: chip.context,
            read: chip.read.ok_or(Code::ARGUMENT)?,
            program: chip.program.ok_or(Code::ARGUMENT)?,
            program_tagged: chip.program_tagged,
            erase: chip.erase.ok_or(Code::ARGUMENT)?,
            is_bad: chip.is_bad.ok_or(Code::ARGUMENT)?,
            mark_bad: chip.mark_bad.ok_or(Code::ARGUMENT)?,
            wait: chip.wait,
            lock: Lock::of(chip)?,
        })
    }

    pub(crate) fn lock(&self) -> Lock {
        self.lock
    }

    /// What became of an operation that a callback began or did.
    fn outcome(&mut self, answer: c_int) -> Result<(), ChipError> {
        done(answer)?;
        match self.wait {
            // SAFETY: the header has the C side promise a function of this type, to be called with its context.
            Some(wait) => done(unsafe { wait(self.context) }),
            None => Ok(()),
        }
    }
}

/// What a callback says that has nothing to tell.
fn done(answer: c_int) -> Result<(), ChipError> {
    match answer {
        0 => Ok(()),
        1.. => Err(ChipError(Code::OTHER)),
        code => Err(ChipError(Code(code))),
    }
}

impl ErrorType for Chip {
    type Error = ChipError;
}

impl Nand for Chip {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, ChipError> {
        // No page has 4 GiB.
        let size = buf.len() as u32;
        // SAFETY: the header has the C side promise a function of this type, which writes at most `size` bytes to a buffer that has them.
        let answer = unsafe { (self.read)(self.context, page.0, column, buf.as_mut_ptr().cast(), size) };
        let bits = u32::try_from(answer).map_err(|_| ChipError(Code(answer)))?;
        let max = self.geometry.ecc.correctable_bits;
        Ok(ReadStatus::from_bits(bits.min(max.into()) as u16, max))
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), ChipError> {
        // SAFETY: the header has the C side promise a function of this type, which reads at most so many bytes from a buffer that has them.
        let answer = unsafe { (self.program)(self.context, page.0, column, data.as_ptr().cast(), data.len() as u32) };
        self.outcome(answer)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), ChipError> {
        let program = self.program_tagged.ok_or(ChipError(Code::UNSUPPORTED))?;
        let (data, size) = (data.as_ptr().cast(), tag.len() as u32);
        // SAFETY: the header has the C side promise a function of this type, which reads a page and so many bytes of a tag.
        let answer = unsafe { program(self.context, page.0, data, tag.as_ptr().cast(), size) };
        self.outcome(answer)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), ChipError> {
        let mode = match mode {
            CellMode::Slc => 0,
            CellMode::Mlc => 1,
        };
        // SAFETY: the header has the C side promise a function of this type.
        let answer = unsafe { (self.erase)(self.context, block.0, mode) };
        self.outcome(answer)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, ChipError> {
        // SAFETY: the header has the C side promise a function of this type.
        match unsafe { (self.is_bad)(self.context, block.0) } {
            0 => Ok(false),
            1.. => Ok(true),
            code => Err(ChipError(Code(code))),
        }
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), ChipError> {
        // SAFETY: the header has the C side promise a function of this type.
        let answer = unsafe { (self.mark_bad)(self.context, block.0) };
        self.outcome(answer)
    }
}
