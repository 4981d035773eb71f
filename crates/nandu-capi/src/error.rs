//! Error numbers, with a name and a text for each.

use core::ffi::{CStr, c_char, c_int};

use nandu::nand::NandErrorKind;

use crate::chip::ChipError;

/// A negative error number, as the header has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

/// Why a call failed, or what it counted.
pub(crate) type Answer<T> = Result<T, Code>;

/// A row of the table of errors.
pub(crate) struct Row {
    pub(crate) code: c_int,
    pub(crate) name: &'static CStr,
    text: &'static CStr,
}

macro_rules! codes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        // Without a feature nobody says some of them.
        #[allow(dead_code)]
        impl Code {
            $(pub(crate) const $name: Code = Code($code);)*
        }

        /// Every error.
        pub(crate) const ROWS: &[Row] = &[$(Row {
            code: $code,
            name: as_c(concat!("NANDU_ERR_", stringify!($name), "\0")),
            text: as_c(concat!($text, "\0")),
        }),*];
    };
}

/// Evaluated while compiling: a text with one zero, which ends it.
const fn as_c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

codes! {
    UNCORRECTABLE = -1, "more bits flipped than can be corrected";
    PROGRAM_FAILED = -2, "the chip says that a program failed";
    ERASE_FAILED = -3, "the chip says that an erase failed";
    OUT_OF_BOUNDS = -4, "address outside the chip";
    NOT_ALIGNED = -5, "column or size not aligned to the program unit";
    UNSUPPORTED = -6, "operation not supported by the chip";
    BUS = -7, "bus error, outcome unknown";
    GONE = -8, "the chip does not answer";
    OTHER = -9, "other error of the chip";
    ARGUMENT = -16, "a null pointer, or a value that no argument of this kind has";
    HANDLE = -17, "no open handle of this kind";
    BUSY = -18, "another call on this volume has not returned";
    BUFFER = -19, "the buffer is too small";
    MEMORY = -20, "the memory handed over is too small";
    ACCESS = -21, "the file was not opened for this";
    GEOMETRY = -22, "the chip describes itself as no chip can be";
    UNSUITABLE = -23, "not possible on this chip";
    NOT_FORMATTED = -24, "the chip is not formatted";
    OTHER_FORMAT = -25, "the volume on the chip is another one";
    NOT_COMPILED = -26, "the library was built without a part that this needs";
    PENDING_SIZE = -27, "changes that were left waiting do not fit the memory for them";
    READ_ONLY = -28, "the volume can only be read";
    FULL = -29, "there is no room";
    CORRUPT = -30, "what is on the chip is damaged or contradicts itself";
    POISONED = -31, "an earlier write failed; open the volume again";
    NOT_FOUND = -32, "there is no such key, name or attribute";
    KEY_SIZE = -33, "the key is too long";
    VALUE_SIZE = -34, "the value is too large";
    BATCH_SIZE = -35, "the batch replaces more large values than it can keep in mind";
    NOT_ASCENDING = -36, "the keys do not strictly ascend";
    SNAPSHOTS = -37, "there are as many snapshots as there can be";
    NO_SNAPSHOT = -38, "there is no such snapshot";
    TOO_HIGH = -39, "the tree would become too high";
    EXISTS = -48, "the name is there already";
    NO_INODE = -49, "there is no such inode";
    NOT_DIRECTORY = -50, "this is no directory";
    IS_DIRECTORY = -51, "this is a directory";
    NOT_EMPTY = -52, "the directory is not empty";
    NOT_FILE = -53, "this is no regular file";
    LOOP = -54, "a directory cannot be moved below itself";
    NAME = -55, "this cannot be a name";
    NAME_SIZE = -56, "the name is too long";
    TOO_MANY_LINKS = -57, "the inode has as many names as can be counted";
    TOO_MANY_OPEN = -58, "as many files are open as can be";
    FILE_SIZE = -59, "the file would become too large";
    RANGE = -60, "offset or length makes no sense";
    XATTR_SIZE = -61, "the value of the attribute is too large";
    NO_FILE_SYSTEM = -62, "the volume on the chip holds no file system of this version";
}

/// This and lower numbers are the driver's own.
pub(crate) const DRIVER: c_int = -1000;

impl Code {
    /// Of which kind the storage code takes a number that a callback returned.
    pub(crate) fn kind(self) -> NandErrorKind {
        match self {
            Code::UNCORRECTABLE => NandErrorKind::Uncorrectable,
            Code::PROGRAM_FAILED => NandErrorKind::ProgramFailed,
            Code::ERASE_FAILED => NandErrorKind::EraseFailed,
            Code::OUT_OF_BOUNDS => NandErrorKind::OutOfBounds,
            Code::NOT_ALIGNED => NandErrorKind::NotAligned,
            Code::UNSUPPORTED => NandErrorKind::Unsupported,
            Code::BUS => NandErrorKind::Bus,
            Code::GONE => NandErrorKind::Gone,
            // Outages of the driver's own kinds: storage retires no block for them.
            Code(..=DRIVER) => NandErrorKind::Bus,
            _ => NandErrorKind::Other,
        }
    }

    /// The number that a callback would return for a kind.
    #[cfg(feature = "sim")]
    pub(crate) fn of_kind(kind: NandErrorKind) -> Code {
        ROWS.iter().map(|row| Code(row.code)).find(|code| code.kind() == kind).unwrap_or(Code::OTHER)
    }
}

