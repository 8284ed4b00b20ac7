//! Settings of a job, merged from the command line, the project's `cluster.toml` and the user's.
//!
//! Each value is passed to the scheduler as an option on its own line. Only characters that are literal in such a line
//! are allowed, so no value can end its option.

use std::path::Path;

use toml::{Table, Value};

use super::settings::{Settings, size};
use runner_files::regular;

/// File name, both in the project and in the user's configuration folder.
pub const SETTINGS_FILE: &str = "cluster.toml";

/// Characters allowed in values besides letters and digits.
const PLAIN: &str = "_.,:;=+%@/&|!*()[]-";

/// Upper limit of `memory_factor` and `time_factor`.
const LARGEST_FACTOR: f64 = 16.0;

/// Settings that depend on how tasks ended. Only schedulers that this program calls support them.
const OF_QUEUES: [&str; 5] = ["queue", "memory_factor", "time_factor", "collect", "notify"];

const DEFAULTS: &str = "min_task_time = '10min'\nrequeues = 3\nwarning = '2min'";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// Reads a settings file; empty if the file does not exist.
pub fn read_layer(path: &Path) -> Result<Table, SettingsError> {
    let text = match regular::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Table::new()),
        Err(error) => return Err(SettingsError(format!("cannot read {}: {error}", path.display()))),
    };
    let faulty = |error| SettingsError(format!("{}: {error}", path.display()));
    toml::from_str::<Settings>(&text).map_err(faulty)?;
    toml::from_str(&text).map_err(faulty)
}

/// The settings that let a batch script run other programs: shell lines, environment modules, containers and free-form
/// scheduler options. `None` if there are none.
pub fn project_code(layer: &Table) -> Option<String> {
    let keys = ["setup", "modules", "extra", "image", "notify"];
    let has_code = |value: &&Value| value.as_array().is_none_or(|lines| !lines.is_empty());
    let line = |key: &&str| Some(format!("{key} = {}\n", layer.get(*key).filter(has_code)?));
    let collecting = layer.get("collect").and_then(|collect| collect.get("extra")).filter(has_code);
    let collecting = collecting.map(|extra| format!("collect.extra = {extra}\n"));
    let lines: String = keys.iter().filter_map(line).chain(collecting).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Merges layers and reports all invalid values together. Earlier layers take precedence.
pub fn resolve(layers: impl IntoIterator<Item = Table>) -> Result<Settings, SettingsError> {
    let mut merged = Table::new();
    for layer in layers {
        for (key, value) in layer {
            merged.entry(key).or_insert(value);
        }
    }
    let given: Vec<String> = merged.keys().cloned().collect();
    let defaults: Table = toml::from_str(DEFAULTS).map_err(|error| SettingsError(error.to_string()))?;
    for (key, value) in defaults {
        merged.entry(key).or_insert(value);
    }
    let settings: Settings =
        Value::Table(merged).try_into().map_err(|error: toml::de::Error| SettingsError(error.to_string()))?;
    let faults = faults(&settings, &given);
    if faults.is_empty() { Ok(settings) } else { Err(SettingsError(faults.join("\n"))) }
}

fn faults(settings: &Settings, given: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let plain = [
        ("partition", &settings.partition),
        ("account", &settings.account),
        ("qos", &settings.qos),
        ("gres", &settings.gres),
        ("gpus", &settings.gpus),
        ("constraint", &settings.constraint),
        ("collect.partition", &settings.collect.partition),
        ("collect.account", &settings.collect.account),
        ("collect.qos", &settings.collect.qos),
    ];
    for (key, value) in plain {
        faults.extend(value.as_deref().and_then(|value| unfit(key, value)));
    }
    faults.extend(settings.extra.iter().filter_map(|option| unfit_option("extra", option)));
    faults.extend(settings.collect.extra.iter().filter_map(|option| unfit_option("collect.extra", option)));
    for (key, factor) in [("memory_factor", settings.memory_factor), ("time_factor", settings.time_factor)] {
        let odd = factor.filter(|factor| !(1.0..=LARGEST_FACTOR).contains(factor));
        faults.extend(odd.map(|factor| format!("{key}: {factor} is not between 1 and {LARGEST_FACTOR}")));
    }
    if settings.memory_factor.is_some() && settings.memory.is_none() {
        faults.push(
            "memory_factor: it multiplies `memory`, which is not set: set `memory` or remove `memory_factor`"
                .to_owned(),
        );
    }
    let notify: Vec<String> = settings.notify.iter().cloned().collect();
    for (key, lines) in [("modules", &settings.modules), ("setup", &settings.setup), ("notify", &notify)] {
        let broken = lines.iter().filter(|line| line.contains(['\n', '\r', '\0']));
        faults.extend(broken.map(|line| format!("{key}: expected a single line, found {line:?}")));
    }
    let scheduler = settings.scheduler;
    let mut unsupported = scheduler.unsupported_keys().to_vec();
    if scheduler.queue().is_none() {
        unsupported.extend(OF_QUEUES);
    }
    let other = if unsupported.contains(&"extra") { "" } else { ", or put the scheduler's own option into `extra`" };
    let unknown = unsupported.iter().filter(|key| given.iter().any(|given| given == *key));
    faults.extend(unknown.map(|key| format!("{key}: {scheduler} does not support this setting: remove it{other}")));
    let absent = scheduler.needs().iter().filter(|key| !given.iter().any(|given| given == *key));
    faults.extend(absent.map(|key| format!("{key}: {scheduler} requires this setting: add it to {SETTINGS_FILE}")));
    let gpus = settings.gpus.as_deref().filter(|gpus| !scheduler.knows_models() && gpus.parse::<u32>().is_err());
    faults.extend(gpus.map(|gpus| format!("gpus: {scheduler} requires a number, found {gpus:?}")));
    for (key, memory) in [("memory", &settings.memory), ("collect.memory", &settings.collect.memory)] {
        let odd = memory.as_deref().filter(|text| size(text).is_none_or(|(number, _)| number.parse::<u64>().is_err()));
        faults.extend(odd.map(|text| format!("{key}: {text:?} is not a size: write e.g. 32G or 500M")));
    }
    faults
}

fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c))
}

