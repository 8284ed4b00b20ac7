//! Drafts a manifest from the kernels of a source, for `runner try` and `runner init`.
//!
//! Pointers become buffers of `n` elements (`n * n` if threads or blocks have two dimensions), integers become `n`,
//! floats 1. What a kernel reads before it writes it is also an input. All kernels get the same buffers, and the
//! outputs of each are compared with those of the first.

mod argument;
mod text;
mod triton;

pub use triton::TritonKernel;

use argument::{DraftParameter, Wish, dimensions, place};

use super::validate::may_name_buffer;
use runner_cuda_source::signature::{Signature, TemplateParameter, joined, split};
use runner_cuda_source::source::tokens;
use runner_lang::diagnostics::nearest;

#[derive(Debug, Clone)]
pub struct Wanted {
    /// Source as the manifest names it.
    pub source: String,
    /// Source as messages name it.
    pub file: String,
    /// Kernel as the manifest names it: `scale<4>`.
    pub kernel: String,
    pub signature: Signature,
}

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub name: String,
    /// Kernels to compare; the first is the baseline.
    pub kernels: Vec<Wanted>,
    /// Expressions of the sizes. By default, sizes that suit a GPU and the simulator.
    pub n: Vec<String>,
    /// Threads per block: one text for all kernels or one for each, with commas between dimensions. By default 256.
    pub block: Vec<String>,
    /// Blocks, in the form of `block`. By default one thread per element.
    pub grid: Vec<String>,
    /// Options `--arg NAME=VALUE`.
    pub arguments: Vec<String>,
    /// Permitted relative difference of floats; `None` for the element type's default.
    pub tolerance: Option<f64>,
}

/// A manifest that is not yet text.
#[derive(Debug, Clone)]
pub struct Draft {
    name: String,
    n: Vec<String>,
    places: Vec<DraftParameter>,
    variants: Vec<Variant>,
    tolerance: Option<f64>,
    /// Whether buffers have `n * n` elements.
    is_square: bool,
}

#[derive(Debug, Clone)]
struct Variant {
    name: String,
    source: String,
    kernel: String,
    block: Vec<String>,
    grid: Vec<String>,
}

impl Draft {
    /// Fails with every fault, each with what to do.
    pub fn new(request: &Request) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let types: Vec<Vec<(String, String)>> =
            request.kernels.iter().map(|wanted| template_arguments(wanted, &mut faults)).collect();
        differing_counts(request, &mut faults);
        let wishes = wishes(request, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut places: Vec<DraftParameter> = Vec::new();
        let count = request.kernels.first().map_or(0, |wanted| wanted.signature.parameters.len());
        for (position, wish) in wishes.into_iter().take(count).enumerate() {
            match place(request, &types, position, &wish) {
                Ok(place) => places.push(unique(place, &places)),
                Err(fault) => faults.push(fault),
            }
        }
        let variants = variants(request, &mut faults);
        if request.kernels.len() > 1 && faults.is_empty() && !places.iter().any(DraftParameter::is_output) {
            faults.push(
                "no parameter is an output, so that nothing can be compared: the pointers are const; name one with \
                 --arg NAME=out"
                    .to_owned(),
            );
        }
        if faults.is_empty() {
            let Request { name, n, tolerance, .. } = request.clone();
            let is_square = request.kernels.iter().any(|wanted| dimensions(wanted) > 1);
            Ok(Self { name, n, places, variants, tolerance, is_square })
        } else {
            Err(faults)
        }
    }

    /// Lines that describe the argument assumed for each parameter.
    pub fn assumptions(&self) -> Vec<String> {
        self.places.iter().map(DraftParameter::assumption).collect()
    }
}

/// Template arguments of a kernel by parameter: the requested ones, then defaults.
fn template_arguments(wanted: &Wanted, faults: &mut Vec<String>) -> Vec<(String, String)> {
    let Wanted { file, kernel, signature, .. } = wanted;
    let given: Vec<String> = match kernel.split_once('<') {
        Some((_, rest)) => {
            let rest = tokens(rest.strip_suffix('>').unwrap_or(rest));
            split(&rest).into_iter().map(joined).collect()
        }
        None => Vec::new(),
    };
    let value = |(at, parameter): (usize, &TemplateParameter)| {
        let value = given.get(at).or(parameter.default.as_ref())?;
        Some((parameter.name.clone(), value.clone()))
    };
    let values: Vec<_> = signature.template.iter().enumerate().filter_map(value).collect();
    let header: Vec<&str> = signature.template.iter().map(|parameter| parameter.text.as_str()).collect();
    if values.len() < signature.template.len() {
        faults.push(format!(
            "{file}: `{kernel}` is a template <{}>: name its arguments, as in -k '{}<{}>'",
            header.join(", "),
            signature.name,
            signature.template.iter().map(example).collect::<Vec<_>>().join(", ")
        ));
    } else if signature.template.is_empty() && kernel.contains('<') {
        faults.push(format!("{file}: `{}` is no template: name it without <…>", signature.name));
    }
    values
}

fn example(parameter: &TemplateParameter) -> &'static str {
    let is_type = ["typename", "class"].iter().any(|word| parameter.text.starts_with(word));
    if is_type { "float" } else { "4" }
}

/// Reports the kernels whose number of parameters differs from the first's.
fn differing_counts(request: &Request, faults: &mut Vec<String>) {
    let Some((first, others)) = request.kernels.split_first() else { return };
    let count = |wanted: &Wanted| wanted.signature.parameters.len();
    for other in others.iter().filter(|other| count(other) != count(first)) {
        let shown = |wanted: &Wanted| {
            let texts: Vec<&str> = wanted.signature.parameters.iter().map(|p| p.text.as_str()).collect();
            format!("`{}` takes {} ({})", wanted.kernel, count(wanted), texts.join(", "))
        };
        faults.push(format!(
            "the kernels have different numbers of parameters: {}, {}; name kernels that take the same with -k, or \
             write a manifest",
            shown(first),
            shown(other)
        ));
    }
}

