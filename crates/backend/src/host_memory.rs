//! Limit of the host memory for the simulated device or the result of a reference function. The system kills a process
//! that touches more memory than there is, so a case that needs more is rejected first.

use std::fs;

use runner_lang::format::bytes;

/// Fraction of the available memory that may be used; inputs, expected values and shadow state need the rest.
const SHARE: (u64, u64) = (3, 4);

/// Bytes that always fit. Asking the system takes longer than filling them.
const SMALL: u64 = 1 << 20;

/// Fails if a number of bytes exceeds the limit.
pub fn check(needed: u64) -> Result<(), String> {
    if needed < SMALL {
        return Ok(());
    }
    match limit() {
        Some(limit) if needed > limit => {
            Err(format!("{}, but the host has memory for {}", bytes(needed), bytes(limit)))
        }
        _ => Ok(()),
    }
}

/// Bytes that this process may use now; `None` if the system does not say.
pub fn limit() -> Option<u64> {
    let machine = available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = group_left().unwrap_or(u64::MAX);
    Some(machine.min(group) / SHARE.1 * SHARE.0)
}

/// The machine's available memory, from the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Remaining memory of the process's control group.
fn group_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |name: &str| {
        let text = fs::read_to_string(format!("/sys/fs/cgroup{}/{name}", path.trim_end_matches('/'))).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_is_read_in_bytes() {
        let text = "MemTotal:       16318208 kB\nMemFree:         200 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(available(text), Some(1 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert!(limit().is_none_or(|bytes| bytes > 1 << 20));
    }
}
