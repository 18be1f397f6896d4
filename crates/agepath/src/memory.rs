//! How much memory may still be used, so that what does not fit is refused by name before it is allocated.

use std::fs::read_to_string;

/// Where the system does not say how much memory is free.
const ASSUMED: u64 = 8 << 30;
/// Bytes of a page of memory, as the kernel counts them in `statm` on the machines this is for.
const PAGE: u64 = 4096;

/// Bytes that are free, in the machine and below the limit on this process.
pub(crate) fn available() -> u64 {
    let free = read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemAvailable:"));
    let limit = read_to_string("/proc/self/limits").ok().and_then(|text| address_space(&text));
    let used = read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let below = limit.map(|limit| limit.saturating_sub(used.unwrap_or(0) * PAGE));
    free.unwrap_or(ASSUMED).min(below.unwrap_or(u64::MAX))
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|k| k << 10)
}

/// The soft limit of `ulimit -v`; none if there is none.
fn address_space(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(kilobytes("MemFree: 1 kB\nMemAvailable:    2048 kB\n", "MemAvailable:"), Some(2 << 20));
        let head = "Limit                     Soft Limit           Hard Limit           Units\n";
        let limited = format!("{head}Max address space         512000000            unlimited            bytes\n");
        assert_eq!(address_space(&limited), Some(512_000_000));
        assert_eq!(address_space(&limited.replace("512000000", "unlimited")), None);
        assert!(available() > 0);
    }
}
