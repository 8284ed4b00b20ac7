//! Kernel arguments: buffers, numbers, structs by value, textures and surfaces.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::{Expr, content, parse};
use crate::read::{At, Read, Reader, Required, Table as _, read_word, table};
use runner_experiment::{ArgSpec, TextureSpec, fault, place};
use runner_lang::argument::{self, Argument};
use runner_lang::diagnostics::Diagnostic;
use runner_lang::is_name;
use runner_types::{Span, TextureAddress, TextureFilter, TextureKind, TextureSampler};

/// Maximum alignment of a field in bytes, larger than that of any CUDA type.
const MOST_ALIGNED: u64 = 1024;

/// A kernel argument: the name of a buffer, or a number of a given type.
#[derive(Debug, Clone)]
pub struct Arg(pub At<ArgSpec>);

impl Read for Arg {
    const EXPECTED: &'static str = "a string, a list of strings for a struct, or a table for a texture";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        if let DeValue::Array(fields) = value.get_ref() {
            let fields = fields.iter().map(|field| struct_field(field, reader)).collect::<Option<Vec<_>>>()?;
            if fields.is_empty() {
                return reader.wrong_value(value.span(), "is a struct without fields");
            }
            return Some(Self(At { value: ArgSpec::Struct(fields), span: value.span() }));
        }
        if let DeValue::Table(table) = value.get_ref() {
            let span = value.span();
            if !has_key(table, &["texture", "surface"]) {
                let fields = named_fields(value, reader)?;
                return Some(Self(At { value: fields, span }));
            }
            let texture = RawTexture::from_table(table, Some(&span), reader).spec(&span, reader)?;
            return Some(Self(At { value: ArgSpec::Texture(Box::new(texture)), span }));
        }
        let text = String::read(value, reader)?;
        let content = content(value, &text, reader);
        let argument = match argument::parse(&text) {
            Ok(Argument::Buffer(name)) => ArgSpec::Buffer(name),
            Ok(Argument::Offset { buffer, offset, offset_at }) => {
                ArgSpec::Offset { buffer, offset: parse(&offset, place(&text, &content, offset_at), reader)? }
            }
            Ok(Argument::Scalar { element, element_at, value, value_at }) => ArgSpec::Scalar {
                element: parse(&element, place(&text, &content, element_at), reader)?,
                value: parse(&value, place(&text, &content, value_at), reader)?,
            },
            Err(error) => {
                reader.found.push(fault(error, &text, &content));
                return None;
            }
        };
        Some(Self(At { value: argument, span: value.span() }))
    }
}

