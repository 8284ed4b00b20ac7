//! The documentation agrees with the program and the repository: its examples load, its list of crates matches
//! `Cargo.toml`, and its links lead to files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, CommandFactory as _};
use fixture::snapshot;
use runner::cli::Cli;
use runner_experiment::Manifest;
use runner_lang::diagnostics::Diagnostics;
use runner_plan::MAX_CELLS;
use runner_report::described_columns;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// The TOML blocks of a page, in order.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Collects every string under a key of this name, at any depth.
fn texts<'t>(value: &'t toml::Value, key: &str, into: &mut BTreeSet<&'t str>) {
    match value {
        toml::Value::Table(table) => {
            into.extend(table.get(key).and_then(toml::Value::as_str));
            table.values().for_each(|inner| texts(inner, key, into));
        }
        toml::Value::Array(items) => items.iter().for_each(|item| texts(item, key, into)),
        _ => {}
    }
}

fn texts_of<'t>(value: &'t toml::Value, key: &str) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::new();
    texts(value, key, &mut found);
    found
}

/// Writes an example to a folder like a user's, next to sources that define the kernels it names, and loads it.
fn load(text: &str, example: &toml::Value) -> Result<Manifest, String> {
    let folder = tempfile::tempdir().unwrap();
    let (experiments, kernels) = (folder.path().join("experiments"), folder.path().join("kernels"));
    fs::create_dir_all(&experiments).unwrap();
    fs::create_dir_all(&kernels).unwrap();
    let names = texts_of(example, "kernel").into_iter().map(|kernel| kernel.split('<').next().unwrap());
    let kernels_there = names.map(|name| format!("__global__ void {name}() {{}}"));
    let functions = texts_of(example, "host").into_iter().map(|name| format!("extern \"C\" int {name}(int);"));
    let stub: Vec<String> = kernels_there.chain(functions).collect();
    for source in texts_of(example, "source") {
        fs::write(kernels.join(source), stub.join("\n")).unwrap();
    }
    let path = experiments.join("example.toml");
    fs::write(&path, text).unwrap();
    let messages = |faults: Diagnostics| faults.items.into_iter().map(|fault| fault.message).collect::<Vec<_>>();
    runner_manifest::load(&path).map_err(|faults| messages(faults).join("\n"))
}

#[test]
fn every_complete_example_of_the_manifests_page_loads() {
    let manual = page("docs/reference/manifest.md");
    let mut loaded: BTreeMap<String, usize> = BTreeMap::new();
    for block in blocks(&manual) {
        let example: toml::Value = toml::from_str(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        if example.get("experiment").is_none() || example.get("variant").is_none() {
            continue;
        }
        let manifest = load(block, &example).unwrap_or_else(|faults| panic!("{faults}\n{block}"));
        loaded.insert(manifest.name, manifest.variants.len());
    }
    let expected = [("jacobi", 1), ("reduce", 3), ("two_pass", 2)];
    assert_eq!(loaded, expected.map(|(name, variants)| (name.to_owned(), variants)).into());
}

/// An argument in help notation: `-k, --kernel <KERNEL>`.
fn written(argument: &Arg) -> String {
    if argument.is_positional() {
        return argument.to_string();
    }
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    format!("{short}{argument}")
}

/// An argument's help, with its possible values and its default.
fn meaning(argument: &Arg) -> String {
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default().trim_end_matches('.').to_owned();
    let code = |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if !values.is_empty() && argument.get_action().takes_values() {
        let _ = write!(meaning, "; one of {}", code(values));
    }
    let default: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if !default.is_empty() && argument.get_action().takes_values() {
        let _ = write!(meaning, "; by default {}", code(default));
    }
    meaning
}

/// A row for each argument, except arguments that every command has.
fn rows<'a>(arguments: impl Iterator<Item = &'a Arg>) -> Vec<String> {
    let shown = arguments
        .filter(|argument| !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str()));
    shown.map(|row| format!("- `{}`: {}\n", written(row), meaning(row))).collect()
}

/// The rows as a list; empty if there are none.
fn list(rows: &[String]) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", rows.concat()) }
}

