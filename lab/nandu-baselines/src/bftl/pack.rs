//! The commit policy: groups of units into few pages, those of a node never apart.

use super::unit::Group;

/// Packs groups into pages of so many units: first fit, the largest groups first. No group is larger than a page.
pub(super) fn first_fit(mut groups: Vec<Group>, units_per_page: usize) -> Vec<Vec<Group>> {
    groups.sort_by_key(|group| (core::cmp::Reverse(group.changes.len()), group.node, group.sequence));
    let mut pages: Vec<(usize, Vec<Group>)> = Vec::new();
    for group in groups {
        let size = group.changes.len();
        match pages.iter_mut().find(|(used, _)| used + size <= units_per_page) {
            Some((used, page)) => {
                *used += size;
                page.push(group);
            }
            None => pages.push((size, vec![group])),
        }
    }
    pages.into_iter().map(|(_, page)| page).collect()
}

#[cfg(test)]
mod tests {
    use super::super::unit::{Change, Group};
    use super::first_fit;

    #[test]
    fn a_page_mixes_nodes_and_no_node_is_torn_apart() {
        let group =
            |node, size| Group { node, level: 0, ordinal: 1, sequence: 9, changes: vec![Change::Delete(1); size] };
        let sizes = [3, 5, 2, 6, 4, 4];
        let groups = sizes.iter().enumerate().map(|(node, &size)| group(node as u32, size)).collect();
        let pages: Vec<Vec<u32>> =
            first_fit(groups, 8).iter().map(|page| page.iter().map(|group| group.node).collect()).collect();
        assert_eq!(pages, [vec![3, 2], vec![1, 0], vec![4, 5]]);
    }
}
