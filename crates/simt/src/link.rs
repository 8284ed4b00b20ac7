//! Links the PTX of separately compiled files into one module.
//!
//! A `.visible` symbol is known to all files and defined once. Of several `.weak` or `.common` definitions the first
//! one is used, unless another file has a `.visible` one. A symbol without linkage is local to its file; if two files
//! have the same name, one is renamed. `.extern` names a symbol of another file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::SimError;
use ptx_parser::{Function, Linkage, Module, Space, Statement, Variable};

/// The PTX of one file.
#[derive(Debug, Clone, Copy)]
pub struct Part<'p> {
    /// Name of the file, for messages.
    pub name: &'p str,
    /// Text of the file.
    pub ptx: &'p str,
}

/// Whether a function is provided by the system or the device runtime, in which case no file defines it.
fn is_of_system(name: &str) -> bool {
    name.starts_with("__cuda") || ["vprintf", "malloc", "free", "__assertfail"].contains(&name)
}

fn parse<'t>(name: &str, text: &'t str) -> Result<Module<'t>, SimError> {
    ptx_parser::parse(text).map_err(|error| SimError::Link(format!("{name}: the PTX does not parse: {error}")))
}

/// Returns the text of each file. Renames symbols without linkage whose name occurs in several files.
pub fn separate<'p>(parts: &[Part<'p>]) -> Result<Vec<Cow<'p, str>>, SimError> {
    let modules: Vec<Module<'_>> = parts.iter().map(|part| parse(part.name, part.ptx)).collect::<Result<_, _>>()?;
    let symbols = |module: &Module<'p>| -> BTreeMap<&'p str, Linkage> {
        let functions = module.functions.iter().map(|f| (f.name, f.linkage));
        functions.chain(module.variables.iter().map(|v| (v.name, v.linkage))).collect()
    };
    let symbols: Vec<BTreeMap<&str, Linkage>> = modules.iter().map(symbols).collect();
    let own = |number: usize| {
        let is_elsewhere = |name: &str| (0..parts.len()).any(|k| k != number && symbols[k].contains_key(name));
        let private = symbols[number].iter().filter(|(_, linkage)| **linkage == Linkage::Private);
        private.map(|(name, _)| *name).filter(|name| is_elsewhere(name)).collect::<BTreeSet<&str>>()
    };
    Ok(parts
        .iter()
        .enumerate()
        .map(|(number, part)| match own(number) {
            names if names.is_empty() => Cow::Borrowed(part.ptx),
            names => Cow::Owned(renamed(part.ptx, &names, &format!("$file{number}"))),
        })
        .collect())
}

/// Appends a suffix to each of these names, except in strings, comments and modifiers of instructions.
fn renamed(text: &str, names: &BTreeSet<&str>, suffix: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut all = String::with_capacity(text.len());
    let mut left = text;
    while let Some(first) = left.chars().next() {
        let end = if left.starts_with("//") {
            left.find('\n').unwrap_or(left.len())
        } else if first == '"' {
            left[1..].find('"').map_or(left.len(), |at| at + 2)
        } else if is_word(first) {
            left.find(|c| !is_word(c)).unwrap_or(left.len())
        } else {
            first.len_utf8()
        };
        let (token, rest) = left.split_at(end);
        all.push_str(token);
        if names.contains(token) {
            all.push_str(suffix);
        }
        left = rest;
    }
    all
}

