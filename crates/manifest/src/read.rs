//! Reads raw types from toml's spanned values and collects every fault instead of stopping at the first.
//!
//! The [`table!`] macro defines a struct whose fields are the keys of a table. The reader, the known keys for
//! suggestions and the JSON Schema are derived from that definition. Only the shape of a value is checked here, not its
//! meaning.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_types::Span;

/// A value with its location in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct At<T> {
    pub value: T,
    pub span: Span,
}

/// Value of a required key. `None` if the key is missing or invalid, which has then been reported.
#[derive(Debug, Clone)]
pub struct Required<T>(pub Option<T>);

impl<T> Default for Required<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A table with user-chosen keys, in file order.
#[derive(Debug, Clone)]
pub struct Named<T>(pub Vec<(At<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A key that only later versions support. It is rejected rather than ignored, since it would have no effect.
pub type Later = (&'static str, &'static str);

/// A key that belongs elsewhere, and what to write instead.
pub type Instead = (&'static str, &'static str);

/// Maximum number of faults to keep; any more are only counted.
const MOST_FAULTS: usize = 1000;

/// Faults found while reading, and what validation needs so as not to report their consequences.
#[derive(Debug, Default)]
pub struct Findings {
    pub faults: Vec<Diagnostic>,
    /// Number of faults beyond the limit.
    pub omitted: usize,
    /// Keys with a rejected value, by the start of their table.
    pub refused: BTreeSet<(usize, &'static str)>,
    /// Entries with a rejected value in tables with user-chosen keys, such as axes.
    pub dropped: BTreeSet<String>,
    /// End of each table by its start. A table's own span covers only its header.
    pub extents: BTreeMap<usize, usize>,
}

impl Findings {
    pub fn push(&mut self, fault: Diagnostic) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        } else {
            self.omitted += 1;
        }
    }
}

#[derive(Debug)]
pub struct Reader<'a> {
    pub text: &'a str,
    pub found: Findings,
    path: Vec<String>,
}

/// Path component for an array entry.
const ENTRY: &str = "[]";

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, found: Findings::default(), path: Vec::new() }
    }

    /// Dotted key of the current value: `buffers.input.len`.
    pub fn here(&self) -> String {
        let keys: Vec<&str> = self.path.iter().map(String::as_str).filter(|key| *key != ENTRY).collect();
        keys.join(".")
    }

    /// Name of the current value in messages.
    fn subject(&self) -> String {
        let entry = self.path.last().is_some_and(|key| key == ENTRY);
        format!("{}`{}`", if entry { "an entry of " } else { "" }, self.here())
    }

    fn read_below<R>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(key.to_owned());
        let result = read(self);
        self.path.pop();
        result
    }

    /// Reports a value of the wrong type. Always returns `None`.
    pub fn wrong_type<T>(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        let found = describe(value.get_ref());
        let message = format!("{} must be {expected}, found {found}", self.subject());
        self.found.push(Diagnostic::at(value.span(), message).label(format!("expected {expected}")));
        None
    }

    /// Reads one of a fixed set of words; reports any other word.
    pub fn word<T: DeserializeOwned>(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        let DeValue::String(text) = value.get_ref() else { return self.wrong_type(value, expected) };
        let word: StrDeserializer<'_, serde::de::value::Error> = text.as_ref().into_deserializer();
        let rule = || format!("must be {expected}, not \"{text}\"");
        T::deserialize(word).ok().or_else(|| self.wrong_value(value.span(), &rule()))
    }

    /// Reports an invalid value. Always returns `None`.
    pub fn wrong_value<T>(&mut self, span: Span, rule: &str) -> Option<T> {
        let message = format!("{} {rule}", self.subject());
        self.found.push(Diagnostic::at(span, message));
        None
    }
}

/// Describes the type of a value: `a string`, `an array`.
fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a bool",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

pub trait Read: Sized + Clone {
    /// Name of the expected type in messages: `a string`.
    const EXPECTED: &'static str;

