//! Records put, moved and checked through the command.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use nandu::{Durability, Options, Store};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn run(arguments: &[&str], directory: &Path) -> Output {
    Command::cargo_bin("nandu").unwrap().args(arguments).current_dir(directory).output().unwrap()
}

pub(crate) fn succeed(arguments: &[&str], directory: &Path) -> Vec<u8> {
    let output = run(arguments, directory);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The exit code and the one line on the error stream.
pub(crate) fn complaint(arguments: &[&str], directory: &Path) -> (i32, String) {
    let output = run(arguments, directory);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    (output.status.code().unwrap(), text)
}

fn formatted(name: &str, directory: &Path) {
    succeed(&["create", name, "--chip", "w25n01gv", "--seed", "7"], directory);
    succeed(&["kv", "format", name], directory);
}

fn with_store() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    formatted("c.nand", directory.path());
    directory
}

/// Records whose keys and values try to be taken for something else.
pub(crate) fn nasty() -> String {
    let mut lines = String::new();
    let text = ["", " ", ",", "\"", "a\tb", "a\nb", "\r", "\u{e9}\u{1f600}", "key", "\\x00", "\u{0}", "null", "-", "#"];
    for (number, value) in text.iter().enumerate() {
        let key = format!("{number}{value}");
        lines.push_str(&serde_json::json!({ "key": key, "value": value }).to_string());
        lines.push('\n');
    }
    lines + "{\"key\":\"\",\"value\":\"the empty key\"}\n"
}

/// Records in no order are durable together for less than one program each, and are the same records.
#[test]
fn an_import_with_syncs_takes_fewer_programs_and_leaves_nothing_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let lines: String =
        (0..20_000_u32).map(|number| format!("{:08x}\t{number}\n", number.wrapping_mul(0x9E37_79B1))).collect();
    fs::write(place.join("records.tsv"), lines).unwrap();
    let [one, other] = [("c.nand", "immediate"), ("d.nand", "on-sync")].map(|(image, durability)| {
        formatted(image, place);
        let arguments = ["kv", "import", image, "records.tsv", "--durability", durability, "--batch", "100", "--json"];
        let import = json(&succeed(&arguments, place));
        assert_eq!((&import["durability"], &import["added"]), (&durability.into(), &20_000.into()));
        assert_eq!(json(&succeed(&["kv", "stats", image, "--json"], place))["pending"], 0);
        succeed(&["check", image], place);
        (import["programs"].as_u64().unwrap(), succeed(&["kv", "scan", image], place))
    });
    assert!(other.0 * 2 < one.0, "{} and {} programs", one.0, other.0);
    assert!(one.1 == other.1);
}

/// A store of a program that left changes waiting: they are seen, counted, and brought to their leaves by the next change.
#[test]
fn changes_that_a_program_left_waiting_are_there() {
    let directory = with_store();
    let place = directory.path();
    let (mut image, mut sim) = nandu_sim::image::ImageFile::open(place.join("c.nand")).unwrap();
    let options = Options { durability: Durability::OnSync, pending_size: 8192, ..Options::DEFAULT };
    let mut memory = vec![0; Store::<nandu_sim::Sim>::memory_required(&sim.chip().geometry, &options)];
    let mut store = Store::open(&mut sim, options, &mut memory).unwrap();
    for number in 0..200_u32 {
        store.put(format!("key {number}").as_bytes(), &[b'v'; 200]).unwrap();
    }
    store.merge().unwrap();
    for number in [3, 77, 150] {
        store.put(format!("key {number}").as_bytes(), b"new").unwrap();
    }
    store.unmount().unwrap();
    image.commit(&mut sim).unwrap();
    drop((image, sim));
    let pending = || json(&succeed(&["kv", "stats", "c.nand", "--json"], place))["pending"].clone();
    // The commit of the unmount took along the leaf of one.
    assert_eq!(pending(), 2);
    let text = succeed(&["kv", "stats", "c.nand"], place);
    assert!(String::from_utf8(text).unwrap().contains("\npending     2 changes in commits"));
    assert_eq!(succeed(&["kv", "get", "c.nand", "key 77"], place), b"new\n");
    succeed(&["check", "c.nand"], place);
    succeed(&["kv", "put", "c.nand", "other", "value"], place);
    assert_eq!(pending(), 0);
    assert_eq!(succeed(&["kv", "get", "c.nand", "key 77"], place), b"new\n");
}

