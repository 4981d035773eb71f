//! Lines of a trace: to text and back.

use std::fmt;
use std::str::{FromStr, SplitAsciiWhitespace};

use nandu_nand::{BlockAddr, Cause, CellMode, NandErrorKind, PageAddr};

use crate::{Address, Operation, OperationKind, Outcome, image};

/// A line behind those that begin a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Cause(Cause),
    Idle(u64),
    Power(bool),
    Data(Vec<u8>),
    Operation(Step),
    End(End),
}

/// The line that ends a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) operation_count: u64,
    pub(super) clock_ns: u64,
    pub(super) hash: u64,
}

/// An operation and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) checksum: Option<u32>,
    pub(super) outcome: Outcome,
}

/// What is asked of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read { page: PageAddr, column: u32, length: u32 },
    Program { page: PageAddr, column: u32, length: u32 },
    Erase { block: BlockAddr, mode: CellMode },
    CheckBad { block: BlockAddr },
    MarkBad { block: BlockAddr },
    Copy { from: PageAddr, to: PageAddr },
}

/// The kinds of errors and their words.
const ERRORS: [(NandErrorKind, &str); 9] = [
    (NandErrorKind::Uncorrectable, "uncorrectable"),
    (NandErrorKind::ProgramFailed, "program-failed"),
    (NandErrorKind::EraseFailed, "erase-failed"),
    (NandErrorKind::OutOfBounds, "out-of-bounds"),
    (NandErrorKind::NotAligned, "not-aligned"),
    (NandErrorKind::Unsupported, "unsupported"),
    (NandErrorKind::Bus, "bus"),
    (NandErrorKind::Gone, "gone"),
    (NandErrorKind::Other, "other"),
];

impl Step {
    /// An operation as an observer sees it.
    pub(super) fn of(operation: &Operation, data: &[u8]) -> Step {
        let (page, block) = match operation.address {
            Address::Page(page) => (page, BlockAddr(0)),
            Address::Block(block) => (PageAddr(0), block),
        };
        let (column, length) = (operation.column, operation.length);
        let action = match operation.kind {
            OperationKind::Read => Action::Read { page, column, length },
            OperationKind::Program => Action::Program { page, column, length },
            OperationKind::Erase => Action::Erase { block, mode: operation.mode },
            OperationKind::CheckBad => Action::CheckBad { block },
            OperationKind::MarkBad => Action::MarkBad { block },
            OperationKind::Copy => Action::Copy { from: operation.from.unwrap_or(page), to: page },
        };
        let has_data = matches!(operation.kind, OperationKind::Read | OperationKind::Program) && !data.is_empty();
        Step { action, checksum: has_data.then(|| image::checksum(data)), outcome: operation.outcome }
    }
}

/// Bytes as hexadecimal digits.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(self.0.len() * 2);
        for byte in self.0 {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        f.write_str(&text)
    }
}

/// Bytes from hexadecimal digits.
pub(super) fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<Vec<u8>>>();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| "bytes are pairs of hexadecimal digits".to_owned())
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Cause(cause) => write!(f, "cause {}", cause.name()),
            Entry::Idle(duration_ns) => write!(f, "idle {duration_ns}"),
            Entry::Power(on) => f.write_str(if *on { "power on" } else { "power off" }),
            Entry::Data(bytes) => write!(f, "data {}", Hex(bytes)),
            Entry::Operation(step) => step.fmt(f),
            Entry::End(end) => write!(f, "end {} {} {:016x}", end.operation_count, end.clock_ns, end.hash),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Read { page, column, length } => write!(f, "r {page} {column} {length}"),
            Action::Program { page, column, length } => write!(f, "p {page} {column} {length}"),
            Action::Erase { block, mode: CellMode::Slc } => write!(f, "e {block} slc"),
            Action::Erase { block, mode: CellMode::Mlc } => write!(f, "e {block} mlc"),
            Action::CheckBad { block } => write!(f, "b {block}"),
            Action::MarkBad { block } => write!(f, "m {block}"),
            Action::Copy { from, to } => write!(f, "y {from} {to}"),
        }?;
        if let Some(checksum) = self.checksum {
            write!(f, " ={checksum:08x}")?;
        }
        match self.outcome {
            Outcome::Done { corrected_bits: 0 } => Ok(()),
            Outcome::Done { corrected_bits } => write!(f, " ~{corrected_bits}"),
            Outcome::Bad => f.write_str(" bad"),
            Outcome::Failed(kind) => {
                let word = ERRORS.iter().find(|(known, _)| *known == kind).map_or("other", |(_, word)| word);
                write!(f, " !{word}")
            }
        }
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Entry, String> {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let entry = match first {
            "cause" => {
                let name = word(&mut words)?;
                let cause = Cause::ALL.into_iter().find(|cause| cause.name() == name);
                Entry::Cause(cause.ok_or_else(|| format!("`{name}` is no cause"))?)
            }
            "idle" => Entry::Idle(number(&mut words)?),
            "power" => match word(&mut words)? {
                "on" => Entry::Power(true),
                "off" => Entry::Power(false),
                other => return Err(format!("`{other}` is neither on nor off")),
            },
            "data" => Entry::Data(parse_hex(word(&mut words)?)?),
            "end" => Entry::End(End {
                operation_count: number(&mut words)?,
                clock_ns: number(&mut words)?,
                hash: hash(word(&mut words)?)?,
            }),
            _ => Entry::Operation(parse_step(first, &mut words)?),
        };
        match words.next() {
            None => Ok(entry),
            Some(word) => Err(format!("`{word}` is too many")),
        }
    }
}

