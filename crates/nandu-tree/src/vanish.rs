//! A leaf lost its last entry: it disappears, and with it what has no child left.

use nandu_cells::Cells;
use nandu_nand::Nand;

use crate::descend::{load_inner, load_leaf};
use crate::error::{EngineError, Outcome};
use crate::fit::encode_without;
use crate::split::{put_inner, retire};
use crate::tree::Tree;

/// Takes the empty leaf out of the path. The lowest node of what is programmed next is then the lowest that still has a child. While the root has
/// one child only, that becomes the root. Reads at most 1 page for each level that goes.
pub(crate) fn vanish<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>) -> Outcome<(), N> {
    debug_assert!(tree.path.top() > 0, "a leaf that is the root stays");
    let mut level = 0;
    loop {
        retire(tree, level);
        tree.path.take_out(level);
        level += 1;
        if tree.path.child_count(level) > 1 {
            break;
        }
        if level == tree.path.top() {
            // A root with one child is damage; its page goes with it.
            retire(tree, level);
            tree.path.empty();
            return Ok(());
        }
    }
    let size = encode_without(&tree.path, level, tree.reader.lend()).ok_or(EngineError::TooHigh)?;
    put_inner(tree, level, size, 0)?;
    tree.path.touch(level);
    while let Some(child) = tree.path.only_child() {
        let top = tree.path.top();
        retire(tree, top);
        tree.path.sink();
        if top == 1 {
            load_leaf(tree, child)?;
        } else {
            load_inner(tree, top - 1, child)?;
        }
        // It is programmed again as the root, which is not kept beside the path.
        tree.path.touch(top - 1);
        tree.reader.drop_node(child, top - 1);
    }
    debug_assert!(tree.path.is_dirty(), "the path is programmed next");
    Ok(())
}
