//! What to pass for each kernel parameter in a drafted manifest: a buffer or a number, by its type or by `--arg`.

use super::{Request, Wanted};
use crate::element::{element, is_vector};
use runner_cuda_source::kernel_body::Access;
use runner_cuda_source::signature::Parameter;
use runner_types::ElementType;

/// Use of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    In,
    Out,
    InOut,
    Scratch,
}

impl Role {
    const ALL: [(&'static str, Self); 4] =
        [("in", Self::In), ("out", Self::Out), ("inout", Self::InOut), ("scratch", Self::Scratch)];

    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }

    pub const fn is_filled(self) -> bool {
        matches!(self, Self::In | Self::InOut)
    }

    pub const fn is_output(self) -> bool {
        matches!(self, Self::Out | Self::InOut)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    Iota,
    /// Bounds of a uniform distribution, as TOML numbers.
    Uniform(String, String),
}

/// Parsed `--arg` option.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    role: Option<Role>,
    element: Option<ElementType>,
    fill: Option<Fill>,
    value: Option<String>,
}

impl Wish {
    /// Parses options such as `in:0..n:n/256`, whose parts come in any order.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut wish = Self::default();
        for part in text.split(':').map(str::trim) {
            let again = |known: bool| if known { Err(format!("`{part}` says the same twice")) } else { Ok(()) };
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
                    end.parse::<f64>().map_err(|_| format!("`{end}` in `{part}` is no number, as in 0..255"))?;
                }
                again(wish.fill.replace(Fill::Uniform(low.to_owned(), high.to_owned())).is_some())?;
            } else {
                again(wish.value.replace(part.to_owned()).is_some())?;
            }
        }
        Ok(wish)
    }
}

/// A parameter that all kernels share, with its argument.
#[derive(Debug, Clone)]
pub struct DraftParameter {
    /// Name in the first kernel.
    pub name: String,
    pub element: ElementType,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    Buffer { role: Role, len: String, fill: Fill },
    Number { value: String },
}

impl DraftParameter {
    pub const fn is_buffer(&self) -> bool {
        matches!(self.what, What::Buffer { .. })
    }

    pub const fn is_output(&self) -> bool {
        matches!(self.what, What::Buffer { role, .. } if role.is_output())
    }

    /// Describes the assumption for the user: `in = f32[n], input, uniform from 0 to 1`.
    pub fn assumption(&self) -> String {
        let Self { name, element, what } = self;
        match what {
            What::Number { value } => format!("{name} = {element}({value})"),
            What::Buffer { role, len, fill } => {
                let what = match role {
                    Role::In => "input",
                    Role::Out => "output",
                    Role::InOut => "input and output",
                    Role::Scratch => "scratch",
                };
                let fill = match fill {
                    _ if !role.is_filled() => String::new(),
                    Fill::Iota => ", 0, 1, 2, …".to_owned(),
                    Fill::Uniform(low, high) => format!(", uniform from {low} to {high}"),
                };
                format!("{name} = {element}[{len}], {what}{fill}")
            }
        }
    }
}

/// Argument of the parameter at `position`. `types` holds the template arguments of each kernel.
pub fn place(
    request: &Request,
    types: &[Vec<(String, String)>],
    position: usize,
    wish: &Wish,
) -> Result<DraftParameter, String> {
    let parameters = || {
        let kernels = request.kernels.iter().zip(types);
        kernels.filter_map(|(wanted, types)| Some((wanted, types, wanted.signature.parameters.get(position)?)))
    };
    let Some((first, first_types, parameter)) = parameters().next() else {
        return Err("no kernel is named".to_owned());
    };
    let name = parameter.name.clone().unwrap_or_else(|| format!("arg{position}"));
    let element = match wish.element {
        Some(element) => element,
        None => known(first, parameter, first_types, &name)?,
    };
    for (wanted, types, other) in parameters().skip(1) {
        let same = (other.pointers, other.is_reference) == (parameter.pointers, parameter.is_reference)
            && (wish.element.is_some() || element_of(other, types) == Some(element));
        if !same {
            return Err(format!(
                "parameter {} differs: `{}` of {}, `{}` of {}; kernels that are compared take the same types in the \
                 same order",
                position + 1,
                parameter.text,
                first.kernel,
                other.text,
                wanted.kernel
            ));
        }
    }
    let is_input = parameters().any(|(.., parameter)| parameter.is_const);
    let what = if parameter.pointers == 0 {
        if wish.role.is_some() || wish.fill.is_some() {
            return Err(format!("--arg {name}: `{}` is a number and no buffer: --arg {name}=1024", parameter.text));
        }
        let default = if parameter.base == "bool" || element.is_float() { "1" } else { "n" };
        What::Number { value: wish.value.clone().unwrap_or_else(|| default.to_owned()) }
    } else {
        What::Buffer {
            role: wish.role.unwrap_or_else(|| if is_input { Role::In } else { role(request, position) }),
            len: wish.value.clone().unwrap_or_else(|| default_len(request).to_owned()),
            fill: wish.fill.clone().unwrap_or_else(|| default_fill(element)),
        }
    };
    Ok(DraftParameter { name, element, what })
}

/// Use of the buffer behind a non-const pointer, from what the kernel bodies do with it.
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

/// Default length of buffers. `n` is the side length if a kernel has two-dimensional threads.
fn default_len(request: &Request) -> &'static str {
    if request.kernels.iter().any(|wanted| dimensions(wanted) > 1) { "n * n" } else { "n" }
}

/// Dimensions of a kernel's grid, as far as its body shows them.
pub fn dimensions(wanted: &Wanted) -> usize {
    wanted.signature.body.as_ref().map_or(1, |body| body.thread_dimensions.max(body.block_dimensions))
}

fn default_fill(element: ElementType) -> Fill {
    let high = match element {
        element if element.is_float() => "1",
        ElementType::I8 => "127",
        _ => "255",
    };
    Fill::Uniform("0".to_owned(), high.to_owned())
}

/// Element type of a parameter, with template arguments substituted.
fn element_of(parameter: &Parameter, types: &[(String, String)]) -> Option<ElementType> {
    let base = types.iter().find(|(name, _)| *name == parameter.base).map_or(&parameter.base, |(_, value)| value);
    element(base)
}

/// Element type, or why it is unknown and what to do.
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
        Some(_) if by_value && is_vector(&parameter.base) => {
            Err(format!("{place} is a vector by value, which a manifest cannot pass; pass its components or a pointer"))
        }
        Some(element) => Ok(element),
        None if unnamed => Err(format!("{place} has a type that is not understood, and no name; give it one")),
        None if by_value => Err(format!(
            "{place} has a type that is not understood: if it is a number, name its type, as in --arg {name}=u32:n; a \
             struct cannot be passed"
        )),
        None => Err(format!(
            "{place} has a type that is not understood: name the type of its elements, as in --arg {name}=f32, or \
             count bytes, as in --arg {name}=u8:16*n"
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
        for (text, why) in [("in:out", "says the same twice"), ("0..n", "is no number"), ("in:", "a part is empty")] {
            assert!(Wish::parse(text).is_err_and(|said| said.contains(why)), "{text}");
        }
    }
}