/// Rows of a command's own arguments.
fn own_rows(command: &clap::Command) -> Vec<String> {
    rows(command.get_arguments().filter(|argument| !argument.is_global_set()))
}

/// Visible subcommands of a command.
fn commands(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// The section of a command and its subcommands. Options that several commands share are only named.
fn section(command: &clap::Command, path: &str, shared: &[String]) -> String {
    let about = command.get_about().unwrap();
    let (named, own): (Vec<String>, Vec<String>) = own_rows(command).into_iter().partition(|row| shared.contains(row));
    let name = |row: &String| format!("`{}`", row.trim_start_matches("- `").split([' ', ',', '`']).next().unwrap());
    let named: Vec<String> = named.iter().map(name).collect();
    let named = if named.is_empty() {
        String::new()
    } else {
        format!("\n[Shared options](#shared-options): {}.\n", named.join(", "))
    };
    let below = commands(command).map(|below| section(below, &format!("{path} {}", below.get_name()), shared));
    format!("\n## {path}\n\n{about}\n{}{named}{}", list(&own), below.collect::<String>())
}

/// The page of all commands and their arguments, from the help.
fn options() -> String {
    let mut program = Cli::command();
    program.build();
    let all: Vec<String> = commands(&program).flat_map(own_rows).collect();
    let mut shared: Vec<String> = Vec::new();
    for row in &all {
        if !shared.contains(row) && all.iter().filter(|other| *other == row).count() >= 2 {
            shared.push(row.clone());
        }
    }
    let sections =
        commands(&program).map(|command| section(command, &format!("runner {}", command.get_name()), &shared));
    let globals = rows(program.get_arguments().filter(|argument| argument.is_global_set()));
    format!(
        "# Options\n\nEvery command with its arguments. [Commands](commands.md) explains those that need more than a line.\n\nAll commands take:\n{}{}\n## Shared options\n\nSeveral commands \
         take these:\n{}",
        list(&globals),
        sections.collect::<String>(),
        list(&shared)
    )
}

#[test]
fn the_page_of_options_is_the_help_of_every_command() {
    snapshot::assert_is(&options(), &repository().join("docs/reference/options.md"));
}

/// Command lines in the code blocks of a page; lines that end with a backslash are joined.
fn commands_to_type(page: &str) -> Vec<String> {
    let blocks = page.split("\n```").skip(1).step_by(2).map(|block| block.replace("\\\n", " "));
    let lines = blocks.flat_map(|block| block.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>());
    let commands = lines.map(|line| line.trim_start_matches("$ ").to_owned());
    commands.filter(|line| line.starts_with("runner ")).collect()
}

/// Inline code of a page.
fn quoted_code(page: &str) -> Vec<String> {
    let paragraphs = page.split("\n```").step_by(2).flat_map(|text| text.split("\n\n").flat_map(|p| p.split("\n|")));
    let code = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2).collect::<Vec<_>>());
    code.map(|code| code.replace('\n', " ").replace("\\|", "|")).collect()
}

/// Why the program rejects a command line, if it does. Whatever follows a pipe or a redirection is ignored.
fn refusal(line: &str) -> Option<clap::Error> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("no command line: {line}"));
    let ends = |word: &String| {
        ["|", "||", "#"].contains(&word.as_str()) || word.starts_with(['>', '&']) || word.starts_with("2>")
    };
    Cli::read(words.into_iter().take_while(|word| !ends(word))).err()
}

#[test]
fn every_command_line_of_the_manual_is_one_that_the_program_takes() {
    let (mut refused, mut seen) = (Vec::new(), 0);
    for path in pages().into_iter().filter(|path| !path.ends_with("reference/options.md")) {
        let page = fs::read_to_string(&path).unwrap();
        for line in commands_to_type(&page) {
            seen += 1;
            refused.extend(refusal(&line).map(|error| format!("{}: {line}: {error}", path.display())));
        }
        for line in quoted_code(&page).into_iter().filter(|code| code.starts_with("runner ")) {
            seen += 1;
            // A sentence may name a command without its arguments.
            let is_name = |kind| {
                matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::DisplayVersion | ErrorKind::DisplayHelp)
            };
            let error = refusal(&line.replace("COMMAND", "run").replace("SHELL", "bash"));
            let error = error.filter(|error| !is_name(error.kind()));
            refused.extend(error.map(|error| format!("{}: {line}: {error}", path.display())));
        }
    }
    assert!(seen >= 150, "{seen} command lines");
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Options of ncu and cargo. The empty name is the `--` that ends the options of `submit`.
const OTHERS: [&str; 3] = ["clock-control", "root", ""];

