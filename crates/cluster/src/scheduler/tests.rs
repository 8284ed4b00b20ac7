//! Scripts and commands of each scheduler, with every setting that it supports.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use super::*;

/// Script for three tasks.
fn script(scheduler: &str, settings: &str, device: Option<&str>) -> Script {
    let settings = format!("scheduler = '{scheduler}'\nsetup = ['echo \"here\"']\ntime = '90min'\n{settings}");
    let job = Job {
        name: "Reduce_1".to_owned(),
        id: "1f3a".to_owned(),
        program: PathBuf::from("/opt/it's/runner"),
        directory: PathBuf::from("/data/$(touch x)"),
        cache: PathBuf::from("/cache"),
        device: device.map(str::to_owned),
        settings: toml::from_str(&settings).unwrap(),
        ..Job::default()
    };
    job.settings.scheduler.script(&part(&job)).unwrap()
}

fn part(job: &Job) -> Part<'_> {
    let retry = Retry { memory: 1, time: 2 };
    let folder = Path::new("/data/a job");
    let snapshot = "5c".to_owned();
    Part { job, folder, number: 2, first: 100, count: 3, seconds: 10.0, snapshot, retry, longest: None }
}

/// Options after a directive such as `#SBATCH`.
fn options<'a>(script: &'a Script, directive: &str) -> Vec<&'a str> {
    script.text.lines().filter_map(|line| line.strip_prefix(directive)?.strip_prefix(' ')).collect()
}

const ALL: &str = "partition = 'p'\naccount = 'a'\ncpus = 4\nextra = ['--x=y']\n";

#[test]
fn slurm_gets_every_setting() {
    let more = "qos = 'q'\ngres = 'gpu:1'\ngpus = 'h100:1'\nconstraint = 'c&d'\nmemory = '32G'\nthrottle = 2\nwarning \
                = '1min'";
    let script = script("slurm", &format!("{ALL}{more}"), None);
    let words = "sbatch --parsable '--array=0-2%2' '--job-name=runner-Reduce-1.1f3a.2.100' \
                 '--comment=runner-Reduce-1.1f3a.2.100' '--output=/data/a job/logs/task-%A_%a.out' \
                 '/data/a job/task-2.sh' 2 100";
    assert_eq!(script.command("").unwrap(), words);
    let expected = [
        "--requeue",
        "--open-mode=append",
        "--time=90",
        "--partition=p",
        "--account=a",
        "--qos=q",
        "--signal=B:USR1@60",
        "--gres=gpu:1",
        "--gpus=h100:1",
        "--constraint=c&d",
        "--cpus-per-task=4",
        "--mem=32G",
        "--x=y",
    ];
    assert_eq!(options(&script, "#SBATCH"), expected);
    let body = "trap '' USR1\ncd '/data/$(touch x)' || exit 3\necho \"here\"\nexport RUNNER_CACHE=/cache\nexec \
                \"/opt/it's/runner\" task '/data/a job' \"$1\" \"$(($2 + SLURM_ARRAY_TASK_ID))\" --snapshot=5c\n";
    assert!(script.text.ends_with(body), "{}", script.text);
}

#[test]
fn a_retry_gets_more_and_never_more_than_the_partition_allows() {
    let more = "memory = '3G'\nmemory_factor = 1.5\ntime_factor = 2.0";
    let words = script("slurm", more, None).command("").unwrap();
    // A task has run out of memory once and of time twice.
    assert!(words.contains(" '--mem=5G' '--time=360' "), "{words}");
    let mut job = Job { name: "x".to_owned(), id: "1".to_owned(), ..Job::default() };
    job.settings = toml::from_str("time = '90min'\ntime_factor = 2.0").unwrap();
    let part = Part { longest: Some(7200), ..part(&job) };
    assert!(job.settings.scheduler.script(&part).unwrap().words.contains(&"--time=120".to_owned()));
}

