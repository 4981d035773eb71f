//! Each order that the file system keeps is needed: lives in which one is left out end with something lost. O8 is not among them: no life was
//! found that it saves; nor O14, which `recoveries.rs` tests.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nandu_dffs::{Broken, Options};

use crate::lives::{FADING, VARIED, Way, live};

/// Lives until one goes wrong; in how many it has to.
const LIVES_MAX: u64 = 150;

/// Whether one of the lives goes wrong. The one that is known to comes first.
fn is_caught(broken: Broken, first: u64) -> bool {
    let ways = [VARIED, FADING].map(|way| Way { options: Options { broken, ..way.options }, ..way });
    let mut seeds = (0..LIVES_MAX).map(|nth| (first + nth) % LIVES_MAX);
    seeds.any(|seed| catch_unwind(AssertUnwindSafe(|| live(&ways[seed as usize % 2], seed))).is_err())
}

macro_rules! caught {
    ($($switch:ident $first:literal)*) => {$(
        #[test]
        fn $switch() {
            assert!(is_caught(Broken { $switch: true, ..Broken::default() }, $first));
        }
    )*};
}

caught! {
    parent_before_directory 0
    link_before_virtual 0
    hole_last 0
    inode_before_data 0
    removal_first 0
    erase_before_checkpoint 0
    checkpoint_before_map 0
    newest_not_copied 0
    doubles_kept 84
    rename_not_finished 0
    heads_kept 0
    data_unclaimed 0
}
