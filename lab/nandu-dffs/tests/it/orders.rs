//! Each order that the file system keeps is needed: lives in which one is left out end with something lost. O8 is not among them: no life was
//! found that it saves; nor O14, which `recoveries.rs` tests.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nandu_dffs::{Broken, Options};

use crate::lives::{FADING, VARIED, Way, live};

/// Lives until one goes wrong; in how many it has to.
const LIVES_MAX: u64 = 150;

fn is_caught(broken: Broken) -> bool {
    let ways = [VARIED, FADING].map(|way| Way { options: Options { broken, ..way.options }, ..way });
    (0..LIVES_MAX).any(|seed| catch_unwind(AssertUnwindSafe(|| live(&ways[seed as usize % 2], seed))).is_err())
}

macro_rules! caught {
    ($($switch:ident)*) => {$(
        #[test]
        fn $switch() {
            assert!(is_caught(Broken { $switch: true, ..Broken::default() }));
        }
    )*};
}

caught! {
    parent_before_directory
    link_before_virtual
    hole_last
    inode_before_data
    removal_first
    erase_before_checkpoint
    checkpoint_before_map
    newest_not_copied
    doubles_kept
    rename_not_finished
    heads_kept
    data_unclaimed
}
