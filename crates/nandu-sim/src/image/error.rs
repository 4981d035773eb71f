//! Why an image is refused.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::header::FORMAT_VERSION;

/// A part of an image file, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImagePart {
    /// The first bytes of the file, which say where everything else is.
    Header,
    /// The list of block records.
    Directory,
    /// The chip: its parameters, clock, counters, ledger and chance.
    State,
    /// The record of one block.
    Block(u32),
}

impl fmt::Display for ImagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImagePart::Header => f.write_str("header"),
            ImagePart::Directory => f.write_str("directory of blocks"),
            ImagePart::State => f.write_str("chip state"),
            ImagePart::Block(block) => write!(f, "record of block {block}"),
        }
    }
}

/// What is wrong with an image file, or with the wish to open or write it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImageProblem {
    /// The operating system reported an error.
    Io(io::Error),
    /// Another process has the image open.
    InUse,
    /// A file of this name exists and was not to be replaced.
    Exists,
    /// The file does not begin as an image does.
    NotAnImage,
    /// The file ends before the image does.
    CutShort {
        /// Bytes in the file.
        size: u64,
        /// Bytes that the image has, or at least has.
        expected: u64,
    },
    /// A part does not match its checksum.
    Damaged(ImagePart),
    /// Another version of nandu wrote the image, in a form of this number.
    Version(u16),
    /// The image uses features, given as bits, that this version does not know.
    Features(u32),
    /// The checksum of a part matches, yet what it says cannot be.
    Invalid {
        /// Which part.
        part: ImagePart,
        /// What is wrong with it.
        why: String,
    },
    /// The chip has something that an image cannot hold.
    Unsupported(&'static str),
    /// An earlier commit failed, so that only opening the image again can tell which state it holds.
    Poisoned,
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageProblem::Io(error) => error.fmt(f),
            ImageProblem::InUse => f.write_str("in use by another process"),
            ImageProblem::Exists => f.write_str("exists already"),
            ImageProblem::NotAnImage => f.write_str("not an image of a simulated chip"),
            ImageProblem::CutShort { size, expected } => {
                write!(f, "cut short: it has {size} bytes and should have at least {expected}")
            }
            ImageProblem::Damaged(part) => write!(f, "damaged: the checksum of the {part} does not match"),
            ImageProblem::Version(version) if *version < FORMAT_VERSION => {
                write!(f, "an image of the older form {version}; make a new one, or use the nandu that made it")
            }
            ImageProblem::Version(version) => {
                write!(f, "an image of form {version}, written by a later nandu than this one")
            }
            ImageProblem::Features(bits) => write!(f, "uses features that this version does not know ({bits:#x})"),
            ImageProblem::Invalid { part, why } => write!(f, "not valid: {part}: {why}"),
            ImageProblem::Unsupported(what) => write!(f, "an image cannot hold {what}"),
            ImageProblem::Poisoned => f.write_str("an earlier write failed; open the image again"),
        }
    }
}

impl From<io::Error> for ImageProblem {
    fn from(error: io::Error) -> ImageProblem {
        ImageProblem::Io(error)
    }
}

impl ImageProblem {
    /// A part whose checksum matches and which still cannot be.
    pub(crate) fn invalid(part: ImagePart, why: impl Into<String>) -> ImageProblem {
        ImageProblem::Invalid { part, why: why.into() }
    }
}

/// Why an image file was refused or not written: the file and the reason.
#[derive(Debug)]
pub struct ImageError {
    path: PathBuf,
    problem: ImageProblem,
}

impl ImageError {
    pub(crate) fn new(path: &Path, problem: impl Into<ImageProblem>) -> ImageError {
        ImageError { path: path.to_path_buf(), problem: problem.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The reason.
    pub fn problem(&self) -> &ImageProblem {
        &self.problem
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.problem)
    }
}

// The text says all there is to say, so that there is no source to be printed behind it.
impl Error for ImageError {}
