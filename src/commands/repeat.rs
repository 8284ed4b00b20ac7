//! The command line that reproduces a report: every option that affects what is measured, and no other.
//!
//! Words are quoted for a POSIX shell.

use std::borrow::Cow;

use crate::cli::options::{Kind, RunOptions, Target};
use crate::cli::{Narrowing, ProfileArgs, Sizes};
use runner_types::BackendKind;

impl Narrowing {
    /// Narrowing options, quoted for a shell; `None` if the whole matrix runs.
    pub fn describe(&self) -> Option<String> {
        let set = self.set.iter().map(|set| format!("--set {}", word(set)));
        let filter = self.filter.iter().map(|filter| format!("--filter {}", word(filter)));
        let variants = self.variant.iter().map(|variant| format!("--variant {}", word(variant)));
        let parts: Vec<String> = set.chain(filter).chain(variants).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

impl RunOptions {
    /// Command that reproduces the records on `backend`. `None` if it is plain `runner run` with the manifest, the
    /// narrowing and the backend, which the records contain anyway.
    pub fn command(&self, backend: BackendKind) -> Option<String> {
        if let Kind::Try { .. } | Kind::Tune = self.kind {
            // A resumed search is reproduced by the same command without `--resume`.
            let given = std::env::args_os().skip(1).filter(|text| text != "--resume");
            let words: Vec<String> = given.map(|text| word(&text.to_string_lossy()).into_owned()).collect();
            return Some(format!("runner {}", words.join(" ")));
        }
        let path = self.manifest.display().to_string();
        let (path, mut options) = (word(&path), self.device_options(backend));
        let passes = [
            // The simulator counts anyway.
            (self.passes.counters && backend == BackendKind::Cuda, "--counters"),
            (self.passes.memcheck && backend == BackendKind::Cuda, "--memcheck"),
            (self.passes.energy, "--energy"),
            // A GPU checks two sets of inputs anyway.
            (self.passes.thorough && backend == BackendKind::Sim, "--thorough"),
            (self.passes.lines, "--lines"),
        ];
        options.extend(self.against.against.iter().map(|base| format!("--against {}", word(base))));
        options.extend(self.passes.processes.map(|count| format!("--processes {count}")));
        options.extend(passes.into_iter().filter(|(asked, _)| *asked).map(|(_, option)| option.to_owned()));
        if options.is_empty() && !matches!(path, Cow::Owned(_)) {
            return None;
        }
        let narrowed = self.narrowing.describe();
        let words = [format!("runner run {path}")].into_iter().chain(narrowed).chain([format!("--backend {backend}")]);
        Some(words.chain(options).collect::<Vec<_>>().join(" "))
    }

    /// Options for the device, and whether the simulator checks kernels.
    fn device_options(&self, backend: BackendKind) -> Vec<String> {
        let mut options = Vec::new();
        match backend {
            BackendKind::Sim => {
                if let Target::Simulator(Some(name)) = &self.target {
                    options.push(format!("--sim-device {}", word(name)));
                }
                options.extend((!self.sanitize).then(|| "--no-sanitize".to_owned()));
            }
            BackendKind::Cuda | BackendKind::Fake => {
                let ordinal = self.target.ordinal();
                options.extend((ordinal != 0).then(|| format!("--device {ordinal}")));
            }
        }
        options
    }
}

impl ProfileArgs {
    /// Command that reproduces the records.
    pub fn command(&self) -> String {
        let path = self.manifest.display().to_string();
        let narrowed = self.narrowing.describe().map(|n| format!(" {n}")).unwrap_or_default();
        let sizes = if self.sizes == Sizes::Sim { " --sizes sim" } else { "" };
        let device = if self.device == 0 { String::new() } else { format!(" --device {}", self.device) };
        let source = if self.source { " --source" } else { "" };
        format!("runner profile {}{narrowed}{sizes}{source}{device}", word(&path))
    }
}

/// Quotes text as one word for a shell; borrows it if it needs no quotes.
fn word(text: &str) -> Cow<'_, str> {
    // shlex also quotes commas and equals signs, which are safe inside a word.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+.,:/@=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('=') {
        return Cow::Borrowed(text);
    }
    // Only a NUL byte cannot be quoted, and arguments cannot contain one.
    shlex::try_quote(text).map_or(Cow::Borrowed(text), |quoted| Cow::Owned(quoted.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};

    fn command(words: &str, backend: BackendKind) -> Option<String> {
        let words = shlex::split(words)?;
        match Cli::read(std::iter::once("runner".to_owned()).chain(words)).ok()?.command {
            Command::Run(args) => RunOptions::of_run(&args, &args.manifests[0]).ok()?.command(backend),
            Command::Profile(args) => Some(args.command()),
            _ => None,
        }
    }

    #[test]
    fn every_option_that_changes_what_is_measured_is_said() {
        let simulated = "run m.toml --sim-device a100 --no-sanitize --set n=1,2 --energy --thorough";
        let expected =
            "runner run m.toml --set n=1,2 --backend sim --sim-device a100 --no-sanitize --energy --thorough";
        assert_eq!(command(simulated, BackendKind::Sim).as_deref(), Some(expected));
        let paired = "run m.toml --against main --markdown page.md --threshold 2% --backend sim";
        let expected = "runner run m.toml --backend sim --against main";
        assert_eq!(command(paired, BackendKind::Sim).as_deref(), Some(expected));
        let timed = "run m.toml --device 2 --counters --memcheck --energy --filter 'n > 1'";
        let expected = "runner run m.toml --filter 'n > 1' --backend cuda --device 2 --counters --memcheck \
                        --energy";
        assert_eq!(command(timed, BackendKind::Cuda).as_deref(), Some(expected));
        let profiled = "profile m.toml --device 1 --sizes sim --variant a";
        let expected = "runner profile m.toml --variant a --sizes sim --device 1";
        assert_eq!(command(profiled, BackendKind::Cuda).as_deref(), Some(expected));
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        let plain = "run m.toml more.toml --out there --resume --offline --quiet --device 0 --color never";
        assert_eq!(command(plain, BackendKind::Cuda), None);
        assert_eq!(command("run m.toml --no-sanitize", BackendKind::Cuda), None, "no simulator looks");
        assert_eq!(command("run m.toml --thorough", BackendKind::Cuda), None, "a GPU always is");
        assert_eq!(command("run m.toml --backend sim --counters", BackendKind::Sim), None, "it counts anyway");
        assert_eq!(
            command("profile m.toml --out there --offline", BackendKind::Cuda),
            Some("runner profile m.toml".into())
        );
    }

    #[test]
    fn a_shell_takes_the_command_as_it_was_meant() {
        let line = r#"run 'my experiments/it'"'"'s.toml' --set 'type=i32, f32' --filter 'type == "i32" && n > 2' --variant a=b"#;
        let said = command(line, BackendKind::Sim).unwrap_or_default();
        let mut expected = shlex::split(line).unwrap_or_default();
        expected.insert(0, "runner".to_owned());
        expected.extend(["--backend".to_owned(), "sim".to_owned()]);
        assert_eq!(shlex::split(&said), Some(expected), "{said}");
        assert_eq!(word("=x"), "'=x'");
        assert_eq!(word(""), "''");
    }
}
