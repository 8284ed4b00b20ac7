//! Drafts a manifest from the kernels of a source, for `runner try` and `runner init`.
//!
//! Pointers become buffers of the length that the kernels need. Integers become sizes, all different; other numbers
//! become distinct values, too. If a kernel reads a buffer before writing it, the buffer is also an input. All kernels
//! get the same buffers, and their outputs are compared with the first kernel's.

mod argument;
mod layout;
mod parameter;
mod record;
pub mod reference;
mod sizes;
mod text;
mod triton;

pub use sizes::fitting;
pub use triton::TritonKernel;

use argument::{Wish, places};
use parameter::{DraftParameter, What};
use reference::Reference;
use sizes::{Given, Size, Sizes, sizes};

use super::validate::may_name_buffer;
use std::collections::BTreeMap;

use runner_cuda_source::launches::Launch;
use runner_cuda_source::parameter::joined;
use runner_cuda_source::signature::{Signature, TemplateParameter};
use runner_cuda_source::source::split;
use runner_cuda_source::source::tokens;
use runner_lang::diagnostics::nearest;

#[derive(Debug, Clone)]
pub struct Wanted {
    /// Source path for the manifest.
    pub source: String,
    /// Source path for messages.
    pub file: String,
    /// Kernel name for the manifest: `scale<4>`.
    pub kernel: String,
    pub signature: Signature,
    /// Integer constants in the source.
    pub constants: BTreeMap<String, i128>,
    /// Launch of the kernel in the source itself or in the file below.
    pub launch: Option<Launch>,
    /// Another file that launches the kernel, for messages.
    pub launched_in: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub name: String,
    /// Kernels to compare; the first is the baseline.
    pub kernels: Vec<Wanted>,
    /// Values of the size `n`, as expressions. By default, sizes that suit a GPU and the simulator.
    pub n: Vec<String>,
    /// Threads per block: one string for all kernels or one per kernel, with comma-separated dimensions. The default is
    /// the block size of the source's launch, the block size implied by the kernel's constants, or 256.
    pub block: Vec<String>,
    /// Blocks per grid, in the same form as `block`. The default is the grid of the source's launch, or one thread per
    /// element.
    pub grid: Vec<String>,
    /// Bytes of dynamic shared memory: one expression for all kernels or one per kernel.
    pub shared: Vec<String>,
    /// Include folders, as written in the manifest.
    pub include_paths: Vec<String>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Values of `--arg`: `NAME=VALUE`.
    pub arguments: Vec<String>,
    /// Relative tolerance for floats; `None` for the element type's default.
    pub tolerance: Option<f64>,
    /// Host function that computes the expected outputs.
    pub reference: Option<Reference>,
    /// Whether sizes have the values that the source's launch passes.
    pub is_exact: bool,
    /// Further information for the user.
    pub notes: Vec<String>,
}

/// A manifest before it is written as text.
#[derive(Debug, Clone)]
pub struct Draft {
    name: String,
    n: Vec<String>,
    /// Default values of `n` for a GPU and for the simulator.
    defaults: [String; 2],
    sizes: Vec<Size>,
    places: Vec<DraftParameter>,
    /// Parameter names in the first kernel, in the order of `places`.
    parameters: Vec<String>,
    variants: Vec<Variant>,
    tolerance: Option<f64>,
    reference: Option<DraftReference>,
    include_paths: Vec<String>,
    defines: Vec<(String, String)>,
    is_of_launch: bool,
    notes: Vec<String>,
}

/// A C++ source with a function for each output.
#[derive(Debug, Clone)]
struct DraftReference {
    path: String,
    text: String,
    /// Host function and its place, for messages.
    place: String,
}

#[derive(Debug, Clone)]
struct Variant {
    name: String,
    source: String,
    kernel: String,
    block: Vec<String>,
    grid: Vec<String>,
    shared: Option<String>,
    /// Where the launch comes from, for messages.
    origin: Option<String>,
}