#[test]
fn what_is_exported_and_imported_is_exported_the_same() {
    let directory = with_store();
    let place = directory.path();
    let binary = "{\"key_hex\":\"00ff0a\",\"value_hex\":\"80\"}\n{\"key_hex\":\"fffe\",\"value\":\"text\"}\n";
    for records in [nasty(), nasty() + binary, String::new()] {
        formatted_anew("c.nand", place);
        fs::write(place.join("in.jsonl"), &records).unwrap();
        succeed(&["kv", "import", "c.nand", "in.jsonl"], place);
        for format in ["csv", "tsv", "jsonl"] {
            let file = format!("out.{format}");
            let first = succeed(&["kv", "export", "c.nand", "--format", format], place);
            fs::write(place.join(&file), &first).unwrap();
            formatted_anew("d.nand", place);
            succeed(&["kv", "import", "d.nand", &file], place);
            let again = succeed(&["kv", "export", "d.nand", "--format", format], place);
            assert_eq!(String::from_utf8_lossy(&first), String::from_utf8_lossy(&again), "{format}");
            let both = ["c.nand", "d.nand"].map(|name| succeed(&["kv", "scan", name, "--hex"], place));
            assert_eq!(both[0], both[1], "{format}");
        }
    }
}

fn formatted_anew(name: &str, directory: &Path) {
    succeed(&["create", name, "--force"], directory);
    succeed(&["kv", "format", name], directory);
}

#[test]
fn thousands_of_records_survive_the_image_and_stay_in_order() {
    let directory = with_store();
    let place = directory.path();
    let mut lines = String::from("name,number\n");
    for number in 0..5000_u32 {
        lines.push_str(&format!("{:08x},{number}\n", number.wrapping_mul(0x9E37_79B1)));
    }
    fs::write(place.join("in.csv"), lines).unwrap();
    let report = json(&succeed(&["kv", "import", "c.nand", "in.csv", "--header", "--json"], place));
    assert_eq!((&report["records"], &report["added"]), (&5000.into(), &5000.into()));
    let keys = succeed(&["kv", "scan", "c.nand"], place);
    let keys: Vec<&[u8]> = keys.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert!(keys.len() == 5000 && keys.is_sorted());
    let stats = json(&succeed(&["kv", "stats", "c.nand", "--json"], place));
    assert_eq!((&stats["records"], &stats["clean"]), (&5000.into(), &true.into()));
    let shares: f64 = stats["ledger"].as_object().unwrap().values().map(|c| c["time_percent"].as_f64().unwrap()).sum();
    assert!((shares - 100.0).abs() < 1e-9, "{shares}");
    assert_eq!(json(&succeed(&["check", "c.nand", "--json"], place))["violations"], Value::Array(vec![]));
}

#[test]
fn a_change_that_is_refused_leaves_the_image_as_it_was() {
    let directory = with_store();
    let place = directory.path();
    succeed(&["kv", "put", "c.nand", "a", "1"], place);
    let before = fs::read(place.join("c.nand")).unwrap();
    fs::write(place.join("in.csv"), "b,2\nc\n").unwrap();
    assert_eq!(complaint(&["kv", "import", "c.nand", "in.csv"], place).0, 1);
    assert_eq!(complaint(&["kv", "del", "c.nand", "b"], place).0, 1);
    assert_eq!(complaint(&["kv", "put", "c.nand", &"x".repeat(1000), "b"], place).0, 2);
    assert_eq!(complaint(&["kv", "format", "c.nand"], place).0, 1);
    // Looking changes nothing either.
    for arguments in [&["kv", "get", "c.nand", "a"][..], &["kv", "stats", "c.nand"], &["check", "c.nand"]] {
        succeed(arguments, place);
    }
    assert!(fs::read(place.join("c.nand")).unwrap() == before);
}

#[test]
fn a_value_of_many_pages_goes_in_and_comes_out() {
    // Bytes that are no text, and text whose characters lie anywhere, with all that has to be quoted.
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at * 7 / 5) as u8).collect();
    for value in [bytes, "\u{20ac},\"\n\u{e9}\u{1f600}\\".repeat(12_345).into_bytes()] {
        goes_in_and_comes_out(&value);
    }
}

