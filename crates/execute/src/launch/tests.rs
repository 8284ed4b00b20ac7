//! Resources of a kernel before it is launched.

use super::{KernelResources, merged};

#[test]
fn the_device_speaks_first_of_resources_and_the_compiler_of_the_rest() {
    let device = KernelResources { registers: Some(40), ..KernelResources::default() };
    let compiler = KernelResources { registers: Some(38), spill_stores: Some(16), ..KernelResources::default() };
    let known = merged(device, compiler);
    assert_eq!((known.registers, known.spill_stores, known.local), (Some(40), Some(16), None));
}
