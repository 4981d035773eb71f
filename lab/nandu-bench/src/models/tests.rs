//! The models beside what is known of the file systems that they stand for.

use super::*;
use crate::workload::FileName;

/// Pages of 2 KiB, 64 in a block.
const DEVICE: Device = Device { page_size: 2048, pages_per_block: 64, block_count: 512 };

fn name(number: u64) -> FileName {
    FileName { directory: Some(0), number }
}

/// Programs for each of so many files that are made in a directory, written as `write` says, and closed.
fn programs(model: &mut dyn Model, count: u64, write: &mut dyn FnMut(&mut dyn Model)) -> f64 {
    model.make_directory(0).unwrap();
    let before = model.counts();
    for number in 0..count {
        model.create(name(number)).unwrap();
        write(model);
        model.close().unwrap();
    }
    model.counts().since(&before).programs as f64 / count as f64
}

/// Programs for each write of so many bytes at the end of a file that was made before.
fn appended(model: &mut dyn Model, size: usize, is_synced: bool) -> f64 {
    model.make_directory(0).unwrap();
    model.create(name(0)).unwrap();
    let before = model.counts();
    for nth in 0..64 {
        model.write(nth * size as u64, &vec![1; size], is_synced).unwrap();
    }
    model.counts().since(&before).programs as f64 / 64.0
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 0.02 * expected + 0.005, "{value} is not {expected}");
}

#[test]
fn jffs2_programs_the_bytes_of_its_nodes_and_a_page_of_each_block() {
    let new = |flush| Jffs2::new(&DEVICE, flush);
    assert_near(programs(&mut new(Flush::Never), 1000, &mut |_| {}), 120.0 / 2048.0 * 64.0 / 63.0);
    assert_near(appended(&mut new(Flush::Never), 4096, true), 4164.0 / 2048.0 * 64.0 / 63.0);
    // Padding makes three pages of it.
    assert_near(appended(&mut new(Flush::Pads), 4096, true), 3.0 * 64.0 / 63.0);
}

#[test]
fn a_sync_of_jffs2_that_collects_writes_as_many_pages_as_one_that_pads_and_moves_something_in_them() {
    let device = Device { page_size: 4096, pages_per_block: 128, block_count: 64 };
    let (mut pads, mut collects) = (Jffs2::new(&device, Flush::Pads), Jffs2::new(&device, Flush::Collects));
    let pages = appended(&mut pads, 4096, true);
    let _ = appended(&mut collects, 4096, true);
    assert_near(pages, 2.0 * 128.0 / 127.0);
    let before = collects.counts();
    collects.create(name(1)).unwrap();
    for nth in 0..1000 {
        collects.write(nth * 4096, &[1; 4096], true).unwrap();
    }
    let done = collects.counts().since(&before);
    assert!((2.0..2.15).contains(&(done.programs as f64 / 1000.0)), "{done:?}");
    assert!(done.reads >= 900, "{done:?}");
}

#[test]
fn yaffs2_programs_a_chunk_for_each_page_and_headers() {
    let written = |honours| {
        let mut model = Yaffs2::new(&DEVICE, honours);
        programs(&mut model, 4, &mut |model| model.write(0, &[1; 131_072], true).unwrap())
    };
    assert_eq!((written(false), written(true)), (67.0, 68.0));
    assert_eq!(appended(&mut Yaffs2::new(&DEVICE, false), 4096, true), 2.0);
    assert_eq!(appended(&mut Yaffs2::new(&DEVICE, true), 4096, true), 4.0);
}

#[test]
fn ubifs_pads_a_page_of_data_and_one_of_inodes_at_each_sync() {
    // Three pages of data and one with the inode; of a block's 64 pages two are UBI's, and each of its own has a page in the log.
    let pages = appended(&mut Ubifs::new(&DEVICE), 4096, true);
    assert!((4.15..4.30).contains(&pages), "{pages}");
    // Nothing is synced: only bytes count.
    let pages = programs(&mut Ubifs::new(&DEVICE), 1000, &mut |_| {});
    assert!((0.19..0.24).contains(&pages), "{pages}");
}

#[test]
fn classic_programs_an_inode_and_its_directory() {
    let classic = |parent| Classic::new(&DEVICE, parent);
    let made = programs(&mut classic(ParentUpdate::OnClose), 100, &mut |_| {});
    // Two, and now and then a page of overflow with the one before it, and the map.
    assert!((2.0..2.3).contains(&made), "{made}");
    assert_eq!(appended(&mut classic(ParentUpdate::OnClose), 4096, true), 3.0);
    assert_near(appended(&mut classic(ParentUpdate::Each), 4096, true), 4.0 + 1.0 / 64.0);
    let large = Device { page_size: 4096, ..DEVICE };
    let buckets = |device| Classic::new(device, ParentUpdate::Each).bucket_count();
    assert_eq!((buckets(&DEVICE), buckets(&large)), (347, 751));
}

/// The same calls in one log and in six areas: as many programs are asked for, and more are moved in one log.
#[test]
fn classic_in_one_log_programs_the_same_and_moves_more() {
    let lived = |model: Classic| {
        let mut model = model;
        model.make_directory(0).unwrap();
        for number in 0..300 {
            let victim = name((number * 7919) % 120);
            if number >= 120 {
                model.unlink(victim).unwrap();
            }
            model.create(if number < 120 { name(number) } else { victim }).unwrap();
            for part in 0..8 {
                model.write(part * 4096, &[1; 4096], true).unwrap();
            }
            model.close().unwrap();
        }
        let counts = model.counts();
        (counts.programs - counts.collector_programs, counts.collector_programs)
    };
    let device = Device { block_count: 64, ..DEVICE };
    let six = lived(Classic::new(&device, ParentUpdate::OnClose));
    let one = lived(Classic::new(&device, ParentUpdate::OnClose).with_one_log());
    assert!(one.0.abs_diff(six.0) * 50 < six.0, "{six:?} {one:?}");
    assert!(one.1 > 2 * six.1 && six.1 > 0, "{six:?} {one:?}");
}

/// Files that come and go for long, on a device that is nearly full: nothing is lost, whatever was made can be removed.
#[test]
fn each_model_lives_long_on_a_small_device() {
    let device = Device { block_count: 96, ..DEVICE };
    let models: [Box<dyn Model>; 7] = [
        Box::new(Jffs2::new(&device, Flush::Never)),
        Box::new(Jffs2::new(&device, Flush::Pads)),
        Box::new(Jffs2::new(&device, Flush::Collects)),
        Box::new(Yaffs2::new(&device, true)),
        Box::new(Ubifs::new(&device)),
        Box::new(Classic::new(&device, ParentUpdate::OnClose)),
        Box::new(Classic::new(&device, ParentUpdate::Each)),
    ];
    for mut model in models {
        model.make_directory(0).unwrap();
        let mut live = Vec::new();
        for number in 0..900 {
            model.create(name(number)).unwrap();
            for part in 0..8 {
                model.write(part * 4096, &[1; 4096], true).unwrap();
            }
            model.close().unwrap();
            live.push(number);
            if live.len() > 170 {
                let place = number as usize * 7919 % live.len();
                model.unlink(name(live.swap_remove(place))).unwrap();
            }
        }
        let counts = model.counts();
        assert!(counts.erases > 100 && counts.collector_programs < counts.programs, "{counts:?}");
        for number in live {
            model.expect(name(number), &[]).unwrap();
            model.unlink(name(number)).unwrap();
        }
        model.remove_directory(0).unwrap();
    }
}
