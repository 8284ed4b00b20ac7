//! Keys of a launch and of its compiler that are a number or a switch. Each is declared once, in one line.
//!
//! From a line come the key of the manifest, how a launch inherits it from its variant, its JSON Schema, its row in the
//! manual, its bounds, the names that its expression uses, its value in the plan, and its part of a case's fingerprint.
//! The code that uses the value reads the field of the same name.

use serde::{Deserialize, Serialize};

/// A key that is a number or a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The key in a manifest.
    pub name: &'static str,
    /// The least and the greatest number; `None` for a switch.
    pub bounds: Option<(i64, i64)>,
    /// What applies if it is left out.
    pub default: &'static str,
    /// What it does, for the manual and the schema.
    pub about: &'static str,
}

/// How the value of a setting is kept where numbers are of type `N`.
pub trait Kind<N> {
    /// The type of the field.
    type Value;
}

/// A setting that is a number, or is left out.
#[derive(Debug)]
pub struct Number;

impl<N> Kind<N> for Number {
    type Value = Option<N>;
}

/// A setting that is on or off.
#[derive(Debug)]
pub struct Switch;

impl<N> Kind<N> for Switch {
    type Value = bool;
}

/// Declares the settings of a launch: passes them to a macro that takes a name, and for each setting its documentation,
/// `key: Number (least, most) = default` or `key: Switch = "false"`, and arguments of `#[serde]` in braces.
#[macro_export]
macro_rules! launch_settings {
    ($define:ident $($names:ident)+) => {
        $define! { $($names)+
            /// Dynamic shared memory per block, in bytes; more than 48 KiB is opted in to automatically.
            shared: Number (0, i64::MAX) = "0", { default, skip_serializing_if = "Option::is_none" };
            /// A cooperative launch, whose grid synchronises as a whole: all its blocks must be resident at once.
            cooperative: Switch = "false", { default };
            /// The stream of the launch: `"nth % 4"`. Launches in different streams may run at the same time.
            stream: Number (0, 127) = "0", { default, skip_serializing_if = "Option::is_none" };
            /// With `relocatable`: how many launches from kernels may be pending; a group uses the highest value of its
            /// cases.
            pending_launches: Number (1, 1 << 20) = "the device's, 2048",
                { default, skip_serializing_if = "Option::is_none" };
            /// Programmatic dependent launch: it may begin before the launch before it in the stream has ended, for
            /// which the kernel waits itself (`cudaGridDependencySynchronize`).
            overlap: Switch = "false", { default, skip_serializing_if = "std::ops::Not::not" };
            /// The lower, the sooner its blocks are scheduled among those of other streams.
            priority: Number (i32::MIN as i64, i32::MAX as i64) = "0",
                { default, skip_serializing_if = "Option::is_none" };
            /// Percent of the L1 memory that are preferred as shared memory.
            carveout: Number (0, 100) = "the driver's choice", { default, skip_serializing_if = "Option::is_none" };
        }
    };
}

/// Declares the settings of the compiler, in the same way.
#[macro_export]
macro_rules! compile_settings {
    ($define:ident $($names:ident)+) => {
        $define! { $($names)+
            /// Compile for a debugger (`-G`).
            debug: Switch = "false", {};
            /// Most registers per thread.
            max_registers: Number (1, 255) = "the compiler's choice", {};
            /// Compile for linking and link with the device runtime: kernels that launch kernels need it.
            relocatable: Switch = "false", {};
        }
    };
}

/// What a setting becomes: its description, its number, and its value with the number converted.
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
        /// The settings, with numbers as they are in one stage: expressions in a manifest, integers in a plan.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(bound(serialize = "N: Serialize", deserialize = "N: Deserialize<'de>"))]
        pub struct $name<N = i64> {
            $( $(#[doc = $about])+ #[serde($($serde)*)] pub $key: <$kind as Kind<N>>::Value, )*
        }

        impl<N> Default for $name<N> {
            /// Gives no number, and turns every switch off.
            fn default() -> Self {
                Self { $( $key: Default::default(), )* }
            }
        }

        impl<N> $name<N> {
            /// The keys, in the order of their declaration.
            pub const ALL: &[&Setting] = &[
                $( setting!(entry $key [$($about)+] $default, $(($least, $most))?), )*
            ];

            /// Returns the numbers that are given, and the switches that are on, which have no number.
            pub fn given(&self) -> impl Iterator<Item = (&'static Setting, Option<&N>)> {
                let given: Vec<Option<Option<&N>>> = vec![ $( setting!(given $kind self.$key), )* ];
                Self::ALL.iter().zip(given).filter_map(|(setting, given)| Some((*setting, given?)))
            }

            /// Returns the numbers that are given.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static Setting, &N)> {
                self.given().filter_map(|(setting, number)| Some((setting, number?)))
            }

            /// Returns the same settings with each number converted.
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
    /// Returns the dynamic shared memory, in bytes per block.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.unwrap_or(0).max(0) as u64
    }

    /// Returns the stream, from 0.
    pub fn stream_index(&self) -> usize {
        self.stream.unwrap_or(0).max(0) as usize
    }
}