impl From<&nandu::Error<ChipError>> for Code {
    fn from(error: &nandu::Error<ChipError>) -> Code {
        use nandu::Error;
        match error {
            Error::Chip(error) => error.code(),
            Error::Full => Code::FULL,
            Error::ReadOnly => Code::READ_ONLY,
            Error::Corrupt { .. } => Code::CORRUPT,
            Error::Poisoned => Code::POISONED,
            Error::NotFormatted => Code::NOT_FORMATTED,
            Error::OtherFormat { .. } => Code::OTHER_FORMAT,
            Error::NotCompiled { .. } => Code::NOT_COMPILED,
            Error::Geometry(_) => Code::GEOMETRY,
            Error::Memory { .. } => Code::MEMORY,
            Error::KeySize(_) => Code::KEY_SIZE,
            Error::ValueSize(_) => Code::VALUE_SIZE,
            Error::LargeValue(_) => Code::BUFFER,
            Error::BatchSize => Code::BATCH_SIZE,
            Error::NotAscending(_) => Code::NOT_ASCENDING,
            Error::TooManySnapshots => Code::SNAPSHOTS,
            Error::NoSnapshot(_) => Code::NO_SNAPSHOT,
            Error::PendingSize => Code::PENDING_SIZE,
            Error::TooHigh => Code::TOO_HIGH,
            // Of what is not known here, this says least.
            Error::Unsuitable { .. } | _ => Code::UNSUITABLE,
        }
    }
}

impl From<nandu::Error<ChipError>> for Code {
    fn from(error: nandu::Error<ChipError>) -> Code {
        Code::from(&error)
    }
}

#[cfg(feature = "files")]
impl From<&nandu::fs::FsError<ChipError>> for Code {
    fn from(error: &nandu::fs::FsError<ChipError>) -> Code {
        use nandu::fs::FsError;
        match error {
            FsError::NotFound { .. } | FsError::NoXattr(_) => Code::NOT_FOUND,
            FsError::Exists { .. } | FsError::XattrExists(_) => Code::EXISTS,
            FsError::NoInode(_) => Code::NO_INODE,
            FsError::NotDirectory(_) => Code::NOT_DIRECTORY,
            FsError::IsDirectory(_) => Code::IS_DIRECTORY,
            FsError::NotEmpty(_) => Code::NOT_EMPTY,
            FsError::NotFile(_) | FsError::NotSymlink(_) => Code::NOT_FILE,
            FsError::Loop(_) => Code::LOOP,
            FsError::Name => Code::NAME,
            FsError::NameSize { .. } => Code::NAME_SIZE,
            FsError::TooManyLinks(_) => Code::TOO_MANY_LINKS,
            FsError::TooManyOpen { .. } => Code::TOO_MANY_OPEN,
            FsError::FileSize { .. } => Code::FILE_SIZE,
            FsError::Range | FsError::NoMoreData => Code::RANGE,
            FsError::XattrSize { .. } => Code::XATTR_SIZE,
            FsError::BufferSize { .. } => Code::BUFFER,
            FsError::Full => Code::FULL,
            FsError::ReadOnly => Code::READ_ONLY,
            FsError::NoFileSystem | FsError::OtherVersion { .. } => Code::NO_FILE_SYSTEM,
            FsError::Memory { .. } => Code::MEMORY,
            FsError::Lacks(_) => Code::NOT_COMPILED,
            FsError::Chip(error) => error.code(),
            FsError::Poisoned => Code::POISONED,
            FsError::NotFormatted => Code::NOT_FORMATTED,
            FsError::OtherFormat { .. } => Code::OTHER_FORMAT,
            FsError::NotCompiled { .. } => Code::NOT_COMPILED,
            FsError::PageSize(_) | FsError::Unsuitable { .. } => Code::UNSUITABLE,
            FsError::Geometry(_) => Code::GEOMETRY,
            FsError::PendingSize => Code::PENDING_SIZE,
            FsError::TooManySnapshots => Code::SNAPSHOTS,
            FsError::NoSnapshot(_) => Code::NO_SNAPSHOT,
            // Of what is not known here, this says least.
            FsError::Corrupt { .. } | FsError::CorruptPage { .. } | FsError::Inconsistent | _ => Code::CORRUPT,
        }
    }
}

#[cfg(feature = "files")]
impl From<nandu::fs::FsError<ChipError>> for Code {
    fn from(error: nandu::fs::FsError<ChipError>) -> Code {
        Code::from(&error)
    }
}

/// What a call returns for how it went.
pub(crate) fn status(answer: Answer<()>) -> c_int {
    answer.err().map_or(0, |code| code.0)
}

/// The same where there is something to tell: a count, or 0 and 1.
pub(crate) fn count<T: TryInto<i32>>(answer: Answer<T>) -> i32 {
    match answer {
        // No buffer and no value has 2 GiB: a count beyond is said as the largest.
        Ok(count) => count.try_into().unwrap_or(i32::MAX),
        Err(code) => code.0,
    }
}

fn row(error: c_int) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.code == error)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_error_name(error: c_int) -> *const c_char {
    let name = match error {
        0 => c"NANDU_OK",
        _ => row(error).map_or(c"NANDU_ERR_?", |row| row.name),
    };
    name.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nandu_error_text(error: c_int) -> *const c_char {
    let text = match error {
        0 => c"no error",
        ..=DRIVER => c"error of the driver",
        _ => row(error).map_or(c"no error of nandu", |row| row.text),
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nandu_version() -> *const c_char {
    as_c(concat!(env!("CARGO_PKG_VERSION"), "\0")).as_ptr()
}