/// Reads a field of a struct: a typed number, an address, a struct, or an array of these.
fn struct_field(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<ArgSpec> {
    match value.get_ref() {
        DeValue::String(_) | DeValue::Array(_) => Arg::read(value, reader).map(|Arg(field)| field.value),
        DeValue::Table(table) if has_key(table, &["texture", "surface"]) => {
            let message = "a texture or surface must be a separate argument, not a struct field";
            reader
                .found
                .push(Diagnostic::at(value.span(), message.to_owned()).hint("give the kernel a parameter for it"));
            None
        }
        DeValue::Table(table) if !has_key(table, &["of", "count", "align"]) => {
            refuse_names(&value.span(), table, reader)
        }
        DeValue::Table(table) => {
            let RawArray { of: Required(of), count, align } = RawArray::from_table(table, Some(&value.span()), reader);
            let count = count.map_or_else(|| parse("1", value.span(), reader), |Expr(count)| Some(count));
            let align = match align {
                Some(At { value: bytes, span }) if !bytes.is_power_of_two() || bytes > MOST_ALIGNED => {
                    let rule = format!("must be a power of two of at most {MOST_ALIGNED}, not {bytes}");
                    return reader.wrong_value(span, &rule);
                }
                align => align.map_or(1, |align| align.value),
            };
            Some(ArgSpec::Array { of: Box::new(of?.0), count: count?, align })
        }
        _ => reader.wrong_type(value, "a typed number such as \"f32(0.5)\", an address, a struct or an array"),
    }
}

/// Reads a field of a struct with named fields: anything that a listed field can be, or a struct with named fields, or
/// an array of these.
fn named_field(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<ArgSpec> {
    let is_struct = |value: &Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Table(table) if !has_key(table, &["texture", "surface", "of"]));
    match value.get_ref() {
        DeValue::Table(_) if is_struct(value) => named_fields(value, reader),
        DeValue::Array(elements) if elements.iter().any(is_struct) => {
            let elements = elements.iter().enumerate();
            let elements = elements.map(|(at, element)| Some((format!("[{at}]"), named_field(element, reader)?)));
            elements.collect::<Option<Vec<_>>>().map(ArgSpec::Named)
        }
        _ => struct_field(value, reader),
    }
}

/// Reads a struct with named fields. Omitted fields are zero.
fn named_fields(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<ArgSpec> {
    let DeValue::Table(table) = value.get_ref() else {
        return reader.wrong_type(value, "a table of the struct's fields");
    };
    if table.is_empty() {
        return reader.wrong_value(value.span(), "is a struct without fields");
    }
    let fields = table.iter().map(|(name, value)| {
        if !is_name(name.get_ref()) {
            return reader.wrong_value(name.span(), "must be the name of a field in C++");
        }
        Some((name.get_ref().to_string(), named_field(value, reader)?))
    });
    fields.collect::<Option<Vec<_>>>().map(ArgSpec::Named)
}

fn has_key(table: &DeTable<'_>, names: &[&str]) -> bool {
    table.keys().any(|key| names.contains(&key.get_ref().as_ref()))
}

/// Reports a struct with named fields inside a list; always `None`. In a list, offsets follow only from the order of
/// the fields.
fn refuse_names<T>(span: &Span, table: &DeTable<'_>, reader: &mut Reader<'_>) -> Option<T> {
    let mut places: Vec<Span> = table.values().map(Spanned::span).collect();
    places.sort_by_key(|place| place.start);
    let values: Vec<&str> = places.into_iter().filter_map(|place| reader.text.get(place)).collect();
    let message =
        "a struct in a list must be a list of its fields in the order of their declaration, without names".to_owned();
    reader.found.push(Diagnostic::at(span.clone(), message).hint(format!("write `[{}]`", values.join(", "))));
    None
}

table! {
    /// An array in a struct, or a field with its own alignment.
    pub struct RawArray {
        /// An element, written like the field of a struct; all elements equal it.
        pub of: Required<Field>,
        /// Number of elements; 1 by default.
        pub count: Option<Expr>,
        /// Alignment in bytes of the field's offset and size, as with `alignas`; by default that of its parts.
        pub align: Option<At<u64>>,
    }
}

/// A field of a struct.
#[derive(Debug, Clone)]
pub struct Field(pub ArgSpec);

impl Read for Field {
    const EXPECTED: &'static str = "a field of a struct";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        struct_field(value, reader).map(Self)
    }
}

table! {
    /// A texture or surface object of a buffer, whose elements in C order are the texels.
    #[schemars(extend("oneOf" = [{ "required": ["texture"] }, { "required": ["surface"] }]))]
    pub struct RawTexture {
        /// Buffer that the kernel fetches from. An element is a texel: `type = "uchar4"` has four channels.
        pub texture: Option<At<String>>,
        /// Instead of `texture`: buffer that the kernel reads and writes as a surface.
        pub surface: Option<At<String>>,
        /// Width, height and depth; the number of layers comes last, and a cube has the edge length of a face.
        #[schemars(extend("minItems" = 1, "maxItems" = 3))]
        pub size: Required<At<Vec<Expr>>>,
        /// How texels are arranged; by default `"1d"`, `"2d"` or `"3d"`, depending on the number of extents in `size`.
        pub kind: Option<At<TextureKind>>,
        /// How to interpolate between texels; `"point"` by default.
        pub filter: Option<At<TextureFilter>>,
        /// How to handle coordinates outside the texture; `"clamp"` by default.
        pub address: Option<At<TextureAddress>>,
        /// Whether coordinates are from 0 to 1; false by default.
        pub normalized: Option<At<bool>>,
        /// Whether 8-bit or 16-bit integers are read as floats from 0 or -1 to 1; false by default.
        pub as_float: Option<At<bool>>,
    }
}

read_word!(TextureKind, "\"linear\", \"1d\", \"2d\", \"3d\", \"1d_layered\", \"2d_layered\" or \"cube\"");
read_word!(TextureFilter, "\"point\" or \"linear\"");
read_word!(TextureAddress, "\"clamp\", \"border\", \"wrap\" or \"mirror\"");

impl RawTexture {
    /// The argument that this describes. Faults are reported to `reader`.
    pub fn spec(self, span: &Span, reader: &mut Reader<'_>) -> Option<TextureSpec> {
        let mut refuse = |at: &Span, message: String, hint: &str| {
            reader.found.push(Diagnostic::at(at.clone(), message).hint(hint));
            None
        };
        let (buffer, is_surface) = match (self.texture, self.surface) {
            (Some(buffer), None) => (buffer.value, false),
            (None, Some(buffer)) => (buffer.value, true),
            _ => {
                return refuse(
                    span,
                    "an argument must be one texture or one surface".to_owned(),
                    "write `texture = \"image\"`",
                );
            }
        };
        let size = self.size.0?;
        let of_sampler = [
            self.filter.as_ref().map(|key| ("filter", &key.span)),
            self.address.as_ref().map(|key| ("address", &key.span)),
            self.normalized.as_ref().map(|key| ("normalized", &key.span)),
            self.as_float.as_ref().map(|key| ("as_float", &key.span)),
        ];
        if let Some((key, at)) = of_sampler.into_iter().flatten().next().filter(|_| is_surface) {
            return refuse(at, format!("`{key}` has no meaning for a surface, which is not sampled"), "remove it");
        }
        let by_extents = match size.value.len() {
            1 => TextureKind::OneD,
            2 => TextureKind::TwoD,
            _ => TextureKind::ThreeD,
        };
        let kind = self.kind.map_or(by_extents, |kind| kind.value);
        let (given, wanted) = (size.value.len(), kind.extents());
        if given != wanted {
            let message = format!("`size` has {given} extents, but a texture of kind `{}` has {wanted}", kind.name());
            return refuse(
                &size.span,
                message,
                "`1d`, `linear` and `cube` have one, `2d` and `1d_layered` two, others three",
            );
        }
        let sampler = TextureSampler {
            filter: self.filter.map(|key| key.value).unwrap_or_default(),
            address: self.address.map(|key| key.value).unwrap_or_default(),
            normalized: self.normalized.is_some_and(|key| key.value),
            as_float: self.as_float.is_some_and(|key| key.value),
        };
        let size = size.value.into_iter().map(|Expr(extent)| extent).collect();
        Some(TextureSpec { buffer, kind, size, sampler: (!is_surface).then_some(sampler) })
    }
}

impl JsonSchema for Arg {
    fn schema_name() -> Cow<'static, str> {
        "Argument".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A buffer by name or with an offset in elements (`input + 4`), a number by type (`u32(n)`), \
                            `null`, a struct as a list of these, of structs and of arrays, or as a table with a key for \
                            each field that is not zero, or a texture or surface.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "minItems": 1, "items": generator.subschema_for::<Field>() },
                {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                    "not": { "anyOf": [{ "required": ["texture"] }, { "required": ["surface"] }] },
                    "additionalProperties": generator.subschema_for::<Field>()
                },
                generator.subschema_for::<RawTexture>()
            ]
        })
    }
}

impl JsonSchema for Field {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Field".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [generator.subschema_for::<Arg>(), generator.subschema_for::<RawArray>()]
        })
    }
}