    /// Location of the value or of its first entry, for types that keep it.
    fn place(&self) -> Option<Span> {
        None
    }

    /// Reads the value; on failure, reports why.
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self>;
}

/// Reads an enumeration from words, using its serde names.
macro_rules! read_word {
    ($type:ty, $expected:expr) => {
        impl Read for $type {
            const EXPECTED: &'static str = $expected;

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
                reader.word(value, Self::EXPECTED)
            }
        }
    };
}
pub(crate) use read_word;

/// Reads an enumeration whose variant depends on the TOML type of the value.
macro_rules! read_by_kind {
    ($type:ty, $expected:expr; $( $($kind:ident)|+ => $variant:ident ),+) => {
        impl Read for $type {
            const EXPECTED: &'static str = $expected;

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
                match value.get_ref() {
                    $( $(DeValue::$kind(_))|+ => Read::read(value, reader).map(Self::$variant), )+
                    _ => reader.wrong_type(value, Self::EXPECTED),
                }
            }
        }
    };
}
pub(crate) use read_by_kind;

/// A type that can be a field of a [`table!`].
pub trait Slot: Default + Clone {
    /// Adds the keys that are set, with the locations of their values.
    fn given(&self, key: &'static str, given: &mut Vec<(&'static str, Span)>);

    /// The field's own value, or else the `shared` one.
    #[must_use]
    fn or_shared(self, shared: &Self) -> Self;

    /// Adds the keys that the field reads from its table.
    fn keys(key: &'static str, keys: &mut Vec<&'static str>);

    /// Reads the field's value from the table. `owner` is the table's span; `None` for the whole document.
    fn take(key: &'static str, table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self;
}

fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(k, _)| k.get_ref().as_ref() == key).map(|(_, value)| value)
}

impl<T: Read> Slot for Option<T> {
    fn given(&self, key: &'static str, given: &mut Vec<(&'static str, Span)>) {
        given.extend(self.as_ref().and_then(T::place).map(|place| (key, place)));
    }

    fn or_shared(self, shared: &Self) -> Self {
        self.or_else(|| shared.clone())
    }

    fn keys(key: &'static str, keys: &mut Vec<&'static str>) {
        keys.push(key);
    }

    fn take(key: &'static str, table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self {
        let value = entry(table, key)?;
        let read = reader.read_below(key, |reader| T::read(value, reader));
        if read.is_none() {
            reader.found.refused.insert((owner.map_or(0, |span| span.start), key));
        }
        read
    }
}

impl<T: Read> Slot for Required<T> {
    fn given(&self, key: &'static str, given: &mut Vec<(&'static str, Span)>) {
        self.0.given(key, given);
    }

    fn or_shared(self, shared: &Self) -> Self {
        Self(self.0.or_shared(&shared.0))
    }

    fn keys(key: &'static str, keys: &mut Vec<&'static str>) {
        keys.push(key);
    }

    fn take(key: &'static str, table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self {
        if entry(table, key).is_none() {
            reader.found.push(missing(key, owner, &reader.here()));
        }
        Self(<Option<T> as Slot>::take(key, table, owner, reader))
    }
}

pub fn missing(key: &str, owner: Option<&Span>, place: &str) -> Diagnostic {
    match owner {
        Some(span) => {
            Diagnostic::at(span.clone(), format!("missing key `{key}` in `{place}`")).label(format!("needs `{key}`"))
        }
        None => Diagnostic::whole(format!("the manifest has no `{key}`")),
    }
}

