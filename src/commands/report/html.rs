//! `runner report --html`: writes one HTML file for a report or a tree of reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::commands::compare::{read_failure, samples};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_file;
use crate::session::source_page_of;
use runner_compile::{self, Cache, Requirement, Toolkit};
use runner_files::project::Project;
use runner_plan::{self, PlanOptions};
use runner_process::programs::Programs;
use runner_report::html::{Companions, Page, SourceFile, html};
use runner_results::stored::{self, Source, Stored};
use runner_types::{BodyPlan, CaseJob, CompileUnit, Records};

const FILE: &str = "report.html";

/// Maximum number of groups to search for sources. A variant that runs in none of them has no source on the page.
const MOST_GROUPS: usize = 256;

pub fn run(dir: &Path, file: Option<&Path>, console: &mut Console) -> Result<Exit, Failure> {
    let found = stored::read(&Source::Path(dir.to_owned()), dir, &Programs::of_this_machine());
    let found = found.map_err(|error| read_failure(&error))?;
    for warning in found.iter().flat_map(|stored| &stored.warnings) {
        console.say(&format!("warning: {warning}"));
    }
    let file = file.map_or_else(|| dir.join(FILE), Path::to_owned);
    let besides: Vec<Companions> = found.iter().map(|stored| find_companions(stored, &file, console)).collect();
    let both = found.iter().zip(&besides);
    let pages: Vec<Page<'_>> =
        both.map(|(stored, beside)| Page { place: &stored.place, records: &stored.records, beside }).collect();
    let text = html(&pages).map_err(Failure::environment)?;
    write_file("--out", &file, &text)?;
    console.say(&format!("wrote {}", file.display()));
    Ok(Exit::Success)
}

/// Optional data next to the records, for a page at `file`. Warns about an unreadable journal.
fn find_companions(stored: &Stored, file: &Path, console: &mut Console) -> Companions {
    let dir = Path::new(&stored.place);
    Companions {
        samples: samples(stored, console),
        sources: sources(dir, &stored.records),
        pages: pages(dir, file, &stored.records),
    }
}

/// Pages that `show --source --html` wrote into the report's folder, by case ordinal.
fn pages(dir: &Path, file: &Path, records: &Records) -> BTreeMap<u64, String> {
    let found = records.cases.iter().filter_map(|record| {
        let page = Some(source_page_of(dir, &record.case.key)).filter(|page| page.is_file())?;
        let from_file = file.parent().and_then(|folder| page.strip_prefix(folder).ok()).map(Path::to_owned);
        let page = from_file.or_else(|| std::path::absolute(&page).ok())?;
        Some((record.case.ordinal, page.to_str()?.to_owned()))
    });
    found.collect()
}

/// Sources in the working tree that still match the hash in the records.
fn sources(dir: &Path, records: &Records) -> BTreeMap<String, Vec<SourceFile>> {
    let wanted: BTreeSet<&str> =
        records.cases.iter().filter_map(|record| record.hashes.as_ref()).map(|hashes| hashes.source.as_str()).collect();
    let toolkit = Cache::locate().ok().and_then(|cache| Toolkit::locate(Requirement::Pinned, &cache).ok());
    let headers = toolkit.map(|toolkit| toolkit.include_dirs).unwrap_or_default();
    let mut found = BTreeMap::new();
    let (project, cases) = cases(dir, records).unwrap_or_default();
    for case in cases {
        if let Some((hash, files)) =
            sources_of(&case, &project, &headers).filter(|(hash, _)| wanted.contains(hash.as_str()))
        {
            found.entry(hash).or_insert(files);
        }
    }
    found
}

/// One case of each variant, from the manifest that the records name, if the working tree still has it.
fn cases(dir: &Path, records: &Records) -> Option<(Project, Vec<CaseJob>)> {
    let header = &records.header;
    let absolute = std::path::absolute(dir).ok()?;
    // The report's own checkout takes precedence over the working directory's.
    let places = absolute.ancestors().map(|above| above.join(&header.manifest_path));
    let mut places = places.chain([PathBuf::from(&header.manifest_path)]);
    let path = places.find(|path| path.is_file())?;
    let manifest = runner_manifest::load(&path).ok()?;
    let device = Some(records.environment.device.clone());
    let plan =
        runner_plan::expand(&manifest, &PlanOptions { device, ..PlanOptions::for_backend(header.backend) }).ok()?;
    let mut missing: BTreeSet<&str> = header.variants.iter().map(String::as_str).collect();
    let mut cases = Vec::new();
    for index in 0..plan.group_count().min(MOST_GROUPS) {
        if missing.is_empty() {
            break;
        }
        let group = runner_plan::resolve(&manifest, &plan, index);
        cases.extend(group.job.cases.into_iter().filter(|case| missing.remove(case.case.key.variant.as_str())));
    }
    Some((manifest.project, cases))
}

/// Distinct files of a case's launches, with the hash used in the records; `None` for a case without sources.
fn sources_of(case: &CaseJob, project: &Project, headers: &[PathBuf]) -> Option<(String, Vec<SourceFile>)> {
    let units: Vec<&CompileUnit> = match &case.body {
        BodyPlan::Launches(launches) => launches.iter().map(|launch| &launch.unit).collect(),
        BodyPlan::Host(host) => vec![&host.unit],
        BodyPlan::Memcpy(_) | BodyPlan::Cpu(_) => return None,
    };
    let each: Vec<runner_compile::Sources> =
        units.into_iter().map(|unit| runner_compile::sources(unit, project, headers)).collect::<Option<_>>()?;
    let hashes: Vec<&str> = each.iter().map(|sources| sources.hash.as_str()).collect();
    let hash = runner_plan::source_hash(&hashes);
    let mut files: Vec<SourceFile> = Vec::new();
    for (name, text) in each.iter().flat_map(|sources| &sources.files) {
        let file = SourceFile { name: name.clone(), text: text.to_string() };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    Some((hash, files))
}
