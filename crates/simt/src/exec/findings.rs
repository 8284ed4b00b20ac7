//! Messages for the sanitizer's findings: traps, and notes about findings that do not end the launch.
//!
//! Separate from the checks, so that the checks contain no wording.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::error::{Site, Trap, TrapKind};
use crate::exec::launch_state::LaunchState;
use crate::exec::window::window;
use crate::memory::{ABSENT_WORKSPACE, GLOBAL_BASE, WORKSPACE};
use crate::program::Position;
use crate::program::aux::StateSpace;
use crate::runtime::heap;
use crate::sanitize::{BlockConflict, Earlier, Fault, Hazard, Op, RemoteConflict, RemoteThread, Space, Tag};

/// Returns the location of an offset in a state space.
pub fn site(launch: &LaunchState<'_>, space: Space, offset: u64) -> Site {
    match space {
        Space::Shared => shared_site(launch, offset),
        Space::Global => site_of(launch, StateSpace::GLOBAL, GLOBAL_BASE + offset),
    }
}

/// Returns a location in shared memory, relative to the kernel's own first byte, which follows the system's reserved
/// bytes.
fn shared_site(launch: &LaunchState<'_>, offset: u64) -> Site {
    match offset.checked_sub(u64::from(launch.kernel.shared_base)) {
        Some(own) => Site::inside("shared memory", own),
        None => Site::inside("reserved shared memory", offset),
    }
}

/// Returns the location of an address in a state space, with the nearest allocation.
pub fn site_of(launch: &LaunchState<'_>, space: StateSpace, address: u64) -> Site {
    let (space, base) = if space == StateSpace::GENERIC { window(address) } else { (space, 0) };
    let named = match space {
        StateSpace::SHARED => "shared memory",
        StateSpace::LOCAL => "local memory",
        StateSpace::PARAM => "kernel parameters",
        _ => "",
    };
    if !named.is_empty() {
        let offset = address - base;
        return if space == StateSpace::SHARED { shared_site(launch, offset) } else { Site::inside(named, offset) };
    }
    match launch.memory.nearest(address, 1) {
        Some(a) => Site { address, offset: address.wrapping_sub(a.start) as i64, allocation: a.name },
        None => Site { address, allocation: "no allocation".to_owned(), offset: address as i64 },
    }
}

/// Whether an address is in the workspace that exists only in cooperative launches.
pub const fn is_absent_workspace(address: u64) -> bool {
    address.wrapping_sub(ABSENT_WORKSPACE) < WORKSPACE
}

/// Returns the message for an access to global memory outside every allocation.
pub fn out_of_bounds(launch: &LaunchState<'_>, address: u64, bytes: u64, store: bool) -> String {
    if is_absent_workspace(address) {
        return "a grid barrier in a launch that is not cooperative (set `cooperative = true`)".to_owned();
    }
    let near = match launch.memory.nearest(address, bytes) {
        _ if address < 4096 => "a null pointer".to_owned(),
        None => "no memory is allocated".to_owned(),
        Some(a) => {
            let place = match (address.checked_sub(a.start), address.checked_sub(a.end())) {
                (None, _) => format!("{} bytes before", a.start - address),
                (_, Some(past)) => format!("{past} bytes past the end of"),
                (Some(offset), None) => format!("at offset {offset}, across the end of"),
            };
            format!("{place} {} ({} bytes)", a.name, a.bytes)
        }
    };
    let access = if store { "write to" } else { "read of" };
    format!("out-of-bounds {bytes}-byte {access} global memory at {address:#x}, {near}")
}

/// Returns the message for an access beyond the `len` bytes of a state space. Addresses have 32 bits, so offsets in the
/// upper half are shown as negative.
pub fn outside(what: &str, len: u64, offset: u64, bytes: u64) -> String {
    let signed = u32::try_from(offset).map_or(offset as i64, |offset| i64::from(offset.cast_signed()));
    let place = if signed < 0 {
        format!("{} bytes before its start", signed.unsigned_abs())
    } else {
        format!("at offset {offset:#x}")
    };
    format!("out-of-bounds {bytes}-byte access to {what}, {place}: it has {len} bytes")
}

