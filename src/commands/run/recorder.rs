//! Hears every event of a run: the journal writes it, the progress display draws it.

use crate::commands::cli::RunArgs;
use crate::commands::{Console, Failure};
use crate::journal::{self, Held, Journal, JournalError};
use crate::model::Event;
use crate::progress::Progress;

use super::destination::Destination;

#[derive(Debug)]
pub struct Recorder {
    journal: Journal,
    progress: Progress,
    held: Held,
    /// The first event that could not be written. The run goes on, but it cannot end well.
    lost: Option<JournalError>,
}

impl Recorder {
    /// Starts a journal afresh, or continues the one that is there.
    pub fn open(args: &RunArgs, destination: &Destination, console: &Console) -> Result<Self, Failure> {
        let failure = |e: JournalError| Failure::environment(e.to_string());
        let (journal, held) = if args.resume {
            let (journal, contents) = Journal::append_to(&destination.dir).map_err(failure)?;
            (journal, journal::resume_state(&contents.events))
        } else {
            (Journal::create(&destination.dir).map_err(failure)?, Held::default())
        };
        let progress = Progress::new(args.display.progress.style(args.display.quiet), console.error_color);
        Ok(Self { journal, progress, held, lost: None })
    }

    /// What an earlier run of the same folder says is done.
    pub const fn held(&self) -> &Held {
        &self.held
    }

    pub fn emit(&mut self, event: &Event) {
        self.progress.observe(event);
        if self.lost.is_none() {
            self.lost = self.journal.record(event).err();
        }
    }

    /// Ends the display, and says so if the journal misses anything.
    pub fn close(mut self) -> Result<(), Failure> {
        self.progress.finish();
        self.lost.map_or(Ok(()), |e| Err(Failure::environment(format!("the journal is incomplete: {e}"))))
    }
}
