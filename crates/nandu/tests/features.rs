//! A volume that uses a part which is not compiled is refused, and the error names the feature.
//!
//! One build has one set of features. So this is built and run twice: with all features it makes the volumes and opens them; without any
//! (`cargo test -p nandu --no-default-features --test features`) it opens the same images.

#![expect(clippy::unwrap_used, reason = "a test that gets no answer has failed")]

use std::path::PathBuf;

use nandu::{Options, Store};
use nandu_sim::image::ImageFile;
use nandu_sim::{Chip, Sim};

const BLOCKS: u32 = 24;

fn image(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("uses-{name}.img"))
}

fn memory(options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip().chip().geometry, options)]
}

fn chip() -> Sim {
    Sim::new(Chip::W25N01GV.with_blocks(BLOCKS))
}

#[cfg(feature = "default")]
mod with {
    use super::*;
    use nandu::Durability;
    use nandu::fs::{Format, Fs};

    type Uses = fn(&mut Store<'_, Sim>);

    fn publish(name: &str, chip: &mut Sim) {
        let path = image(name);
        let _ = std::fs::remove_file(&path);
        ImageFile::create(&path, chip).unwrap();
    }

    /// Each volume is made, and opened again by a build that has all parts.
    #[test]
    fn volumes_that_use_each_part_are_opened_by_a_build_with_all() {
        let waiting = Options { durability: Durability::OnSync, pending_size: 4096, ..Options::DEFAULT };
        let parts: [(&str, Options, Uses); 4] = [
            ("nothing", Options::DEFAULT, |_| {}),
            ("group", waiting, |store| {
                // More than one leaf, so that some of them wait in a page of the sync.
                (0..300_u32).for_each(|number| {
                    assert!(store.put(&number.wrapping_mul(0x9E37_79B1).to_be_bytes(), &[1; 40]).is_ok())
                });
                store.sync().unwrap();
            }),
            ("snapshots", Options::DEFAULT, |store| assert!(store.snapshot().is_ok())),
            ("blobs", Options::DEFAULT, |store| assert!(store.put(b"large", &[7; 5000]).is_ok())),
        ];
        for (name, options, uses) in parts {
            let mut memory = memory(&options);
            let mut store = Store::format(chip(), options, &mut memory).unwrap();
            store.put(b"key", b"value").unwrap();
            uses(&mut store);
            let mut chip = store.abandon();
            publish(name, &mut chip);
            let mut store = Store::open(chip, options, &mut memory).unwrap();
            assert_eq!(store.get(b"key").unwrap(), Some(&b"value"[..]), "{name}");
        }
        let options = nandu::fs::Options::DEFAULT;
        let mut memory = vec![0; Fs::<Sim>::memory_required(&chip().chip().geometry, &options)];
        let fs = Fs::format(chip(), options, Format::default(), &mut memory).unwrap();
        publish("files", &mut fs.abandon());
    }
}

#[cfg(not(feature = "default"))]
mod without {
    use super::*;
    use nandu::{Durability, Error};

    fn open(name: &str) -> Result<Option<Vec<u8>>, Error<nandu_sim::SimError>> {
        let chip = ImageFile::load(image(name)).unwrap();
        let mut memory = memory(&Options::DEFAULT);
        let mut store = Store::open(chip, Options::DEFAULT, &mut memory)?;
        Ok(store.get(b"key")?.map(<[u8]>::to_vec))
    }

    #[test]
    fn a_volume_that_uses_no_part_is_read() {
        assert_eq!(open("nothing"), Ok(Some(b"value".to_vec())));
    }

    #[test]
    fn a_volume_that_uses_a_part_is_refused_with_the_name_of_the_feature() {
        for feature in ["group", "snapshots", "blobs"] {
            assert_eq!(open(feature), Err(nandu::Error::NotCompiled { feature }));
        }
        // No store, with the part or without.
        assert_eq!(open("files"), Err(nandu::Error::OtherFormat { what: "raw pages" }));
    }

    #[test]
    fn what_a_caller_asks_of_a_part_is_refused_with_the_name_of_the_feature() {
        let waiting = Options { durability: Durability::OnSync, pending_size: 4096, ..Options::DEFAULT };
        let mut memory = memory(&waiting);
        let refused = Store::format(chip(), waiting, &mut memory).map(|_| ()).unwrap_err();
        assert_eq!(refused, nandu::Error::NotCompiled { feature: "group" });
        let mut store = Store::format(chip(), Options::DEFAULT, &mut memory).unwrap();
        let refused = store.put(b"large", &[7; 5000]).unwrap_err();
        assert_eq!(refused, nandu::Error::NotCompiled { feature: "blobs" });
        store.put(b"small", &[7; 50]).unwrap();
    }

    /// What another build takes for what says where a large value is, is refused by this one.
    #[test]
    fn what_looks_like_a_large_value_is_refused() {
        let mut memory = memory(&Options::DEFAULT);
        let mut store = Store::format(chip(), Options::DEFAULT, &mut memory).unwrap();
        let head = [&[0x7F, 0x48, 0xD6, 0x9B][..], &100_u32.to_le_bytes(), &7_u32.to_le_bytes()].concat();
        assert_eq!(store.put(b"k", &head).unwrap_err(), Error::ValueSize(12));
    }
}