/// Merges the texts of the files into one module.
pub fn merged<'t>(parts: &[Part<'_>], texts: &'t [Cow<'_, str>]) -> Result<Module<'t>, SimError> {
    let mut functions: Definitions<'_, 't, Function<'t>> = Definitions::default();
    let mut variables: Definitions<'_, 't, Variable<'t>> = Definitions::default();
    let mut whole = Module::default();
    for (part, text) in parts.iter().zip(texts) {
        let module = parse(part.name, text)?;
        whole.version = whole.version.max(module.version);
        if whole.target.is_empty() {
            whole.target = module.target;
        }
        let shift = whole.files.iter().map(|file| file.index + 1).max().unwrap_or(0);
        whole.files.extend(module.files.into_iter().map(|mut file| {
            file.index += shift;
            file
        }));
        for mut function in module.functions {
            function.body.iter_mut().for_each(|body| move_places(body, shift));
            let (name, linkage, is_defined) = (function.name, function.linkage, function.body.is_some());
            functions.add(part.name, (name, linkage, is_defined), function)?;
        }
        for variable in module.variables {
            let (name, linkage) = (variable.name, variable.linkage);
            // Every file declares the array of dynamic shared memory, and none defines it.
            let is_defined = linkage != Linkage::Extern || variable.space == Space::Shared;
            let linkage = if linkage == Linkage::Extern { Linkage::Weak } else { linkage };
            variables.add(part.name, (name, linkage, is_defined), variable)?;
        }
    }
    whole.functions = functions.all(is_of_system)?;
    whole.variables = variables.all(|_| false)?;
    Ok(whole)
}

/// Shifts the file numbers in a body to match the module's file table.
fn move_places(body: &mut [Statement<'_>], shift: u32) {
    for statement in body {
        match statement {
            Statement::Location { place, inlined_at } => {
                place.file += shift;
                if let Some(caller) = inlined_at {
                    caller.file += shift;
                }
            }
            Statement::Block(inner) => move_places(inner, shift),
            _ => {}
        }
    }
}

/// Functions or variables of all files, in order.
#[derive(Debug)]
struct Definitions<'p, 't, T> {
    found: Vec<Found<'p, 't, T>>,
    by_name: BTreeMap<&'t str, usize>,
}

#[derive(Debug)]
struct Found<'p, 't, T> {
    name: &'t str,
    /// File that defines the symbol, or else the first that declares it.
    file: &'p str,
    is_defined: bool,
    is_weak: bool,
    value: T,
}

impl<T> Default for Definitions<'_, '_, T> {
    fn default() -> Self {
        Self { found: Vec::new(), by_name: BTreeMap::new() }
    }
}

impl<'p, 't, T> Definitions<'p, 't, T> {
    fn add(
        &mut self,
        file: &'p str,
        (name, linkage, is_defined): (&'t str, Linkage, bool),
        value: T,
    ) -> Result<(), SimError> {
        let is_weak = matches!(linkage, Linkage::Weak | Linkage::Common);
        let new = Found { name, file, is_defined, is_weak, value };
        let Some(&at) = self.by_name.get(name) else {
            self.by_name.insert(name, self.found.len());
            self.found.push(new);
            return Ok(());
        };
        let known = &mut self.found[at];
        match (known.is_defined, new.is_defined) {
            (true, true) if !known.is_weak && !new.is_weak => {
                let message = if known.file == file {
                    format!("`{name}` is defined twice in {file}")
                } else {
                    format!("`{name}` is defined in {} and in {file}", known.file)
                };
                return Err(SimError::Link(message));
            }
            (true, true) if known.is_weak && !new.is_weak => *known = new,
            (false, true) => *known = new,
            (_, false) | (true, true) => {}
        }
        Ok(())
    }

    /// Returns all definitions. It is an error if no file defines a symbol, unless the symbol is `known`.
    fn all(self, known: impl Fn(&str) -> bool) -> Result<Vec<T>, SimError> {
        let undefined = self.found.iter().filter(|found| !found.is_defined && !known(found.name));
        let undefined: Vec<String> =
            undefined.map(|found| format!("`{}`, which {} declares", found.name, found.file)).collect();
        if undefined.is_empty() {
            return Ok(self.found.into_iter().map(|found| found.value).collect());
        }
        Err(SimError::Link(format!("no file defines {}", undefined.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_changed_where_they_are_names() {
        let text = "mov.u64 %rd1, add; // add\nadd.s32 %r1, %r2, 1; .file 1 \"add\"\ncall (r), add, (p);";
        let names = BTreeSet::from(["add"]);
        assert_eq!(
            renamed(text, &names, "$1"),
            "mov.u64 %rd1, add$1; // add\nadd.s32 %r1, %r2, 1; .file 1 \"add\"\ncall (r), add$1, (p);"
        );
    }
}
