//! Parser for the output of `ncu --csv --page source --print-source sass`. For each profiled launch it has a header
//! that names the kernel, the column names, and one row per machine instruction. Nsight Compute 2025.3 prints some
//! launches several times in a row.

use runner_types::Counters;

/// A machine instruction of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionRow {
    /// Address in device memory.
    pub address: u64,
    /// Non-zero counters under their vocabulary names.
    pub counters: Counters,
}

/// Instructions that the profiler prints for one launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Kernel name in the header; empty without a header.
    pub kernel: String,
    pub instructions: Vec<InstructionRow>,
}

/// First cell of a launch's header.
const HEADS: [&str; 2] = ["Kernel Name", "Function Name"];

/// Name of the address column, which differs between versions.
const ADDRESSES: [&str; 2] = ["Address", "# Address"];

/// Counters of every instruction, with their columns.
const OF_ALL: [(&str, &str); 3] = [
    ("inst_executed", "Instructions Executed"),
    ("thread_inst_executed", "Thread Instructions Executed"),
    ("divergent_branch", "Divergent Branches"),
];

/// Counters of memory accesses: opcode, counter, column.
const OF_OPERATIONS: [(&str, &str, &str); 4] = [
    ("LDG", "gld_sectors", "L2 Theoretical Sectors Global"),
    ("STG", "gst_sectors", "L2 Theoretical Sectors Global"),
    ("LDS", "shared_ld_bank_conflicts", "L1 Wavefronts Shared Excessive"),
    ("STS", "shared_st_bank_conflicts", "L1 Wavefronts Shared Excessive"),
];

/// Parses all pages in order, ignoring everything that is not a table.
pub fn read(text: &str) -> Vec<Page> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    let mut pages: Vec<Page> = Vec::new();
    let mut titles: Vec<String> = Vec::new();
    for record in reader.records().map_while(Result::ok) {
        let first = record.get(0).unwrap_or_default();
        if HEADS.contains(&first) {
            // Newer versions print both headers of a launch in succession.
            if !titles.is_empty() || pages.is_empty() {
                pages.push(Page { kernel: record.get(1).unwrap_or_default().to_owned(), ..Page::default() });
            }
            titles.clear();
        } else if record.iter().any(|cell| ADDRESSES.contains(&cell)) {
            titles = record.iter().map(str::to_owned).collect();
            if pages.is_empty() {
                pages.push(Page::default());
            }
        } else if let (Some(page), Some(row)) = (pages.last_mut(), row(&titles, &record)) {
            page.instructions.push(row);
        }
    }
    pages
}

/// Instructions of each launch, given the kernels of the launches in page order; `None` for launches whose page is
/// unknown.
pub fn assign(pages: Vec<Page>, kernels: &[&str]) -> Vec<Option<Vec<InstructionRow>>> {
    if pages.len() == kernels.len() {
        return pages.into_iter().map(|page| Some(page.instructions)).collect();
    }
    // Consecutive launches of one kernel have consecutive pages.
    let pages: Vec<&[Page]> = pages.chunk_by(|one, next| one.kernel == next.kernel).collect();
    let launches: Vec<&[&str]> = kernels.chunk_by(|one, next| one == next).collect();
    let names = launches.iter().map(|launches| launches[0]);
    if !pages.iter().map(|pages| pages[0].kernel.as_str()).eq(names) {
        return vec![None; kernels.len()];
    }
    pages.into_iter().zip(launches).flat_map(|(pages, launches)| assign_of_kernel(pages, launches.len())).collect()
}

/// Instructions of each of `launches` launches of one kernel, if every launch has the same number of pages and its
/// pages are identical.
fn assign_of_kernel(pages: &[Page], launches: usize) -> Vec<Option<Vec<InstructionRow>>> {
    let times = pages.len() / launches;
    let are_same = |pages: &[Page]| pages.iter().all(|page| *page == pages[0]);
    if times == 0 || !pages.len().is_multiple_of(launches) || !pages.chunks(times).all(are_same) {
        return vec![None; launches];
    }
    pages.chunks(times).map(|pages| Some(pages[0].instructions.clone())).collect()
}

fn row(titles: &[String], record: &csv::StringRecord) -> Option<InstructionRow> {
    let cell = |title: &str| record.get(titles.iter().position(|other| other == title)?).map(str::trim);
    let address = ADDRESSES.into_iter().find_map(cell)?;
    let address = u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
    let words = cell("Source").unwrap_or_default().split_whitespace();
    let operation = words.into_iter().find(|word| !word.starts_with('@')).unwrap_or_default();
    let operation = operation.split('.').next().unwrap_or_default();
    let of_operation = OF_OPERATIONS.into_iter().filter(|(name, ..)| *name == operation);
    let wanted = OF_ALL.into_iter().chain(of_operation.map(|(_, counter, title)| (counter, title)));
    let counted = wanted.filter_map(|(counter, title)| Some((counter.into(), number(cell(title)?)?)));
    let counters = Counters(counted.filter(|(_, count)| *count != 0.0).collect());
    Some(InstructionRow { address, counters })
}

