//! Sequences in words: `put-a-8 put-b-300!cut@2:prefix open!cut@0:half-erased unmount!fails@1`.

use std::fmt::{self, Display};

use nandu_sim::{Fault, HISTORY_LENGTH, Sag, Tear, Weakness};

/// A call, or an opening, and what happened in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Move<C> {
    /// `None`: the opening.
    pub(crate) call: Option<C>,
    pub(crate) event: Event,
}

/// What happened in a call. Operations count from the opening on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    Nothing,
    /// The power was cut at this operation.
    Cut(u64, Tear),
    /// The power was cut before this operation, and some of those before it were weak.
    Sag(u64, Sag),
    /// This program or erase failed.
    Fails(u64, Fault),
}

impl<C> Move<C> {
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self.event, Event::Fails(..))
    }
}

impl<C: Display> Display for Move<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Some(call) => call.fmt(f)?,
            None => f.write_str(OPENING)?,
        }
        match self.event {
            Event::Nothing => Ok(()),
            Event::Cut(at, tear) => write!(f, "!cut@{at}:{tear}"),
            Event::Sag(at, Sag { sound, weak, weakness }) => write!(f, "!sag@{at}:{sound}+{weak}:{weakness}"),
            Event::Fails(at, Fault::EraseFails) => write!(f, "!erase-fails@{at}"),
            Event::Fails(at, _) => write!(f, "!fails@{at}"),
        }
    }
}

const OPENING: &str = "open";

/// Reads a sequence; `None` where a word is none of a move with one of these calls.
pub(crate) fn parse<C: Copy + Display>(calls: &[C], text: &str) -> Option<Vec<Move<C>>> {
    text.split_whitespace().map(|word| parse_move(calls, word)).collect()
}

fn parse_move<C: Copy + Display>(calls: &[C], word: &str) -> Option<Move<C>> {
    let (name, event) = word.split_once('!').map_or((word, None), |(name, event)| (name, Some(event)));
    let call = match name {
        OPENING => None,
        _ => Some(*calls.iter().find(|call| call.to_string() == name)?),
    };
    let event = match event.map(|event| event.split_once('@')) {
        None => Event::Nothing,
        Some(Some(("cut", at))) => {
            let (at, tear) = at.split_once(':')?;
            Event::Cut(at.parse().ok()?, tear.parse().ok()?)
        }
        Some(Some(("sag", at))) => {
            let (at, which) = at.split_once(':')?;
            let (counts, word) = which.split_once(':')?;
            let (sound, weak) = counts.split_once('+')?;
            let weakness = Weakness::ALL.into_iter().find(|weakness| weakness.to_string() == word)?;
            let sag = Sag { sound: sound.parse().ok()?, weak: weak.parse().ok()?, weakness };
            (sag.weak > 0 && usize::from(sag.reach()) <= HISTORY_LENGTH).then_some(())?;
            Event::Sag(at.parse().ok()?, sag)
        }
        Some(Some(("fails", at))) => Event::Fails(at.parse().ok()?, Fault::ProgramFails),
        Some(Some(("erase-fails", at))) => Event::Fails(at.parse().ok()?, Fault::EraseFails),
        Some(_) => return None,
    };
    let is_move = call.is_some() || matches!(event, Event::Cut(..));
    is_move.then_some(Move { call, event })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sequences_are_read_as_they_are_written() {
        let calls = ["put-a", "unmount"];
        for text in [
            "put-a",
            "put-a!cut@12:half-erased open!cut@0:before unmount!fails@3 unmount!sag@7:1+2:lost unmount!erase-fails@9",
        ] {
            let moves = parse(&calls, text).unwrap();
            assert_eq!(moves.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), text);
        }
        for wrong in [
            "put",
            "open",
            "open!fails@1",
            "put-a!cut@1",
            "put-a!cut@x:before",
            "put-a!cut@1:torn",
            "put-a!sag@1:1:lost",
            "put-a!",
        ] {
            assert_eq!(parse(&calls, wrong), None, "{wrong}");
        }
    }
}
