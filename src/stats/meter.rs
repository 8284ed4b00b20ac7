//! A counter that moves now and then, read while like pieces of work are done one after the other: what it gains for a
//! second, and for a piece.
//!
//! Neither the counter nor the work can be stopped at a moment of choice, so two rates are taken beside each other: the
//! counter's, from one of its moves to a later one; and the work's, from the end of one piece to the end of a later one.
//! Their quotient is the gain for a piece. The counter is as old as its last move; what may be off is one move.

/// One look at the counter and at the work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Seconds since the work began.
    pub at: f64,
    /// What the counter says.
    pub level: f64,
    /// Pieces that are done.
    pub done: u64,
}

/// How long to look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Seconds at the beginning that do not count: the device comes into its stride.
    pub settle: f64,
    /// Seconds between the first move that counts and the last, at least.
    pub span: f64,
    /// Moves after the first, at least.
    pub moves: u32,
}

/// See the module.
#[derive(Debug)]
pub struct Meter {
    patience: Patience,
    last: Option<Look>,
    /// The looks that saw the first move, and the last.
    moved: Option<(Look, Look)>,
    moves: u32,
    /// The looks that saw the first piece end after the settling, and the last.
    ended: Option<(Look, Look)>,
}

/// What a meter found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    pub per_second: f64,
    pub per_piece: f64,
    /// As a fraction of either: one move of the counter.
    pub uncertainty: f64,
    /// Seconds over which it was taken.
    pub span: f64,
    /// Pieces that were done between the first that counts and the last.
    pub pieces: u64,
}

impl Meter {
    pub const fn new(patience: Patience) -> Self {
        Self { patience, last: None, moved: None, moves: 0, ended: None }
    }

    /// Takes in a look, later than all before.
    pub fn take(&mut self, look: Look) {
        let Some(last) = self.last.replace(look).filter(|_| look.at >= self.patience.settle) else { return };
        if look.level > last.level {
            self.moves += u32::from(self.moved.is_some());
            self.moved = Some((self.moved.map_or(look, |(first, _)| first), look));
        }
        if look.done > last.done {
            self.ended = Some((self.ended.map_or(look, |(first, _)| first), look));
        }
    }

    /// Whether there is nothing to wait for.
    pub fn is_enough(&self) -> bool {
        let span = self.moved.map_or(0.0, |(first, last)| last.at - first.at);
        let has_pieces = self.ended.is_some_and(|(first, last)| last.done > first.done);
        self.moves >= self.patience.moves && span >= self.patience.span && has_pieces
    }

    /// Moves that were seen after the first.
    pub const fn moves(&self) -> u32 {
        self.moves
    }

    /// What was found; `None` before it is enough.
    pub fn gain(&self) -> Option<Gain> {
        let ((from, to), (first, last)) = self.moved.zip(self.ended).filter(|_| self.is_enough())?;
        let per_second = (to.level - from.level) / (to.at - from.at);
        let pieces = last.done - first.done;
        let per_piece = per_second * (last.at - first.at) / pieces as f64;
        let uncertainty = 1.0 / f64::from(self.moves);
        Some(Gain { per_second, per_piece, uncertainty, span: to.at - from.at, pieces })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { settle: 0.2, span: 1.2, moves: 10 };

    /// Looks every `step` seconds at a device of `watts` whose counter moves every `tick` seconds, and which does a piece
    /// every `piece` seconds. Before `ramp` it takes nothing.
    fn watched(watts: f64, tick: f64, piece: f64, step: f64, ramp: f64) -> Meter {
        let mut meter = Meter::new(PATIENCE);
        for look in 0..20_000 {
            let at = f64::from(look) * step;
            let moved = (at / tick + 1e-9).floor() * tick;
            let level = 5_000.0 + watts * (moved - ramp).max(0.0);
            meter.take(Look { at, level, done: ((at + 1e-9) / piece).floor() as u64 });
            if meter.is_enough() {
                break;
            }
        }
        meter
    }

    #[test]
    fn the_gain_for_a_piece_is_power_times_its_time() {
        let gain = watched(350.0, 0.1, 0.000_5, 0.003, 0.15).gain().unwrap();
        assert!((gain.per_second / 350.0 - 1.0).abs() < 0.004, "{gain:?}");
        assert!((gain.per_piece / 0.175 - 1.0).abs() < 0.01, "{gain:?}");
        assert!((gain.uncertainty - 1.0 / 12.0).abs() < 1e-12, "{gain:?}");
        assert!((1.199..1.22).contains(&gain.span), "{gain:?}");
    }

    #[test]
    fn pieces_longer_than_the_counters_step_are_waited_for() {
        let gain = watched(200.0, 0.1, 2.5, 0.003, 0.0).gain().unwrap();
        assert_eq!(gain.pieces, 1);
        assert!((gain.per_piece / 500.0 - 1.0).abs() < 0.01, "{gain:?}");
        assert!(gain.uncertainty < 0.03, "{gain:?}");
    }

    #[test]
    fn a_slow_counter_needs_its_moves_and_a_fast_one_its_time() {
        assert!(watched(200.0, 0.5, 0.01, 0.003, 0.0).gain().unwrap().span > 4.9);
        assert!(watched(200.0, 0.01, 0.01, 0.003, 0.0).gain().unwrap().span > 1.19);
    }

    #[test]
    fn without_moves_or_without_pieces_there_is_no_gain() {
        assert_eq!(watched(0.0, 0.1, 0.01, 0.003, 0.0).gain(), None);
        assert_eq!(watched(200.0, 0.1, 1e9, 0.003, 0.0).gain(), None);
        assert_eq!(Meter::new(PATIENCE).gain(), None);
    }
}
