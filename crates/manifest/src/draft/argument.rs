//! Chooses the argument for each kernel parameter in a drafted manifest: a buffer or a number, depending on its type or
//! on `--arg`.

use super::layout::elements;
use super::parameter::{DraftParameter, FLOATS, Fill, Role, Texture, What};
use super::record::record;
use super::sizes::Sizes;
use super::{Request, Wanted};
use crate::element::{components, element, is_vector};
use runner_cuda_source::expression::Expression;
use runner_cuda_source::kernel_body::Access;
use runner_cuda_source::parameter::Parameter;
use runner_types::ElementType;

/// A parsed `--arg` value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    role: Option<Role>,
    element: Option<ElementType>,
    fill: Option<Fill>,
    value: Option<String>,
}

impl Wish {
    /// Requested number or length.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Parses a value such as `in:0..n:n/256`, whose parts may come in any order.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut wish = Self::default();
        for part in text.split(':').map(str::trim) {
            let again = |known: bool| {
                if known { Err(format!("`{part}` sets something that an earlier part already sets")) } else { Ok(()) }
            };
            if part.is_empty() {
                return Err("a part is empty; write a number, a length, or in, out, inout or scratch".to_owned());
            } else if let Some((_, role)) = Role::ALL.into_iter().find(|(name, _)| *name == part) {
                again(wish.role.replace(role).is_some())?;
            } else if let Ok(element) = part.parse() {
                again(wish.element.replace(element).is_some())?;
            } else if part == "iota" {
                again(wish.fill.replace(Fill::Iota).is_some())?;
            } else if let Some((low, high)) = part.split_once("..") {
                for end in [low, high] {
                    end.parse::<f64>()
                        .map_err(|_| format!("`{end}` in `{part}` is not a number: write a range such as 0..255"))?;
                }
                again(wish.fill.replace(Fill::Uniform(low.to_owned(), high.to_owned())).is_some())?;
            } else {
                again(wish.value.replace(part.to_owned()).is_some())?;
            }
        }
        Ok(wish)
    }
}