/// A table with a fixed set of keys.
pub trait Table: Sized + Clone {
    /// The keys that are set, with the locations of their values.
    fn given(&self) -> Vec<(&'static str, Span)>;

    /// The table, with missing keys taken from `shared`.
    #[must_use]
    fn or_shared(self, shared: &Self) -> Self;

    /// Allowed keys, in the order of the manual.
    fn keys() -> Vec<&'static str>;

    fn later() -> &'static [Later];

    fn instead() -> &'static [Instead];

    fn fields(table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self;

    /// Reads the known keys and reports all others.
    fn from_table(table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self {
        let known = Self::keys();
        if let Some(owner) = owner {
            let end = table.iter().map(|(key, value)| key.span().end.max(end(value))).max();
            reader.found.extents.insert(owner.start, end.unwrap_or(owner.end));
        }
        for (key, _) in table {
            if !known.contains(&key.get_ref().as_ref()) {
                let later = Self::later().iter().find(|(later, _)| *later == key.get_ref().as_ref());
                if let Some((name, _)) = later {
                    reader.found.refused.insert((owner.map_or(0, |span| span.start), name));
                }
                let instead = Self::instead().iter().find(|(other, _)| *other == key.get_ref().as_ref());
                let fault = match instead {
                    Some((name, hint)) => misplaced_key(key, name, hint, &reader.here()),
                    None => unknown_key(key, &known, later, &reader.here()),
                };
                reader.found.push(fault);
            }
        }
        Self::fields(table, owner, reader)
    }
}

/// End of a value, including everything nested in it.
fn end(value: &Spanned<DeValue<'_>>) -> usize {
    let inside = match value.get_ref() {
        DeValue::Table(table) => table.iter().map(|(key, value)| key.span().end.max(end(value))).max(),
        DeValue::Array(items) => items.iter().map(end).max(),
        _ => None,
    };
    inside.map_or(value.span().end, |inside| inside.max(value.span().end))
}

fn misplaced_key(key: &Spanned<Cow<'_, str>>, name: &str, hint: &str, place: &str) -> Diagnostic {
    Diagnostic::at(key.span(), format!("`{name}` is not a key of `{place}`")).label("unknown key").hint(hint)
}

fn unknown_key(key: &Spanned<Cow<'_, str>>, known: &[&str], later: Option<&Later>, place: &str) -> Diagnostic {
    let name = key.get_ref().as_ref();
    if let Some((_, what)) = later {
        return Diagnostic::at(key.span(), format!("`{name}` ({what}) is not available in this version"))
            .label("not in this version")
            .hint(format!(
                "remove `{name}`: keys without effect are rejected, so that a report shows everything that its \
                 manifest asks for"
            ));
    }
    let place = if place.is_empty() { "the manifest".to_owned() } else { format!("`{place}`") };
    let hint = nearest(name, known.iter().copied()).map_or_else(
        || format!("known keys are {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Diagnostic::at(key.span(), format!("unknown key `{name}` in {place}")).label("unknown key").hint(hint)
}

/// Key of a field. If the key is a Rust keyword, the field has the prefix `r#`, or the suffix `_` if `r#` is not
/// allowed.
pub fn key_of(field: &'static str) -> &'static str {
    field.trim_start_matches("r#").trim_end_matches('_')
}

/// Defines a table: the struct, its reader, its keys and its schema.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $key:ident: $type:ty, )*
        }
        $( later { $( $later:literal: $what:literal, )* } )?
        $( instead { $( $other:literal: $hint:literal, )* } )?
    ) => {
        #[derive(Debug, Clone, Default, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        $(#[$meta])*
        pub struct $name {
            $( $(#[$field_meta])* pub $key: $type, )*
        }

        impl $crate::read::Table for $name {
            fn given(&self) -> Vec<(&'static str, runner_types::Span)> {
                let mut given = Vec::new();
                $( $crate::read::Slot::given(
                    &self.$key, $crate::read::key_of(stringify!($key)), &mut given,
                ); )*
                given
            }

            fn or_shared(self, shared: &Self) -> Self {
                Self { $( $key: $crate::read::Slot::or_shared(self.$key, &shared.$key), )* }
            }

            fn keys() -> Vec<&'static str> {
                let mut keys = Vec::new();
                $( <$type as $crate::read::Slot>::keys(
                    $crate::read::key_of(stringify!($key)), &mut keys,
                ); )*
                keys
            }

            fn later() -> &'static [$crate::read::Later] {
                &[ $( $( ($later, $what), )* )? ]
            }

            fn instead() -> &'static [$crate::read::Instead] {
                &[ $( $( ($other, $hint), )* )? ]
            }

            fn fields(
                table: &toml::de::DeTable<'_>,
                owner: Option<&runner_types::Span>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Self {
                Self {
                    $( $key: <$type as $crate::read::Slot>::take(
                        $crate::read::key_of(stringify!($key)), table, owner, reader,
                    ), )*
                }
            }
        }

        impl $crate::read::Read for $name {
            const EXPECTED: &'static str = "a table";

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                let toml::de::DeValue::Table(table) = value.get_ref() else {
                    return reader.wrong_type(value, "a table");
                };
                Some(<Self as $crate::read::Table>::from_table(table, Some(&value.span()), reader))
            }
        }
    };
}
pub(crate) use table;

/// A table whose keys are written directly in the enclosing table.
#[derive(Debug, Clone, Default)]
pub struct Inline<T>(pub T);

impl<T: Table + Default> Slot for Inline<T> {
    fn given(&self, _key: &'static str, given: &mut Vec<(&'static str, Span)>) {
        given.extend(self.0.given());
    }

    fn or_shared(self, shared: &Self) -> Self {
        Self(self.0.or_shared(&shared.0))
    }

    fn keys(_key: &'static str, keys: &mut Vec<&'static str>) {
        keys.extend(T::keys());
    }

    fn take(_key: &'static str, table: &DeTable<'_>, owner: Option<&Span>, reader: &mut Reader<'_>) -> Self {
        Self(T::fields(table, owner, reader))
    }
}

impl<T: Read> Read for At<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn place(&self) -> Option<Span> {
        Some(self.span.clone())
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        T::read(value, reader).map(|inner| Self { value: inner, span: value.span() })
    }
}