impl Draft {
    /// On failure, returns all faults, each with what to do.
    pub fn new(request: &Request) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let types: Vec<Vec<(String, String)>> =
            request.kernels.iter().map(|wanted| template_arguments(wanted, &mut faults)).collect();
        differing_counts(request, &mut faults);
        let wishes = wishes(request, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let given = Given {
            values: wishes.iter().enumerate().filter_map(|(at, wish)| Some((at, wish.value()?.to_owned()))).collect(),
            blocks: for_each(request, "--block", &request.block, &mut faults),
            grids: for_each(request, "--grid", &request.grid, &mut faults),
            shared: for_each(request, "--shared", &request.shared, &mut faults)
                .into_iter()
                .map(|parts| parts.map(|parts| parts.join(", ")))
                .collect(),
            types: &types,
            is_exact: request.is_exact,
        };
        let with_fields = |wanted: &Wanted| {
            let integers = record::integers(&wanted.signature.parameters).into_iter();
            let mut wanted = wanted.clone();
            wanted.constants.extend(integers.map(|(name, value)| (name, value.into())));
            wanted
        };
        let kernels: Vec<Wanted> = request.kernels.iter().map(with_fields).collect();
        let sizes = sizes(&kernels, &given);
        let places = match places(request, &types, &wishes, &sizes) {
            Ok(found) => found.into_iter().fold(Vec::new(), |mut before, place| {
                let place = unique(place, &before, &sizes);
                before.push(place);
                before
            }),
            Err(found) => {
                faults.extend(found);
                Vec::new()
            }
        };
        if request.kernels.len() > 1
            && faults.is_empty()
            && !places.iter().flat_map(DraftParameter::parts).any(DraftParameter::is_output)
        {
            faults.push(
                "no parameter is an output, so nothing can be compared: all pointers are const; mark an output with \
                 --arg NAME=out"
                    .to_owned(),
            );
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let define = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), "1".to_owned()),
        };
        let reference = request.reference.as_ref().and_then(|reference| {
            let text = reference::source(reference, &places)?;
            Some(DraftReference { path: reference.path.clone(), text, place: reference.place.clone() })
        });
        let kept = sizes.kept.map(|value| [value.to_string(), value.to_string()]);
        Ok(Self {
            name: request.name.clone(),
            n: request.n.clone(),
            defaults: kept.unwrap_or_else(|| sizes.defaults.clone()),
            variants: variants(request, &sizes),
            places,
            parameters: request
                .kernels
                .first()
                .into_iter()
                .flat_map(|wanted| &wanted.signature.parameters)
                .map(|parameter| parameter.name.clone().unwrap_or_default())
                .collect(),
            tolerance: request.tolerance,
            reference,
            include_paths: request.include_paths.clone(),
            defines: request.defines.iter().map(define).collect(),
            is_of_launch: sizes.is_of_launch,
            sizes: sizes.all,
            notes: request.kernels.iter().flat_map(unused).chain(request.notes.iter().cloned()).collect(),
        })
    }

    /// Name of the first variant, with which the others are compared.
    pub fn baseline(&self) -> Option<&str> {
        self.variants.first().map(|variant| variant.name.as_str())
    }

    /// Names of the variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|variant| variant.name.as_str())
    }

    /// Whether the first kernel has dynamic shared memory.
    pub fn has_dynamic_memory(&self) -> bool {
        self.variants.first().is_some_and(|variant| variant.shared.is_some())
    }

    /// Power of two near the default first size on the simulator, if that is none.
    pub fn whole_size(&self) -> Option<&str> {
        self.defaults[1].split_once(" - ").map(|(power, _)| power)
    }

    /// Whether each size has the value that the source's launch passes, and the launch is small enough to simulate.
    pub fn is_of_launch(&self) -> bool {
        self.is_of_launch
    }

    /// Threads per block of the first variant.
    pub fn block(&self) -> Option<&[String]> {
        self.variants.first().map(|variant| variant.block.as_slice())
    }

    /// Path in the manifest and text of the C++ source that the checks need, if any.
    pub fn reference(&self) -> Option<(&str, &str)> {
        self.reference.as_ref().map(|reference| (&*reference.path, &*reference.text))
    }

    pub fn compares(&self) -> bool {
        self.variants.len() > 1
    }

    /// The first kernel's parameter name for a buffer, and the buffer's length.
    pub fn length_of(&self, buffer: &str) -> Option<(&str, &str)> {
        let (position, place) = self.places.iter().enumerate().find(|(_, place)| place.name == buffer)?;
        match &place.what {
            What::Buffer { len, .. } => Some((self.parameters.get(position)?, len)),
            _ => None,
        }
    }

    /// Values to try for integers that a kernel may require to equal a thread count, each with the parameter's name.
    pub fn integers(&self) -> Vec<(String, String)> {
        let threads: Option<i64> = self
            .variants
            .first()
            .and_then(|variant| variant.block.iter().map(|side| side.parse::<i64>().ok()).product());
        let values = threads.into_iter().flat_map(|threads| [threads, threads / 2]).chain([32, 16]);
        let integers = self
            .places
            .iter()
            .zip(&self.parameters)
            .filter(|(place, _)| matches!(place.what, What::Number { .. }) && !place.element.is_float());
        let all = integers.flat_map(|(_, name)| values.clone().map(move |value| (name.clone(), value.to_string())));
        all.collect()
    }

    /// All arguments, including the fields of structs.
    fn parts(&self) -> Vec<&DraftParameter> {
        self.places.iter().flat_map(DraftParameter::parts).collect()
    }

    /// Lines that describe the argument assumed for each parameter and the origin of each launch.
    pub fn assumptions(&self) -> Vec<String> {
        let sizes = self.sizes.iter().filter_map(|size| Some(format!("{} = {}", size.name, size.text.as_ref()?)));
        let launches = self.variants.iter().filter_map(|variant| variant.origin.clone());
        let places = self.places.iter().map(DraftParameter::assumption);
        let reference = self.reference.iter().map(|reference| format!("checked against {}", reference.place));
        sizes.chain(places).chain(launches).chain(reference).chain(self.notes.iter().cloned()).collect()
    }
}

