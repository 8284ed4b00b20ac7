//! Writes a draft as TOML.
//!
//! `runner init` adds comments for the person who will edit it; `runner try` needs none.

use std::fmt::Write as _;

use super::parameter::{DraftParameter, Fill, RecordField, What};
use super::reference::function_of;
use super::{Draft, Variant};

impl Draft {
    pub fn text(&self) -> String {
        self.write(false)
    }

    /// The manifest with comments that say what to change.
    pub fn commented(&self) -> String {
        self.write(true)
    }

    fn write(&self, commented: bool) -> String {
        let mut out = Writer { text: String::new(), commented };
        out.comment(
            "What is compared, and why. `runner check` finds mistakes, `runner plan` shows what a run would do.",
        );
        out.line("[experiment]");
        out.line(&format!("name     = {}", quoted(&self.name)));
        let names: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
        out.line(&format!("title    = {}", quoted(&names.join(", "))));
        if commented {
            out.line("question = \"Which is faster?\"");
        }
        out.line(&format!("baseline = {}", quoted(names.first().unwrap_or(&""))));
        out.line("steps    = false");
        self.axes(&mut out);
        for place in self.parts() {
            buffer(&mut out, place);
        }
        self.checks(&mut out);
        self.work(&mut out);
        for (at, variant) in self.variants.iter().enumerate() {
            if at == 0 {
                out.gap(
                    "Each variant is one way to write the kernel. `grid` and `block` take one to three expressions.",
                );
            } else {
                out.gap("");
            }
            self.variant(&mut out, variant);
        }
        out.text
    }

    fn axes(&self, out: &mut Writer) {
        out.gap(
            "The matrix: every variant runs for every combination of values. A block or a type can be an axis, too.",
        );
        let sizes = |sizes: &[&str]| sizes.iter().map(|size| quoted(size)).collect::<Vec<_>>().join(", ");
        let given: Vec<&str> = self.n.iter().map(String::as_str).collect();
        let default = self.defaults.each_ref().map(String::as_str);
        let cuda = if given.is_empty() { &default[..1] } else { &given[..] };
        out.line(&format!("[axes]\nn = {{ int = [{}] }}", sizes(cuda)));
        for place in self.places.iter().filter(|place| matches!(place.what, What::Switch)) {
            out.line(&format!("{} = [0, 1]", place.name));
        }
        if given.is_empty() && default[0] != default[1] {
            out.gap("The simulator runs every thread on the host, so it gets smaller sizes.");
            out.line(&format!("[on.sim.axes]\nn = {{ int = [{}] }}", sizes(&default[1..])));
        }
        let further: Vec<String> = self
            .sizes
            .iter()
            .filter_map(|size| Some(format!("{} = {}", size.name, quoted(size.text.as_ref()?))))
            .collect();
        if !further.is_empty() {
            out.gap("The sizes differ, so that a kernel that mixes them up gives wrong results.");
            out.line(&format!("[let]\n{}", further.join("\n")));
        }
        self.compiler(out);
    }

    /// Writes the compiler keys that apply to all variants.
    fn compiler(&self, out: &mut Writer) {
        let paths: Vec<String> = self.include_paths.iter().map(|path| quoted(path)).collect();
        let defines: Vec<String> =
            self.defines.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        if paths.is_empty() && defines.is_empty() {
            return;
        }
        out.gap("");
        out.line("[defaults]");
        if !paths.is_empty() {
            out.line(&format!("include_paths = [{}]", paths.join(", ")));
        }
        if !defines.is_empty() {
            out.line(&format!("defines = {{ {} }}", defines.join(", ")));
        }
    }

    fn checks(&self, out: &mut Writer) {
        if self.variants.len() < 2 && self.reference.is_none() {
            return;
        }
        out.gap(match &self.reference {
            Some(_) => "Every result must equal that of the host function.",
            None => "Every result must equal the baseline's. A reference is better: expect = \"2 * x + y\".",
        });
        let tolerance = self.tolerance.map(|rel| format!("tolerance = {{ rel = {rel:?} }}\n")).unwrap_or_default();
        let baseline = quoted(&self.variants[0].name);
        let checks = self.parts().into_iter().filter(|place| place.is_output()).map(|place| {
            let name = quoted(&place.name);
            let tolerance = if place.element.is_float() { tolerance.as_str() } else { "" };
            let expect = match &self.reference {
                Some(reference) => {
                    format!("cpp = {}", quoted(&format!("{}:{}", reference.path, function_of(&place.name))))
                }
                None => format!("variant = {baseline}"),
            };
            format!("[[check]]\nactual = {name}\nexpect = {{ {expect} }}\n{tolerance}")
        });
        out.line(checks.collect::<Vec<_>>().join("\n").trim_end());
    }

