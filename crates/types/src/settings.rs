//! Keys of a launch and its compiler that are a number or a switch. Each is declared on a single line.
//!
//! The line generates the manifest key, its inheritance from the variant, its JSON Schema, its row in the manual, its
//! bounds, the names that its expression uses, its value in the plan, and its part of a case's fingerprint. Code that
//! uses the value reads the field of the same name.

use serde::{Deserialize, Serialize};

/// Description of a key that is a number or a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Name of the key in a manifest.
    pub name: &'static str,
    /// Minimum and maximum; `None` for a switch.
    pub bounds: Option<(i64, i64)>,
    /// Value if the key is omitted.
    pub default: &'static str,
    /// Description for the manual and the schema.
    pub about: &'static str,
}

/// Storage of a setting's value where numbers have type `N`.
pub trait Kind<N> {
    type Value;
}

/// An optional number.
#[derive(Debug)]
pub struct Number;

impl<N> Kind<N> for Number {
    type Value = Option<N>;
}

#[derive(Debug)]
pub struct Switch;

impl<N> Kind<N> for Switch {
    type Value = bool;
}

/// Declares the launch settings. Passes them to a macro that takes a name and, for each setting, its documentation,
/// `key: Number (min, max) = default` or `key: Switch = "false"`, and `#[serde]` arguments in braces.
#[macro_export]
macro_rules! launch_settings {
    ($define:ident $($names:ident)+) => {
        $define! { $($names)+
            /// Dynamic shared memory per block, in bytes. More than 48 KiB is opted in to automatically.
            shared: Number (0, i64::MAX) = "0", { default, skip_serializing_if = "Option::is_none" };
            /// A cooperative launch, whose grid can synchronise as a whole. All its blocks must be resident at once.
            cooperative: Switch = "false", { default };
            /// Stream of the launch: `"nth % 4"`. Launches in different streams may run concurrently.
            stream: Number (0, 127) = "0", { default, skip_serializing_if = "Option::is_none" };
            /// With `relocatable`: maximum number of pending launches from kernels. A group uses the maximum over its
            /// cases.
            pending_launches: Number (1, 1 << 20) = "the device's, 2,048",
                { default, skip_serializing_if = "Option::is_none" };
            /// Programmatic dependent launch: it may begin before the previous launch in the stream has ended. The
            /// kernel itself must wait for that launch (`cudaGridDependencySynchronize`).
            overlap: Switch = "false", { default, skip_serializing_if = "std::ops::Not::not" };
            /// Stream priority. The blocks of launches with lower numbers are scheduled first.
            priority: Number (i32::MIN as i64, i32::MAX as i64) = "0",
                { default, skip_serializing_if = "Option::is_none" };
            /// Preferred percentage of the L1 memory to use as shared memory.
            carveout: Number (0, 100) = "the driver's choice", { default, skip_serializing_if = "Option::is_none" };
        }
    };
}

/// Declares the compiler settings, like `launch_settings`.
#[macro_export]
macro_rules! compile_settings {
    ($define:ident $($names:ident)+) => {
        $define! { $($names)+
            /// Compile for a debugger (`-G`).
            debug: Switch = "false", {};
            /// Maximum registers per thread.
            max_registers: Number (1, 255) = "the compiler's choice", {};
            /// Compile relocatable device code and link with the device runtime, as needed by kernels that launch
            /// kernels.
            relocatable: Switch = "false", {};
        }
    };
}

/// Arms for `define!`: a setting's description (`entry`) and its `bounds`, its number if it is set (`given`), and its
/// value with the number converted (`convert`).
macro_rules! setting {
    (entry $key:ident [$($about:literal)+] $default:expr, $($bounds:expr)?) => {
        const {
            &Setting {
                name: stringify!($key),
                bounds: setting!(bounds $($bounds)?),
                default: $default,
                about: concat!($($about),+),
            }
        }
    };
    (bounds) => { None };
    (bounds $bounds:expr) => { Some($bounds) };
    (given Number $value:expr) => { $value.as_ref().map(Some) };
    (given Switch $value:expr) => { $value.then_some(None) };
    (convert Number $value:expr, $convert:expr) => { $value.as_ref().map($convert).transpose()? };
    (convert Switch $value:expr, $convert:expr) => { $value };
}

macro_rules! define {
    ($name:ident $(
        $(#[doc = $about:literal])+
        $key:ident: $kind:ident $(($least:expr, $most:expr))? = $default:literal, { $($serde:tt)* };
    )*) => {
        /// The settings, with numbers of type `N`: expressions in a manifest, integers in a plan.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(bound(serialize = "N: Serialize", deserialize = "N: Deserialize<'de>"))]
        pub struct $name<N = i64> {
            $( $(#[doc = $about])+ #[serde($($serde)*)] pub $key: <$kind as Kind<N>>::Value, )*
        }

        impl<N> Default for $name<N> {
            /// All numbers omitted, all switches off.
            fn default() -> Self {
                Self { $( $key: Default::default(), )* }
            }
        }

        impl<N> $name<N> {
            /// The keys, in order of declaration.
            pub const ALL: &[&Setting] = &[
                $( setting!(entry $key [$($about)+] $default, $(($least, $most))?), )*
            ];

            /// The settings in use: numbers that are given and switches that are on. Switches have no number.
            pub fn given(&self) -> impl Iterator<Item = (&'static Setting, Option<&N>)> {
                let given: Vec<Option<Option<&N>>> = vec![ $( setting!(given $kind self.$key), )* ];
                Self::ALL.iter().zip(given).filter_map(|(setting, given)| Some((*setting, given?)))
            }

            pub fn numbers(&self) -> impl Iterator<Item = (&'static Setting, &N)> {
                self.given().filter_map(|(setting, number)| Some((setting, number?)))
            }

            /// Converts each number.
            ///
            /// # Errors
            ///
            /// The first error of `convert`.
            pub fn try_map<M, E>(
                &self,
                mut convert: impl FnMut(&'static Setting, &N) -> Result<M, E>,
            ) -> Result<$name<M>, E> {
                Ok($name {
                    $( $key: setting!(
                        convert $kind self.$key,
                        |number| convert(setting!(entry $key [$($about)+] $default, $(($least, $most))?), number)
                    ), )*
                })
            }
        }
    };
}

launch_settings!(define LaunchSettings);
compile_settings!(define CompileSettings);

impl LaunchSettings {
    /// Dynamic shared memory per block, in bytes; 0 if omitted.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.unwrap_or(0).max(0) as u64
    }

    /// Stream index, 0-based.
    pub fn stream_index(&self) -> usize {
        self.stream.unwrap_or(0).max(0) as usize
    }
}
