//! The headers say what the code has: every function with its types, every struct with its offsets, every number. A C compiler is asked.

use core::fmt::Write as _;
use core::mem::offset_of;
use std::format;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::{String, ToString};
use std::vec::Vec;

use nandu::nand::{Ecc, Geometry, Nand};
use nandu_sim::{Chip, Sim, Tear};

use crate::border::CEdit;
use crate::chip::{CChip, CGeometry};
use crate::cursor::{CCursor, CEntry};
use crate::dir::{CDir, CDirent};
use crate::error::ROWS;
use crate::file::CFile;
use crate::fs::{CFormat, CFsOptions, CStat, CStatFs, CTime};
use crate::sim::{CCounters, CPowerCut, CSummary};
use crate::stats::CStats;
use crate::store::{CStoreInfo, CStoreOptions};
use crate::volume::{Kind, Volume};

/// The folders of the headers, and of what a port of Dhara has.
const INCLUDES: [&str; 2] =
    [concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"), concat!("-I", env!("CARGO_MANIFEST_DIR"), "/tests/c")];

const HEADERS: [&str; 2] = [include_str!("../include/nandu.h"), include_str!("../include/nandu_sim.h")];

/// Sources with functions for C, and what a handle is there.
const SOURCES: [(&str, &str); 8] = [
    (include_str!("error.rs"), ""),
    (include_str!("store.rs"), "nandu_store *"),
    (include_str!("snapshots.rs"), "nandu_store *"),
    (include_str!("cursor.rs"), "nandu_store *"),
    (include_str!("fs.rs"), "nandu_fs *"),
    (include_str!("file.rs"), "nandu_fs *"),
    (include_str!("dir.rs"), "nandu_fs *"),
    (include_str!("sim.rs"), ""),
];

/// What a type is in C.
fn c_type(rust: &str, handle: &str) -> String {
    let inner = |prefix: &str| rust.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(it) = inner("Given<") {
        return format!("const {} *", c_type(it, handle));
    }
    if let Some(it) = inner("Out<").or_else(|| inner("Kept<")) {
        return format!("{} *", c_type(it, handle));
    }
    match rust {
        "Handle<Inner>" => handle,
        "In" => "const void *",
        "Buffer" | "*mut c_void" => "void *",
        "Text" | "*const c_char" => "const char *",
        "Edits" => "nandu_edit *",
        "Report" => "nandu_report",
        "SimHandle" | "*mut Sim" => "nandu_sim *",
        "usize" => "size_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "c_int" => "int",
        "" => "void",
        "CChip" => "nandu_chip",
        "CStoreOptions" => "nandu_store_options",
        "CStoreInfo" => "nandu_store_info",
        "CStats" => "nandu_stats",
        "CCursor" => "nandu_cursor",
        "CEntry" => "nandu_entry",
        "CFsOptions" => "nandu_fs_options",
        "CFormat" => "nandu_fs_format_options",
        "CStatFs" => "nandu_statfs",
        "CStat" => "nandu_stat",
        "CFile" => "nandu_file",
        "CDir" => "nandu_dir",
        "CDirent" => "nandu_dirent",
        "CCounters" => "nandu_sim_counters",
        "CPowerCut" => "nandu_power_cut",
        "CSummary" => "nandu_power_cut_summary",
        other => panic!("no type of C for {other}"),
    }
    .to_string()
}

/// The name and the declaration of each function that the code exports.
fn functions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (source, handle) in SOURCES {
        for (_, rest) in source.match_indices("extern \"C\" fn nandu_").map(|(at, _)| source.split_at(at)) {
            let rest = rest.trim_start_matches("extern \"C\" fn ");
            let (name, rest) = rest.split_once('(').unwrap();
            let (parameters, rest) = rest.split_once(')').unwrap();
            let answer = rest.split_once('{').unwrap().0.trim().trim_start_matches("->").trim();
            let types: Vec<String> = parameters
                .split(',')
                .filter_map(|parameter| Some(c_type(parameter.split_once(':')?.1.trim(), handle)))
                .collect();
            let parameters = if types.is_empty() { "void".to_string() } else { types.join(", ") };
            found.push((name.to_string(), format!("{} {name}({parameters});\n", c_type(answer, handle))));
        }
    }
    found
}