fn parse_step(first: &str, words: &mut SplitAsciiWhitespace<'_>) -> Result<Step, String> {
    let page = |words: &mut SplitAsciiWhitespace<'_>| number(words).map(PageAddr);
    let block = |words: &mut SplitAsciiWhitespace<'_>| number(words).map(BlockAddr);
    let action = match first {
        "r" => Action::Read { page: page(words)?, column: number(words)?, length: number(words)? },
        "p" => Action::Program { page: page(words)?, column: number(words)?, length: number(words)? },
        "e" => Action::Erase { block: block(words)?, mode: parse_mode(word(words)?)? },
        "b" => Action::CheckBad { block: block(words)? },
        "m" => Action::MarkBad { block: block(words)? },
        "y" => Action::Copy { from: page(words)?, to: page(words)? },
        other => return Err(format!("`{other}` begins no line")),
    };
    let mut step = Step { action, checksum: None, outcome: Outcome::Done { corrected_bits: 0 } };
    for word in words {
        if let Some(digits) = word.strip_prefix('=') {
            step.checksum = Some(u32::from_str_radix(digits, 16).map_err(|_| format!("`{word}` is no checksum"))?);
        } else if let Some(bits) = word.strip_prefix('~') {
            let corrected_bits = bits.parse().map_err(|_| format!("`{word}` is no number of bits"))?;
            step.outcome = Outcome::Done { corrected_bits };
        } else if let Some(name) = word.strip_prefix('!') {
            let known = ERRORS.iter().find(|(_, known)| *known == name);
            let (kind, _) = known.ok_or_else(|| format!("`{name}` is no error"))?;
            step.outcome = Outcome::Failed(*kind);
        } else if word == "bad" {
            step.outcome = Outcome::Bad;
        } else {
            return Err(format!("`{word}` says nothing of an operation"));
        }
    }
    Ok(step)
}

fn parse_mode(word: &str) -> Result<CellMode, String> {
    match word {
        "slc" => Ok(CellMode::Slc),
        "mlc" => Ok(CellMode::Mlc),
        other => Err(format!("`{other}` is no cell mode")),
    }
}

/// The next word of a line.
fn word<'a>(words: &mut SplitAsciiWhitespace<'a>) -> Result<&'a str, String> {
    words.next().ok_or_else(|| "the line ends too early".to_owned())
}

/// The next word of a line as a number.
fn number<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Result<T, String> {
    let word = word(words)?;
    word.parse().map_err(|_| format!("`{word}` is no number that can stand here"))
}

/// A word as the hash of a chip.
pub(super) fn hash(word: &str) -> Result<u64, String> {
    u64::from_str_radix(word, 16).map_err(|_| format!("`{word}` is no hash"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reads_back_as_it_was_written() {
        let lines = [
            "cause gc",
            "idle 1000000",
            "power on",
            "power off",
            "data 00ff5a",
            "r 128 0 2048 =00c0ffee",
            "r 128 0 2048 =00c0ffee ~3",
            "r 7 2048 64 !uncorrectable",
            "p 129 512 512 =12345678",
            "p 129 0 2048 =12345678 !gone",
            "e 2 slc",
            "e 2 mlc !erase-failed",
            "b 3",
            "b 3 bad",
            "m 3 !bus",
            "y 128 192 ~1",
            "end 14 25000 00000000deadbeef",
        ];
        for line in lines {
            assert_eq!(line.parse::<Entry>().unwrap().to_string(), line);
        }
    }

    #[test]
    fn what_is_no_line_is_named() {
        let cases = [
            ("", "`` begins no line"),
            ("x 1", "`x` begins no line"),
            ("r 1 0", "the line ends too early"),
            ("r 1 0 -4", "`-4` is no number that can stand here"),
            ("e 1 tlc", "`tlc` is no cell mode"),
            ("b 1 good", "`good` says nothing of an operation"),
            ("idle 5 6", "`6` is too many"),
            ("data 5", "bytes are pairs of hexadecimal digits"),
            ("cause boredom", "`boredom` is no cause"),
        ];
        for (line, message) in cases {
            assert_eq!(line.parse::<Entry>().unwrap_err(), message);
        }
    }
}