/// Parses a number such as `16,744,448` or `25.02`, ignoring a metric's instances in brackets after it.
pub(super) fn number(text: &str) -> Option<f64> {
    let first = text.split_whitespace().next()?;
    let value: f64 = first.replace(',', "").parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Columns printed by a 2022 version, without the stall columns, and rows in the same format.
    const PAGE: &str = include_str!("source_page.csv");

    fn count(row: &InstructionRow, name: &str) -> Option<f64> {
        row.counters.get(name)
    }

    #[test]
    fn an_instruction_has_its_counts_and_an_access_those_of_its_kind() {
        let text = format!("==PROF== Disconnected\n\"Kernel Name\",\"void k<(bool)1>(float *)\",\n{PAGE}");
        let pages = read(&text);
        let [Page { kernel, instructions: rows }] = pages.as_slice() else { panic!("{pages:?}") };
        assert_eq!(kernel, "void k<(bool)1>(float *)");
        assert_eq!(rows.iter().map(|row| row.address & 0xff).collect::<Vec<_>>(), [0x00, 0x10, 0x20, 0x30]);
        assert_eq!(
            (count(&rows[0], "inst_executed"), count(&rows[0], "thread_inst_executed")),
            (Some(512.0), Some(16_384.0))
        );
        assert_eq!((count(&rows[1], "inst_executed"), count(&rows[1], "gld_sectors")), (Some(3584.0), Some(14_528.0)));
        assert_eq!(count(&rows[2], "shared_st_bank_conflicts"), Some(7264.0));
        // Sectors of a reduction count neither as loads nor as stores.
        assert_eq!(rows[3].counters.0.len(), 2, "{:?}", rows[3]);
    }

    #[test]
    fn launches_are_told_apart_by_their_heads() {
        let one = format!("\"Kernel Name\",\"a\"\n{PAGE}");
        let newer = one.replace("\"Kernel Name\",\"a\"\n", "\"File Path\",\"\"\n\"Function Name\",\"b\"\n");
        let both = one.replace("\"Kernel Name\",\"a\"\n", "\"Kernel Name\",\"a\"\n\"Function Name\",\"a\"\n");
        let lengths = |text: &str| read(text).iter().map(|page| page.instructions.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&format!("{one}{one}")), [4, 4]);
        assert_eq!(lengths(&format!("{newer}{both}{one}")), [4, 4, 4]);
        assert_eq!(lengths(PAGE), [4]);
        assert_eq!(lengths("==ERROR== nothing\n"), [0; 0]);
        assert_eq!(lengths(""), [0; 0]);
    }

    #[test]
    fn a_page_cut_anywhere_has_the_instructions_before_the_cut() {
        let whole = format!("\"Kernel Name\",\"a\"\n{PAGE}");
        let all = read(&whole).remove(0).instructions;
        for end in 0..whole.len() {
            let rows = read(&whole[..end]).first().map_or(0, |page| page.instructions.len());
            assert!(rows <= all.len(), "cut at {end}");
            if let Some(before) = rows.checked_sub(2) {
                assert_eq!(read(&whole[..end])[0].instructions[before], all[before], "cut at {end}");
            }
        }
    }

    /// Executions of each launch's first instruction, given the kernels and counts of the pages and the kernels of the
    /// launches.
    fn assigned(pages: &[(&str, &str)], kernels: &[&str]) -> Vec<Option<f64>> {
        let page = |(kernel, count): &(&str, &str)| {
            format!(
                "\"Kernel Name\",\"{kernel}\",\n\"Address\",\"Source\",\"Instructions Executed\"\n\"0x10\",\"EXIT\",\"{count}\"\n"
            )
        };
        let pages = read(&pages.iter().map(page).collect::<String>());
        let first = |rows: Vec<InstructionRow>| count(&rows[0], "inst_executed").unwrap();
        assign(pages, kernels).into_iter().map(|rows| rows.map(first)).collect()
    }

    #[test]
    fn a_launch_that_is_printed_twice_has_one_page() {
        // From a report of `copy`, in which the first two kernels and `grid_stride` are printed twice.
        let pages = [
            ("plain", "3120"),
            ("plain", "3120"),
            ("rest", "6"),
            ("rest", "6"),
            ("guarded", "3128"),
            ("grid_stride", "8448"),
            ("grid_stride", "8448"),
            ("grid_stride", "1"),
            ("grid_stride", "1"),
            ("unrolled", "8448"),
        ];
        let kernels = ["plain", "rest", "guarded", "grid_stride", "grid_stride", "unrolled"];
        let expected = [3120.0, 6.0, 3128.0, 8448.0, 1.0, 8448.0];
        assert_eq!(assigned(&pages, &kernels), expected.map(Some));
        // Launches with the same counts have the same pages.
        assert_eq!(assigned(&[("a", "2"); 6], &["a", "a", "a"]), [Some(2.0); 3]);
        assert_eq!(assigned(&[("a", "2"), ("a", "3")], &["a", "a"]), [Some(2.0), Some(3.0)]);
    }

    #[test]
    fn a_launch_whose_page_is_not_known_has_none_and_takes_none_from_others() {
        let pages = [("a", "1"), ("a", "2"), ("b", "3")];
        assert_eq!(assigned(&pages, &["a", "b"]), [None, Some(3.0)]);
        assert_eq!(
            assigned(&[("a", "1"), ("a", "1"), ("a", "2"), ("b", "3")], &["a", "a", "b"]),
            [None, None, Some(3.0)]
        );
        assert_eq!(assigned(&pages, &["a", "b", "c", "c"]), [None; 4]);
        assert_eq!(assigned(&[("a", "1"), ("b", "3")], &["a", "a", "b"]), [None, None, Some(3.0)]);
        assert_eq!(assigned(&[], &["a"]), [None]);
        assert_eq!(assigned(&pages, &[]), []);
    }
}
