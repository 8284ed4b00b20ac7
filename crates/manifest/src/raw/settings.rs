//! Keys that are a number or a switch, as `runner_types` declares them.

use runner_types::compile_settings;
use runner_types::launch_settings;
use schemars::Schema;
use serde_json::json;

use super::Expr;
use crate::read::{At, Read, table};
use runner_experiment::Expression;
use runner_types::{CompileSettings, Kind, LaunchSettings, Number, Setting, Switch};

/// How a setting is written in a manifest.
pub trait RawKind: Kind<Expression> {
    /// Type of the value in the manifest.
    type Raw: Read;

    /// Converts the value in the manifest to the setting.
    fn value(raw: Option<&Self::Raw>) -> Self::Value;
}

impl RawKind for Number {
    type Raw = Expr;

    fn value(raw: Option<&Expr>) -> Option<Expression> {
        raw.map(|Expr(number)| number.clone())
    }
}

impl RawKind for Switch {
    type Raw = At<bool>;

    fn value(raw: Option<&At<bool>>) -> bool {
        raw.is_some_and(|at| at.value)
    }
}

/// Adds the bounds of numbers to the schema of a table of settings.
fn bound(schema: &mut Schema, settings: &[&Setting]) {
    let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut()) else {
        return;
    };
    for setting in settings {
        let Some((least, most)) = setting.bounds else { continue };
        let Some(property) = properties.get_mut(setting.name).and_then(|property| property.as_object_mut()) else {
            continue;
        };
        property.insert("type".to_owned(), json!(["string", "integer"]));
        property.insert("minimum".to_owned(), json!(least));
        if most < i64::MAX {
            property.insert("maximum".to_owned(), json!(most));
        }
    }
}

macro_rules! raw {
    ($name:ident $settings:ident $(
        $(#[doc = $doc:literal])*
        $key:ident: $kind:ident $(($($bounds:tt)*))? = $default:literal, { $($serde:tt)* };
    )*) => {
        table! {
            /// Settings that are numbers or switches.
            #[schemars(transform = $name::bound)]
            pub struct $name {
                $( $(#[doc = $doc])* pub $key: Option<<$kind as RawKind>::Raw>, )*
            }
        }

        impl $name {
            fn bound(schema: &mut Schema) {
                bound(schema, $settings::<()>::ALL);
            }
        }

        impl From<&$name> for $settings<Expression> {
            fn from(raw: &$name) -> Self {
                Self { $( $key: <$kind as RawKind>::value(raw.$key.as_ref()), )* }
            }
        }
    };
}

launch_settings!(raw RawLaunchSettings LaunchSettings);
compile_settings!(raw RawCompileSettings CompileSettings);
