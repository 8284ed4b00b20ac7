//! A kernel parameter in a draft, with its argument.

use runner_types::ElementType;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    In,
    Out,
    InOut,
    Scratch,
}

impl Role {
    pub const ALL: [(&'static str, Self); 4] =
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

/// A field of a struct that is passed by value.
#[derive(Debug, Clone)]
pub struct RecordField {
    pub name: String,
    pub value: DraftParameter,
    /// Array length, if it is an array.
    pub count: Option<i128>,
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
    Buffer {
        role: Role,
        len: String,
        fill: Fill,
        seed: usize,
    },
    Number {
        value: String,
    },
    /// A bool that takes both values, one after the other.
    Switch,
    /// A vector passed by value, with its components.
    Vector {
        values: Vec<String>,
    },
    /// A texture object over a buffer with this texel type.
    Texture {
        texels: String,
        texture: Texture,
        seed: usize,
    },
    /// A struct passed by value.
    Record {
        fields: Vec<RecordField>,
    },
}

/// A small texture whose size does not depend on the sizes of buffers.
#[derive(Debug, Clone)]
pub struct Texture {
    pub kind: &'static str,
    pub size: Vec<&'static str>,
}

impl Texture {
    /// A texture that this function can fetch from.
    pub fn of(function: &str) -> Self {
        let (kind, size): (_, &[&'static str]) = match function {
            "tex1Dfetch" => ("linear", &["4096"]),
            "tex1D" | "tex1DLod" => ("1d", &["4096"]),
            "tex3D" | "tex3DLod" => ("3d", &["48", "40", "32"]),
            "tex1DLayered" => ("1d_layered", &["512", "4"]),
            "tex2DLayered" => ("2d_layered", &["96", "80", "4"]),
            "texCubemap" => ("cube", &["64"]),
            _ => ("2d", &["320", "240"]),
        };
        Self { kind, size: size.to_vec() }
    }

    /// Total number of texels, as an expression.
    pub fn len(&self) -> String {
        if self.kind == "cube" { "6 * 64 * 64".to_owned() } else { self.size.join(" * ") }
    }
}

impl DraftParameter {
    pub const fn is_buffer(&self) -> bool {
        matches!(self.what, What::Buffer { .. })
    }

    /// Whether the manifest declares a buffer or axis with this name.
    pub const fn has_name(&self) -> bool {
        matches!(self.what, What::Buffer { .. } | What::Switch | What::Texture { .. })
    }

    pub const fn is_output(&self) -> bool {
        matches!(self.what, What::Buffer { role, .. } if role.is_output())
    }

    /// This parameter and, for a struct, its fields.
    pub fn parts(&self) -> Vec<&Self> {
        let mut found = vec![self];
        if let What::Record { fields } = &self.what {
            found.extend(fields.iter().flat_map(|field| field.value.parts()));
        }
        found
    }

    /// Describes the assumed argument to the user: `in = f32[n], input, uniform from 0 to 1`.
    pub fn assumption(&self) -> String {
        let Self { name, element, what } = self;
        match what {
            What::Number { value } => format!("{name} = {element}({value})"),
            What::Switch => format!("{name} = false and true"),
            What::Vector { values } => format!("{name} = {element}({})", values.join(", ")),
            What::Texture { texels, texture, .. } => {
                format!("{name} = {texels}[{}], texture {}", texture.len(), texture.size.join("×"))
            }
            What::Record { fields } => {
                let shown = |field: &RecordField| match &field.value.what {
                    What::Number { value } => format!("{} = {value}", field.name),
                    _ => field.name.clone(),
                };
                format!("{name} = {{ {} }}", fields.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            What::Buffer { role, len, fill, .. } => {
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

/// Values for float parameters. They differ from each other and from constants that kernels often use. They ascend,
/// since a lower bound usually comes before the upper one.
pub const FLOATS: [f64; 8] = [0.375, 0.625, 0.75, 0.875, 0.9375, 0.96875, 1.125, 1.375];