#[test]
fn the_job_that_collects_has_settings_of_its_own() {
    let mut job = Job { name: "x".to_owned(), id: "1f".to_owned(), ..Job::default() };
    let collecting = |job: &Job, longest| {
        let queue = job.settings.scheduler.queue().unwrap();
        queue.collecting(&Part { longest, ..part(job) }, Some("abc")).unwrap()
    };
    job.settings = toml::from_str("partition = 'gpu'\naccount = 'a'\ngres = 'gpu:1'").unwrap();
    let options_of = |script: &Script| options(script, "#SBATCH")[2..].join(" ");
    let script = collecting(&job, None);
    assert_eq!(options_of(&script), "--time=60 --partition=gpu --account=a");
    assert!(script.text.ends_with("collect '/data/a job' --send-rest=abc --own-script=\"$0\"\n"), "{}", script.text);
    assert!(script.words.contains(&"--comment=runner-x.1f.2.collect-100".to_owned()), "{:?}", script.words);
    assert_eq!(options_of(&collecting(&job, Some(600))), "--time=10 --partition=gpu --account=a");
    job.settings = toml::from_str("notify = 'mail -s done \"$USER\"'").unwrap();
    let line = "collect '/data/a job' --send-rest=abc --own-script=\"$0\" --notify='mail -s done \"$USER\"'\n";
    assert!(collecting(&job, None).text.ends_with(line), "{}", collecting(&job, None).text);
    let own = "time = '5min'\npartition = 'cpu'\naccount = 'b'\nqos = 'q'\nmemory = '1G'\nextra = ['--x']";
    job.settings = toml::from_str(&format!("partition = 'gpu'\n[collect]\n{own}")).unwrap();
    let expected = "--time=5 --partition=cpu --account=b --qos=q --mem=1G --x";
    assert_eq!(options_of(&collecting(&job, Some(600))), expected);
}

#[test]
fn hyperqueue_gets_every_setting_that_it_has() {
    let script = script("hyperqueue", "cpus = 4\ngpus = '1'\nrequeues = 2\nextra = ['--x=y']\n", None);
    let expected = "hq submit '--array=0-2' '--name=runner-Reduce-1' '--time-limit=5400s' '--crash-limit=3' \
                    '--stdout=/data/a job/logs/task-%{JOB_ID}_%{TASK_ID}.out' \
                    '--stderr=/data/a job/logs/task-%{JOB_ID}_%{TASK_ID}.out' '--cpus=4' '--resource=gpus/nvidia=1' \
                    '--x=y' -- bash '/data/a job/task-2-100.sh'";
    assert_eq!(script.command("").unwrap(), expected);
    assert!(script.text.ends_with("2 \"$((100 + HQ_TASK_ID))\" --snapshot=5c\n"), "{}", script.text);
}

#[test]
fn pbs_gets_every_setting_that_it_has() {
    let script = script("pbs", &format!("{ALL}gpus = '1'\nmemory = '32G'\nthrottle = 2"), None);
    assert_eq!(script.command("").unwrap(), "qsub -o '/data/a job/logs/' '/data/a job/task-2-100.sh'");
    let chunk = "-l select=1:ncpus=4:ngpus=1:mem=32gb";
    let name = "-N runner-Reduce-1";
    let expected = [name, "-J 0-2%2", "-l walltime=01:30:00", chunk, "-r y", "-j oe", "-q p", "-A a", "--x=y"];
    assert_eq!(options(&script, "#PBS"), expected);
    let task = "exec \"/opt/it's/runner\" task '/data/a job' 2 \"$((100 + ${PBS_ARRAY_INDEX:-0}))\" --snapshot=5c\n";
    assert!(script.text.ends_with(task), "{}", script.text);
}

#[test]
fn lsf_gets_every_setting_that_it_has() {
    let more = "gpus = 'h100:1'\nmemory = '500'\nthrottle = 2\nconstraint = 'nvme'";
    let script = script("lsf", &format!("{ALL}{more}"), None);
    let command = "bsub -o '/data/a job/logs/task-%J_%I.out' < '/data/a job/task-2-100.sh'";
    assert_eq!(script.command("").unwrap(), command);
    let expected = [
        "-J \"runner-Reduce-1[1-3]%2\"",
        "-W 90",
        "-r",
        "-R \"span[hosts=1]\"",
        "-n 4",
        "-gpu \"num=1:gmodel=h100\"",
        "-M 500MB",
        "-R \"rusage[mem=500MB]\"",
        "-R \"select[nvme]\"",
        "-q p",
        "-P a",
        "--x=y",
    ];
    assert_eq!(options(&script, "#BSUB"), expected);
    assert!(script.text.ends_with("2 \"$((100 + LSB_JOBINDEX - 1))\" --snapshot=5c\n"), "{}", script.text);
}

#[test]
fn flux_gets_every_setting_that_it_has() {
    let script = script("flux", &format!("{ALL}gpus = '1'\nconstraint = 'h100'"), None);
    let expected = "flux submit --cc=0-2 --job-name=runner-Reduce-1 --time-limit=90m \
                    --output=/data/a job/logs/task-2-100_{cc}.out --queue=p --bank=a --requires=h100 --gpus-per-task=1 \
                    --cores-per-task=4 --x=y bash";
    let (path, words) = script.words.split_last().unwrap();
    assert_eq!((words.join(" ").as_str(), path.as_str()), (expected, "/data/a job/task-2-100.sh"));
    assert!(script.text.ends_with("2 \"$((100 + FLUX_JOB_CC))\" --snapshot=5c\n"), "{}", script.text);
}

