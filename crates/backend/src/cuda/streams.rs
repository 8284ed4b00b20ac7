//! Bodies whose launches are in several streams: all begin together, and together they end.
//!
//! Such a body is queued as one operation of the device's own stream: the other streams wait for an event in it before
//! their first launch, and it waits for their events after the last. So a body is timed, gated and captured into a
//! graph as any other. Nothing here decides what may run concurrently.

use super::handles::{Event, Stream};
use super::operation::{Concurrent, Operation};
use crate::{DeviceError, Step, streams};

/// The streams besides the device's own; each is made when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    begin: Option<Event>,
    others: Vec<(Stream, Event)>,
}

impl Lanes {
    /// Makes the streams that these steps need.
    pub fn provide(&mut self, steps: &[Step]) -> Result<(), DeviceError> {
        let others = streams(steps) - 1;
        if others > 0 && self.begin.is_none() {
            self.begin = Some(Event::untimed()?);
        }
        while self.others.len() < others {
            self.others.push((Stream::new()?, Event::untimed()?));
        }
        Ok(())
    }

    /// Returns what steps resolve to, as one operation where they are in several streams, which are provided.
    pub fn arrange<'a>(&'a self, steps: &[Step], resolved: Vec<Operation<'a>>) -> Vec<Operation<'a>> {
        let others = self.others.get(..streams(steps) - 1).unwrap_or_default();
        let Some(begin) = self.begin.as_ref().filter(|_| !others.is_empty()) else { return resolved };
        let steps = steps.iter().map(Step::stream).zip(resolved).collect();
        vec![Operation::Concurrent(Concurrent { begin, others, steps })]
    }
}