/// Asks a compiler whether it takes a program; skips aloud where there is none.
fn compile(compiler: &str, language: &str, standard: &str, program: &str) {
    let child = Command::new(compiler)
        .args(["-x", language, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(INCLUDES)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        std::eprintln!("skipped: there is no {compiler}");
        return;
    };
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_headers_are_c99_and_cpp() {
    let program = "#include <nandu_sim.h>\n#include <nandu.h>\n#include <nandu_dhara.h>\nint nothing(void);\nint nothing(void) { return 0; }\n";
    for (c, cpp) in [("gcc", "g++"), ("clang", "clang++")] {
        compile(c, "c", "-std=c99", program);
        compile(cpp, "c++", "-std=c++11", program);
    }
}

#[test]
fn every_function_is_declared_with_its_types() {
    let functions = functions();
    let mut program = "#include <nandu.h>\n#include <nandu_sim.h>\n".to_string();
    functions.iter().for_each(|(_, declaration)| program += declaration);
    for (name, _) in &functions {
        let declared = format!(" {name}(");
        let declared_pointer = format!("*{name}(");
        let is_there = HEADERS.iter().any(|header| header.contains(&declared) || header.contains(&declared_pointer));
        assert!(is_there, "{name} is not declared");
    }
    compile("gcc", "c", "-std=c99", &program);

    let known = |name: &str| name == "nandu_panic" || functions.iter().any(|(it, _)| it == name);
    for line in HEADERS.iter().flat_map(|header| header.lines()).filter(|line| !line.starts_with([' ', '*', '/', '#']))
    {
        let Some((head, _)) = line.split_once('(') else { continue };
        let name = head.rsplit([' ', '*']).next().unwrap();
        assert!(!name.starts_with("nandu_") || known(name), "{name} is declared and not there");
    }
}

/// Asserts what a struct of the header has.
macro_rules! layout {
    ($program:ident, $rust:ty, $c:literal: $($field:ident)*) => {
        writeln!($program, "_Static_assert(sizeof({}) == {}, \"size of {0}\");", $c, size_of::<$rust>()).unwrap();
        $({
            let name = stringify!($field).trim_start_matches("r#");
            let at = offset_of!($rust, $field);
            writeln!($program, "_Static_assert(offsetof({}, {name}) == {at}, \"{0}.{name}\");", $c).unwrap();
        })*
    };
}

#[test]
fn structs_and_numbers_are_those_of_the_code() {
    let mut p = "#include <nandu.h>\n#include <nandu_sim.h>\n".to_string();
    layout!(p, CGeometry, "nandu_geometry": page_size spare_size tag_size pages_per_block block_count program_unit codeword_size endurance bad_block_max correctable_bits programs_per_page plane_count die_count pairing order tear_scope);
    layout!(p, CChip, "nandu_chip": geometry context read program program_tagged erase is_bad mark_bad wait lock unlock);
    layout!(p, CStoreOptions, "nandu_store_options": salt volume cache_size pending_size reads_max durability read_back aligned stream_count ready_max commit_twice reserved);
    layout!(p, CEdit, "nandu_edit": key key_size value value_size);
    layout!(p, CStoreInfo, "nandu_store_info": record_count key_size_max entry_size_max value_size_max pending_count height);
    layout!(p, CStats, "nandu_stats": programs erases checkpoints failures live_pages capacity_pages free_blocks bad_blocks erase_count_min erase_count_max was_cut reserved);
    layout!(p, CEntry, "nandu_entry": key key_size value value_size);
    layout!(p, CTime, "nandu_time": seconds nanoseconds reserved);
    layout!(p, CFsOptions, "nandu_fs_options": salt volume cache_size pending_size open_max snapshot reads_max both_modes without_tags read_only read_back aligned stream_count ready_max commit_twice);
    layout!(p, CFormat, "nandu_fs_format_options": hash_key root_mode uid gid reserved now);
    layout!(p, CStatFs, "nandu_statfs": blocks blocks_free blocks_available files_free block_size name_size_max);
    layout!(p, CStat, "nandu_stat": ino size allocated_size atime mtime ctime btime mode r#type uid gid nlink reserved);
    layout!(p, CDirent, "nandu_dirent": ino r#type name);
    layout!(p, CCounters, "nandu_sim_counters": reads programs erases bytes_out bytes_in busy_ns);
    layout!(p, CPowerCut, "nandu_power_cut": context noted_size workload recover check);
    layout!(p, CSummary, "nandu_power_cut_summary": cases operations cuts);
    for (name, size, align) in [
        ("nandu_cursor", size_of::<CCursor>(), align_of::<CCursor>()),
        ("nandu_file", size_of::<CFile>(), align_of::<CFile>()),
        ("nandu_dir", size_of::<CDir>(), align_of::<CDir>()),
    ] {
        writeln!(p, "struct of_{name} {{ char c; {name} it; }};").unwrap();
        writeln!(p, "_Static_assert(sizeof({name}) >= {size} && sizeof({name}) < {size} + 16, \"{name}\");").unwrap();
        writeln!(p, "_Static_assert(offsetof(struct of_{name}, it) >= {align}, \"alignment of {name}\");").unwrap();
    }
    for row in ROWS {
        writeln!(p, "_Static_assert({} == {}, \"number\");", row.name.to_str().unwrap(), row.code).unwrap();
    }
    for tear in Tear::ALL {
        let name = tear.name().to_uppercase().replace('-', "_");
        writeln!(p, "_Static_assert(NANDU_TEAR_{name} == {}, \"number\");", tear as u8).unwrap();
    }
    writeln!(p, "_Static_assert(NANDU_OK == 0, \"number\");").unwrap();
    writeln!(p, "_Static_assert(NANDU_ERR_DRIVER == {}, \"number\");", crate::error::DRIVER).unwrap();
    writeln!(p, "_Static_assert(NANDU_ROOT == {}, \"number\");", nandu::fs::Ino::ROOT.0).unwrap();
    compile("gcc", "c", "-std=c11", &p);

    let numbers = HEADERS[0].lines().filter(|line| line.starts_with("#define NANDU_ERR_")).count();
    assert_eq!(numbers, ROWS.len() + 1, "an error of the header has no row, or the other way round");
}

/// A shape that is given three numbers only.
fn geometry(page_size: u32, block_count: u32) -> Geometry {
    Geometry { page_size, block_count, ecc: Ecc { codeword_size: 256, correctable_bits: 1 }, ..Chip::W25N01GV.geometry }
}

#[test]
fn memory_of_static_buffers_is_enough_and_hardly_more() {
    type Store = crate::store::Inner;
    type Fs = crate::fs::Inner;
    let handles = (size_of::<Volume<Store>>(), size_of::<Volume<Fs>>());
    let mut exact =
        format!("#define NANDU_STORE_HANDLE_SIZE {}u\n#define NANDU_FS_HANDLE_SIZE {}u\n", handles.0, handles.1);
    exact += "#include <nandu.h>\n";
    let mut hold = |formula: String, bytes: usize| {
        let most = bytes + bytes * 3 / 100 + 64;
        writeln!(exact, "_Static_assert({formula} >= {bytes} && {formula} <= {most}, \"memory\");").unwrap();
    };
    for (page, blocks) in [(512, 64), (2048, 24), (2048, 1024), (2048, 2048), (4096, 128), (4096, 4096), (16_384, 512)]
    {
        let geometry = geometry(page, blocks);
        for (cache, pending) in [(8192, 0), (8192, 100), (1, 16_384), (32_768, 4096)] {
            let options = nandu::Options { cache_size: cache, pending_size: pending, ..nandu::Options::DEFAULT };
            let bytes = Volume::<Store>::memory_required(Store::memory_required(&geometry, &options), false);
            hold(format!("NANDU_STORE_MEMORY({page}u, {blocks}u, {cache}u, {pending}u)"), bytes);
            let options = nandu::fs::Options {
                cache_size: cache,
                pending_size: pending,
                open_max: 8,
                ..nandu::fs::Options::DEFAULT
            };
            let bytes = Volume::<Fs>::memory_required(Fs::memory_required(&geometry, &options), false);
            hold(format!("NANDU_FS_MEMORY({page}u, 64u, {blocks}u, {cache}u, {pending}u, 8u)"), bytes);
        }
    }
    compile("gcc", "c", "-std=c11", &exact);

    for (name, [wide, narrow]) in [("STORE", Store::HANDLE_SIZES), ("FS", Fs::HANDLE_SIZES)] {
        let line = format!("#define NANDU_{name}_HANDLE_SIZE (sizeof(void *) == 8 ? {wide}u : {narrow}u)");
        assert!(HEADERS[0].contains(&line), "{line}");
    }
}

/// Modules that may have unsafe code; the others only export names.
#[test]
fn unsafe_code_stands_in_four_modules() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let is_allowed = ["border.rs", "volume.rs", "chip.rs", "sim.rs", "panic.rs"].contains(&name.as_str());
        let block = concat!("unsafe", " {");
        let has = std::fs::read_to_string(&path).unwrap().contains(block);
        assert!(is_allowed || !has, "{name} has unsafe code");
    }
}

#[test]
fn a_chip_keeps_its_shape_on_its_way_through_c() {
    for chip in Chip::PRESETS {
        let mut sim = Sim::new(*chip);
        let Ok(c) = crate::sim::c_chip(&mut sim) else { continue };
        let there = crate::chip::Chip::new(&c).unwrap();
        let expected = Geometry { copies: nandu::nand::CopyRule::Never, ..chip.geometry };
        assert_eq!(*there.geometry(), expected, "{}", chip.name);
    }
}
