//! Small programs in the PTX memory model, each decided by hand. A program races if two accesses to a location, at
//! least one of which is a write, are neither ordered by causality nor morally strong.
//!
//! A program is what some threads execute; all others do nothing. `racy` programs must end with a trap or a note about
//! a race, the others with neither.

use std::fmt::Write as _;

use simt::{LaunchError, LaunchSpec, Machine, Options, TrapKind, profiles};

/// Block and threads, and the instructions that they execute. `[s]` and `[sf]` are data and a flag in shared memory,
/// `[g]` and `[gf]` in global memory, all initially zero. `[o]` is a word of the thread's own. `%r1` is the lane.
type Role = ((u32, std::ops::Range<u32>), String);

struct Program {
    name: &'static str,
    racy: bool,
    blocks: u32,
    threads: u32,
    cluster: u32,
    roles: Vec<Role>,
}

const HEAD: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flags, .param .u64 out)
{
    .reg .pred %p<9>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<20>;
    .shared .align 16 .b32 s[128];
    .shared .align 16 .b32 sf[4];
    .shared .align 8 .b64 object;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [flags];
    ld.param.u64 %rd3, [out];
    mov.u32 %r20, %tid.x;
    mov.u32 %r21, %ctaid.x;
    and.b32 %r1, %r20, 31;
    mov.u32 %r22, %ntid.x;
    mad.lo.u32 %r23, %r21, %r22, %r20;
    mul.wide.u32 %rd4, %r23, 4;
    add.u64 %rd3, %rd3, %rd4;
    mul.wide.u32 %rd5, %r20, 4;
    mov.u64 %rd6, s;
    add.u64 %rd6, %rd6, %rd5;
    mul.wide.u32 %rd7, %r1, 4;
    mov.u64 %rd8, s;
    add.u64 %rd8, %rd8, %rd7;
    setp.ne.u32 %p1, %r20, 0;
    @%p1 bra ZEROED;
    st.shared.u32 [sf], 0;
    st.shared.u32 [sf+4], 0;
    st.shared.u32 [s], 0;
    st.shared.u32 [s+4], 0;
ZEROED:
    bar.sync 0;
";

impl Program {
    /// Returns the PTX. Expands loops: `POLL x` repeats `x` until `%r10` is nonzero, `LOCK x` until it is zero, `WAIT
    /// x` until `%p5` is true.
    fn ptx(&self) -> String {
        let mut text = HEAD.to_owned();
        for (number, ((block, threads), code)) in self.roles.iter().enumerate() {
            let (from, to) = (threads.start, threads.end);
            let _ = write!(
                text,
                "setp.ne.u32 %p2, %r21, {block};\n@%p2 bra END{number};\nsetp.lt.u32 %p3, %r20, {from};\n@%p3 bra \
                 END{number};\nsetp.ge.u32 %p4, %r20, {to};\n@%p4 bra END{number};\n"
            );
            for (at, line) in code.split(';').map(str::trim).filter(|line| !line.is_empty()).enumerate() {
                let line = line.replace("[g]", "[%rd1]").replace("[g+4]", "[%rd1+4]").replace("[gf]", "[%rd2]");
                let line = line.replace("[gf+4]", "[%rd2+4]").replace("[o]", "[%rd3]");
                let line = line.replace("[s+tid]", "[%rd6]").replace("[s+lane]", "[%rd8]");
                let (what, code) = line.split_once(' ').unwrap_or((&line, ""));
                let again = match what {
                    "POLL" => "setp.eq.u32 %p5, %r10, 0;\n@%p5",
                    "LOCK" => "setp.ne.u32 %p5, %r10, 0;\n@%p5",
                    "WAIT" => "@!%p5",
                    _ => {
                        let _ = writeln!(text, "{line};");
                        continue;
                    }
                };
                let _ = write!(text, "L{number}_{at}:\n{code};\n{again} bra L{number}_{at};\n");
            }
            let _ = writeln!(text, "END{number}:");
        }
        text + "ret;\n}\n"
    }

    /// Runs the program on this many host threads. Returns the trap or the note, if it is about a race.
    fn finding(&self, workers: usize) -> Option<String> {
        let options = Options { watchdog: 2_000_000, threads: Some(workers), ..Options::default() };
        let profile = profiles().into_iter().find(|profile| profile.id == "h100").unwrap();
        let mut machine = Machine::new(profile, options).unwrap();
        let module = machine.load(&self.ptx()).unwrap_or_else(|e| panic!("{}: {e:?}\n{}", self.name, self.ptx()));
        let args: Vec<Vec<u8>> = (0..3)
            .map(|_| {
                let address = machine.alloc(4096).unwrap();
                machine.write(address, &[0; 4096]).unwrap();
                address.to_le_bytes().to_vec()
            })
            .collect();
        let cluster = (self.cluster > 1).then_some([self.cluster, 1, 1]);
        let (grid, block) = ([self.blocks, 1, 1], [self.threads, 1, 1]);
        let spec = LaunchSpec { kernel: "k", grid, block, shared: 0, cooperative: true, cluster, args: &args };
        match machine.launch(module, &spec) {
            Ok(report) => {
                let other = ["independent thread scheduling", "wait for later", "a block barrier is reached"];
                let known = |note: &&String| !other.iter().any(|text| note.contains(text));
                report.notes.iter().find(known).cloned()
            }
            Err(LaunchError::Trap(trap)) if matches!(trap.kind, TrapKind::Race | TrapKind::Uninitialised) => {
                Some(trap.to_string())
            }
            Err(other) => panic!("`{}`: {other:?}", self.name),
        }
    }
}

fn role(block: u32, threads: std::ops::Range<u32>, code: &str) -> Role {
    ((block, threads), code.to_owned())
}

/// Message passing from thread 0 to thread 32 of one block. `send` comes after the store of the data, `receive` before
/// the load.
fn within(name: &'static str, racy: bool, send: &str, receive: &str) -> Program {
    let place = if send.contains("gf") || receive.contains("gf") { ("global", "g") } else { ("shared", "s") };
    let (space, at) = place;
    let roles = vec![
        role(0, 0..1, &format!("st.{space}.u32 [{at}], 7; {send}")),
        role(0, 32..33, &format!("{receive}; ld.{space}.u32 %r11, [{at}]; st.global.u32 [o], %r11")),
    ];
    Program { name, racy, blocks: 1, threads: 64, cluster: 1, roles }
}

/// Message passing from block 0 to block 1 through global memory.
fn between(name: &'static str, racy: bool, send: &str, receive: &str) -> Program {
    let roles = vec![
        role(0, 0..1, &format!("st.global.u32 [g], 7; {send}")),
        role(1, 0..1, &format!("{receive}; ld.global.u32 %r11, [g]; st.global.u32 [o], %r11")),
    ];
    Program { name, racy, blocks: 2, threads: 32, cluster: 1, roles }
}

fn block(name: &'static str, racy: bool, threads: u32, roles: Vec<Role>) -> Program {
    Program { name, racy, blocks: 1, threads, cluster: 1, roles }
}

fn grid(name: &'static str, racy: bool, threads: u32, roles: Vec<Role>) -> Program {
    let blocks = roles.iter().map(|((block, _), _)| block + 1).max().unwrap();
    Program { name, racy, blocks, threads, cluster: 1, roles }
}

#[track_caller]
fn decide(programs: &[Program]) {
    let wrong: Vec<String> = programs
        .iter()
        .filter_map(|program| {
            let found = program.finding(1);
            assert_eq!(found, program.finding(4), "`{}` on 4 threads", program.name);
            (found.is_some() != program.racy)
                .then(|| format!("{}: racy {}, found {found:?}", program.name, program.racy))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table of programs")]
fn messages_within_a_block_need_a_release_and_an_acquire() {
    decide(&[
        // A releasing store synchronises with an acquiring load that reads it.
        within(
            "release, acquire",
            false,
            "st.release.cta.shared.u32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // A relaxed store releases nothing unless a fence precedes it.
        within(
            "relaxed, acquire",
            true,
            "st.relaxed.cta.shared.u32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // A relaxed load acquires nothing unless a fence follows it.
        within(
            "release, relaxed",
            true,
            "st.release.cta.shared.u32 [sf], 1",
            "POLL ld.relaxed.cta.shared.u32 %r10, [sf]",
        ),
        // A fence followed by a strong store is a release pattern; a strong load followed by a fence is an acquire
        // pattern.
        within(
            "fences",
            false,
            "fence.acq_rel.cta; st.relaxed.cta.shared.u32 [sf], 1",
            "POLL ld.relaxed.cta.shared.u32 %r10, [sf]; fence.acq_rel.cta",
        ),
        // `volatile` counts as relaxed, and `membar` is a fence.
        within(
            "volatile, fences",
            false,
            "membar.cta; st.volatile.shared.u32 [sf], 1",
            "POLL ld.volatile.shared.u32 %r10, [sf]; membar.cta",
        ),
        within("volatile", true, "st.volatile.shared.u32 [sf], 1", "POLL ld.volatile.shared.u32 %r10, [sf]"),
        // The fence is on the wrong side of the store.
        within(
            "fence after the store",
            true,
            "st.relaxed.cta.shared.u32 [sf], 1; fence.acq_rel.cta",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // The fence is on the wrong side of the load.
        within(
            "fence before the load",
            true,
            "st.release.cta.shared.u32 [sf], 1",
            "fence.acq_rel.cta; POLL ld.relaxed.cta.shared.u32 %r10, [sf]",
        ),
        // An acquire fence or a release fence has only one of the two effects.
        within(
            "half fences",
            false,
            "fence.release.cta; st.relaxed.cta.shared.u32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // A proxy fence orders nothing between threads.
        within(
            "proxy fence",
            true,
            "fence.proxy.async; st.relaxed.cta.shared.u32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // A releasing reduction.
        within(
            "red.release",
            false,
            "red.release.cta.shared.or.b32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        within(
            "red.relaxed",
            true,
            "red.relaxed.cta.shared.or.b32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // An acquiring atomic reads the released value.
        within(
            "atom.acquire",
            false,
            "st.release.cta.shared.u32 [sf], 1",
            "POLL atom.acquire.cta.shared.or.b32 %r10, [sf], 0",
        ),
        within(
            "atom.relaxed",
            true,
            "st.release.cta.shared.u32 [sf], 1",
            "POLL atom.relaxed.cta.shared.or.b32 %r10, [sf], 0",
        ),
        // The weak store to the flag races with the loads of the flag.
        within(
            "weak flag",
            true,
            "fence.acq_rel.cta; st.shared.u32 [sf], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        within(
            "weak poll",
            true,
            "st.release.cta.shared.u32 [sf], 1",
            "POLL ld.shared.u32 %r10, [sf]; fence.acq_rel.cta",
        ),
        // Wider scopes include the block.
        within("wider scopes", false, "st.release.gpu.shared.u32 [sf], 1", "POLL ld.acquire.sys.shared.u32 %r10, [sf]"),
        // A release does not include what follows it.
        within(
            "store after the release",
            true,
            "st.release.cta.shared.u32 [sf], 1; st.shared.u32 [s], 8",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
        // The same program, through global memory.
        within(
            "global release, acquire",
            false,
            "st.release.cta.global.u32 [gf], 1",
            "POLL ld.acquire.cta.global.u32 %r10, [gf]",
        ),
        within(
            "global relaxed",
            true,
            "st.relaxed.gpu.global.u32 [gf], 1",
            "POLL ld.relaxed.gpu.global.u32 %r10, [gf]",
        ),
        within(
            "global fences",
            false,
            "membar.gl; st.volatile.global.u32 [gf], 1",
            "POLL ld.volatile.global.u32 %r10, [gf]; membar.gl",
        ),
        // The thread waits on a flag other than the released one.
        within(
            "wrong flag",
            true,
            "st.relaxed.cta.shared.u32 [sf], 1; st.release.cta.shared.u32 [sf+4], 1",
            "POLL ld.acquire.cta.shared.u32 %r10, [sf]",
        ),
    ]);
}

#[test]
fn lanes_of_a_warp_pass_on_what_they_know_only_when_they_synchronise() {
    let all = |send: &str, receive: &str| {
        vec![
            role(0, 0..32, &format!("st.shared.u32 [s+lane], 7; {send}")),
            role(0, 0..1, "st.release.cta.shared.u32 [sf], 1"),
            role(0, 32..33, "POLL ld.acquire.cta.shared.u32 %r10, [sf]"),
            role(0, 32..64, &format!("{receive} ld.shared.u32 %r11, [s+lane]; st.global.u32 [o], %r11")),
        ]
    };
    let sync = "bar.warp.sync 0xffffffff;";
    let half = "setp.lt.u32 %p6, %r1, 16; selp.b32 %r12, 0xffff, 0xffff0000, %p6; bar.warp.sync %r12;";
    let pair = |between: &str| {
        vec![
            role(0, 0..1, "st.shared.u32 [s], 7"),
            role(0, 0..32, between),
            role(0, 1..2, "ld.shared.u32 %r11, [s]; st.global.u32 [o], %r11"),
        ]
    };
    decide(&[
        // Both warps synchronise: lane 0 releases on behalf of its whole warp, and acquires on behalf of the other one.
        block("whole warps", false, 64, all(sync, sync)),
        // Lane 0 does not know about the other lanes' stores.
        block("no synchronisation before the release", true, 64, all("", sync)),
        // The other lanes do not know what lane 0 has acquired.
        block("no synchronisation after the acquire", true, 64, all(sync, "")),
        // Lane 0 knows only about the lower half, and only the lower half knows what lane 0 has acquired.
        block("half of the releasing warp", true, 64, all(half, sync)),
        block("half of the acquiring warp", true, 64, all(sync, half)),
        // Lanes of one warp do not run in lockstep.
        block("one warp", true, 32, pair("")),
        block("one warp, synchronised", false, 32, pair(sync)),
        block("one warp, in halves", false, 32, pair(half)),
        // A release and an acquire between lanes of the same warp.
        block(
            "one warp, released",
            false,
            32,
            vec![
                role(0, 0..1, "st.shared.u32 [s], 7; st.release.cta.shared.u32 [sf], 1"),
                role(
                    0,
                    1..2,
                    "POLL ld.acquire.cta.shared.u32 %r10, [sf]; ld.shared.u32 %r11, [s]; st.global.u32 [o], %r11",
                ),
            ],
        ),
        // Lane 17 reads what lane 0 stored, but only the two halves have synchronised, not the warp.
        block(
            "across halves",
            true,
            32,
            vec![
                role(0, 0..1, "st.shared.u32 [s], 7"),
                role(0, 0..32, half),
                role(0, 17..18, "ld.shared.u32 %r11, [s]; st.global.u32 [o], %r11"),
            ],
        ),
    ]);
}

#[test]
fn barriers_order_the_threads_that_take_part() {
    let with = |first: &str, second: &str, third: &str| {
        vec![
            role(0, 0..32, &format!("st.shared.u32 [s+lane], 7; {first}")),
            role(0, 32..64, second),
            role(0, 64..96, third),
        ]
    };
    let load = "ld.shared.u32 %r11, [s+lane]; st.global.u32 [o], %r11;";
    decide(&[
        block("bar.sync 0", false, 96, with("bar.sync 0", &format!("bar.sync 0; {load}"), "bar.sync 0")),
        block("no barrier", true, 96, with("", load, "")),
        // A barrier of two warps orders their accesses.
        block("bar.sync 1, 64", false, 96, with("bar.sync 1, 64", &format!("bar.sync 1, 64; {load}"), "")),
        // The third warp does not take part.
        block("a warp outside of the barrier", true, 96, with("bar.sync 1, 64", "bar.sync 1, 64", load)),
        // The third warp learns about the store from the second one.
        block(
            "two barriers in a row",
            false,
            96,
            with("bar.sync 1, 64", "bar.sync 1, 64; bar.sync 2, 64", &format!("bar.sync 2, 64; {load}")),
        ),
        // The second barrier is between warps that do not know about the first warp's store yet.
        block(
            "two barriers in the wrong order",
            true,
            96,
            with("bar.sync 1, 64", "bar.sync 2, 64; bar.sync 1, 64", &format!("bar.sync 2, 64; {load}")),
        ),
        // A thread that arrives releases, and a thread that waits acquires.
        block("bar.arrive", false, 64, with("bar.arrive 1, 64", &format!("bar.sync 1, 64; {load}"), "")),
        // An arrival does not release what follows it.
        block(
            "store after bar.arrive",
            true,
            64,
            with("bar.arrive 1, 64; st.shared.u32 [s+lane], 8", &format!("bar.sync 1, 64; {load}"), ""),
        ),
        // A thread that arrives acquires nothing.
        block(
            "bar.arrive does not acquire",
            true,
            64,
            vec![
                role(0, 32..64, "st.shared.u32 [s+lane], 7; bar.sync 1, 64"),
                role(0, 0..32, &format!("bar.arrive 1, 64; {load}")),
            ],
        ),
    ]);
}

#[test]
fn mbarrier_objects_release_with_arrivals_and_acquire_with_waits() {
    let init = "mbarrier.init.shared.b64 [object], 2";
    let arrive = "mbarrier.arrive.shared.b64 %rd10, [object]";
    let wait = "WAIT mbarrier.test_wait.parity.shared.b64 %p5, [object], 0";
    let with = |before: &str, first: &str, second: &str| {
        vec![role(0, 0..1, init), role(0, 0..64, before), role(0, 0..1, first), role(0, 32..33, second)]
    };
    let load = "ld.shared.u32 %r11, [s]; st.global.u32 [o], %r11";
    decide(&[
        block(
            "arrive, wait",
            false,
            64,
            with("bar.sync 0", &format!("st.shared.u32 [s], 7; {arrive}"), &format!("{arrive}; {wait}; {load}")),
        ),
        block(
            "arrive, no wait",
            true,
            64,
            with("bar.sync 0", &format!("st.shared.u32 [s], 7; {arrive}"), &format!("{arrive}; {load}")),
        ),
        block(
            "store after the arrival",
            true,
            64,
            with("bar.sync 0", &format!("{arrive}; st.shared.u32 [s], 7"), &format!("{arrive}; {wait}; {load}")),
        ),
        // A warp uses the object without knowing about its initialisation.
        block("initialised without a barrier", true, 64, with("", arrive, &format!("{arrive}; {wait}"))),
        block("initialised by the second warp", true, 64, vec![role(0, 0..1, arrive), role(0, 32..33, init)]),
    ]);
}

#[test]
fn locks_need_an_acquire_and_a_release() {
    let lock = |take: &str, give: &str| {
        let code =
            format!("POLL {take}; ld.shared.u32 %r11, [s]; add.u32 %r11, %r11, 1; st.shared.u32 [s], %r11; {give}");
        (0..4).map(|warp| role(0, 32 * warp..32 * warp + 1, &code)).collect::<Vec<_>>()
    };
    // The lock is free while the word is one.
    let free = |mut roles: Vec<Role>| {
        roles.insert(0, role(0, 0..1, "st.shared.u32 [sf], 1"));
        roles.insert(1, role(0, 0..128, "bar.sync 0"));
        roles
    };
    let cas = |order: &str| format!("atom.{order}.cta.shared.cas.b32 %r10, [sf], 1, 0");
    decide(&[
        block("cas.acquire, st.release", false, 128, free(lock(&cas("acquire"), "st.release.cta.shared.u32 [sf], 1"))),
        block(
            "exch.acquire, red.release",
            false,
            128,
            free(lock("atom.acquire.cta.shared.exch.b32 %r10, [sf], 0", "red.release.cta.shared.add.u32 [sf], 1")),
        ),
        block(
            "cas.acq_rel, exch.acq_rel",
            false,
            128,
            free(lock(&cas("acq_rel"), "atom.acq_rel.cta.shared.exch.b32 %r12, [sf], 1")),
        ),
        block(
            "cas, fence, fence, exch",
            false,
            128,
            free(lock(
                &format!("{}; fence.acq_rel.cta", cas("relaxed")),
                "fence.acq_rel.cta; atom.relaxed.cta.shared.exch.b32 %r12, [sf], 1",
            )),
        ),
        // The lock is returned without a release.
        block("no release", true, 128, free(lock(&cas("acquire"), "st.relaxed.cta.shared.u32 [sf], 1"))),
        // The lock is taken without an acquire.
        block("no acquire", true, 128, free(lock(&cas("relaxed"), "st.release.cta.shared.u32 [sf], 1"))),
    ]);
}

#[test]
fn buffers_of_strong_accesses_do_not_race_and_weak_ones_do() {
    let two = |first: &str, second: &str| vec![role(0, 0..1, first), role(0, 32..33, second)];
    let (st, ld) = ("st.relaxed.cta.shared.u32", "ld.relaxed.cta.shared.u32");
    decide(&[
        // Store buffering and load buffering: strong accesses are morally strong, whatever values they read.
        block(
            "store buffering",
            false,
            64,
            two(&format!("{st} [s], 1; {ld} %r11, [s+4]"), &format!("{st} [s+4], 1; {ld} %r11, [s]")),
        ),
        block(
            "load buffering",
            false,
            64,
            two(&format!("{ld} %r11, [s]; {st} [s+4], 1"), &format!("{ld} %r11, [s+4]; {st} [s], 1")),
        ),
        block(
            "weak store buffering",
            true,
            64,
            two("st.shared.u32 [s], 1; ld.shared.u32 %r11, [s+4]", "st.shared.u32 [s+4], 1; ld.shared.u32 %r11, [s]"),
        ),
        block(
            "weak load buffering",
            true,
            64,
            two("ld.shared.u32 %r11, [s]; st.shared.u32 [s+4], 1", "ld.shared.u32 %r11, [s+4]; st.shared.u32 [s], 1"),
        ),
        // Fences order nothing without strong accesses that read from each other.
        block(
            "weak store buffering, fenced",
            true,
            64,
            two(
                "st.shared.u32 [s], 1; fence.sc.cta; ld.shared.u32 %r11, [s+4]",
                "st.shared.u32 [s+4], 1; fence.sc.cta; ld.shared.u32 %r11, [s]",
            ),
        ),
        // A weak access is never morally strong, even towards a strong one.
        block("strong store, weak load", true, 64, two(&format!("{st} [s], 1"), "ld.shared.u32 %r11, [s]")),
        block("weak store, strong load", true, 64, two("st.shared.u32 [s], 1", &format!("{ld} %r11, [s]"))),
        block("weak store, atomic", true, 64, two("st.shared.u32 [s], 1", "red.relaxed.cta.shared.add.u32 [s], 1")),
        block(
            "atomics",
            false,
            64,
            two("red.relaxed.cta.shared.add.u32 [s], 1", "red.relaxed.cta.shared.add.u32 [s], 1"),
        ),
    ]);
}

#[test]
fn messages_between_blocks_need_a_scope_that_includes_both() {
    decide(&[
        between(
            "release, acquire",
            false,
            "st.release.gpu.global.u32 [gf], 1",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf]",
        ),
        between("sys", false, "st.release.sys.global.u32 [gf], 1", "POLL ld.acquire.sys.global.u32 %r10, [gf]"),
        // Block scope does not include a thread of another block.
        between("release.cta", true, "st.release.cta.global.u32 [gf], 1", "POLL ld.acquire.gpu.global.u32 %r10, [gf]"),
        between("acquire.cta", true, "st.release.gpu.global.u32 [gf], 1", "POLL ld.acquire.cta.global.u32 %r10, [gf]"),
        // The scope of a one-block cluster does not include a thread of another block either.
        between(
            "release.cluster",
            true,
            "st.release.cluster.global.u32 [gf], 1",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf]",
        ),
        between(
            "fences",
            false,
            "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [gf], 1",
            "POLL ld.relaxed.gpu.global.u32 %r10, [gf]; fence.acq_rel.gpu",
        ),
        between(
            "fence.cta before the store",
            true,
            "fence.acq_rel.cta; st.relaxed.gpu.global.u32 [gf], 1",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf]",
        ),
        between(
            "fence.cta after the load",
            true,
            "st.release.gpu.global.u32 [gf], 1",
            "POLL ld.relaxed.gpu.global.u32 %r10, [gf]; fence.acq_rel.cta",
        ),
        between(
            "no fence after the load",
            true,
            "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [gf], 1",
            "POLL ld.relaxed.gpu.global.u32 %r10, [gf]",
        ),
        between(
            "no fence before the store",
            true,
            "st.relaxed.gpu.global.u32 [gf], 1",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf]",
        ),
        between(
            "volatile, fences",
            false,
            "membar.gl; st.volatile.global.u32 [gf], 1",
            "POLL ld.volatile.global.u32 %r10, [gf]; membar.gl",
        ),
        between("weak flag", true, "membar.gl; st.global.u32 [gf], 1", "POLL ld.acquire.gpu.global.u32 %r10, [gf]"),
        between(
            "wrong flag",
            true,
            "st.relaxed.gpu.global.u32 [gf+4], 1; st.release.gpu.global.u32 [gf], 1",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf+4]",
        ),
        between(
            "store after the release",
            true,
            "st.release.gpu.global.u32 [gf], 1; st.global.u32 [g], 8",
            "POLL ld.acquire.gpu.global.u32 %r10, [gf]",
        ),
    ]);
}

#[test]
fn what_a_block_announces_is_what_the_announcing_thread_knows() {
    let reader = "POLL ld.acquire.gpu.global.u32 %r10, [gf]; ld.global.u32 %r11, [g]; st.global.u32 [o], %r11";
    let last = |before: &str, announce: &str| {
        vec![
            role(0, 32..33, "st.global.u32 [g], 7"),
            role(0, 0..64, before),
            role(0, 0..1, announce),
            role(1, 0..1, reader),
        ]
    };
    decide(&[
        // Each thread fences, the block meets at a barrier, and one thread announces the block. This is the pattern of
        // the last block in the CUDA C++ Programming Guide.
        grid(
            "fence, barrier, announce",
            false,
            64,
            last("membar.gl; bar.sync 0", "atom.relaxed.gpu.global.add.u32 %r11, [gf], 1"),
        ),
        grid(
            "barrier, fence, announce",
            false,
            64,
            last("bar.sync 0", "membar.gl; atom.relaxed.gpu.global.add.u32 %r11, [gf], 1"),
        ),
        grid("barrier, release", false, 64, last("bar.sync 0", "red.release.gpu.global.add.u32 [gf], 1")),
        // The announcing thread does not know about the other warp's store.
        grid("fence, announce", true, 64, last("membar.gl", "atom.relaxed.gpu.global.add.u32 %r11, [gf], 1")),
        grid("release without a barrier", true, 64, last("", "red.release.gpu.global.add.u32 [gf], 1")),
        grid("no fence", true, 64, last("bar.sync 0", "atom.relaxed.gpu.global.add.u32 %r11, [gf], 1")),
        // The same pattern with atomics. The reader also executes atomics on the word, without using their results.
        grid("histogram", false, 64, histogram("membar.gl; bar.sync 0")),
        grid("histogram without a barrier", true, 64, histogram("membar.gl")),
        // The announcing thread fenced before it knew about the store.
        grid(
            "fence of the announcing thread before the barrier",
            true,
            64,
            vec![
                role(0, 32..33, "st.global.u32 [g], 7"),
                role(0, 0..1, "membar.gl"),
                role(0, 0..64, "bar.sync 0"),
                role(0, 0..1, "red.relaxed.gpu.global.add.u32 [gf], 1"),
                role(1, 0..1, reader),
            ],
        ),
        // The thread that reads is not the one that acquired.
        grid(
            "acquired by another warp",
            true,
            64,
            vec![
                role(0, 0..1, "st.global.u32 [g], 7; st.release.gpu.global.u32 [gf], 1"),
                role(1, 0..1, "POLL ld.acquire.gpu.global.u32 %r10, [gf]"),
                role(1, 32..33, "ld.global.u32 %r11, [g]; st.global.u32 [o], %r11"),
            ],
        ),
        grid(
            "acquired by another warp, barrier",
            false,
            64,
            vec![
                role(0, 0..1, "st.global.u32 [g], 7; st.release.gpu.global.u32 [gf], 1"),
                role(1, 0..1, "POLL ld.acquire.gpu.global.u32 %r10, [gf]"),
                role(1, 0..64, "bar.sync 0"),
                role(1, 32..33, "ld.global.u32 %r11, [g]; st.global.u32 [o], %r11"),
            ],
        ),
    ]);
}

/// Two blocks add to a word and then announce the addition. The second one waits for the first and reads the word.
fn histogram(before: &str) -> Vec<Role> {
    let announce = "atom.relaxed.gpu.global.add.u32 %r11, [gf], 1";
    let wait = "POLL ld.acquire.gpu.global.u32 %r10, [gf]; ld.global.u32 %r11, [g]; st.global.u32 [o], %r11";
    vec![
        role(0, 0..64, &format!("red.relaxed.gpu.global.add.u32 [g], 1; {before}")),
        role(0, 0..1, announce),
        role(1, 0..64, "red.relaxed.gpu.global.add.u32 [g], 1; bar.sync 0"),
        role(1, 0..1, wait),
    ]
}

#[test]
fn order_between_blocks_is_transitive_and_follows_the_flags() {
    let (up, wait) = ("st.release.gpu.global.u32", "POLL ld.acquire.gpu.global.u32 %r10,");
    let load = "ld.global.u32 %r11, [g]; st.global.u32 [o], %r11";
    decide(&[
        // A chain of flags.
        grid(
            "chain",
            false,
            32,
            vec![
                role(0, 0..1, &format!("st.global.u32 [g], 7; {up} [gf], 1")),
                role(1, 0..1, &format!("{wait} [gf]; {up} [gf+4], 1")),
                role(2, 0..1, &format!("{wait} [gf+4]; {load}")),
            ],
        ),
        // The block in the middle has not acquired anything.
        grid(
            "chain with a relaxed load",
            true,
            32,
            vec![
                role(0, 0..1, &format!("st.global.u32 [g], 7; {up} [gf], 1")),
                role(1, 0..1, &format!("POLL ld.relaxed.gpu.global.u32 %r10, [gf]; {up} [gf+4], 1")),
                role(2, 0..1, &format!("{wait} [gf+4]; {load}")),
            ],
        ),
        // The flag of block 1 says nothing about block 0.
        grid(
            "flag of another block",
            true,
            32,
            vec![
                role(0, 0..1, &format!("st.global.u32 [g], 7; {up} [gf], 1")),
                role(1, 0..1, &format!("{up} [gf+4], 1")),
                role(2, 0..1, &format!("{wait} [gf+4]; {load}")),
            ],
        ),
        // Atomics continue what a release began.
        grid(
            "through an atomic",
            false,
            32,
            vec![
                role(0, 0..1, "st.global.u32 [g], 7; red.release.gpu.global.add.u32 [gf], 1"),
                role(1, 0..1, "red.relaxed.gpu.global.add.u32 [gf], 1"),
                role(2, 0..1, &format!("{wait} [gf]; {load}")),
            ],
        ),
        // Device-scope atomics do not race. Block-scope atomics are not strong towards another block.
        grid(
            "atomics",
            false,
            32,
            vec![
                role(0, 0..1, "red.relaxed.gpu.global.add.u32 [g], 1"),
                role(1, 0..1, "red.relaxed.gpu.global.add.u32 [g], 1"),
            ],
        ),
        grid(
            "atomics of the block",
            true,
            32,
            vec![
                role(0, 0..1, "red.relaxed.cta.global.add.u32 [g], 1"),
                role(1, 0..1, "red.relaxed.cta.global.add.u32 [g], 1"),
            ],
        ),
        grid("lock", false, 32, lock_of_blocks("gpu")),
        grid("lock of the block", true, 32, lock_of_blocks("cta")),
    ]);
}

/// Blocks that add to a word under a lock. The lock is free while its own word is zero.
fn lock_of_blocks(scope: &str) -> Vec<Role> {
    let code = format!(
        "LOCK atom.acquire.{scope}.global.cas.b32 %r10, [gf], 0, 1; ld.global.u32 %r11, [g]; add.u32 %r11, %r11, 1; \
         st.global.u32 [g], %r11; st.release.{scope}.global.u32 [gf], 0"
    );
    (0..3).map(|block| role(block, 0..1, &code)).collect()
}

#[test]
fn the_barrier_of_a_cluster_orders_its_blocks() {
    let with = |name: &'static str, racy: bool, between: &str| Program {
        name,
        racy,
        blocks: 2,
        threads: 32,
        cluster: 2,
        roles: vec![
            role(0, 0..1, "st.global.u32 [g], 7"),
            role(0, 0..32, between),
            role(1, 0..32, between),
            role(1, 0..1, "ld.global.u32 %r11, [g]; st.global.u32 [o], %r11"),
        ],
    };
    let passing = |name: &'static str, racy: bool, scope: &str| Program {
        cluster: 2,
        ..between(
            name,
            racy,
            &format!("st.release.{scope}.global.u32 [gf], 1"),
            &format!("POLL ld.acquire.{scope}.global.u32 %r10, [gf]"),
        )
    };
    decide(&[
        with("barrier", false, "barrier.cluster.arrive; barrier.cluster.wait"),
        with("no barrier", true, ""),
        passing("release.cluster in one cluster", false, "cluster"),
        passing("release.cta in one cluster", true, "cta"),
    ]);
}
