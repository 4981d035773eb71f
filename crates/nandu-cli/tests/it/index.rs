//! Records kept by each kind of index: moved from one to another, and after a command was killed or the power cut.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use nandu::{Options, Store};
use nandu_inpage::{Edit, GroupSize, InPage, Kind, LogPages, Policy, Splits};
use nandu_sim::image::ImageFile;
use nandu_sim::{Sim, Tear};

use crate::store::{complaint, json, nasty, succeed};

const KINDS: [&str; 3] = ["mutree", "grr", "ipl"];

/// Records of a batch.
const BATCH: usize = 50;

fn formatted(name: &str, kind: &str, place: &Path) {
    succeed(&["create", name, "--force", "--seed", "7"], place);
    succeed(&["kv", "format", name, "--index", kind], place);
}

#[test]
fn records_move_from_each_kind_of_index_to_each_other_and_stay_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let binary = "{\"key_hex\":\"00ff0a\",\"value_hex\":\"80\"}\n{\"key_hex\":\"fffe\",\"value\":\"text\"}\n";
    fs::write(place.join("in.jsonl"), nasty() + binary).unwrap();
    let exports = KINDS.map(|kind| {
        formatted(kind, kind, place);
        succeed(&["kv", "import", kind, "in.jsonl", "--index", kind], place);
        let scans = ["--hex", "--reverse"].map(|flag| succeed(&["kv", "scan", kind, flag], place));
        let exports = ["csv", "tsv", "jsonl"].map(|format| succeed(&["kv", "export", kind, "--format", format], place));
        (scans, exports)
    });
    assert!(exports[0] == exports[1] && exports[1] == exports[2]);
}

#[test]
fn nodes_of_several_pages_keep_the_same_records() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let lines: String = (0..3000_u32).map(|number| format!("{:08x}\t{number}\n", number * 7919 % 5000)).collect();
    fs::write(place.join("records.tsv"), lines).unwrap();
    let scans = ["1", "2", "4", "8"].map(|count| {
        succeed(&["create", "c.nand", "--force", "--seed", "7"], place);
        succeed(&["kv", "format", "c.nand", "--index", "grr", "--node-pages", count], place);
        succeed(&["kv", "import", "c.nand", "records.tsv"], place);
        let stats = json(&succeed(&["kv", "stats", "c.nand", "--json"], place));
        assert_eq!(stats["node_pages"].to_string(), count);
        succeed(&["check", "c.nand"], place);
        (succeed(&["kv", "scan", "c.nand"], place), stats["nodes"].as_u64())
    });
    assert!(scans.iter().all(|(scan, _)| *scan == scans[0].0) && scans[0].0.len() > 3000 * 10);
    // As many records in fewer nodes.
    assert!(scans.is_sorted_by(|(_, more), (_, fewer)| more > fewer), "{:?}", scans.map(|(_, nodes)| nodes));
}

#[test]
fn thousands_of_records_are_the_same_in_each_kind_of_index_whichever_way_they_come() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let lines: String = (0..6000_u32).map(|number| format!("{:08x}\t{number}\n", number * 7919 % 5000)).collect();
    fs::write(place.join("records.tsv"), lines).unwrap();
    let mut scans = Vec::new();
    for kind in KINDS {
        for arguments in [&["--batch", "100"][..], &["--batch", "700", "--durability", "on-sync"]] {
            formatted("c.nand", kind, place);
            let import = [&["kv", "import", "c.nand", "records.tsv", "--json"], arguments].concat();
            let report = json(&succeed(&import, place));
            assert_eq!((&report["records"], &report["replaced"]), (&6000.into(), &1000.into()), "{kind}");
            let stats = json(&succeed(&["kv", "stats", "c.nand", "--json"], place));
            assert_eq!(
                (&stats["index"], &stats["records"], &stats["clean"]),
                (&kind.into(), &5000.into(), &true.into())
            );
            assert_eq!(json(&succeed(&["check", "c.nand", "--json"], place))["index"], kind);
            scans.push(succeed(&["kv", "scan", "c.nand"], place));
        }
    }
    assert!(scans.iter().all(|scan| *scan == scans[0]) && scans[0].len() > 5000 * 10);
}

#[test]
fn an_import_that_is_killed_leaves_the_image_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    for kind in KINDS {
        formatted("c.nand", kind, place);
        succeed(&["kv", "put", "c.nand", "before", "1"], place);
        let before = fs::read(place.join("c.nand")).unwrap();
        let mut import = Command::new(assert_cmd::cargo::cargo_bin!("nandu"))
            .args(["kv", "import", "c.nand", "-", "--format", "tsv", "--batch", "10"])
            .current_dir(place)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // More than a pipe holds, so that some of it has been read; and the end is not in sight.
        let mut input = import.stdin.take().unwrap();
        for number in 0..20_000 {
            writeln!(input, "key {number}\tvalue").unwrap();
        }
        import.kill().unwrap();
        import.wait().unwrap();
        drop(input);
        assert!(fs::read(place.join("c.nand")).unwrap() == before, "{kind}");
        assert_eq!(succeed(&["kv", "scan", "c.nand"], place), b"before\t1\n", "{kind}");
    }
}