/// A note for each parameter that the body of a kernel does not name.
fn unused(wanted: &Wanted) -> Vec<String> {
    let Some(body) = &wanted.signature.body else { return Vec::new() };
    let names = wanted.signature.parameters.iter().filter_map(|parameter| parameter.name.as_deref());
    let unused = names.filter(|name| !body.mentions(|token| token == *name));
    unused.map(|name| format!("`{name}` has no effect: {} never uses it", wanted.kernel)).collect()
}

/// Template arguments of a kernel by parameter: the requested ones, then defaults.
fn template_arguments(wanted: &Wanted, faults: &mut Vec<String>) -> Vec<(String, String)> {
    let Wanted { file, kernel, signature, .. } = wanted;
    // `k<float>(const float *, int)` selects an overload.
    let named = kernel.split('(').next().filter(|_| kernel.ends_with(')')).unwrap_or(kernel);
    let given: Vec<String> = match named.split_once('<') {
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
            "{file}: `{kernel}` is a template <{}>: pass its arguments, as in -k '{}<{}>'",
            header.join(", "),
            signature.name,
            template_guess(signature, &[]).join(", ")
        ));
    } else if signature.template.is_empty() && kernel.contains('<') {
        faults.push(format!("{file}: `{}` is not a template: remove <…>", signature.name));
    }
    values
}

/// Suggested template arguments for a kernel: from a launch if they make sense outside it, else defaults, else guessed
/// from the parameter's name.
pub fn template_guess(signature: &Signature, launched: &[String]) -> Vec<String> {
    let is_known = |value: &String| {
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        is_number || matches!(value.as_str(), "true" | "false") || crate::element::element(value).is_some()
    };
    let guess = |(at, parameter): (usize, &TemplateParameter)| {
        let launched = launched.get(at).filter(|value| is_known(value)).cloned();
        launched.or_else(|| parameter.default.clone()).unwrap_or_else(|| example(parameter).to_owned())
    };
    signature.template.iter().enumerate().map(guess).collect()
}

fn example(parameter: &TemplateParameter) -> &'static str {
    let is = |words: &[&str]| words.iter().any(|word| parameter.name.to_lowercase().contains(word));
    match parameter.text.split(' ').next() {
        Some("typename" | "class") => "float",
        Some("bool") => "true",
        _ if is(&["tile", "dim"]) => "16",
        _ if is(&["block", "thread"]) => "256",
        _ => "4",
    }
}