/// Returns the `file:line` that a line number stands for.
pub fn place(launch: &LaunchState<'_>, line: u16) -> String {
    match launch.shadow.position(line) {
        Some((function, line)) => launch.kernel.place(Position { function, line }),
        None => "an unknown line".to_owned(),
    }
}

fn thread(launch: &LaunchState<'_>, number: u32) -> [u32; 3] {
    let [x, y, _] = launch.block;
    [number % x, number / x % y, number / x / y]
}

fn named([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

fn block(launch: &LaunchState<'_>, linear: u32) -> [u32; 3] {
    let [x, y, _] = launch.grid;
    [linear % x, linear / x % y, linear / x / y]
}

/// Returns the message for a race or another fault within a block.
pub fn message(launch: &LaunchState<'_>, hazard: &Hazard, site: &Site) -> String {
    let (now, before) = (hazard.now.done(), hazard.before.done());
    match hazard.fault {
        Fault::Unwritten => format!("read of {site}, which was never written"),
        Fault::Pending => {
            let copy = place(launch, hazard.earlier.line());
            format!("{site} is {now} with no wait for the asynchronous copy into it at {copy}")
        }
        Fault::BeingRead => {
            let copy = place(launch, hazard.earlier.line());
            format!("{site} is {now} with no wait for the bulk copy from it at {copy}")
        }
        Fault::Unfenced => {
            let who = earlier_access(launch, hazard.tag, hazard.earlier);
            format!("{site} is read by a bulk copy, and was written by {who} with no `fence.proxy.async` in between")
        }
        _ => {
            let who = earlier_access(launch, hazard.tag, hazard.earlier);
            format!("race on {site}: {now} here, {before} by {who} with no barrier between")
        }
    }
}

/// How to silence reports of races.
const SILENCE: &str = "to silence it: `sanitize.off = [\"race\"]`";

/// Returns advice for fixing a race within a block.
pub fn cure(launch: &LaunchState<'_>, hazard: &Hazard) -> String {
    let before = place(launch, hazard.tag.line());
    let barrier = match hazard.fault {
        Fault::Warp => "`__syncwarp()`",
        _ => "`__syncthreads()`",
    };
    format!("{barrier} before {before} orders them; {SILENCE}")
}

/// Returns advice for fixing a race between blocks of a cluster.
pub fn cure_of_cluster(before: &str) -> String {
    format!("`cluster.sync()` before {before} orders them; {SILENCE}")
}

fn cure_of_blocks(launch: &LaunchState<'_>, conflict: &BlockConflict) -> String {
    let (now, then) = (place(launch, conflict.here.line), place(launch, conflict.there.line));
    format!(
        "to order them, add `__threadfence()` (then `__syncthreads()` if another thread of the block announces the \
         data) after {then} and before the counter or flag that block {} waits on before {now}; {SILENCE}",
        named(block(launch, conflict.here.block))
    )
}

/// Returns the message for an mbarrier object that one thread initialises or invalidates while another uses it.
pub fn object_race(launch: &LaunchState<'_>, hazard: &Hazard, site: &Site) -> String {
    let who = earlier_access(launch, hazard.tag, hazard.earlier);
    match (hazard.before, hazard.now) {
        (Op::Store, Op::Store) => {
            format!("race on the mbarrier object at {site}: initialised here, and by {who} with no barrier in between")
        }
        (Op::Store, _) => {
            format!("race on the mbarrier object at {site}: used here, initialised by {who} with no barrier in between")
        }
        _ => {
            format!("race on the mbarrier object at {site}: initialised here, used by {who} with no barrier in between")
        }
    }
}

fn earlier_access(launch: &LaunchState<'_>, now: Tag, earlier: Tag) -> String {
    let place = place(launch, earlier.line());
    if earlier.several_warps() && earlier.warp() == now.warp() {
        return format!("another warp, at {place} or elsewhere,");
    }
    format!("thread {} at {place}", named(thread(launch, earlier.thread())))
}

/// Called after all blocks have ended. Returns the notes, or the race between two blocks that ends the launch.
pub fn races_and_notes(launch: &LaunchState<'_>) -> Result<Vec<String>, Box<Trap>> {
    let mut notes = Vec::new();
    let mut reported = BTreeSet::new();
    for (linear, hazard) in launch.shadow.lints() {
        // A source line has several numbers if code of other lines is interleaved with it.
        let (now, then) = (place(launch, hazard.tag.line()), place(launch, hazard.earlier.line()));
        let pair = if now < then { (now, then) } else { (then, now) };
        if reported.insert((hazard.fault, pair)) {
            notes.push(lint(launch, linear, &hazard));
        }
    }
    let ignored = launch.shadow.ignored();
    for conflict in launch.shadow.conflicts().into_iter().filter(|conflict| ignored.reports(conflict.fault())) {
        let site = site(launch, Space::Global, conflict.offset);
        // Heap memory may have had several owners.
        if heap::owns(launch.memory, site.address) {
            continue;
        }
        if conflict.fault() == Fault::Race {
            return Err(Box::new(race(launch, &conflict, site)));
        }
        let (now, then) = (place(launch, conflict.here.line), place(launch, conflict.there.line));
        let pair = if now < then { (now, then) } else { (then, now) };
        if reported.insert((Fault::Mixed, pair)) {
            notes.push(mixed(launch, &conflict, &site));
        }
    }
    if let Some(each) = launch.shadow.sampled() {
        let name = &launch.kernel.name;
        notes.push(format!(
            "kernel `{name}` accesses so much memory that only one of {each} segments of 128 bytes was checked for \
             races between blocks"
        ));
    }
    Ok(notes)
}

fn remote_thread(launch: &LaunchState<'_>, by: RemoteThread) -> String {
    let (thread, block) = (named(thread(launch, by.thread)), named(by.block));
    format!("thread {thread} of block {block} at {}", place(launch, by.line))
}

/// Returns the message for a conflicting access of a block to the shared memory of `owner`, another block of its
/// cluster.
pub fn remote_conflict(launch: &LaunchState<'_>, owner: [u32; 3], now: Op, conflict: &RemoteConflict) -> String {
    let site = format!("{} of block {}", site(launch, Space::Shared, conflict.offset), named(owner));
    let (now, before) = (now.done(), conflict.before.done());
    let who = match conflict.who {
        Earlier::Own(tag) => {
            format!("its thread {} at {}", named(thread(launch, tag.thread())), place(launch, tag.line()))
        }
        Earlier::RemoteThread(by) => remote_thread(launch, by),
    };
    match conflict.fault {
        Fault::Unwritten => format!("read of {site}, which was never written"),
        Fault::Pending => format!("{site} is {now} with no wait for a bulk copy into it"),
        Fault::BeingRead => format!("{site} is {now} with no wait for a bulk copy from it"),
        Fault::Unfenced => {
            format!("{site} is changed by a bulk copy, and was written by {who} with no `fence.proxy.async` in between")
        }
        _ => format!("race on {site}: {now} here, {before} by {who} with no cluster barrier in between"),
    }
}

/// Returns the message for an access to the block's own shared memory that conflicts with another block's.
pub fn remote_race(launch: &LaunchState<'_>, site: &Site, now: Op, (by, before): (RemoteThread, Op)) -> String {
    format!(
        "race on {site}: {} here, {} by {} with no cluster barrier in between",
        now.done(),
        before.done(),
        remote_thread(launch, by)
    )
}

/// Returns the fault for an access to the shared memory of block `owner` that no barrier separates from the end of that
/// block.
pub fn unfinished_remote_access(launch: &LaunchState<'_>, by: RemoteThread, owner: [u32; 3]) -> Trap {
    let cure = cure_of_cluster("the end of the kernel");
    Trap {
        kernel: launch.kernel.name.clone(),
        place: place(launch, by.line),
        block: by.block,
        thread: Some(thread(launch, by.thread)),
        kind: TrapKind::Race,
        message: format!(
            "access to the shared memory of block {}, which ends with no cluster barrier in between",
            named(owner)
        ),
        cure: Some(cure),
        launched_by: None,
        site: None,
        printed: String::new(),
    }
}

fn race(launch: &LaunchState<'_>, conflict: &BlockConflict, site: Site) -> Trap {
    let (here, there) = (conflict.here, conflict.there);
    let cure = cure_of_blocks(launch, conflict);
    let message = format!(
        "race between blocks on {site}: {} here, {} by thread {} of block {} at {} with nothing to order them",
        here.op.done(),
        there.op.done(),
        named(thread(launch, there.thread)),
        named(block(launch, there.block)),
        place(launch, there.line),
    );
    Trap {
        kernel: launch.kernel.name.clone(),
        place: place(launch, here.line),
        block: block(launch, here.block),
        thread: Some(thread(launch, here.thread)),
        kind: TrapKind::Race,
        message,
        cure: Some(cure),
        launched_by: None,
        site: Some(site),
        printed: String::new(),
    }
}

fn lint(launch: &LaunchState<'_>, linear: u32, hazard: &Hazard) -> String {
    let site = site(launch, hazard.space, hazard.offset);
    let (now, then) = (place(launch, hazard.tag.line()), place(launch, hazard.earlier.line()));
    let (mine, theirs) = (thread(launch, hazard.tag.thread()), thread(launch, hazard.earlier.thread()));
    if hazard.fault == Fault::Places {
        return format!(
            "kernel `{}`: a block barrier is reached at {then} by some threads and at {now} by others (block \
             {}, threads {} and {})",
            launch.kernel.name,
            named(block(launch, linear)),
            named(theirs),
            named(mine)
        );
    }
    if hazard.fault == Fault::Absent {
        return format!(
            "kernel `{}`: lanes {:#010x} exit without executing the warp operation at {now} whose mask includes them; \
             CUDA leaves its result undefined: include only lanes that execute it (block {}, thread {})",
            launch.kernel.name,
            hazard.offset,
            named(block(launch, linear)),
            named(mine)
        );
    }
    if hazard.fault == Fault::Lanes {
        return format!(
            "kernel `{}`: lanes of a warp store different values to {site} in one instruction at {now}; it is \
             undefined which one is kept (block {}, threads {} and {}); only one lane should store; {SILENCE}",
            launch.kernel.name,
            named(block(launch, linear)),
            named(theirs),
            named(mine)
        );
    }
    let mut text = format!("kernel `{}`: {site} is {} at {now}", launch.kernel.name, hazard.now.done());
    let between = if hazard.fault == Fault::Warp {
        "by another lane of the warp with no `__syncwarp` between; lanes do not run in lockstep since Volta"
    } else {
        "by another thread with no barrier between; the value read may be from any time"
    };
    if hazard.fault == Fault::Left {
        let (name, block) = (&launch.kernel.name, named(block(launch, linear)));
        return format!(
            "kernel `{name}`: block {block} ends before thread {} has waited for its bulk copy at {now}, which may \
             still read the block's shared memory",
            named(mine)
        );
    }
    // Writing to a string cannot fail.
    let _ = write!(text, " and was {} at {then} {between}", hazard.before.done());
    let _ = write!(text, " (block {}, threads {} and ", named(block(launch, linear)), named(mine));
    if mine == theirs {
        text.push_str("others)");
    } else {
        let _ = write!(text, "{})", named(theirs));
    }
    let _ = write!(text, "; {}", cure(launch, hazard));
    text
}

fn mixed(launch: &LaunchState<'_>, conflict: &BlockConflict, site: &Site) -> String {
    let (load, change) =
        if conflict.here.op == Op::Load { (conflict.here, conflict.there) } else { (conflict.there, conflict.here) };
    format!(
        "kernel `{}`: {site} is read at {} and changed by an atomic of another block at {} with nothing to order \
         them; the value read may be from any time (thread {} of block {}, thread {} of block {}); {}",
        launch.kernel.name,
        place(launch, load.line),
        place(launch, change.line),
        named(thread(launch, load.thread)),
        named(block(launch, load.block)),
        named(thread(launch, change.thread)),
        named(block(launch, change.block)),
        cure_of_blocks(launch, conflict),
    )
}