#[test]
fn every_option_that_the_manual_names_is_one_of_the_program() {
    let mut program = Cli::command();
    program.build();
    let known = |command: &clap::Command| {
        command.get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect::<Vec<_>>()
    };
    let below = program.get_subcommands().flat_map(|command| command.get_subcommands().chain([command]));
    let known: BTreeSet<String> = below.flat_map(known).collect();
    let mut unknown = BTreeSet::new();
    // Two pages describe compiler options.
    let of_compilers =
        |path: &PathBuf| path.ends_with("reference/manifest.md") || path.ends_with("reference/toolkit.md");
    for path in pages().into_iter().filter(|path| !of_compilers(path)) {
        for code in quoted_code(&fs::read_to_string(&path).unwrap()) {
            let Some(name) = code.strip_prefix("--").map(|rest| rest.split([' ', '=']).next().unwrap()) else {
                continue;
            };
            if !known.contains(name) && !OTHERS.contains(&name) {
                unknown.insert(format!("--{name} in {}", path.strip_prefix(repository()).unwrap().display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_page_on_waiting_names_spans_of_the_log() {
    let mut sources = Vec::new();
    for folder in ["src", "crates"] {
        files_below(&repository().join(folder), "rs", &mut sources);
    }
    let code: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let page = page("docs/how-to/find-out-why-a-run-waits.md");
    let rows = page.lines().filter(|line| line.starts_with("| `")).map(|line| line.split(" |").next().unwrap());
    let names: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        assert!(code.contains(&format!("info_span!(\"{name}\"")), "{name}");
    }
}

/// Crates in the table of docs/dependencies.md, in the order of its rows.
fn documented() -> Vec<String> {
    let page = page("docs/dependencies.md");
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = lines.map(|line| line.split(" |").next().unwrap()).filter(|cell| *cell != "crate");
    cells.flat_map(|cell| cell.split(", ")).map(str::to_owned).collect()
}

/// Dependencies of all crates of the workspace, except those crates themselves.
fn declared(table: &str) -> BTreeSet<String> {
    let members = fs::read_dir(repository().join("crates")).unwrap().map(|member| member.unwrap().path());
    let manifests = members
        .chain([repository().to_path_buf()])
        .map(|folder| fs::read_to_string(folder.join("Cargo.toml")).unwrap());
    let tables: Vec<toml::Table> = manifests.map(|manifest| toml::from_str(&manifest).unwrap()).collect();
    let entries = tables.iter().filter_map(|cargo| cargo.get(table)?.as_table()).flatten();
    entries.filter(|(_, how)| how.get("path").is_none()).map(|(name, _)| name.clone()).collect()
}

#[test]
fn every_dependency_has_its_line_and_every_line_its_dependency() {
    let lines = documented();
    let documented: BTreeSet<String> = lines.iter().cloned().collect();
    assert_eq!(lines.len(), documented.len(), "a crate has two lines: {lines:?}");
    let declared: BTreeSet<String> = declared("dependencies").union(&declared("dev-dependencies")).cloned().collect();
    assert_eq!(documented, declared);
}

#[test]
fn the_lines_of_dependencies_are_in_alphabetical_order() {
    let of_the_program = declared("dependencies");
    let lines: Vec<String> = documented().into_iter().filter(|name| of_the_program.contains(name)).collect();
    assert!(lines.is_sorted(), "{lines:?}");
}

/// Collects the files with this extension below a folder.
fn files_below(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files_below(&path, extension, into);
        } else if path.extension().is_some_and(|own| own == extension) {
            into.push(path);
        }
    }
}

/// The pages that a reader starts from, the manual, and the crates' pages.
fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| repository().join(name)).to_vec();
    files_below(&repository().join("docs"), "md", &mut pages);
    files_below(&repository().join("crates"), "md", &mut pages);
    pages.sort();
    pages
}

/// Links of a page: a file (empty for the page itself) and the heading in it, if any. Links to other sites are omitted.
fn links(page: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let own = targets.filter(|target| !target.contains("://"));
    own.map(|target| target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading))))
}

