//! Lines of the log: `PID  name(argument, ...) = result`.

use std::collections::HashMap;

/// What a line and those before it make.
pub(super) enum Joined {
    /// A whole call.
    Whole(String),
    /// This process is about to have a child, which may share its open files.
    Forking(u32, bool),
    /// Nothing yet.
    Nothing,
}

/// Joins the two halves of a call that another process interrupted.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    begun: HashMap<u32, String>,
}

const UNFINISHED: &str = "<unfinished ...>";
const RESUMED: &str = " resumed>";
/// A flag of clone: parent and child have the same open files.
pub(super) const SHARES_FILES: &str = "CLONE_FILES";

impl Joiner {
    pub(super) fn join(&mut self, line: &str) -> Joined {
        let line = line.trim_end();
        let Some((process, rest)) = line.split_once(' ') else { return Joined::Nothing };
        let Ok(process) = process.parse() else { return Joined::Nothing };
        let rest = rest.trim_start();
        if let Some(begin) = rest.strip_suffix(UNFINISHED) {
            self.begun.insert(process, begin.trim_end().to_owned());
            let name = begin.split('(').next().unwrap_or_default();
            let shares = begin.contains(SHARES_FILES);
            return if is_fork(name) { Joined::Forking(process, shares) } else { Joined::Nothing };
        }
        if rest.starts_with("<... ") {
            let Some((_, end)) = rest.split_once(RESUMED) else { return Joined::Nothing };
            return match self.begun.remove(&process) {
                Some(begin) => Joined::Whole(format!("{process} {begin}{end}")),
                None => Joined::Nothing,
            };
        }
        Joined::Whole(format!("{process} {rest}"))
    }
}

/// Whether a call makes a process or a thread.
pub(super) fn is_fork(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

/// A system call that returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) process: u32,
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
    pub(super) result: i64,
    /// The result as it stands there, with a path if it is an open file.
    result_text: &'a str,
}