/// Waits until nobody has the image open: a command that another test is just starting has for a moment what is open here.
fn wait_for(image: &Path) {
    for _ in 0..500 {
        if ImageFile::open(image).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The number of a batch, for each record of it.
fn edits(batch: usize) -> Vec<([u8; 8], [u8; 8])> {
    let mut edits: Vec<_> = (0..BATCH)
        .map(|place| {
            let number = (batch * BATCH + place) as u64;
            (number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), (batch as u64).to_be_bytes())
        })
        .collect();
    edits.sort_unstable();
    edits
}

/// Puts batches until the power goes. Returns how many returned without an error.
fn put_batches(mut put: impl FnMut(&[Edit<'_>]) -> bool) -> usize {
    (0..)
        .find(|&batch| {
            let records = edits(batch);
            let edits: Vec<Edit<'_>> = records.iter().map(|(key, value)| Edit { key, value: Some(value) }).collect();
            !put(&edits)
        })
        .unwrap()
}

/// Opens the index of a chip as a program does, and puts batches.
fn work(sim: &mut Sim, kind: &str) -> usize {
    let geometry = sim.chip().geometry;
    if kind == "mutree" {
        let mut memory = vec![0; Store::<Sim>::memory_required(&geometry, &Options::DEFAULT)];
        let mut store = Store::open(sim, Options::DEFAULT, &mut memory).unwrap();
        return put_batches(|edits| store.batch(edits).is_ok());
    }
    let grr = nandu_inpage::Options {
        journal_blocks: 2,
        durability: nandu_inpage::Durability::Immediate,
        ..nandu_inpage::Options::DEFAULT
    };
    let ipl = nandu_inpage::Options {
        kind: Kind::Ipl,
        log_pages: LogPages::Static(1),
        group: GroupSize::Fixed(1),
        policy: Policy::Lru,
        splits: Splits::EagerThree,
        ..grr
    };
    let options = if kind == "ipl" { ipl } else { grr };
    let mut memory = vec![0; InPage::<Sim>::memory_required(&geometry, &options)];
    let mut index = InPage::open(sim, options, &mut memory).unwrap();
    put_batches(|edits| index.batch(edits).is_ok())
}

/// The power goes while a program works on the chip of an image: the command finds whole batches, all that were acknowledged, and
/// goes on with it.
#[test]
fn an_image_of_a_chip_whose_power_was_cut_holds_whole_batches() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    for kind in KINDS {
        formatted("c.nand", kind, place);
        for (round, tear) in [Tear::Before, Tear::SomeBits, Tear::Prefix, Tear::Complete].into_iter().enumerate() {
            let (mut image, mut sim) = ImageFile::open(place.join("c.nand")).unwrap();
            sim.power_on();
            // Far enough behind the mount, which looks at every block of the chip.
            sim.cut_at(sim.operation_count() + 5000 + 137 * round as u64, tear);
            let done = work(&mut sim, kind);
            assert!(done > 0, "{kind}: nothing was done before the cut");
            image.commit(&mut sim).unwrap();
            drop((image, sim));
            wait_for(&place.join("c.nand"));
            let report = json(&succeed(&["check", "c.nand", "--json"], place));
            assert_eq!((&report["clean"], &report["index"]), (&false.into(), &kind.into()), "{kind}");
            let records = report["records"].as_u64().unwrap() as usize;
            assert!(
                records.is_multiple_of(BATCH) && records / BATCH >= done,
                "{kind}: {records} records, {done} batches"
            );
            // The next change repairs what the cut left, for good.
            succeed(&["kv", "put", "c.nand", "--hex", "00", "00"], place);
            succeed(&["kv", "del", "c.nand", "--hex", "00"], place);
            let stats = json(&succeed(&["kv", "stats", "c.nand", "--json"], place));
            assert_eq!(stats["records"], records, "{kind}");
        }
    }
}

#[test]
fn what_an_index_does_not_take_leaves_the_image_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&["create", "c.nand"], place);
    succeed(&["kv", "format", "c.nand", "--index", "grr", "--key-size", "2", "--value-size", "1"], place);
    succeed(&["kv", "put", "c.nand", "ab", "1"], place);
    let before = fs::read(place.join("c.nand")).unwrap();
    fs::write(place.join("in.csv"), "cd,2\nlong,3\n").unwrap();
    assert_eq!(complaint(&["kv", "import", "c.nand", "in.csv"], place).0, 1);
    assert_eq!(complaint(&["kv", "put", "c.nand", "abc", "1"], place).0, 2);
    assert_eq!(complaint(&["kv", "put", "c.nand", "ab", "12", "--index", "mutree"], place).0, 1);
    assert_eq!(complaint(&["kv", "snapshot", "c.nand", "take"], place).0, 1);
    assert!(fs::read(place.join("c.nand")).unwrap() == before);
}
