//! What snapshots have to keep in a life.

use std::collections::BTreeMap;

use super::records::Model;

/// The snapshots that there are, by their numbers, and what each keeps.
#[derive(Default)]
pub(super) struct Kept {
    held: BTreeMap<u32, Model>,
    under_way: UnderWay,
}

/// A call that a cut may leave done or not.
#[derive(Default)]
enum UnderWay {
    #[default]
    Nothing,
    /// One is taken of these records.
    Take(Model),
    /// This one is released.
    Release(u32),
}

impl Kept {
    pub(super) fn begin_take(&mut self, now: &Model) {
        self.under_way = UnderWay::Take(now.clone());
    }

    pub(super) fn begin_release(&mut self, number: u32) {
        self.under_way = UnderWay::Release(number);
    }

    /// The call is over: the snapshots are these now. After a cut it may be done or not; else `is_done` says which.
    pub(super) fn end(&mut self, is_done: Option<bool>, numbers: &[u32]) -> Result<(), String> {
        let under_way = std::mem::take(&mut self.under_way);
        let mut after: Vec<u32> = self.held.keys().copied().collect();
        match under_way {
            UnderWay::Take(model) if is_done != Some(false) => {
                let new = numbers.last().filter(|number| !self.held.contains_key(number));
                if is_done == Some(true) || new.is_some() {
                    let number = *new.ok_or("a snapshot that was taken is not there")?;
                    self.held.insert(number, model);
                    after.push(number);
                }
            }
            UnderWay::Release(number) if is_done.unwrap_or(!numbers.contains(&number)) => {
                self.held.remove(&number);
                after.retain(|&it| it != number);
            }
            _ => {}
        }
        if after == numbers { Ok(()) } else { Err(format!("snapshots {numbers:?} for {after:?}")) }
    }

    /// One of those that there are, another one at another step: its place, its number and what it keeps.
    pub(super) fn any(&self, step: usize) -> Option<(usize, u32, &Model)> {
        let index = step.checked_rem(self.held.len())?;
        self.held.iter().nth(index).map(|(&number, model)| (index, number, model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_may_leave_is_taken_as_it_is_and_nothing_else() {
        let mut kept = Kept::default();
        kept.begin_take(&Model::new());
        assert_eq!(kept.end(Some(true), &[1]), Ok(()));
        kept.begin_take(&Model::new());
        assert_eq!(kept.end(None, &[1, 2]), Ok(()));
        kept.begin_take(&Model::new());
        assert_eq!(kept.end(None, &[1, 2]), Ok(()));
        assert_eq!(kept.any(3).map(|(index, number, _)| (index, number)), Some((1, 2)));
        kept.begin_release(1);
        assert_eq!(kept.end(None, &[2]), Ok(()));
        kept.begin_release(2);
        assert_eq!(kept.end(Some(false), &[2]), Ok(()));
        assert!(kept.end(None, &[]).is_err() && kept.end(None, &[2, 3]).is_err());
        kept.begin_release(2);
        assert!(kept.end(Some(true), &[2]).is_err());
    }
}