/// Anchors of a page's headings, formed as GitHub and mdBook do.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = page.split("\n```").step_by(2).collect::<String>();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|title| title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_of_the_manual_leads_to_a_file_and_a_heading_that_exist() {
    let mut dead = Vec::new();
    let mut seen = 0;
    for path in pages() {
        let (text, folder) = (fs::read_to_string(&path).unwrap(), path.parent().unwrap());
        for (file, heading) in links(&text) {
            seen += 1;
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let found = match heading {
                Some(heading) => fs::read_to_string(&target).is_ok_and(|page| anchors(&page).contains(heading)),
                None => target.exists(),
            };
            if !found {
                let page = path.strip_prefix(repository()).unwrap().display();
                dead.push(format!("{page}: {file}#{}", heading.unwrap_or_default()));
            }
        }
    }
    assert!(seen >= 10, "{seen} links");
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn the_index_of_the_manual_links_to_every_page() {
    let folder = repository().join("docs");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let linked: BTreeSet<PathBuf> = links(&index).map(|(file, _)| folder.join(file)).collect();
    let pages = pages().into_iter().filter(|path| {
        path.starts_with(&folder) && !["README.md", "SUMMARY.md"].map(|name| folder.join(name)).contains(path)
    });
    let missing: Vec<PathBuf> = pages.filter(|path| !linked.contains(path)).collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:#?}");
}

/// The site's table of contents: the parts of the index with their links. Within an entry, the first link is the parent
/// of the others.
fn summary(index: &str) -> String {
    let mut summary = "# Summary\n\n[Documentation](README.md)\n".to_owned();
    for part in index.split("\n## ").skip(1) {
        let (title, text) = part.split_once('\n').unwrap();
        let _ = write!(summary, "\n# {title}\n\n");
        for entry in text.split("\n\n").flat_map(|list| list.split("\n- ")).filter(|entry| entry.contains("](")) {
            for (place, (middle, _)) in entry.match_indices("](").enumerate() {
                let begin = entry[..middle].rfind('[').unwrap();
                let end = middle + entry[middle..].find(')').unwrap();
                let indent = if place == 0 { "" } else { "  " };
                let _ = writeln!(summary, "{indent}- {}", &entry[begin..=end]);
            }
        }
    }
    summary
}

#[test]
fn the_site_has_the_pages_of_the_index_in_its_order() {
    let docs = repository().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    snapshot::assert_is(&summary(&index), &docs.join("SUMMARY.md"));
}

/// Number of cells in a table row. An escaped bar is not a separator, even in code.
fn cells(row: &str) -> usize {
    row.replace("\\|", "").trim_matches('|').split('|').count()
}

/// Whether a line separates a table's header from its rows.
fn is_rule(line: &str) -> bool {
    line.contains("---") && line.chars().all(|c| "|-: ".contains(c))
}

