//! Groups of several devices on one host: those that the host's speed affects have it to themselves.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::GroupSource;
use super::pending::depends_on_host;
use crate::model::GroupJob;

/// The groups of a source, each of which begins when the host is free for it.
#[derive(Debug)]
pub struct Paced<'a, S> {
    source: &'a mut S,
    host: &'a RwLock<()>,
    held: Option<Held<'a>>,
}

/// The share of the host that the group which runs has, until it is dropped.
#[derive(Debug)]
enum Held<'a> {
    WithOthers { _guard: RwLockReadGuard<'a, ()> },
    Alone { _guard: RwLockWriteGuard<'a, ()> },
}

impl<'a, S> Paced<'a, S> {
    /// `host` is shared by all devices of the host.
    pub const fn new(source: &'a mut S, host: &'a RwLock<()>) -> Self {
        Self { source, host, held: None }
    }
}

impl<S: GroupSource> GroupSource for Paced<'_, S> {
    fn next(&mut self) -> Option<GroupJob> {
        self.held = None;
        let job = self.source.next()?;
        self.held = Some(if depends_on_host(&job) {
            Held::Alone { _guard: self.host.write().unwrap_or_else(PoisonError::into_inner) }
        } else {
            Held::WithOthers { _guard: self.host.read().unwrap_or_else(PoisonError::into_inner) }
        });
        Some(job)
    }

    fn remaining(&mut self) -> Vec<GroupJob> {
        self.held = None;
        self.source.remaining()
    }

    fn fault(&self) -> Option<String> {
        self.source.fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fake;
    use crate::model::Regime;

    #[test]
    fn a_group_that_the_host_affects_runs_alone() {
        let on_device = fake::idle_group("x", 0, &["a"], 1.0);
        let mut on_host = on_device.clone();
        on_host.cases[0].measure.regimes = vec![Regime::Host];
        let host = RwLock::new(());
        let mut groups = vec![on_device, on_host].into_iter();
        let mut paced = Paced::new(&mut groups, &host);
        assert!(host.try_write().is_ok());
        assert!(paced.next().is_some());
        assert!(host.try_write().is_err() && host.try_read().is_ok(), "other devices go on");
        assert!(paced.next().is_some());
        assert!(host.try_read().is_err(), "other devices wait");
        assert!(paced.next().is_none());
        assert!(host.try_write().is_ok(), "the host is free after the last group");
    }
}
