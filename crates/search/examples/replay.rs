//! Compares strategies on measured spaces: `replay STRATEGIES SEEDS FILE[:OBJECTIVE]|made:KIND[:SPACES]...`
//!
//! `FIRST=N` sets the first seed; `PARALLEL=N` evaluates that many points at once. With `UNSCORED=1`, a search ends
//! after 5 % of the space and its score is meaningless; `SHARE=0.02` changes that to 2 %.

use std::path::Path;
use std::time::Instant;

use search::compare::Comparison;
use search::format::read_measured;
use search::made::Kind;
use search::replay::Measured;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [strategies, seeds, files @ ..] = arguments.as_slice() else {
        return Err("replay STRATEGIES SEEDS FILE[:OBJECTIVE]|made:KIND[:SPACES]...".into());
    };
    let number = |name: &str, default: u64| -> u64 {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (first, parallel) = (number("FIRST", 0), number("PARALLEL", 8) as usize);
    let seeds: u64 = seeds.parse()?;
    for file in files {
        let (path, rest) = file.split_once(':').map_or((file.as_str(), None), |(path, rest)| (path, Some(rest)));
        let spaces: Vec<(String, Measured)> = if path == "made" {
            let (kind, count) = rest.and_then(|rest| rest.split_once(':')).unwrap_or((rest.unwrap_or("all"), "1"));
            let count: u64 = count.parse()?;
            let chosen = Kind::ALL.into_iter().filter(|known| kind == "all" || format!("{known:?}") == kind);
            chosen.flat_map(|kind| (0..count).map(move |seed| (format!("{kind:?} {seed}"), kind.make(seed)))).collect()
        } else {
            vec![(rest.unwrap_or(path).to_owned(), read_measured(Path::new(path), rest)?)]
        };
        for (name, measured) in &spaces {
            for strategy in strategies.split(',') {
                report(name, measured, strategy, first..first + seeds, parallel)?;
            }
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example")]
fn report(
    name: &str,
    measured: &Measured,
    strategy: &str,
    seeds: std::ops::Range<u64>,
    parallel: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let share: f64 = std::env::var("SHARE").ok().map_or(Ok(0.05), |share| share.parse())?;
    let budget = (measured.space.len() as f64 * share) as u64;
    let scored = std::env::var_os("UNSCORED").is_none();
    let comparison = Comparison::new(measured, budget, parallel, scored).ok_or("everything failed")?;
    let row = comparison.run(strategy, seeds).ok_or("no such strategy")?;
    let missed: Vec<String> = row.missed.iter().map(|missed| format!("{missed:.3}")).collect();
    println!(
        "{strategy:10} {name:16} {:3} of {:6} near: {:3} of {} searches; half after {:?} of {budget}; score {:.3}; {:.0} s; {}",
        comparison.near(),
        measured.space.len(),
        row.near.len(),
        row.searches,
        row.half(),
        row.score,
        started.elapsed().as_secs_f64(),
        missed.join(" "),
    );
    Ok(())
}
