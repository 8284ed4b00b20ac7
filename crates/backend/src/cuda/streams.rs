//! Bodies with launches in several streams, which start together and end together.
//!
//! Such a body is queued as one operation of the device's own stream. The other streams wait for an event in it before
//! their first launch, and it waits for their events after the last. So such a body is timed, gated and captured like
//! any other.

use super::handles::{Event, Stream};
use super::operation::{Concurrent, Operation};
use crate::{DeviceError, Step, streams};

/// Streams besides the device's own, each created on first use.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    begin: Option<Event>,
    others: Vec<(Stream, Event)>,
}

impl Lanes {
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

    /// Combines the steps into one operation if they use several streams, which must exist.
    pub fn arrange<'a>(&'a self, steps: &[Step], resolved: Vec<Operation<'a>>) -> Vec<Operation<'a>> {
        let others = self.others.get(..streams(steps) - 1).unwrap_or_default();
        let Some(begin) = self.begin.as_ref().filter(|_| !others.is_empty()) else { return resolved };
        let steps = steps.iter().map(Step::stream).zip(resolved).collect();
        vec![Operation::Concurrent(Concurrent { begin, others, steps })]
    }
}