    /// Writes the minimum number of bytes, assuming that every element is touched once. Written as a comment, since a
    /// signature does not show the work.
    fn work(&self, out: &mut Writer) {
        let size = |place: &DraftParameter| match &place.what {
            What::Buffer { len, .. } => Some(format!("{} * ({len})", place.element.size())),
            _ => None,
        };
        let bytes: Vec<String> = self.places.iter().filter_map(size).collect();
        if out.commented && !bytes.is_empty() {
            out.gap("Minimum number of bytes to move. With it, the report shows rates and the fraction of peak.");
            out.line(&format!("# [work]\n# bytes = {}", quoted(&bytes.join(" + "))));
        }
    }

    fn variant(&self, out: &mut Writer, variant: &Variant) {
        let Variant { name, source, kernel, block, grid, shared, .. } = variant;
        let list = |items: &[String]| match items {
            [only] if only == "occupancy" => quoted(only),
            items => format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ")),
        };
        let is_plain = block.len() == 1 && block[0] != "occupancy";
        out.line("[[variant]]");
        out.line(&format!("name   = {}\nsource = {}\nkernel = {}", quoted(name), quoted(source), quoted(kernel)));
        if is_plain {
            out.line(&format!("let    = {{ block = {} }}", quoted(&block[0])));
        }
        let block = if is_plain { "[\"block\"]".to_owned() } else { list(block) };
        out.line(&format!("grid   = {}\nblock  = {block}", list(grid)));
        if let Some(shared) = shared {
            out.line(&format!("shared = {}", quoted(shared)));
        }
        let arguments: Vec<String> = self.places.iter().map(argument).collect();
        out.line(&format!("args   = [{}]", arguments.join(", ")));
    }
}

/// Formats an entry of `args`.
fn argument(DraftParameter { name, element, what }: &DraftParameter) -> String {
    match what {
        What::Buffer { .. } => quoted(name),
        What::Number { value } => quoted(&format!("{element}({value})")),
        What::Switch => quoted(&format!("{element}({name})")),
        What::Vector { values } => {
            let values: Vec<String> = values.iter().map(|value| quoted(&format!("{element}({value})"))).collect();
            format!("[{}]", values.join(", "))
        }
        What::Texture { texture, .. } => {
            let size: Vec<String> = texture.size.iter().map(|side| quoted(side)).collect();
            let kind = quoted(texture.kind);
            format!("{{ texture = {}, size = [{}], kind = {kind} }}", quoted(name), size.join(", "))
        }
        What::Record { fields } => {
            let field = |field: &RecordField| match field.count {
                Some(count) => format!("{} = {{ of = {}, count = {count} }}", field.name, argument(&field.value)),
                None => format!("{} = {}", field.name, argument(&field.value)),
            };
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

fn buffer(out: &mut Writer, DraftParameter { name, element, what }: &DraftParameter) {
    if let What::Texture { texels, texture, seed } = what {
        let (low, high) = if element.is_float() { (0, 1) } else { (0, 255) };
        out.gap("A texture's texels.");
        let of = format!("type   = \"{texels}\"\nlen    = {}", quoted(&texture.len()));
        let fill = format!("fill   = {{ uniform = [{low}, {high}], seed = {seed} }}\naccess = \"in\"");
        out.line(&format!("[buffers.{name}]\n{of}\n{fill}"));
        return;
    }
    let What::Buffer { role, len, fill, seed } = what else { return };
    out.gap(match (role.is_filled(), role.is_output()) {
        (true, false) => {
            "An input: random numbers. `access` can be in, out, inout (filled again before every launch) or scratch."
        }
        (false, true) => "An output: every element is poisoned before a launch, so that a missing write is detected.",
        (true, true) => "An input that is also an output: it is filled again before every launch.",
        (false, false) => "",
    });
    out.line(&format!("[buffers.{name}]\ntype   = \"{element}\"\nlen    = {}", quoted(len)));
    if role.is_filled() {
        out.line(&match fill {
            Fill::Iota => "fill   = \"iota\"".to_owned(),
            Fill::Uniform(low, high) => {
                let end = |text: &String| if text.parse::<f64>().is_ok() { text.clone() } else { quoted(text) };
                format!("fill   = {{ uniform = [{}, {}], seed = {seed} }}", end(low), end(high))
            }
        });
    }
    out.line(&format!("access = \"{}\"", role.name()));
}

/// Quotes text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

struct Writer {
    text: String,
    commented: bool,
}

impl Writer {
    fn line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn comment(&mut self, comment: &str) {
        if self.commented && !comment.is_empty() {
            self.line(&format!("# {comment}"));
        }
    }

    /// Writes an empty line, followed by `comment` if comments are enabled.
    fn gap(&mut self, comment: &str) {
        self.line("");
        self.comment(comment);
    }
}
