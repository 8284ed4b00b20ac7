//! Clamps times to the range of RFC 3339, whose years have four digits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Last second of the year 9999, as a Unix timestamp.
const LAST_SECOND: u64 = 253_402_300_799;

/// Clamps a time to the years 1970 to 9999. A machine's clock may be wrong, and RFC 3339 cannot write other years.
pub fn calendar_time(time: SystemTime) -> SystemTime {
    time.clamp(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(LAST_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_1970_or_after_9999_is_the_nearest_that_can_be_written() {
        let time = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(calendar_time(UNIX_EPOCH - Duration::from_secs(1)), UNIX_EPOCH);
        assert_eq!(calendar_time(time(1_700_000_000)), time(1_700_000_000));
        // `date -u -d @253402300799` is 9999-12-31 23:59:59.
        assert_eq!(calendar_time(time(253_402_300_800)), time(253_402_300_799));
    }
}
