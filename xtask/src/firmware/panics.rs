//! Where a linked firmware may panic: the calls of the language's panics that the compiler could not prove away.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::emulator::output;

/// Reads the code of a Cortex-M.
const OBJDUMP: &str = "arm-none-eabi-objdump";

/// Kinds of panics by what they are called in the image, and what each is. The first that fits counts.
const KINDS: [(&str, &[&str]); 5] = [
    ("index", &["panic_bounds_check"]),
    ("slice", &["slice_index_fail", "len_mismatch_fail", "slice_start_index", "slice_end_index", "split_at"]),
    ("division", &["panic_const_div", "panic_const_rem"]),
    ("unwrap", &["unwrap_failed", "expect_failed"]),
    ("assertion", &["core::panicking::"]),
];

/// Panics of a function: kinds in the order of their names, with how many calls there are.
pub(super) type Sites = BTreeMap<&'static str, u64>;

/// The functions of a linked program that may panic. `None` where no program is there that reads the code.
pub(super) fn of(binary: &Path) -> Result<Option<BTreeMap<String, Sites>>, String> {
    if Command::new(OBJDUMP).arg("--version").output().is_err() {
        return Ok(None);
    }
    Ok(Some(in_listing(&output(Command::new(OBJDUMP).args(["-d", "-C", "--no-show-raw-insn"]).arg(binary))?)))
}

/// How many calls there are in all.
pub(super) fn count(functions: &BTreeMap<String, Sites>) -> u64 {
    functions.values().flat_map(BTreeMap::values).sum()
}

/// Each function that may panic, with its kinds, and the sum of each kind.
pub(super) fn table(functions: &BTreeMap<String, Sites>) -> String {
    let words = |sites: &Sites| {
        let words: Vec<_> = sites.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        words.join(", ")
    };
    let mut sums = Sites::new();
    for (kind, count) in functions.values().flatten() {
        *sums.entry(kind).or_default() += count;
    }
    let mut lines: Vec<_> =
        functions.iter().map(|(name, sites)| (sites.values().sum::<u64>(), name, words(sites))).collect();
    lines.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let lines = lines.into_iter().map(|(count, name, words)| format!("{count:>6}  {name}: {words}\n"));
    lines.chain([format!("{:>6}  in all: {}\n", count(functions), words(&sums))]).collect()
}

/// Reads a disassembly. What panics itself is no place where nandu does.
fn in_listing(listing: &str) -> BTreeMap<String, Sites> {
    let mut functions: BTreeMap<String, Sites> = BTreeMap::new();
    let mut function = "";
    for line in listing.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|head| head.split_once('<')) {
            function = name.1;
            continue;
        }
        let Some(called) = called(line).filter(|_| !is_panic(function)) else { continue };
        if let Some((kind, _)) = KINDS.iter().find(|(_, names)| names.iter().any(|name| called.contains(name))) {
            *functions.entry(short(function)).or_default().entry(kind).or_default() += 1;
        }
    }
    functions
}

fn is_panic(function: &str) -> bool {
    function.starts_with("core::")
}

/// What a line branches to, if that is the start of a function.
fn called(line: &str) -> Option<&str> {
    let mut words = line.splitn(3, '\t').skip(1);
    let target = words.next().filter(|word| word.trim_start().starts_with('b')).and(words.next())?;
    let name = target.split_once('<')?.1.strip_suffix('>')?;
    name.starts_with("core::").then_some(name)
}

/// A name without the types for which the function was made.
fn short(name: &str) -> String {
    let mut depth = 0_u32;
    let mut short = String::new();
    for (at, letter) in name.char_indices() {
        match letter {
            // The type that has the function stays.
            '<' if at == 0 => {}
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 && letter != '>' => short.push(letter),
            _ => {}
        }
    }
    short.trim_end_matches("::").to_owned()
}

#[cfg(test)]
mod tests {
    use super::{count, in_listing, table};

    #[test]
    fn calls_of_panics_are_told_by_function_and_kind() {
        let listing = "\
00000400 <<nandu_log::room::Room<nandu_nand::Nand>>::claim>:
     400:\tpush\t{r7, lr}
     402:\tbl\t30000 <core::panicking::panic_bounds_check>
     406:\tbeq.n\t402 <<nandu_log::room::Room<nandu_nand::Nand>>::claim+0x2>
     408:\tb.w\t30010 <core::slice::index::slice_index_fail>

00030000 <core::panicking::panic_bounds_check>:
   30000:\tbl\t30020 <core::panicking::panic_fmt>
00030010 <nandu_tree::edit::put::<nandu_nand::Nand>>:
   30010:\tbl\t30020 <core::panicking::panic_fmt>
   30014:\tbl\t30020 <core::panicking::panic_const::panic_const_div_by_zero>
   30018:\tbl\t30100 <core::fmt::write>
";
        let functions = in_listing(listing);
        assert_eq!(count(&functions), 4);
        assert_eq!(
            table(&functions),
            "     2  nandu_log::room::Room::claim: index 1, slice 1\n     2  nandu_tree::edit::put: assertion 1, division 1\n     4  in all: assertion 1, division 1, index 1, slice 1\n"
        );
    }
}