/// Reports kernels that have a different number of parameters from the first.
fn differing_counts(request: &Request, faults: &mut Vec<String>) {
    let Some((first, others)) = request.kernels.split_first() else { return };
    let count = |wanted: &Wanted| wanted.signature.parameters.len();
    for other in others.iter().filter(|other| count(other) != count(first)) {
        let shown = |wanted: &Wanted| {
            let texts: Vec<&str> = wanted.signature.parameters.iter().map(|p| p.text.as_str()).collect();
            format!("`{}` takes {} ({})", wanted.kernel, count(wanted), texts.join(", "))
        };
        faults.push(format!(
            "the kernels have different numbers of parameters: {}, {}; select kernels with the same parameters with \
             -k, or write a manifest",
            shown(first),
            shown(other)
        ));
    }
}

/// Parsed `--arg` options by parameter position.
fn wishes(request: &Request, faults: &mut Vec<String>) -> Vec<Wish> {
    let names = |position: usize| {
        let parameters = request.kernels.iter().filter_map(move |wanted| wanted.signature.parameters.get(position));
        parameters.filter_map(|parameter| parameter.name.as_deref())
    };
    let count = request.kernels.iter().map(|wanted| wanted.signature.parameters.len()).max().unwrap_or(0);
    let mut wishes = vec![Wish::default(); count];
    for argument in &request.arguments {
        let Some((name, value)) = argument.split_once('=') else {
            faults.push(format!("--arg {argument}: expected NAME=VALUE, as in --arg n=1024"));
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

/// Renames the parameter if its name is already in use or is not allowed for a buffer.
fn unique(mut place: DraftParameter, before: &[DraftParameter], sizes: &Sizes) -> DraftParameter {
    let is_free = |name: &str| {
        let is_shared = before.iter().any(|other| other.name == name && other.has_name());
        let is_size = sizes.all.iter().any(|size| size.name == name);
        may_name_buffer(name) && !["n", "block"].contains(&name) && !is_shared && !is_size
    };
    if place.name == "in" {
        "input".clone_into(&mut place.name);
    }
    while place.has_name() && !is_free(&place.name) {
        place.name.push_str(if place.is_buffer() { "_buffer" } else { "_value" });
    }
    place
}

/// Value of an option for each kernel: given once for all, or once per kernel.
fn for_each(request: &Request, option: &str, texts: &[String], faults: &mut Vec<String>) -> Vec<Option<Vec<String>>> {
    let count = request.kernels.len();
    if texts.len() > 1 && texts.len() != count {
        faults.push(format!(
            "{option} is given {} times for {count} kernels: pass it once for all, or once per kernel",
            texts.len()
        ));
    }
    let of = |place: usize| if texts.len() > 1 { texts.get(place) } else { texts.first() };
    (0..count).map(|place| of(place).map(|text| parts(text))).collect()
}

fn variants(request: &Request, sizes: &Sizes) -> Vec<Variant> {
    let mut found: Vec<Variant> = Vec::new();
    for (wanted, shape) in request.kernels.iter().zip(&sizes.shapes) {
        let mut name = name_of(request, wanted);
        let alike =
            found.iter().filter(|other| other.name == name || other.name.starts_with(&format!("{name}-"))).count();
        if alike > 0 {
            name = format!("{name}-{}", alike + 1);
        }
        let origin = wanted.launch.as_ref().filter(|_| !shape.taken.is_empty()).map(|launch| {
            let what = shape.taken.join(", ");
            let file = wanted.launched_in.as_ref().unwrap_or(&wanted.file);
            format!("{name}: {what} from the launch at {file}:{}", launch.line)
        });
        let has_defaults_only = !wanted.signature.template.is_empty() && !wanted.kernel.contains('<');
        let kernel = match wanted.kernel.split_once('(') {
            Some((name, types)) if has_defaults_only => format!("{name}<>({types}"),
            _ if has_defaults_only => format!("{}<>", wanted.kernel),
            _ => wanted.kernel.clone(),
        };
        let (block, grid, shared) = (shape.block.clone(), shape.grid.clone(), shape.shared.clone());
        found.push(Variant { name, source: wanted.source.clone(), kernel, block, grid, shared, origin });
    }
    found
}

/// Splits at commas outside brackets.
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

/// Variant name for a kernel. It includes the source if another source has a kernel with the same name.
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
