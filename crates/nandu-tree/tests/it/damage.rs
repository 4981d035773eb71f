//! tmp
use nandu_index::suite::*;
use proptest::prelude::*;
use crate::medium::*;
use nandu_tree::*;
#[test]
fn tmp() {
    let space = Space { keys: KeyKind::Bytes(12), key_count: 350, value_size_min: 0, value_size_max: 20, operations_max: 200 };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(Default::default(), proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha));
    for case in 0..1500 {
        let list = proptest::strategy::ValueTree::current(&operations(space).new_tree(&mut runner).unwrap());
        let mut s = Bench::new(Shared::new(256,44,4000), ByteCells, Options { cache_size: 300, journal_pages: 256 });
        let mut model = Default::default();
        for (i, op) in list.iter().enumerate() {
            let before = (s.tree().height(), *s.tree().stats());
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| apply(&mut s, &mut model, space, op))).is_err() { panic!("case {case} op {i} before {before:?} now {:?} {} live {} {:?}", s.tree().height(), model.len(), s.medium.live_count(), s.tree().stats()); }
            
        }
    }
}