/// Arguments of all parameters. `types` holds the template arguments of each kernel.
pub fn places(
    request: &Request,
    types: &[Vec<(String, String)>],
    wishes: &[Wish],
    sizes: &Sizes,
) -> Result<Vec<DraftParameter>, Vec<String>> {
    let count = request.kernels.first().map_or(0, |wanted| wanted.signature.parameters.len());
    let mut floats = FLOATS.into_iter().cycle();
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (position, wish) in wishes.iter().enumerate().take(count) {
        match place(request, types, (position, wish), sizes, &mut floats) {
            Ok(place) => found.push(place),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

/// Argument of the parameter at `position`.
fn place(
    request: &Request,
    types: &[Vec<(String, String)>],
    (position, wish): (usize, &Wish),
    sizes: &Sizes,
    floats: &mut impl Iterator<Item = f64>,
) -> Result<DraftParameter, String> {
    let parameters = || {
        let kernels = request.kernels.iter().zip(types);
        kernels.filter_map(|(wanted, types)| Some((wanted, types, wanted.signature.parameters.get(position)?)))
    };
    let Some((first, first_types, parameter)) = parameters().next() else {
        return Err("no kernel is given: select one with -k".to_owned());
    };
    let name = parameter.name.clone().unwrap_or_else(|| format!("arg{position}"));
    if parameter.pointers == 0 && !parameter.is_reference && !parameter.fields.is_empty() && wish.element.is_none() {
        let fields = record(&name, &parameter.fields, 100 * (position + 1)).map_err(|field| {
            format!(
                "{}: field `{field}` of parameter `{}` has an unknown type; write a manifest with \
                 `runner init`, and set the struct to `{{ {field} = … }}`",
                first.file, parameter.text
            )
        })?;
        return Ok(DraftParameter { name, element: ElementType::U8, what: What::Record { fields } });
    }
    if parameter.base == "cudaTextureObject_t" && parameter.pointers == 0 {
        let fetch = first.signature.body.as_ref().and_then(|body| body.fetch(&name));
        let (function, texels) = fetch.unwrap_or_else(|| ("tex2D".to_owned(), "float".to_owned()));
        let element = element(&texels).unwrap_or(ElementType::F32);
        // A manifest names vectors as C++ does, and numbers by their element type.
        let texels = if is_vector(&texels) { texels } else { element.to_string() };
        return Ok(DraftParameter {
            name,
            element,
            what: What::Texture { texels, texture: Texture::of(&function), seed: position + 1 },
        });
    }
    let element = match wish.element {
        Some(element) => element,
        None => known(first, parameter, first_types, &name)?,
    };
    for (wanted, types, other) in parameters().skip(1) {
        let same = (other.pointers, other.is_reference) == (parameter.pointers, parameter.is_reference)
            && (wish.element.is_some() || element_of(other, types) == Some(element));
        if !same {
            return Err(format!(
                "parameter {} has different types: `{}` in {}, `{}` in {}; compared kernels must take the same \
                 types in the same order",
                position + 1,
                parameter.text,
                first.kernel,
                other.text,
                wanted.kernel
            ));
        }
    }
    let is_input = parameters().any(|(.., parameter)| parameter.is_const);
    if parameter.pointers == 0 && (wish.role.is_some() || wish.fill.is_some()) {
        return Err(format!(
            "--arg {name}: `{}` is a number, not a buffer: write e.g. --arg {name}=1024",
            parameter.text
        ));
    }
    let what = if parameter.pointers > 0 {
        let default = sizes.lens.get(&position).cloned().unwrap_or_else(|| "n".to_owned());
        let index = sizes.indices.get(&position);
        let last = index.and_then(Option::as_deref);
        What::Buffer {
            role: wish.role.unwrap_or_else(|| if is_input { Role::In } else { role(request, position) }),
            len: wish.value.clone().unwrap_or(default),
            fill: wish.fill.clone().unwrap_or_else(|| default_fill(request, element, (index.is_some(), last))),
            seed: position + 1,
        }
    } else if let Some(value) = &wish.value {
        What::Number { value: value.clone() }
    } else if parameter.base == "bool" {
        What::Switch
    } else if is_vector(&parameter.base) {
        let count = components(&parameter.base);
        let number = |place: usize| {
            if element.is_float() { format!("{:?}", FLOATS[place]) } else { (3 + 2 * place).to_string() }
        };
        What::Vector { values: (0..usize::try_from(count).unwrap_or(1)).map(number).collect() }
    } else if element.is_float() {
        let own = floats.next().unwrap_or(FLOATS[0]);
        What::Number { value: format!("{:?}", launched(first, position).unwrap_or(own)) }
    } else {
        What::Number { value: sizes.values.get(&position).cloned().unwrap_or_else(|| "n".to_owned()) }
    };
    Ok(DraftParameter { name, element, what })
}

/// Float that the source's launch passes, unless it is 0, 1 or -1 or passed twice: such a value can hide what the
/// kernel does with it.
fn launched(wanted: &Wanted, position: usize) -> Option<f64> {
    let arguments = &wanted.launch.as_ref()?.arguments;
    let value = |position: usize| match arguments.get(position).map(|argument| &argument.value) {
        Some(Expression::Float(value)) => Some(*value),
        _ => None,
    };
    let own = value(position)?;
    let is_plain = [0.0, 1.0, -1.0].contains(&own);
    let is_shared = (0..arguments.len()).any(|other| other != position && value(other) == Some(own));
    (!is_plain && !is_shared).then_some(own)
}

/// Role of the buffer behind a non-const pointer, according to the kernels' bodies.
fn role(request: &Request, position: usize) -> Role {
    let access = |wanted: &Wanted| {
        let name = wanted.signature.parameters.get(position)?.name.as_deref()?;
        Some(wanted.signature.body.as_ref()?.access(name))
    };
    let accesses: Vec<Access> = request.kernels.iter().map(|wanted| access(wanted).unwrap_or_default()).collect();
    match accesses.iter().filter(|access| **access == Access::Read).count() {
        _ if accesses.contains(&Access::Updated) => Role::InOut,
        0 => Role::Out,
        count if count == accesses.len() => Role::In,
        _ => Role::InOut,
    }
}

/// Random numbers of both signs whose sums do not cancel. Indices stay within the buffer that they index, if its length
/// is known.
fn default_fill(request: &Request, element: ElementType, (is_index, last): (bool, Option<&str>)) -> Fill {
    let is_root = |token: &str| {
        ["sqrt", "log", "pow", "asin", "acos", "lgamma"]
            .iter()
            .any(|word| token.trim_start_matches("__").trim_start_matches('r').starts_with(word))
    };
    let has_root =
        request.kernels.iter().any(|wanted| wanted.signature.body.as_ref().is_some_and(|body| body.mentions(is_root)));
    let (low, high) = match element {
        _ if element.is_float() && has_root => ("0.25", "1.75"),
        _ if element.is_float() => ("-1", "2"),
        ElementType::I8 if is_index => ("0", "127"),
        ElementType::I8 => ("-100", "127"),
        ElementType::I16 | ElementType::I32 | ElementType::I64 if !is_index => ("-99", "155"),
        _ => ("0", "255"),
    };
    let high = last.filter(|_| element.size() >= 4).unwrap_or(high);
    Fill::Uniform(low.to_owned(), high.to_owned())
}

/// Element type of a parameter, with template arguments substituted.
fn element_of(parameter: &Parameter, types: &[(String, String)]) -> Option<ElementType> {
    let base = types.iter().find(|(name, _)| *name == parameter.base).map_or(&parameter.base, |(_, value)| value);
    element(base).or_else(|| Some(elements(&parameter.fields).filter(|_| parameter.pointers > 0)?.0))
}

/// Element type, or an error that says why it is unknown and what to do.
fn known(
    wanted: &Wanted,
    parameter: &Parameter,
    types: &[(String, String)],
    name: &str,
) -> Result<ElementType, String> {
    let place = format!("{}: parameter `{}` of {}", wanted.file, parameter.text, wanted.kernel);
    let unnamed = parameter.name.is_none();
    if parameter.is_reference || parameter.pointers > 1 {
        let what = if parameter.is_reference { "a reference" } else { "a pointer to pointers" };
        return Err(format!("{place} is {what}, which a manifest cannot pass; pass a pointer to numbers instead"));
    }
    let by_value = parameter.pointers == 0;
    match element_of(parameter, types) {
        Some(element) => Ok(element),
        None if unnamed => Err(format!("{place} has a type that is not understood, and no name; give it one")),
        None if parameter.is_undefined => Err(format!(
            "{place} has a type that no file here defines: define it, as in -D {}=float, or name the file that includes \
             this one",
            parameter.base
        )),
        None if by_value => Err(format!(
            "{place} has a type that is not understood: if it is a number, name its type, as in --arg {name}=u32:n; for \
             a struct, write its fields in the manifest that `runner init` writes"
        )),
        None => Err(format!(
            "{place} has an unknown type: set the type of its elements, as in --arg {name}=f32, or count bytes, as in \
             --arg {name}=u8:16*n"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_argument_come_in_any_order() {
        let expected = Wish {
            role: Some(Role::In),
            element: Some(ElementType::I32),
            fill: Some(Fill::Uniform("-1".to_owned(), "5".to_owned())),
            value: Some("n / 4".to_owned()),
        };
        assert_eq!(Wish::parse("in:i32:-1..5:n / 4"), Ok(expected.clone()));
        assert_eq!(Wish::parse("n / 4 : -1..5:in: i32"), Ok(expected));
        for (text, why) in [("in:out", "already sets"), ("0..n", "is not a number"), ("in:", "a part is empty")] {
            assert!(Wish::parse(text).is_err_and(|said| said.contains(why)), "{text}");
        }
    }
}
