//! The documentation agrees with the program and the repository: its examples load, its list of crates is that of
//! `Cargo.toml`, its links lead to files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::snapshot;
use clap::CommandFactory as _;
use runner::commands::Cli;
use runner::experiment::Manifest;
use runner::manifest;
use runner::model::{CompileSettings, Diagnostics, LaunchSettings};
use runner::plan::MAX_CELLS;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// The blocks of TOML in a page, in order.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Every string under a key of this name, wherever it stands.
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

/// Writes an example where a user would have it, beside sources that define what it names, and loads it.
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
    manifest::load(&path).map_err(|faults| messages(faults).join("\n"))
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
    let expected =
        [("blur", 1), ("copies", 2), ("jacobi", 1), ("library", 1), ("reduce", 3), ("softmax", 1), ("two_pass", 2)];
    assert_eq!(loaded, expected.map(|(name, variants)| (name.to_owned(), variants)).into());
}

#[test]
fn the_page_on_commands_has_every_command() {
    let page = page("docs/reference/commands.md");
    let program = Cli::command();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let missing: Vec<&str> = commands.filter(|name| !page.contains(&format!("| `runner {name}"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The crates in the table of docs/dependencies.md, in the order of its lines.
fn documented() -> Vec<String> {
    let page = page("docs/dependencies.md");
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = lines.map(|line| line.split(" |").next().unwrap()).filter(|cell| *cell != "crate");
    cells.flat_map(|cell| cell.split(", ")).map(str::to_owned).collect()
}

/// The dependencies of every crate of the workspace, without those crates themselves.
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

/// The Markdown files in a folder and the folders below it.
fn markdown_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            markdown_below(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
}

/// The pages that a reader starts from, and the manual.
fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "CONTRIBUTING.md"].map(|name| repository().join(name)).to_vec();
    markdown_below(&repository().join("docs"), &mut pages);
    pages.sort();
    pages
}

/// What a page links to: a file, empty for the page itself, and the heading in it, if any. Other sites are left out.
fn links(page: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let own = targets.filter(|target| !target.contains("://"));
    own.map(|target| target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading))))
}

/// The anchors of a page's headings, formed as GitHub forms them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
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
    let pages = pages().into_iter().filter(|path| path.starts_with(&folder) && *path != folder.join("README.md"));
    let missing: Vec<PathBuf> = pages.filter(|path| !linked.contains(path)).collect();
    assert!(missing.is_empty(), "not in docs/README.md: {missing:#?}");
}

/// The cells of a table's row: a bar behind a backslash stands for itself, in code too.
fn cells(row: &str) -> usize {
    row.replace("\\|", "").trim_matches('|').split('|').count()
}

/// Whether a line parts a table's head from its rows.
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
                    another form is refused when its module is loaded,\nwith opcode, line and kernel. `{.ftz}` is \
                    optional, `.rn|rz` is one of both, and the names in the second table stand for\nseveral modifiers. \
                    The order of modifiers does not matter.\n\n| instruction | does | forms |\n|---|---|---|\n"
        .to_owned();
    let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
    for operation in simt::operations() {
        let forms: Vec<String> =
            operation.forms.iter().map(|form| code(&format!("{}{form}", operation.name))).collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", operation.name, operation.about, forms.join("<br>"));
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

/// The page of manifests with the rows of settings as they are declared. The row of a new one follows that of the
/// setting before it.
fn settings(page: &str) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let table = lines.iter().position(|line| line == "### Keys of a launch").unwrap();
    for settings in [LaunchSettings::<i64>::ALL, CompileSettings::<i64>::ALL] {
        let mut next = None;
        for setting in settings {
            let begin = format!("| `{}` |", setting.name);
            let (kind, range) = match setting.bounds {
                None => ("bool", String::new()),
                Some((least, most)) if least >= 0 && most < i64::MAX => {
                    ("expression", format!(" From {least} to {most}."))
                }
                Some(_) => ("expression", String::new()),
            };
            let row = format!("{begin} {kind} | {} | {}{range} |", setting.default, setting.about.trim());
            let known = lines.iter().skip(table).position(|line| line.starts_with(&begin)).map(|row| table + row);
            known.map(|known| lines.remove(known));
            let place = known.or(next).unwrap();
            lines.insert(place, row);
            next = Some(place + 1);
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_page_of_manifests_has_the_settings_as_they_are_declared() {
    let path = repository().join("docs/reference/manifest.md");
    snapshot::assert_is(&settings(&fs::read_to_string(&path).unwrap()), &path);
}

#[test]
fn the_page_of_manifests_says_how_large_a_matrix_may_be() {
    assert_eq!(MAX_CELLS, 1_000_000);
    let page = page("docs/reference/manifest.md").replace('\n', " ");
    assert!(page.contains("a matrix at most 1 000 000 cells"), "the page states another limit");
}