fn unfit(key: &str, value: &str) -> Option<String> {
    if value.is_empty() {
        return Some(format!("{key}: the value is empty: set it or remove the key"));
    }
    (!is_plain(value)).then(|| format!("{key}: {value:?} has characters that are not allowed in a scheduler option"))
}

fn unfit_option(key: &str, option: &str) -> Option<String> {
    let fits = option.starts_with('-') && is_plain(option);
    (!fits).then(|| {
        format!(
            "{key}: {option:?} is not a scheduler option: write one word that begins with a hyphen, as in -x or \
             --name=value"
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::Seconds;

    fn layer(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    fn faulty_keys(text: &str) -> Vec<String> {
        let message = resolve([layer(text)]).err().map(|error| error.to_string()).unwrap_or_default();
        message.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
    }

    #[test]
    fn a_layer_goes_before_those_below_it() {
        let user = layer("partition = 'short'\naccount = 'me'\nmodules = ['a', 'b']");
        let project = layer("partition = 'gpu'\nmodules = ['cuda/13']");
        let settings = resolve([layer("time = '2h'"), project, user]).unwrap();
        assert_eq!(settings.partition.as_deref(), Some("gpu"));
        assert_eq!(settings.account.as_deref(), Some("me"));
        assert_eq!(settings.modules, ["cuda/13"]);
        assert_eq!(settings.time, Some(Seconds(7200)));
        assert_eq!((settings.min_task_time, settings.requeues, settings.warning), (Seconds(600), 3, Seconds(120)));
    }

    #[test]
    fn a_value_that_would_end_its_option_is_refused_with_every_other_fault() {
        let hostile = "partition = \"gpu\\n#SBATCH --wrap=x\"\ngres = 'gpu 1'\nextra = ['$(touch x)']\nmemory = 'much'";
        assert_eq!(faulty_keys(hostile), ["partition", "gres", "extra", "memory"]);
        let hostile = "memory_factor = 0.5\ntime_factor = 99.0\n[collect]\naccount = '$x'\nextra = ['x']\nmemory = 'x'";
        let expected =
            ["collect.account", "collect.extra", "memory_factor", "time_factor", "memory_factor", "collect.memory"];
        assert_eq!(faulty_keys(hostile), expected);
    }

    #[test]
    fn what_a_scheduler_has_nothing_for_is_refused_by_name() {
        let all = "partition = 'p'\naccount = 'a'\nqos = 'q'\ngres = 'gpu:1'\ngpus = 'h100:1'\nconstraint = 'c'\n\
                   memory = '32G'\ncpus = 4\nextra = ['-x']\nthrottle = 2\nqueue = 9\nrequeues = 1\n\
                   warning = '1min'\nmemory_factor = 2.0\ntime_factor = 1.5\ncollect = { time = '5min' }\nnotify = 'x'";
        let of_queues = ["queue", "memory_factor", "time_factor", "collect", "notify"];
        let refused: [(&str, &[&str]); 6] = [
            ("slurm", &[]),
            ("pbs", &["qos", "gres", "constraint", "requeues", "warning", "gpus"]),
            ("lsf", &["qos", "gres", "requeues", "warning"]),
            ("flux", &["qos", "gres", "memory", "throttle", "requeues", "warning", "gpus"]),
            (
                "hyperqueue",
                &["partition", "account", "qos", "gres", "constraint", "memory", "throttle", "warning", "gpus"],
            ),
            (
                "kubernetes",
                &[
                    "partition",
                    "account",
                    "qos",
                    "gres",
                    "constraint",
                    "extra",
                    "warning",
                    "image",
                    "claim",
                    "mount",
                    "gpus",
                ],
            ),
        ];
        for (scheduler, expected) in refused {
            let text = format!("scheduler = '{scheduler}'\n{all}");
            let (of_queue, others): (Vec<_>, Vec<_>) =
                faulty_keys(&text).into_iter().partition(|key| of_queues.contains(&key.as_str()));
            assert_eq!(others, expected, "{scheduler}");
            assert_eq!(of_queue, if scheduler == "slurm" { &[][..] } else { &of_queues }, "{scheduler}");
        }
        assert_eq!(faulty_keys("image = 'i'"), ["image"]);
    }

    #[test]
    fn a_misspelt_key_or_a_wrong_value_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS_FILE);
        for (line, word) in
            [("partitoin = 'gpu'", "partitoin"), ("time = 'soon'", "soon"), ("throttle = 0", "throttle")]
        {
            std::fs::write(&path, format!("account = 'x'\n{line}\n")).unwrap();
            let message = read_layer(&path).unwrap_err().to_string();
            assert!(message.contains("line 2") && message.contains(word), "{message}");
        }
        assert_eq!(read_layer(&dir.path().join("absent.toml")), Ok(Table::new()));
    }
}
