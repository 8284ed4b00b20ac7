//! The program prints what the tutorial and the README quote. The tutorial is followed step by step, on the simulator.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The page's code blocks in one language, in order.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Exit code and output of a command line as the page writes it: `$ runner check transpose.toml`.
fn follow(folder: &Path, line: &str) -> (Option<i32>, String) {
    let words = line.strip_prefix("$ runner ").unwrap_or_else(|| panic!("`{line}` is no command of the program"));
    let program =
        Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(folder).args(words.split(' ')).output().unwrap();
    let said = [program.stdout, program.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (program.status.code(), said.lines().flat_map(|line| [line.trim_end(), "\n"]).collect())
}

/// Asserts that each part of a quotation, separated by `…`, is in the output.
#[track_caller]
fn is_quoted(quotation: &str, output: &str) {
    for part in quotation.split("…\n") {
        assert!(output.contains(part.trim()), "not printed:\n{part}\nbut:\n{output}");
    }
}

#[test]
fn the_tutorial_prints_what_it_says() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial/first-report.md")).unwrap();
    let (kernel, manifest) = (blocks(&page, "cpp")[0], blocks(&page, "toml")[0]);
    let [check, misspelt, run, part] = blocks(&page, "console")[..] else { panic!("the tutorial has other commands") };
    let [summary, end, trap] = blocks(&page, "text")[..] else { panic!("the tutorial has other quotations") };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();

    write("transpose.cu", kernel);
    write("transpose.toml", manifest);
    let (command, quoted) = check.split_once('\n').unwrap();
    let (code, said) = follow(folder.path(), command);
    assert_eq!(code, Some(0), "{said}");
    is_quoted(quoted, &said);

    let (before, after) = manifest.rsplit_once("u32(columns)").unwrap();
    write("transpose.toml", &format!("{before}u32(colums){after}"));
    let (command, quoted) = misspelt.split_once('\n').unwrap();
    let (code, said) = follow(folder.path(), command);
    assert_eq!(code, Some(2), "{said}");
    is_quoted(quoted, &said);

    write("transpose.toml", manifest);
    let (code, said) = follow(folder.path(), run.trim_end());
    assert_eq!(code, Some(0), "{said}");
    is_quoted(summary, &said);
    is_quoted(end, &said);

    assert_eq!(kernel.matches("    __syncthreads();\n").count(), 1);
    write("transpose.cu", &kernel.replace("    __syncthreads();\n", ""));
    let (code, said) = follow(folder.path(), part.trim_end());
    assert_eq!(code, Some(1), "{said}");
    is_quoted(trap, &said);
}

#[test]
fn the_readme_quotes_what_check_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let manifest = fs::read_to_string(root.join("experiments/reduce.toml")).unwrap();
    assert_eq!(manifest.matches("u * block)").count(), 1, "the README misspells one `block`");
    let folder = tempfile::tempdir().unwrap();
    for name in ["experiments", "kernels"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let misspelt = manifest.replace("u * block)", "u * blok)");
    fs::write(folder.path().join("experiments/reduce.toml"), misspelt).unwrap();
    for kernels in fs::read_dir(root.join("kernels")).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(kernels.path(), folder.path().join("kernels").join(kernels.file_name())).unwrap();
    }
    let (code, said) = follow(folder.path(), "$ runner check experiments/reduce.toml");
    assert_eq!(code, Some(2), "{said}");
    is_quoted(blocks(&readme, "text")[0], &said);
}
