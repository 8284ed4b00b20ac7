//! Rates of a counter that is updated only now and then, such as an energy counter: its gain per second and per piece
//! of equal work.
//!
//! Neither the counter nor the work can be stopped at a chosen moment, so two rates are measured: the counter's, from
//! one of its updates to a later one, and the work's, from the end of one piece to the end of a later one. Their
//! quotient is the gain per piece. The uncertainty is one counter update.

/// Counter and work at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub at: f64,
    pub level: f64,
    /// Number of finished pieces.
    pub done: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterLimits {
    /// Seconds to ignore at the start, until the device is in a steady state.
    pub settle: f64,
    /// Minimum time from the first update to the last, in seconds.
    pub span: f64,
    pub moves: u32,
}

#[derive(Debug)]
pub struct Meter {
    limits: MeterLimits,
    last: Option<Look>,
    /// Readings at the first and the last update.
    moved: Option<(Look, Look)>,
    moves: u32,
    /// Readings at the first piece that ended after the settling time, and at the last.
    ended: Option<(Look, Look)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    pub per_second: f64,
    pub per_piece: f64,
    /// Relative uncertainty of both gains: one counter update.
    pub uncertainty: f64,
    /// Duration of the measurement, in seconds.
    pub span: f64,
    pub pieces: u64,
}

impl Meter {
    pub const fn new(limits: MeterLimits) -> Self {
        Self { limits, last: None, moved: None, moves: 0, ended: None }
    }

    /// Adds a reading; readings must be in order of time.
    pub fn take(&mut self, look: Look) {
        let Some(last) = self.last.replace(look).filter(|_| look.at >= self.limits.settle) else { return };
        if look.level > last.level {
            self.moves += u32::from(self.moved.is_some());
            self.moved = Some((self.moved.map_or(look, |(first, _)| first), look));
        }
        if look.done > last.done {
            self.ended = Some((self.ended.map_or(look, |(first, _)| first), look));
        }
    }

    pub fn is_enough(&self) -> bool {
        let span = self.moved.map_or(0.0, |(first, last)| last.at - first.at);
        let has_pieces = self.ended.is_some_and(|(first, last)| last.done > first.done);
        self.moves >= self.limits.moves && span >= self.limits.span && has_pieces
    }

    pub const fn moves(&self) -> u32 {
        self.moves
    }

    /// Gains; `None` until there are enough readings.
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

    const LIMITS: MeterLimits = MeterLimits { settle: 0.2, span: 1.2, moves: 10 };

    /// Readings every `step` seconds of a device that draws `watts`. Its counter is updated every `tick` seconds, a
    /// piece takes `piece` seconds, and no energy is used before `ramp`.
    fn watched(watts: f64, tick: f64, piece: f64, step: f64, ramp: f64) -> Meter {
        let mut meter = Meter::new(LIMITS);
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
        assert_eq!(Meter::new(LIMITS).gain(), None);
    }
}
