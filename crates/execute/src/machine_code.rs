//! Derives counts of machine code from the simulator's counts of the PTX, without a GPU.
//!
//! What cannot be derived has no count, since a comparison must not mistake a PTX count for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;

use sass::{Access, Executed, Fate, Listing, PtxCount, Simulated};

use runner_files::regular;
use runner_files::sealed;
use runner_types::{
    BodyPlan, CaseJob, CompileKey, CompileUnit, Compiled, CounterName, Counters, LineCounts, ListedCode, Note,
    VOCABULARY,
};

/// Machine code of the units of a group, each read once.
#[derive(Debug, Default)]
pub struct MachineCode {
    known: HashMap<CompileKey, Result<Rc<Simulated>, String>>,
}

/// Machine code counts of a case.
#[derive(Debug, Default)]
pub struct Derived {
    /// Counters that could be derived for all of its kernels.
    pub counters: Counters,
    /// Warp instructions per source line, by path and line.
    pub lines: Vec<((String, u32), Counters)>,
    /// Notes on what could not be derived.
    pub notes: Vec<Note>,
}

impl MachineCode {
    /// Derives the counts of a case from the counts per line of its PTX.
    pub fn derive(&mut self, job: &CaseJob, lines: &[LineCounts]) -> Derived {
        let lack = |why: String| Derived { notes: vec![Note::NoMachineCode { why }], ..Derived::default() };
        let BodyPlan::Launches(launches) = &job.body else { return Derived::default() };
        if launches.iter().any(|launch| launch.compiled.as_ref().is_none_or(|compiled| compiled.listing.is_none())) {
            return Derived::default();
        }
        let mut units: Vec<&Compiled> = Vec::new();
        for compiled in launches.iter().filter_map(|launch| launch.compiled.as_ref()) {
            if !units.iter().any(|known| known.key == compiled.key) {
                units.push(compiled);
            }
        }
        let mut counting = Counting::default();
        let mut counted: BTreeSet<&str> = BTreeSet::new();
        let launched: Vec<&CompileUnit> = launches.iter().map(|launch| &launch.unit).collect();
        for compiled in units {
            let unit = match self.read(compiled) {
                Ok(unit) => unit,
                Err(why) => return lack(why),
            };
            let mut names: BTreeSet<&str> = unit.listings().iter().map(|listing| listing.name.as_str()).collect();
            // For kernels launched by the host, the simulator uses the manifest's names.
            let listed = compiled.kernels.iter().filter(|(_, mangled)| names.contains(mangled.as_str()));
            let plain: Vec<&str> = listed.map(|(name, _)| name.as_str()).collect();
            names.extend(plain);
            let of_unit: Vec<&LineCounts> = lines.iter().filter(|line| names.contains(line.kernel.as_str())).collect();
            for kernel in of_unit.iter().map(|line| line.kernel.as_str()).collect::<BTreeSet<_>>() {
                if !counted.insert(kernel) {
                    return lack(format!("two sources of the case have a kernel `{kernel}`"));
                }
            }
            counting.add(&unit, &of_unit, &launched);
        }
        if let Some(other) = lines.iter().find(|line| !counted.contains(line.kernel.as_str())) {
            return lack(format!("the machine code has no kernel `{}`", other.kernel));
        }
        counting.finish()
    }

    /// Machine code of a unit, or why it is unknown.
    fn read(&mut self, compiled: &Compiled) -> Result<Rc<Simulated>, String> {
        let read = || {
            let listings = read_listings(compiled)?;
            let ptx = regular::read_data(&compiled.code, regular::LONGEST_DATA)
                .map_err(|error| unreadable(&compiled.code, &error.to_string()))?;
            Ok(Rc::new(Simulated::new(listings, String::from_utf8_lossy(&ptx).into_owned())))
        };
        self.known.entry(compiled.key.clone()).or_insert_with(read).clone()
    }
}

/// Reads the machine instructions of a unit's kernels. Fails with the reason if they are unknown.
pub fn read_listings(compiled: &Compiled) -> Result<Vec<Listing>, String> {
    let path = match &compiled.listing {
        Some(ListedCode::File(path)) => path,
        Some(ListedCode::Unknown(why)) => return Err(why.clone()),
        None => return Err("no machine code was generated from the PTX".to_owned()),
    };
    let listings = sealed::read(path).and_then(|json| serde_json::from_slice(&json).ok());
    listings.ok_or_else(|| unreadable(path, "it was changed or removed in the meantime; run again"))
}

fn unreadable(path: &Path, why: &str) -> String {
    format!("cannot read {}: {why}", path.display())
}