fn goes_in_and_comes_out(value: &[u8]) {
    let directory = with_store();
    let place = directory.path();
    fs::write(place.join("value"), value).unwrap();
    succeed(&["kv", "put", "c.nand", "large", "@value"], place);
    let mut get = Command::cargo_bin("nandu").unwrap();
    let output = get.args(["kv", "get", "c.nand", "large", "--raw"]).current_dir(place).output().unwrap();
    assert!(output.stdout == value);
    // It is exported, imported again, and exported the same, as digits where it is no text.
    for format in ["csv", "jsonl", "tsv"] {
        let exported = succeed(&["kv", "export", "c.nand", "--format", format], place);
        let file = format!("large.{format}");
        fs::write(place.join(&file), &exported).unwrap();
        succeed(&["create", "again.nand", "--force"], place);
        succeed(&["kv", "format", "again.nand"], place);
        succeed(&["kv", "import", "again.nand", &file], place);
        assert!(succeed(&["kv", "export", "again.nand", "--format", format], place) == exported, "{format}");
        let mut get = Command::cargo_bin("nandu").unwrap();
        let output = get.args(["kv", "get", "again.nand", "large", "--raw"]).current_dir(place).output().unwrap();
        assert!(output.stdout == value, "{format}");
    }
}

#[test]
fn a_value_goes_in_and_comes_out_byte_for_byte() {
    let directory = with_store();
    let value: Vec<u8> = (0..=255).collect();
    let mut put = Command::cargo_bin("nandu").unwrap();
    put.args(["kv", "put", "c.nand", "bytes", "--stdin"]).current_dir(directory.path()).write_stdin(value.clone());
    put.assert().success();
    assert_eq!(succeed(&["kv", "get", "c.nand", "bytes", "--raw"], directory.path()), value);
}

#[test]
fn a_chip_whose_page_was_damaged_does_not_pass_the_check() {
    let directory = with_store();
    let place = directory.path();
    succeed(&["kv", "put", "c.nand", "a", "1"], place);
    assert_eq!(run(&["check", "c.nand"], place).status.code(), Some(0));
    // The newest page of the tree is programmed over, as no store would.
    let newest = (0..65_536_u32).step_by(64).find_map(|first| {
        let pages = (first..first + 8).rev();
        pages.map(|page| page.to_string()).find(|page| {
            let dump = json(&succeed(&["dump", "page", page, "c.nand", "--json"], place));
            dump["header"]["kind"] == "commit"
        })
    });
    let newest: u32 = newest.unwrap().parse().unwrap();
    let block = (newest / 64).to_string();
    succeed(&["raw", "erase", &block, "c.nand"], place);
    let (code, text) = complaint(&["check", "c.nand"], place);
    assert_eq!(code, 4, "{text}");
    // And what is no store cannot be checked.
    succeed(&["create", "d.nand"], place);
    assert_eq!(
        complaint(&["check", "d.nand"], place),
        (8, "nandu: d.nand: not formatted: run 'nandu kv format d.nand'\n".to_owned())
    );
    assert_eq!(complaint(&["check", "nothing.nand"], place).0, 8);
}

#[test]
fn the_tour_ends_well_with_whatever_files_there_are() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..300 {
        fs::write(directory.path().join(format!("file-{number}")), vec![0; number]).unwrap();
    }
    let from = directory.path().to_str().unwrap();
    let report = json(&succeed(&["tour", "--from", from, "--json"], directory.path()));
    assert_eq!((&report["records"], &report["directory"]["entries"]), (&301.into(), &300.into()));
    assert_eq!(report["directory"]["largest"][0]["size"], 299);
    assert_eq!((&report["cuts"]["lost"], &report["verify"]["records_compared"]), (&0.into(), &301.into()));
    assert!(report["cuts"]["count"].as_u64().unwrap() > 180);
    let text = String::from_utf8(succeed(&["tour", "--from", from, "--records", "50"], directory.path())).unwrap();
    assert!(text.contains("All 50 records are there"), "{text}");
    let (code, text) = complaint(&["tour", "--from", "nowhere"], directory.path());
    assert_eq!((code, text.as_str()), (1, "nandu: no file was found to make records of\n"));
}
