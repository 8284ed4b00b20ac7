//! Parser for compute-sanitizer's output.
//!
//! Every line begins with `=========`. A finding has a headline (`Invalid __global__ write of size 4 bytes`) and
//! indented lines below it. The host call stack after them belongs to this program and is dropped.

const MARK: &str = "=========";

/// Detail lines kept per finding: place, thread, address, nearest allocation.
const MOST_DETAILS: usize = 4;

/// Findings of one process in order, each on one line.
pub fn read(log: &str) -> Vec<String> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut is_open = false;
    for line in log.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let (text, is_detail) = (line.trim(), line.starts_with("    "));
        if !is_detail {
            is_open = !text.is_empty() && !is_frame(text);
            if is_open {
                found.push(vec![text]);
            }
        } else if let Some(finding) = found.last_mut().filter(|_| is_open) {
            is_open = !text.starts_with("Saved host backtrace") && finding.len() <= MOST_DETAILS;
            if is_open {
                finding.push(text);
            }
        }
    }
    // A headline without details is about the whole program, e.g. `ERROR SUMMARY: 1 error`.
    found.into_iter().filter(|finding| finding.len() > 1).map(|finding| finding.join(" ")).collect()
}

fn is_frame(text: &str) -> bool {
    text == "COMPUTE-SANITIZER" || text.contains("SUMMARY:")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of compute-sanitizer 2025.3.
    const LOG: &str = "\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at past_the_end(const int *, int *, unsigned int)+0x90 in exploits.cu:12
=========     by thread (255,0,0) in block (3,0,0)
=========     Access at 0x7f1c5da00fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f1c5da00000 of size 4000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x3344e5] in libcuda.so.1
=========
========= Invalid __shared__ read of size 8 bytes
=========     at other(float *)+0x10
=========     by thread (0,0,0) in block (0,0,0)
=========
========= Program hit nothing else
========= ERROR SUMMARY: 2 errors
";

    #[test]
    fn every_finding_is_one_line_without_the_call_stack_of_the_host() {
        let expected = [
            "Invalid __global__ write of size 4 bytes at past_the_end(const int *, int *, unsigned int)+0x90 in \
             exploits.cu:12 by thread (255,0,0) in block (3,0,0) Access at 0x7f1c5da00fa0 is out of bounds and is 1 \
             bytes after the nearest allocation at 0x7f1c5da00000 of size 4000 bytes",
            "Invalid __shared__ read of size 8 bytes at other(float *)+0x10 by thread (0,0,0) in block (0,0,0)",
        ];
        assert_eq!(read(LOG), expected);
    }

    #[test]
    fn a_log_without_findings_or_of_another_program_has_none() {
        assert!(read("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n").is_empty());
        assert!(read("Invalid __global__ write\n    at x\n").is_empty());
        assert!(read("").is_empty());
    }
}