/// Sums the counts of a case's units.
#[derive(Default)]
struct Counting {
    counts: BTreeMap<&'static str, u64>,
    lines: BTreeMap<(String, u32), BTreeMap<&'static str, u64>>,
    /// Executed kernels.
    kernels: Vec<String>,
    /// Kinds of accesses about which something is unknown.
    unknown: BTreeSet<Access>,
    /// Counters of [`OPERATIONS`] to which an uncounted instruction may contribute.
    unknown_operations: BTreeSet<&'static str>,
    notes: Vec<Note>,
}

/// Counters for one kind of access.
struct Kind {
    access: Access,
    requests: &'static str,
    others: &'static [&'static str],
}

const KINDS: [Kind; 6] = [
    Kind {
        access: Access::GlobalLoad,
        requests: "gld_requests",
        others: &["gld_sectors", "gld_transactions_128", "gld_requested_bytes"],
    },
    Kind {
        access: Access::GlobalStore,
        requests: "gst_requests",
        others: &["gst_sectors", "gst_transactions_128", "gst_requested_bytes"],
    },
    Kind { access: Access::GlobalAtomic, requests: "global_atomics", others: &[] },
    Kind { access: Access::SharedLoad, requests: "shared_ld_requests", others: &["shared_ld_bank_conflicts"] },
    Kind { access: Access::SharedStore, requests: "shared_st_requests", others: &["shared_st_bank_conflicts"] },
    Kind { access: Access::SharedAtomic, requests: "shared_atomics", others: &[] },
];

/// Opcodes that have their own counter.
const OPERATIONS: [(&str, &str); 4] = [
    ("LDL", "local_ld_requests"),
    ("STL", "local_st_requests"),
    ("BAR", "barriers"),
    // Arrival at a cluster barrier.
    ("UCGABAR_ARV", "barriers"),
];

impl Counting {
    fn add(&mut self, unit: &Simulated, lines: &[&LineCounts], launched: &[&CompileUnit]) {
        let mut own: HashMap<&str, bool> = HashMap::new();
        let kernels: BTreeSet<&str> = lines.iter().map(|line| line.kernel.as_str()).collect();
        self.kernels.extend(kernels.into_iter().map(str::to_owned));
        let counted = count_ptx(lines);
        let executed = Executed::derive(unit, &counted);
        self.add_accesses(&executed, &counted, lines);
        let line_of = |line: u32| unit.lines.get(&line);
        let is_counted = |line: u32| line_of(line).is_some_and(|line| counted.contains_key(line));
        let is_executed = |listing: &Listing| {
            listing.is_added() || listing.instructions.iter().any(|one| one.ptx_line.is_some_and(is_counted))
        };
        for (listing, each) in executed.functions.iter().filter(|(listing, _)| is_executed(listing)) {
            let unknown = each.iter().filter(|count| count.is_none()).count() as u64;
            if unknown > 0 {
                let (kernel, of) = (listing.name.clone(), each.len() as u64);
                self.notes.push(Note::Underived { kernel, unknown, of });
            }
            for (instruction, count) in listing.instructions.iter().zip(each) {
                let operation = OPERATIONS.iter().find(|(operation, _)| *operation == instruction.operation());
                let counter = operation.map(|(_, counter)| *counter);
                let executed = count.unwrap_or(0);
                // A warp whose lanes are all predicated off does not arrive at a barrier.
                if count.is_none() || executed > 0 && !instruction.predicate.is_empty() && counter == Some("barriers") {
                    self.unknown_operations.extend(counter);
                }
                if executed == 0 {
                    continue;
                }
                *self.counts.entry("inst_executed").or_default() += executed;
                if let Some(counter) = counter {
                    *self.counts.entry(counter).or_default() += executed;
                }
                for pipe in instruction.pipes() {
                    *self.counts.entry(pipe.counter()).or_default() += executed;
                }
                // The innermost inlined call in one of the user's own files.
                let place = instruction.source.iter().find_map(|place| {
                    let path = listing.files.get(place.file)?.as_str();
                    let is_own = || launched.iter().any(|unit| unit.find_own(path).is_some());
                    own.entry(path).or_insert_with(is_own).then_some((path.to_owned(), place.line))
                });
                if let Some(place) = place {
                    let of_line = self.lines.entry(place).or_default();
                    for counter in
                        ["inst_executed"].into_iter().chain(instruction.pipes().iter().map(|pipe| pipe.counter()))
                    {
                        *of_line.entry(counter).or_default() += executed;
                    }
                }
            }
        }
    }