impl<T: Read> Read for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        T::read(value, reader).map(Self::new)
    }
}

impl<T: Read> Read for Vec<T> {
    const EXPECTED: &'static str = "an array";

    fn place(&self) -> Option<Span> {
        self.first().and_then(T::place)
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Array(items) = value.get_ref() else {
            return reader.wrong_type(value, Self::EXPECTED);
        };
        // Skip an invalid entry, which has been reported, and check the others.
        Some(reader.read_below(ENTRY, |reader| items.iter().filter_map(|item| T::read(item, reader)).collect()))
    }
}

impl<T: Read> Read for [T; 2] {
    const EXPECTED: &'static str = "an array of two entries";

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(items) if items.len() == 2 => {
                let both = |reader: &mut Reader<'_>| (T::read(&items[0], reader), T::read(&items[1], reader));
                let (first, second) = reader.read_below(ENTRY, both);
                Some([first?, second?])
            }
            _ => reader.wrong_type(value, Self::EXPECTED),
        }
    }
}

impl<T: Read> Read for Named<T> {
    const EXPECTED: &'static str = "a table";

    fn place(&self) -> Option<Span> {
        self.0.first().map(|(name, _)| name.span.clone())
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let DeValue::Table(table) = value.get_ref() else {
            return reader.wrong_type(value, Self::EXPECTED);
        };
        let mut entries = Vec::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            if let Some(inner) = reader.read_below(&name, |reader| T::read(value, reader)) {
                entries.push((At { value: name, span: key.span() }, inner));
            } else {
                reader.found.dropped.insert(name);
            }
        }
        Some(Self(entries))
    }
}

/// Leaves the wrappers out of the schema, since the file contains no spans.
macro_rules! transparent_schema {
    ($wrapper:ident) => {
        impl<T: JsonSchema> JsonSchema for $wrapper<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }

            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    };
}

transparent_schema!(At);
transparent_schema!(Required);
transparent_schema!(Inline);

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("table of {}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let values = generator.subschema_for::<T>();
        schemars::json_schema!({
            "type": "object",
            "additionalProperties": values,
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }
        })
    }
}
