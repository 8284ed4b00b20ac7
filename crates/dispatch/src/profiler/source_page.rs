//! Reads what `ncu --csv --page source --print-source sass` writes: for each profiled launch a head that names the kernel,
//! the names of the columns, and a row for each machine instruction.

use crate::model::Counters;

/// A machine instruction of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionRow {
    /// The address in the device's memory.
    pub address: u64,
    /// What was counted, by the names of the vocabulary, without zeros.
    pub counters: Counters,
}

/// How the first cell of a line begins that is the head of a launch.
const HEADS: [&str; 2] = ["Kernel Name", "Function Name"];

/// Names of the column of addresses; versions differ.
const ADDRESSES: [&str; 2] = ["Address", "# Address"];

/// Counters that each instruction has, and the columns with them.
const OF_ALL: [(&str, &str); 3] = [
    ("inst_executed", "Instructions Executed"),
    ("thread_inst_executed", "Thread Instructions Executed"),
    ("divergent_branch", "Divergent Branches"),
];

/// Counters of accesses to memory: the operation, the counter, and the column.
const OF_OPERATIONS: [(&str, &str, &str); 4] = [
    ("LDG", "gld_sectors", "L2 Theoretical Sectors Global"),
    ("STG", "gst_sectors", "L2 Theoretical Sectors Global"),
    ("LDS", "shared_ld_bank_conflicts", "L1 Wavefronts Shared Excessive"),
    ("STS", "shared_st_bank_conflicts", "L1 Wavefronts Shared Excessive"),
];

/// Returns the instructions of each launch, in the order of the page. What is no table is passed over.
pub fn read(text: &str) -> Vec<Vec<InstructionRow>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    let mut launches: Vec<Vec<InstructionRow>> = Vec::new();
    let mut titles: Vec<String> = Vec::new();
    for record in reader.records().map_while(Result::ok) {
        let first = record.get(0).unwrap_or_default();
        if HEADS.contains(&first) {
            // A newer version writes both heads of one launch, one after the other.
            if !titles.is_empty() || launches.is_empty() {
                launches.push(Vec::new());
            }
            titles.clear();
        } else if record.iter().any(|cell| ADDRESSES.contains(&cell)) {
            titles = record.iter().map(str::to_owned).collect();
            if launches.is_empty() {
                launches.push(Vec::new());
            }
        } else if let (Some(launch), Some(row)) = (launches.last_mut(), row(&titles, &record)) {
            launch.push(row);
        }
    }
    launches
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

/// Parses a number such as `16,744,448` or `25.02`, without the instances of a metric that follow in brackets.
pub(super) fn number(text: &str) -> Option<f64> {
    let first = text.split_whitespace().next()?;
    let value: f64 = first.replace(',', "").parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of columns that a version of 2022 wrote without those of stalls, and rows in their form.
    const PAGE: &str = include_str!("source_page.csv");

    fn count(row: &InstructionRow, name: &str) -> Option<f64> {
        row.counters.get(name)
    }

    #[test]
    fn an_instruction_has_its_counts_and_an_access_those_of_its_kind() {
        let text = format!("==PROF== Disconnected\n\"Kernel Name\",\"void k<(bool)1>(float *)\",\n{PAGE}");
        let launches = read(&text);
        let [rows] = launches.as_slice() else { panic!("{launches:?}") };
        assert_eq!(rows.iter().map(|row| row.address & 0xff).collect::<Vec<_>>(), [0x00, 0x10, 0x20, 0x30]);
        assert_eq!(
            (count(&rows[0], "inst_executed"), count(&rows[0], "thread_inst_executed")),
            (Some(512.0), Some(16_384.0))
        );
        assert_eq!((count(&rows[1], "inst_executed"), count(&rows[1], "gld_sectors")), (Some(3584.0), Some(14_528.0)));
        assert_eq!(count(&rows[2], "shared_st_bank_conflicts"), Some(7264.0));
        // Sectors of a reduction are neither of loads nor of stores.
        assert_eq!(rows[3].counters.0.len(), 2, "{:?}", rows[3]);
    }

    #[test]
    fn launches_are_told_apart_by_their_heads() {
        let one = format!("\"Kernel Name\",\"a\"\n{PAGE}");
        let newer = one.replace("\"Kernel Name\",\"a\"\n", "\"File Path\",\"\"\n\"Function Name\",\"b\"\n");
        let both = one.replace("\"Kernel Name\",\"a\"\n", "\"Kernel Name\",\"a\"\n\"Function Name\",\"a\"\n");
        let lengths = |text: &str| read(text).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&format!("{one}{one}")), [4, 4]);
        assert_eq!(lengths(&format!("{newer}{both}{one}")), [4, 4, 4]);
        assert_eq!(lengths(PAGE), [4]);
        assert_eq!(lengths("==ERROR== nothing\n"), [0; 0]);
        assert_eq!(lengths(""), [0; 0]);
    }

    #[test]
    fn a_page_cut_anywhere_has_the_instructions_before_the_cut() {
        let whole = format!("\"Kernel Name\",\"a\"\n{PAGE}");
        let all = read(&whole).remove(0);
        for end in 0..whole.len() {
            let rows = read(&whole[..end]).first().map_or(0, Vec::len);
            assert!(rows <= all.len(), "cut at {end}");
            if let Some(before) = rows.checked_sub(2) {
                assert_eq!(read(&whole[..end])[0][before], all[before], "cut at {end}");
            }
        }
    }
}