    /// Adds the machine code's counts for the accesses that were counted per PTX line.
    fn add_accesses(&mut self, executed: &Executed<'_>, counted: &BTreeMap<u32, PtxCount>, lines: &[&LineCounts]) {
        let mut made: BTreeMap<(u32, Access), (Counters, [u64; 2])> = BTreeMap::new();
        for line in lines {
            for Kind { access, requests, .. } in KINDS.iter().filter(|kind| line.counters.get(kind.requests).is_some())
            {
                let (counters, wide) = made.entry((line.ptx_line, *access)).or_default();
                for (name, count) in &line.counters.0 {
                    *counters.0.entry(name.clone()).or_default() += count;
                }
                let more = line.wide[usize::from(*requests == "shared_st_requests")];
                wide.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
        let warps = |line: u32| counted.get(&line).map_or(0, |count| count.instructions);
        let fates = executed.find_accesses(&made.keys().copied().collect(), warps);
        for Kind { access, requests, others } in &KINDS {
            let of_kind = fates.lines.iter().filter(|((_, kind), _)| kind == access);
            if fates.unknown.contains(access) || of_kind.clone().any(|(_, fate)| *fate == Fate::Unknown) {
                self.unknown.insert(*access);
            }
            for (place, fate) in of_kind {
                let (counters, wide) = &made[place];
                let of_ptx = |name: &str| counters.get(name).unwrap_or(0.0) as u64;
                for name in std::iter::once(requests).chain(*others) {
                    let count = match (fate, *name) {
                        (Fate::Widened(bytes), "shared_ld_bank_conflicts" | "shared_st_bank_conflicts") => {
                            wide[usize::from(*bytes > 8)]
                        }
                        (Fate::Kept | Fate::Widened(_), name) => of_ptx(name),
                        (Fate::Merged, "gld_requested_bytes" | "gst_requested_bytes") => of_ptx(name),
                        (Fate::Merged | Fate::LeftOut | Fate::Unknown, _) => 0,
                    };
                    *self.counts.entry(name).or_default() += count;
                }
            }
        }
    }

    fn finish(mut self) -> Derived {
        let is_complete = !self.notes.iter().any(|note| matches!(note, Note::Underived { .. }));
        let unknown = KINDS.iter().filter(|kind| self.unknown.contains(&kind.access));
        let unknown: BTreeSet<&str> =
            unknown.flat_map(|kind| kind.others.iter().chain([&kind.requests])).copied().collect();
        // If an instruction has no count, another note gives the reason.
        let barriers = self.unknown_operations.contains("barriers") && is_complete;
        if !unknown.is_empty() || barriers {
            let unknown = unknown.iter().chain(barriers.then_some(&"barriers"));
            let counters = unknown.map(|name| (*name).to_owned()).collect();
            self.notes.push(Note::UnderivedAccesses { kernel: self.kernels.join(", "), counters });
        }
        let is_of_access = |name: &str| KINDS.iter().any(|kind| kind.requests == name || kind.others.contains(&name));
        let is_of_operation = |name: &str| OPERATIONS.iter().any(|(_, counter)| *counter == name);
        let is_known = |name: &str| {
            let is_apart = is_of_access(name) || is_of_operation(name);
            !unknown.contains(name) && !self.unknown_operations.contains(name) && (is_complete || is_apart)
        };
        let derived = VOCABULARY.iter().filter(|info| info.is_derived() && is_known(info.name));
        let count = |name: &'static str| self.counts.get(name).copied().unwrap_or(0) as f64;
        let counters = Counters(derived.map(|info| (CounterName::from(info.name), count(info.name))).collect());
        let of_line = |counts: BTreeMap<&'static str, u64>| {
            Counters(counts.into_iter().map(|(name, count)| (CounterName::from(name), count as f64)).collect())
        };
        let lines =
            self.lines.into_iter().filter(|_| is_complete).map(|(place, counts)| (place, of_line(counts))).collect();
        Derived { counters, lines, notes: self.notes }
    }
}

/// Whether the machine code of a case is known, so that its counts can be derived.
pub fn is_listed(job: &CaseJob) -> bool {
    let BodyPlan::Launches(launches) = &job.body else { return false };
    let listing = |compiled: &Compiled| matches!(compiled.listing, Some(ListedCode::File(_)));
    launches.iter().all(|launch| launch.compiled.as_ref().is_some_and(listing))
}

/// Counts per PTX line.
pub fn count_ptx(lines: &[&LineCounts]) -> BTreeMap<u32, PtxCount> {
    let mut counts: BTreeMap<u32, PtxCount> = BTreeMap::new();
    for line in lines {
        let known = counts.entry(line.ptx_line).or_default();
        let count = |name| line.counters.get(name).unwrap_or(0.0) as u64;
        known.instructions += count("inst_executed");
        known.diverged += count("divergent_branch");
        known.rounds.extend(&line.rounds);
    }
    counts
}