#[test]
fn kubernetes_gets_every_setting_that_it_has_and_no_gpu_for_the_simulator() {
    let needed = "image = 'runner:1'\nclaim = 'shared'\nmount = '/data'\n";
    let more = "cpus = 4\nmemory = '32G'\nthrottle = 2\nrequeues = 1";
    let Script { text, words, .. } = script("kubernetes", &format!("{needed}{more}"), None);
    assert_eq!(words, ["kubectl", "apply", "-f", "/data/a job/task-2-100.json"]);
    let job: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(job["metadata"]["name"], "runner-reduce-1-2-100");
    let spec = &job["spec"];
    let numbers = ["completions", "parallelism", "backoffLimitPerIndex"].map(|key| spec[key].as_u64());
    assert_eq!(numbers, [Some(3), Some(2), Some(1)]);
    let actions = [0, 1].map(|rule| spec["podFailurePolicy"]["rules"][rule]["action"].as_str());
    assert_eq!(actions, [Some("Ignore"), Some("FailIndex")]);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["activeDeadlineSeconds"], 5400);
    let task = &pod["containers"][0];
    // Requirements of the restricted pod security standard, besides the user.
    let expected = serde_json::json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    assert_eq!(task["securityContext"], expected);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(task["workingDir"], "/data/$(touch x)");
    assert_eq!(task["resources"]["limits"], serde_json::json!({ "cpu": "4", "memory": "32Gi" }));
    let command = "echo \"here\"\nexec \"/opt/it's/runner\" task '/data/a job' 2 \"$((100 + JOB_COMPLETION_INDEX))\" --snapshot=5c";
    assert_eq!(task["command"][2], command);
    let limits = |settings: &str, device| {
        let text = script("kubernetes", &format!("{needed}{settings}"), device).text;
        let job: serde_json::Value = serde_json::from_str(&text).unwrap();
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"].clone()
    };
    assert_eq!(limits("", Some("H100")), serde_json::json!({ "nvidia.com/gpu": "1" }));
    assert_eq!(limits("gpus = '2'", Some("H100")), serde_json::json!({ "nvidia.com/gpu": "2" }));
}

/// The words that make a job's submitting command wait for two other jobs, expanded by a shell. `program` is the
/// scheduler's command that lists jobs, as a shell function.
fn waited(scheduler: &str, program: &str) -> String {
    let kind: SchedulerKind = scheduler.parse().unwrap();
    let Submitter::User { waiting: Some(waiting), .. } = kind.submitter() else { panic!("{scheduler} cannot wait") };
    let words = waiting(&["runner-a".to_owned(), "runner-b".to_owned()]);
    let command = script(scheduler, "", None).command(&words).unwrap();
    let verb = if scheduler == "flux" { "flux" } else { command.split(' ').next().unwrap() };
    // The submitting command prints its words. Files whose names match a pattern do not matter.
    let text = match scheduler {
        "flux" => {
            format!("flux() {{ if [ $1 = jobs ]; then shift; {program} \"$@\"; else printf '[%s]' \"$@\"; fi; }}\n")
        }
        _ => format!("{verb}() {{ printf '[%s]' \"$@\"; }}\n"),
    };
    let text = format!("USER=me\n{LISTS}\n{text}{}", command.split(" < ").next().unwrap());
    let output = std::process::Command::new("bash").args(["-c", &text]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Job a has an array of two tasks and another job, and job b has ended.
const LISTS: &str = r#"
qselect() { [ "$*" != '-u me -N runner-a' ] || printf '7[].host\n9.host\n'; }
bjobs() { [ "$*" != '-J runner-a -noheader -o jobid' ] && echo 'No unfinished job found' >&2 || printf '7\n7\n9\n'; }
lists() { [ "$*" != "--count=1000000 --no-header --format=--dependency=afterany:{id} --name=runner-a" ] ||
    printf -- '--dependency=afterany:%s\n' f7 f9; }
none() { :; }
"#;

#[test]
fn a_job_waits_for_all_open_tasks_of_others() {
    assert!(waited("pbs", "").starts_with("[-W][depend=afterany:7[].host:9.host][-o]"), "{}", waited("pbs", ""));
    assert!(waited("lsf", "").starts_with("[-w][ended(7)&&ended(9)][-o]"), "{}", waited("lsf", ""));
    let flux = waited("flux", "lists");
    assert!(flux.starts_with("[submit][--dependency=afterany:f7][--dependency=afterany:f9][--cc=0-2]"), "{flux}");
    assert!(waited("flux", "none").starts_with("[submit][--cc=0-2]"));
    for scheduler in ["hyperqueue", "kubernetes"] {
        let kind: SchedulerKind = scheduler.parse().unwrap();
        assert!(matches!(kind.submitter(), Submitter::User { waiting: None, .. }));
    }
}
