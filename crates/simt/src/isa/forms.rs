//! The modifiers that an operation accepts, as data.
//!
//! Forms use the notation of the PTX ISA: `{.rnd}{.ftz}{.sat}.f32`. Braces make a modifier optional, `|` separates
//! alternatives, and a name in [`CLASSES`] stands for several modifiers. The order of modifiers does not matter,
//! because ptxas accepts any order: libcu++ writes `atom.add.acquire.gpu.s32`, the PTX ISA `atom.acquire.gpu.add.s32`.

/// Cache hints, which have no effect here.
pub const CACHE: [&str; 23] = [
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "nc",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
    "L2::cache_hint",
    "mmio",
    "unified",
    "weak",
];

pub const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// State spaces that an access may name.
pub const SPACES: [&str; 9] =
    ["global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func", "const"];

/// Modifiers that name a comparison, including unsigned and unordered ones.
pub const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

/// Names that stand for several modifiers.
pub const CLASSES: &[(&str, &[&str])] = &[
    ("rnd", &["rn", "rz", "rm", "rp"]),
    ("irnd", &["rni", "rzi", "rmi", "rpi"]),
    ("int", &["u16", "s16", "u32", "s32", "u64", "s64"]),
    ("bits", &["b16", "b32", "b64"]),
    ("half", &["f16", "f16x2", "bf16", "bf16x2"]),
    ("mem", &["b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]),
    ("cmp", &COMPARISONS),
    ("sem", &["relaxed", "acquire", "release", "acq_rel"]),
    ("scope", &SCOPES),
    ("shared_cta", &["shared", "shared::cta"]),
    ("shared_any", &["shared", "shared::cta", "shared::cluster"]),
    ("space", &SPACES),
    ("cache", &CACHE),
    ("evict", &["L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::evict_unchanged"]),
    ("order", &["sync_restrict::shared::cta", "sync_restrict::shared::cluster"]),
    ("tx", &["mbarrier::complete_tx::bytes"]),
];

/// Place for one modifier in a form.
#[derive(Debug)]
struct Slot<'f> {
    optional: bool,
    names: Vec<&'f str>,
}

fn slots(form: &str) -> Vec<Slot<'_>> {
    let mut slots = Vec::new();
    let mut rest = form;
    while !rest.is_empty() {
        let optional = rest.starts_with("{.");
        rest = rest.trim_start_matches(['{', '.']);
        let end = rest.find(['{', '}', '.']).unwrap_or(rest.len());
        let names = rest[..end].split('|').flat_map(alternatives).collect();
        slots.push(Slot { optional, names });
        rest = rest[end..].trim_start_matches('}');
    }
    slots
}

/// Returns the modifiers of a class. Any other name stands for itself.
fn alternatives(name: &str) -> Vec<&str> {
    match CLASSES.iter().find(|(class, _)| *class == name) {
        Some((_, members)) => members.to_vec(),
        None => vec![name],
    }
}

/// Whether the modifiers of an opcode match a form.
pub fn takes(form: &str, modifiers: &[&str]) -> bool {
    let mut slots = slots(form);
    fits(&mut slots, modifiers)
}

/// Assigns each modifier to its own slot. Every required slot must get one.
fn fits(slots: &mut Vec<Slot<'_>>, modifiers: &[&str]) -> bool {
    let Some((first, others)) = modifiers.split_first() else { return slots.iter().all(|slot| slot.optional) };
    (0..slots.len()).any(|at| {
        if !slots[at].names.contains(first) {
            return false;
        }
        let slot = slots.remove(at);
        let fit = fits(slots, others);
        slots.insert(at, slot);
        fit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_class_has_the_name_of_a_modifier() {
        for (class, _) in CLASSES {
            assert!(!CLASSES.iter().any(|(_, members)| members.contains(class)), "{class}");
        }
    }

    fn takes_text(form: &str, opcode: &str) -> bool {
        takes(form, &opcode.split('.').skip(1).collect::<Vec<_>>())
    }

    #[test]
    fn optional_modifiers_may_be_left_out_and_others_not() {
        let form = "{.rnd}{.ftz}{.sat}.f32";
        assert!(takes_text(form, "add.f32"));
        assert!(takes_text(form, "add.rz.ftz.sat.f32"));
        assert!(!takes_text(form, "add.rz.ftz"));
        assert!(!takes_text(form, "add.rn.rz.f32"), "one rounding only");
        assert!(!takes_text(form, "add.f64"));
        assert!(takes_text("", "exit"));
        assert!(!takes_text("", "exit.uni"));
    }

    #[test]
    fn modifiers_come_in_any_order() {
        let form = "{.sem}{.scope}{.global|shared}.add.u32|s32";
        assert!(takes_text(form, "atom.add.acquire.gpu.s32"));
        assert!(takes_text(form, "atom.acquire.gpu.add.s32"));
        assert!(!takes_text(form, "atom.add.add.s32"));
    }

    #[test]
    fn names_with_colons_are_one_modifier() {
        let form = ".async.bulk.shared::cluster.shared::cta.tx";
        assert!(takes_text(form, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"));
        assert!(!takes_text(form, "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes"));
    }

    #[test]
    fn two_slots_of_one_class_take_two_modifiers() {
        assert!(takes_text("{.cache}{.cache}.b32", "ld.nc.L2::128B.b32"));
        assert!(!takes_text("{.cache}.b32", "ld.nc.L2::128B.b32"));
    }
}