impl<'a> Call<'a> {
    /// `None` for what is no call: signals, exits, calls that never return.
    pub(super) fn parse(line: &'a str) -> Option<Call<'a>> {
        let (process, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once('(')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (arguments, end) = split(rest)?;
        let result_text = rest[end..].trim_start().strip_prefix('=')?.trim_start();
        let digits = result_text.split([' ', '<']).next()?;
        let result = match digits.strip_prefix("0x") {
            // An address is not negative, whatever its highest bit is.
            Some(digits) => i64::try_from(u64::from_str_radix(digits, 16).ok()?).unwrap_or(i64::MAX),
            None => digits.parse().ok()?,
        };
        is_name.then_some(Call { process: process.parse().ok()?, name, arguments, result, result_text })
    }

    /// An argument; empty if there are fewer.
    pub(super) fn argument(&self, place: usize) -> &'a str {
        self.arguments.get(place).copied().unwrap_or_default()
    }

    /// An argument that is a number: a decimal one, or `[number]` behind a pointer.
    pub(super) fn number(&self, place: usize) -> Option<u64> {
        let text = self.argument(place).trim_start_matches('[');
        let text = text.split([']', ' ', '<']).next()?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// An argument that is text in quotes.
    pub(super) fn text(&self, place: usize) -> Option<String> {
        let quoted = self.argument(place).strip_prefix('"')?;
        Some(unescape(&quoted[..quoted.rfind('"')?]))
    }

    /// The number of the open file that an argument is.
    pub(super) fn file(&self, place: usize) -> Option<u32> {
        self.argument(place).split('<').next()?.parse().ok()
    }

    /// The path of the open file, or of the working directory, that an argument is. None if it was deleted.
    pub(super) fn path(&self, place: usize) -> Option<String> {
        decorated(self.argument(place))
    }

    /// The number of the open file that the call returned.
    pub(super) fn result_file(&self) -> Option<u32> {
        u32::try_from(self.result).ok()
    }

    /// Its path.
    pub(super) fn result_path(&self) -> Option<String> {
        decorated(self.result_text)
    }
}

/// The path in `3</path>`.
fn decorated(text: &str) -> Option<String> {
    let (_, path) = text.split_once('<')?;
    let (path, after) = path.split_once('>')?;
    (path.starts_with('/') && !after.starts_with("(deleted)")).then(|| unescape(path))
}

/// Splits at the commas outside of quotes and brackets, up to the bracket that closes; returns the place behind that.
fn split(text: &str) -> Option<(Vec<&str>, usize)> {
    let bytes = text.as_bytes();
    let (mut parts, mut start, mut depth, mut place) = (Vec::new(), 0, 0_u32, 0);
    while place < bytes.len() {
        match bytes[place] {
            b'"' => {
                place += 1;
                while place < bytes.len() && bytes[place] != b'"' {
                    place += if bytes[place] == b'\\' { 2 } else { 1 };
                }
            }
            // An open file's path: brackets in it mean nothing. What is no path has no such character behind a digit.
            b'<' if place > 0 && is_decoration(bytes, place) => {
                place += bytes[place..].iter().position(|&byte| byte == b'>')?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text.get(start..place)?.trim();
                if !(parts.is_empty() && last.is_empty()) {
                    parts.push(last);
                }
                return Some((parts, place + 1));
            }
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                parts.push(text.get(start..place)?.trim());
                start = place + 1;
            }
            _ => {}
        }
        place += 1;
    }
    None
}

fn is_decoration(bytes: &[u8], place: usize) -> bool {
    let before = bytes[place - 1];
    let after = bytes.get(place + 1);
    (before.is_ascii_digit() || before == b'D') && after.is_some_and(|byte| *byte == b'/' || byte.is_ascii_alphabetic())
}

/// Text as it was before it was escaped as in C.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Call<'_> {
        Call::parse(line).unwrap()
    }

    #[test]
    fn arguments_are_told_apart() {
        let call = parse(r#"17 openat(AT_FDCWD</srv/a, (b)>, "x, \"y\"\n", O_RDONLY|O_CLOEXEC, 0666) = 3</srv/c\76d>"#);
        assert_eq!((call.process, call.name, call.result), (17, "openat", 3));
        assert_eq!(call.path(0).unwrap(), "/srv/a, (b)");
        assert_eq!(call.text(1).unwrap(), "x, \"y\"\n");
        assert_eq!(call.argument(3), "0666");
        assert_eq!(call.result_path().unwrap(), "/srv/c>d");
        assert_eq!(call.argument(4), "");
    }

    #[test]
    fn structures_pointers_and_results_are_understood() {
        let call = parse(r#"1 copy_file_range(3</a>, [4096], 4</b>(deleted), NULL, 1<<20, 0) = 8"#);
        assert_eq!((call.number(1), call.number(3), call.file(2), call.path(2)), (Some(4096), None, Some(4), None));
        let call = parse(r#"1 newfstatat(3</a>, "", {st_mode=S_IFREG|0644, st_size=0, ...}, AT_EMPTY_PATH) = 0"#);
        assert_eq!((call.arguments.len(), call.result), (4, 0));
        let call = parse("1 open(\"x\", O_RDONLY)        = -1 ENOENT (No such file or directory)");
        assert_eq!((call.result, call.result_file()), (-1, None));
        let call = parse("1 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</a>, 0x1000) = 0x7f1234567000");
        assert_eq!((call.number(1), call.number(5), call.result > 0), (Some(8192), Some(4096), true));
        assert!(parse("1 vfork() = 5").arguments.is_empty());
    }

    #[test]
    fn what_is_no_call_is_passed_over() {
        for line in
            ["", "1", "1 +++ exited with 0 +++", "1 exit_group(0) = ?", "1 read(3, ", "1 --- SIGCHLD {} ---", "1 f(\"x"]
        {
            assert_eq!(Call::parse(line), None, "{line}");
        }
    }

    #[test]
    fn halves_of_a_call_are_joined() {
        let mut joiner = Joiner::default();
        assert!(matches!(joiner.join("7 read(3</a>,  <unfinished ...>"), Joined::Nothing));
        assert!(matches!(joiner.join("8 vfork( <unfinished ...>"), Joined::Forking(8, false)));
        assert!(matches!(joiner.join("9 <... wait4 resumed>) = 3"), Joined::Nothing));
        let Joined::Whole(line) = joiner.join("7 <... read resumed>\"\"..., 100) = 50") else { panic!() };
        let call = parse(&line);
        assert_eq!((call.name, call.file(0), call.number(2), call.result), ("read", Some(3), Some(100), 50));
    }
}