/// What the user asked for each parameter, by position.
fn wishes(request: &Request, faults: &mut Vec<String>) -> Vec<Wish> {
    let names = |position: usize| {
        let parameters = request.kernels.iter().filter_map(move |wanted| wanted.signature.parameters.get(position));
        parameters.filter_map(|parameter| parameter.name.as_deref())
    };
    let count = request.kernels.iter().map(|wanted| wanted.signature.parameters.len()).max().unwrap_or(0);
    let mut wishes = vec![Wish::default(); count];
    for argument in &request.arguments {
        let Some((name, value)) = argument.split_once('=') else {
            faults.push(format!("--arg {argument}: a parameter and its value are expected, as in --arg n=1024"));
            continue;
        };
        let Some(position) = (0..count).find(|position| names(*position).any(|known| known == name.trim())) else {
            let all: Vec<&str> = (0..count).flat_map(names).collect();
            let hint = match nearest(name.trim(), all.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the parameters are {}", all.join(", ")),
            };
            faults.push(format!("--arg {argument}: no kernel has a parameter `{}`; {hint}", name.trim()));
            continue;
        };
        match Wish::parse(value) {
            Ok(wish) => wishes[position] = wish,
            Err(why) => faults.push(format!("--arg {argument}: {why}")),
        }
    }
    wishes
}

/// Renames the parameter if its name is not allowed for a buffer or already in use.
fn unique(mut place: DraftParameter, before: &[DraftParameter]) -> DraftParameter {
    let is_free = |name: &str| {
        let is_shared = before.iter().any(|other| other.name == name && other.is_buffer());
        may_name_buffer(name) && !["n", "block"].contains(&name) && !is_shared
    };
    if place.name == "in" {
        "input".clone_into(&mut place.name);
    }
    while place.is_buffer() && !is_free(&place.name) {
        place.name.push_str("_buffer");
    }
    place
}

fn variants(request: &Request, faults: &mut Vec<String>) -> Vec<Variant> {
    let count = request.kernels.len();
    for (option, texts) in [("--block", &request.block), ("--grid", &request.grid)] {
        if texts.len() > 1 && texts.len() != count {
            faults.push(format!(
                "{option} is given {} times for {count} kernels: once for all, or once for each",
                texts.len()
            ));
        }
    }
    let block_of = |texts: &[String], place: usize| {
        let text = if texts.len() > 1 { texts.get(place) } else { texts.first() }?;
        Some(parts(text))
    };
    let mut found: Vec<Variant> = Vec::new();
    for (place, wanted) in request.kernels.iter().enumerate() {
        let threads = wanted.signature.body.as_ref().map_or(1, |body| body.thread_dimensions);
        let block = block_of(&request.block, place).unwrap_or_else(|| match threads {
            1 => vec!["256".to_owned()],
            _ => vec!["16".to_owned(); 2],
        });
        let grid = block_of(&request.grid, place).unwrap_or_else(|| {
            grid(wanted, &block).unwrap_or_else(|fault| {
                faults.push(fault);
                Vec::new()
            })
        });
        let mut name = name_of(request, wanted);
        let alike =
            found.iter().filter(|other| other.name == name || other.name.starts_with(&format!("{name}-"))).count();
        if alike > 0 {
            name = format!("{name}-{}", alike + 1);
        }
        let has_defaults_only = !wanted.signature.template.is_empty() && !wanted.kernel.contains('<');
        let kernel = format!("{}{}", wanted.kernel, if has_defaults_only { "<>" } else { "" });
        found.push(Variant { name, source: wanted.source.clone(), kernel, block, grid });
    }
    found
}

/// Grid that gives every element a thread. If the kernel does not show its dimensions, what to pass instead.
fn grid(wanted: &Wanted, block: &[String]) -> Result<Vec<String>, String> {
    match (dimensions(wanted), block) {
        (3, _) => Err(format!(
            "{}: `{}` has a grid of three dimensions: name it and what follows from it, as in --block 8,8,4 --grid \
             'ceil_div(n, 8),ceil_div(n, 8),ceil_div(n, 4)' --arg NAME=n*n*n for each buffer",
            wanted.file, wanted.kernel
        )),
        (2, [_]) => Ok(vec!["ceil_div(n, block)".to_owned(), "n".to_owned()]),
        (2, [x, y]) => Ok(vec![format!("ceil_div(n, {x})"), format!("ceil_div(n, {y})")]),
        (_, [_]) => Ok(vec!["ceil_div(n, block)".to_owned()]),
        _ => Err(format!(
            "--block {} has {} dimensions: name the grid with --grid, as in --grid 'ceil_div(n, 32),1'",
            block.join(","),
            block.len()
        )),
    }
}

/// Splits at commas outside of brackets.
fn parts(text: &str) -> Vec<String> {
    let mut depth = 0;
    let is_comma = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_comma).map(|part| part.trim().to_owned()).collect()
}

/// Name of the kernel, with its source if another source has a kernel of the same name.
fn name_of(request: &Request, wanted: &Wanted) -> String {
    let shared = |other: &Wanted| other.kernel == wanted.kernel && other.source != wanted.source;
    if request.kernels.iter().any(shared) {
        let stem = std::path::Path::new(&wanted.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("{stem}:{}", wanted.kernel)
    } else {
        wanted.kernel.clone()
    }
}

#[cfg(test)]
mod tests;