#[test]
fn every_table_of_the_manual_has_a_head_and_as_many_cells_in_every_row() {
    let mut faults = Vec::new();
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.split(|line| !line.starts_with('|')).filter(|table| !table.is_empty());
        for table in tables {
            let ruled = table.iter().map(|line| is_rule(line)).eq((0..table.len()).map(|row| row == 1));
            let even = table.iter().all(|line| cells(line) == cells(table[0]));
            if table.len() < 3 || !ruled || !even {
                faults.push(format!("{}: {}", path.display(), table[0]));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The page of instructions, from the simulator's table of operations.
fn instructions() -> String {
    let mut page = "# Simulated instructions\n\nThe PTX instructions that the simulator executes. An instruction in \
                    any other form is refused when its module is loaded,\nwith opcode, line and kernel. `{.ftz}` is \
                    optional, `.rn|rz` means either modifier, and the names in the second table stand for\nseveral modifiers. \
                    The order of modifiers does not matter.\n\n| forms | what they do |\n|---|---|\n"
        .to_owned();
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
    for operation in simt::operations() {
        let forms: Vec<String> =
            operation.forms.iter().map(|form| code(&format!("{}{form}", operation.name))).collect();
        let _ = writeln!(page, "| {} | {} |", forms.join("<br>"), operation.about);
    }
    page += "\n## Names for several modifiers\n\n| name | modifiers |\n|---|---|\n";
    for (class, members) in simt::modifier_classes() {
        let members: Vec<String> = members.iter().map(|member| format!("`.{member}`")).collect();
        let _ = writeln!(page, "| `.{class}` | {} |", members.join(" "));
    }
    page
}

#[test]
fn the_page_of_instructions_is_the_table_of_operations() {
    snapshot::assert_is(&instructions(), &repository().join("docs/reference/instructions.md"));
}

/// A crate of the repository: the description in its `Cargo.toml`, and the other crates that it uses.
struct Package {
    holds: String,
    uses: BTreeSet<String>,
}

fn packages() -> BTreeMap<String, Package> {
    let folders = fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let packages = folders.chain([repository().to_owned()]).map(|folder| {
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(folder.join("Cargo.toml")).unwrap()).unwrap();
        let about = |key: &str| manifest["package"][key].as_str().unwrap().to_owned();
        let uses = manifest["dependencies"].as_table().into_iter().flatten();
        let uses = uses.filter(|(_, how)| how.get("path").is_some()).map(|(name, _)| name.clone()).collect();
        (about("name"), Package { holds: about("description"), uses })
    });
    packages.collect()
}

/// All crates that a crate uses, directly or indirectly.
fn reached(packages: &BTreeMap<String, Package>, name: &str) -> BTreeSet<String> {
    let uses = packages.get(name).map(|package| &package.uses).into_iter().flatten();
    uses.flat_map(|used| reached(packages, used).into_iter().chain([used.clone()])).collect()
}

/// The page of the crates: their dependency graph without arrows that others imply, and what each crate holds.
fn crates() -> String {
    let packages = packages();
    let (mut graph, mut table) = (String::new(), String::new());
    for (name, package) in &packages {
        let _ = writeln!(table, "| `{name}` | {} |", package.holds);
        let follows = |used: &String| package.uses.iter().any(|other| reached(&packages, other).contains(used));
        for used in package.uses.iter().filter(|used| !follows(used)) {
            let _ = writeln!(graph, "  {used} --> {name}");
        }
    }
    format!(
        "# Crates\n\nAn arrow points from a crate to one that uses it. Arrows that follow from others are omitted: a crate may \
         use everything below the crates that it uses.\n\n```mermaid\ngraph BT\n{graph}```\n\n| crate | holds |\n|---|---|\n{table}"
    )
}

#[test]
fn the_page_of_crates_is_the_graph_that_cargo_has() {
    snapshot::assert_is(&crates(), &repository().join("docs/reference/crates.md"));
}

fn columns() -> String {
    let mut page = "# Columns\n\nThe columns of `results.csv`, in order. The name in brackets is the sort key in the address of a \
                    `runner report --html`\npage. [Reports](reports.md) explains how the numbers are computed.\n\n"
        .to_owned();
    for (name, about, key) in described_columns() {
        let key = key.map(|key| format!(" (`{key}`)")).unwrap_or_default();
        let _ = writeln!(page, "- `{name}`{key}: {about}");
    }
    page
}

#[test]
fn the_page_of_columns_is_their_declarations() {
    snapshot::assert_is(&columns(), &repository().join("docs/reference/columns.md"));
}

#[test]
fn the_page_of_manifests_says_how_large_a_matrix_may_be() {
    assert_eq!(MAX_CELLS, 1_000_000);
    let page = page("docs/reference/manifest.md").replace('\n', " ");
    assert!(page.contains("a matrix at most 1,000,000 cells"), "the page states another limit");
}
