use crate::sanitize::races::{Class, Fault};

/// Set of classes whose findings are not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored(u8);

impl Ignored {
    /// Returns the set of the given classes.
    pub fn from_classes(classes: impl IntoIterator<Item = Class>) -> Self {
        Self(classes.into_iter().fold(0, |all, class| all | 1 << class as u8))
    }

    /// Returns the set with one more class.
    #[must_use]
    pub const fn and(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Whether findings of a class are reported.
    pub const fn reports_class(self, class: Class) -> bool {
        self.0 >> class as u8 & 1 == 0
    }

    /// Whether a fault is reported.
    pub const fn reports(self, fault: Fault) -> bool {
        match fault.class() {
            Some(class) => self.reports_class(class),
            None => true,
        }
    }
}
