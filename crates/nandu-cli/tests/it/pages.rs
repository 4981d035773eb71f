//! What pages of a volume say of themselves.

use std::fs;
use std::path::Path;

use nandu::{Durability, Options, Store};
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;
use serde_json::Value;

use crate::store::{json, succeed};

/// The pages that are programmed, and how many are in a block.
fn programmed(place: &Path) -> Vec<u64> {
    let info = json(&succeed(&["info", "c.nand", "--json"], place));
    let pages_per_block = info["geometry"]["pages_per_block"].as_u64().unwrap();
    let map = String::from_utf8(succeed(&["map", "c.nand", "--json"], place)).unwrap();
    let blocks = map.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let pages = blocks.flat_map(|block| {
        let first = block["block"].as_u64().unwrap() * pages_per_block;
        first..first + block["pages_programmed"].as_u64().unwrap()
    });
    pages.collect()
}

/// The headers of pages, with what follows them.
fn headers(place: &Path, pages: &[u64]) -> Vec<(u64, Value)> {
    let header = |page: u64| {
        let dump = json(&succeed(&["dump", "page", &page.to_string(), "c.nand", "--json"], place));
        (page, dump["header"].clone())
    };
    pages.iter().map(|&page| header(page)).collect()
}

fn text(place: &Path, page: u64) -> String {
    String::from_utf8(succeed(&["dump", "page", &page.to_string(), "c.nand"], place)).unwrap()
}

#[test]
fn every_page_of_a_store_says_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&["create", "c.nand", "--chip", "w25n01gv", "--factory-bad", "1", "--seed", "7"], place);
    succeed(&["kv", "format", "c.nand"], place);
    let (mut image, mut sim) = ImageFile::open(place.join("c.nand")).unwrap();
    let options = Options { durability: Durability::OnSync, pending_size: 16_384, ..Options::DEFAULT };
    let mut memory = vec![0; Store::<Sim>::memory_required(&sim.chip().geometry, &options)];
    let mut store = Store::open(&mut sim, options, &mut memory).unwrap();
    for number in 0..400_u32 {
        let key = number * 147 % 400;
        store.put(format!("key {key:03}").as_bytes(), &[b'v'; 30]).unwrap();
        if number % 10 == 0 {
            store.sync().unwrap();
        }
    }
    store.put(b"large", &[1; 10_000]).unwrap();
    store.snapshot().unwrap();
    store.delete(b"key 007").unwrap();
    store.unmount().unwrap();
    image.commit(&mut sim).unwrap();
    drop((image, sim));
    let headers = headers(place, &programmed(place));
    let of = |kind: &str| headers.iter().filter(|(_, header)| header["kind"] == kind).collect::<Vec<_>>();
    for (page, header) in &headers {
        assert_eq!((&header["page"], &header["malformed"]), (&Value::from(*page), &Value::Null), "{header}");
    }
    let count = ["anchor", "block table", "commit", "node", "value"].map(|kind| of(kind).len());
    assert_eq!(count.iter().sum::<usize>(), headers.len());
    assert!(count.iter().all(|&count| count > 0), "{count:?}");
    let (page, anchor) = of("anchor")[0];
    assert_eq!((&anchor["content"]["block_count"], &anchor["content"]["page_size"]), (&1024.into(), &2048.into()));
    assert!(text(place, *page).contains("\n       1,024 blocks of 64 pages of 2,048 bytes\n"));
    let newest = of("commit").into_iter().max_by_key(|(_, header)| header["sequence"].as_u64()).unwrap();
    // One was deleted behind the snapshot.
    assert_eq!((&newest.1["content"]["records"], &newest.1["content"]["snapshots"]), (&400.into(), &true.into()));
    let (page, listing) = of("commit")
        .into_iter()
        .find(|(_, header)| {
            let is_some = |name: &str| header["content"][name].as_array().is_some_and(|list| !list.is_empty());
            is_some("changes") && is_some("window")
        })
        .unwrap();
    let members = listing["content"]["window"].as_array().unwrap();
    let is_commit = |page: &Value| headers.iter().any(|(other, it)| page == *other && it["kind"] == "commit");
    assert!(members.iter().all(is_commit), "{members:?}");
    let said = text(place, *page);
    assert!(said.contains(" lists ") && said.contains("\n       commits that are still needed: pages "), "{said}");
    assert!(said.contains("'key "), "{said}");
    let (page, value) = of("value")[0];
    assert_eq!((&value["content"]["length"], &value["content"]["key"]), (&10_000.into(), &"6c61726765".into()));
    assert!(text(place, *page).contains(" of a value of 10,000 bytes, with 1,"), "{}", text(place, *page));
}

#[test]
fn a_raw_page_is_of_whom_its_summary_says() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::create_dir(place.join("tree")).unwrap();
    fs::write(place.join("tree/file"), vec![7; 150 * 2048]).unwrap();
    succeed(&["create", "c.nand", "--chip", "w25n01gv"], place);
    succeed(&["fs", "format", "c.nand"], place);
    succeed(&["fs", "import", "tree", "c.nand"], place);
    let inode = json(&succeed(&["fs", "ls", "c.nand", "--json"], place))["ino"].clone();
    let headers = headers(place, &programmed(place));
    let anchor = headers.iter().find(|(_, header)| header["kind"] == "anchor").unwrap();
    assert!(anchor.1["content"]["features"].as_array().unwrap().contains(&"raw pages".into()));
    let summaries: Vec<_> = headers.iter().filter(|(_, header)| header["kind"] == "summary").collect();
    let owners: Vec<&Value> =
        summaries.iter().flat_map(|(_, header)| header["content"]["owners"].as_array().unwrap()).collect();
    let mut found: Vec<u64> = owners
        .iter()
        .filter(|owner| owner["inode"] == inode)
        .map(|owner| {
            let said = text(place, owner["page"].as_u64().unwrap());
            let expected = format!("\nnandu: a raw page, programmed as page {} of inode {inode}\n", owner["index"]);
            assert!(said.contains(&expected), "{said}");
            owner["index"].as_u64().unwrap()
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, (0..150).collect::<Vec<u64>>());
    let said = text(place, summaries[0].0);
    assert!(said.contains("\n       whose the ") && said.contains(&format!(" of inode {inode}\n")), "{said}");
}
