//! `runner fidelity`: compares the simulator's counters with the hardware's. Needs no device.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cli::FidelityArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_out;
use runner_results::analyse::{self, Cause};
use runner_results::journal::{self, RECORDS_FILE};
use runner_types::{BackendKind, Records};

const CAUSES: &str = "reports/fidelity.toml";

/// Content of the causes file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Causes {
    #[serde(default)]
    cause: Vec<Cause>,
}

/// Succeeds even if counters differ: people judge the differences.
pub fn run(args: &FidelityArgs, console: &mut Console) -> Result<Exit, Failure> {
    let path = args.causes.as_deref().unwrap_or(Path::new(CAUSES));
    let causes = read_causes(path, args.causes.is_some())?;
    let pairs = pairs(&args.records)?;
    let compared: Vec<_> = pairs.iter().map(|(sim, gpu)| analyse::fidelity(sim, gpu, &causes)).collect();
    let page = runner_report::fidelity(&compared, &causes).map_err(Failure::environment)?;
    for cause in analyse::idle_causes(&compared, &causes) {
        console.say(&format!("warning: {}: this cause explains no difference: \"{}\"", path.display(), cause.because));
    }
    match &args.out {
        Some(path) => {
            write_out(path, &page)?;
            console.say(&format!("wrote {}", path.display()));
        }
        None => console.print(&page)?,
    }
    Ok(Exit::Success)
}

/// Reads the causes. The default file may be missing; one named by the user must exist.
fn read_causes(path: &Path, is_asked_for: bool) -> Result<Vec<Cause>, Failure> {
    let fault = |why: String| Failure::usage(format!("--causes {}: {why}", path.display()));
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str::<Causes>(&text).map(|causes| causes.cause).map_err(|e| fault(e.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_asked_for => Ok(Vec::new()),
        Err(error) => Err(fault(format!("{error}; name a file of `[[cause]]` tables, or leave the option out"))),
    }
}

/// Pairs each experiment's simulated records with the hardware's, in command-line order.
fn pairs(paths: &[PathBuf]) -> Result<Vec<(Records, Records)>, Failure> {
    let mut sides: Vec<(String, [Option<Records>; 2])> = Vec::new();
    for path in paths {
        let file = if path.is_dir() { path.join(RECORDS_FILE) } else { path.clone() };
        if !file.exists() {
            return Err(Failure::usage(format!("{} does not exist", file.display())));
        }
        let records = journal::read_records(&file).map_err(Failure::environment)?;
        let side = usize::from(records.header.backend != BackendKind::Sim);
        let name = records.header.experiment.clone();
        if side == 1 && records.cases.iter().all(|case| case.counters.is_none()) {
            let hint = format!("count them with `runner profile {} --sizes sim`", records.header.manifest_path);
            return Err(Failure::usage(format!("{} has no hardware counters; {hint}", path.display())));
        }
        let place = sides.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            sides.push((name.clone(), [None, None]));
            sides.len() - 1
        });
        if sides[place].1[side].replace(records).is_some() {
            let what = ["simulator", "hardware"][side];
            return Err(Failure::usage(format!(
                "{} is a second folder of `{name}` with {what} counters: name only one",
                path.display()
            )));
        }
    }
    sides.into_iter().map(|(name, sides)| whole(&name, sides)).collect()
}

fn whole(name: &str, sides: [Option<Records>; 2]) -> Result<(Records, Records), Failure> {
    match sides {
        [Some(simulated), Some(hardware)] => Ok((simulated, hardware)),
        [Some(_), None] => Err(Failure::usage(format!(
            "`{name}` has no hardware counters: also name the folder that `runner profile --sizes sim` wrote"
        ))),
        _ => Err(Failure::usage(format!(
            "`{name}` has no simulator counters: also name the folder that `runner run --backend sim` wrote"
        ))),
    }
}
