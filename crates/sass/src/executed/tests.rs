//! Counts of hand-written machine code, calculated by hand.

use super::*;
use crate::INSTRUCTION_BYTES;

/// Creates a listing from instructions: guard, opcode, operands, line of the PTX.
fn listing(lines: &[(&str, &str, &str, u32)]) -> Listing {
    let instruction = |(at, (predicate, opcode, operands, line)): (u64, &(&str, &str, &str, u32))| Instruction {
        offset: at * INSTRUCTION_BYTES,
        predicate: (*predicate).to_owned(),
        opcode: (*opcode).to_owned(),
        operands: (*operands).to_owned(),
        word: 0,
        ptx_line: Some(*line),
        source: Vec::new(),
    };
    let instructions = (0..).zip(lines).map(instruction).collect();
    Listing { name: "k".to_owned(), section: 1, instructions, files: Vec::new(), ptx: String::new() }
}

/// Derives the counts of instructions from counts of lines: line, warps, and divergences if it is a branch.
fn executed(code: &Listing, lines: &[(u32, u64, Option<u64>)]) -> Vec<Option<u64>> {
    code.executed(|line| {
        let found = lines.iter().find(|(known, ..)| *known == line);
        found.map(|(_, warps, diverged)| LineCount { warps: *warps, diverged: *diverged, rounds: &[] })
    })
}

fn known(counts: &[u64]) -> Vec<Option<u64>> {
    counts.iter().copied().map(Some).collect()
}

#[test]
fn a_block_is_executed_as_often_as_what_stays_in_it_says() {
    // A loop of 10 iterations. Line 4 was moved in front of it; line 5 is the store inside.
    let code = listing(&[
        ("", "LDC", "R1, c[0x0][0x28]", 20),
        ("", "MOV", "R2, R3", 1),
        ("", "STS", "[R2], R3", 2),
        ("", "IADD3", "R4, R5, R6", 4),
        ("", "STG.E", "[R4], R5", 5),
        ("@P0", "BRA", "0x40", 6),
        ("", "EXIT", "", 7),
        ("", "BRA", "0x70", 20),
        ("", "NOP", "", 20),
    ]);
    let lines = [(1, 1, None), (2, 1, None), (4, 10, None), (5, 10, None), (6, 10, Some(0)), (7, 1, None)];
    assert_eq!(executed(&code, &lines), known(&[1, 1, 1, 1, 10, 10, 1, 0, 0]));
}

#[test]
fn lanes_that_diverge_come_together_once_for_each_path() {
    // Of 16 warps, 6 enter the body of an `if`, 4 of them with only some of their lanes.
    let code = listing(&[
        ("", "BSSY", "B0, 0x50", 1),
        ("@P0", "BRA", "0x40", 2),
        ("", "LDG.E", "R4, [R2]", 3),
        ("", "STG.E", "[R2], R4", 3),
        ("", "BSYNC", "B0", 3),
        ("", "BAR.SYNC", "0x0", 4),
        ("", "EXIT", "", 5),
    ]);
    let lines = [(1, 16, None), (2, 16, Some(4)), (3, 6, None), (4, 16, None), (5, 16, None)];
    // Ten warps skip the body as a whole, and four with some of their lanes.
    assert_eq!(executed(&code, &lines), known(&[16, 16, 6, 6, 20, 16, 16]));
}

#[test]
fn code_for_lanes_that_diverged_before_a_shuffle_is_not_executed() {
    let code = listing(&[
        ("", "MOV", "R0, R1", 1),
        ("", "BRA.DIV", "UR4, 0x50", 2),
        ("", "SHFL.DOWN", "PT, R2, R0, 0x10, 0x1f", 3),
        ("", "STG.E", "[R2], R4", 4),
        ("", "EXIT", "", 5),
        ("", "WARPSYNC.COLLECTIVE", "R8, 0x70", 3),
        ("", "SHFL.DOWN", "P0, R2, R0, R1, R3", 3),
        ("", "BRA", "0x30", 3),
    ]);
    let lines = [(1, 8, None), (2, 8, None), (3, 8, None), (4, 8, None), (5, 8, None)];
    assert_eq!(executed(&code, &lines), known(&[8, 8, 8, 8, 8, 0, 0, 0]));
}

#[test]
fn rounds_of_an_unrolled_loop_are_those_of_its_longest_copies_first() {
    // Each of 4 warps runs 11 iterations of a loop. The compiler unrolled it into blocks of 4 iterations and of one, so
    // each warp executes the first block twice and the second three times.
    let code = listing(&[
        ("", "STS", "[R2], R3", 1),
        ("", "ISETP.GT", "P1, PT, R3, 0x3, PT", 3),
        ("@!P1", "BRA", "0x80", 4),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("@P1", "BRA", "0x30", 4),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("@P0", "BRA", "0x80", 4),
        ("", "STG.E", "[R2], R5", 5),
        ("", "EXIT", "", 6),
    ]);
    let lines = [(1, 4, None), (2, 44, None), (3, 44, None), (4, 44, Some(0)), (5, 4, None), (6, 4, None)];
    assert_eq!(executed(&code, &lines), known(&[4, 4, 4, 8, 8, 8, 8, 8, 12, 12, 4, 4]));
}

#[test]
fn rounds_are_shared_as_each_warp_made_them_where_that_was_counted() {
    // Of 10 warps, 5 run four iterations of a loop and 5 run one. The compiler unrolled it into blocks of 4, 2 and 1
    // iterations.
    let code = [
        ("", "STS", "[R2], R3", 1),
        ("@!P1", "BRA", "0x80", 4),
        ("", "MOV", "R7, R8", 6),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("@P1", "BRA", "0x30", 4),
        ("@!P2", "BRA", "0xb0", 4),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("@!P0", "BRA", "0xd0", 4),
        ("", "FFMA", "R5, R5, R4, R6", 3),
        ("", "STG.E", "[R2], R5", 5),
    ];
    let code = Listing { ptx: "st.shared.u32 [%r2], %r3;\n$L_1:\nfma.rn.f32 %f5, %f5, %f4, %f6;\n@%p1 bra $L_1;\nst.global.u32 [%rd2], %f5;".to_owned(), ..listing(&code) };
    let counts = |rounds: &'static [(u64, u64)], diverged: u64| {
        let counts = code.executed(|line| {
            let warps = *[10, 0, 25, 25, 10].get(line as usize - 1)?;
            let (diverged, rounds) = if line == 4 { (Some(diverged), rounds) } else { (None, &[][..]) };
            Some(LineCount { warps, diverged, rounds })
        });
        [2, 3, 9, 12].map(|at: usize| counts[at])
    };
    assert_eq!(counts(&[(1, 5), (4, 5)], 0), [5, 5, 0, 5].map(Some));
    assert_eq!(counts(&[(2, 5), (3, 5)], 0), [0, 0, 10, 5].map(Some));
    // The counts cannot be derived without iteration counts, with iteration counts of too few warps, or if lanes
    // diverged.
    for (rounds, diverged) in [(&[][..], 0), (&[(4, 5)][..], 0), (&[(1, 5), (4, 5)][..], 3)] {
        assert_eq!(counts(rounds, diverged), [None; 4]);
    }
}

#[test]
fn a_division_calls_its_function_for_no_value_and_what_is_not_executed_has_no_rounds() {
    let code = listing(&[
        ("", "BSSY", "B0, 0x50", 1),
        ("@!P0", "BRA", "0x40", 1),
        ("", "MOV", "R8, R7", 1),
        ("", "CALL.REL.NOINC", "`($__internal_0_$__cuda_sm3x_div)", 1),
        ("", "BSYNC", "B0", 1),
        ("@P0", "BRA", "0x90", 2),
        ("", "LDS", "R4, [R2]", 3),
        ("", "LDS", "R4, [R2]", 3),
        ("@P1", "BRA", "0x60", 4),
        ("", "STG.E", "[R2], R4", 5),
        ("", "EXIT", "", 5),
    ]);
    let lines = [(1, 8, None), (2, 8, Some(0)), (3, 0, None), (4, 0, Some(0)), (5, 8, None)];
    let counts = executed(&code, &lines);
    assert_eq!(counts, known(&[8, 8, 0, 0, 8, 8, 0, 0, 0, 8, 8]));
    assert_eq!(code.calls_of_added(&counts), [("$__internal_0_$__cuda_sm3x_div", Some(0))]);
    let function = Listing { name: "$__internal_0_$__cuda_sm3x_div".to_owned(), ..code };
    assert!(function.is_added());
    assert_eq!(function.executed_when_called(0), known(&[0; 11]));
    assert_eq!(function.executed_when_called(3)[0], Some(3));
}

#[test]
fn a_branch_of_the_ptx_says_how_often_each_of_its_ways_was_taken_whichever_the_compiler_made_the_first() {
    // Line 3 is past the branch. It was moved to line 5, on the other path, for which there is no count.
    let ptx = ".entry k(\n@%p1 bra $L_2;\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd1], %r1;\n$L_2:\nadd.u32 %r1, %r1, 2;\nret;";
    let straight = [
        ("@P0", "BRA", "0x40", 2),
        ("", "IADD3", "R1, R1, 0x1, RZ", 4),
        ("", "IMAD", "R2, R1, R3, RZ", 4),
        ("", "BRA", "0x50", 20),
        ("", "IADD3", "R1, R1, 0x2, RZ", 6),
        ("", "EXIT", "", 7),
    ];
    let turned = [
        ("@!P0", "BRA", "0x30", 2),
        ("", "IADD3", "R1, R1, 0x2, RZ", 6),
        ("", "BRA", "0x50", 20),
        ("", "IADD3", "R1, R1, 0x1, RZ", 4),
        ("", "IMAD", "R2, R1, R3, RZ", 4),
        ("", "EXIT", "", 7),
    ];
    let lines = [(2, 16, Some(4)), (3, 10, None), (7, 16, None)];
    let counts = |code: &[_]| executed(&Listing { ptx: ptx.to_owned(), ..listing(code) }, &lines);
    // Of 16 warps, 10 continued past the branch and 16 + 4 - 10 took it.
    assert_eq!(counts(&straight)[..5], known(&[16, 10, 10, 10, 10]));
    assert_eq!(counts(&turned)[..5], known(&[16, 10, 10, 10, 10]));
    let lines = [(2, 16, Some(4)), (3, 13, None), (7, 16, None)];
    let counts = |code: &[_]| executed(&Listing { ptx: ptx.to_owned(), ..listing(code) }, &lines);
    assert_eq!(counts(&straight)[..5], known(&[16, 13, 13, 13, 7]));
    assert_eq!(counts(&turned)[..5], known(&[16, 7, 7, 13, 13]));
}

#[test]
fn two_divisions_on_a_way_of_their_own_are_executed_as_often_as_their_lines() {
    let division = |at: u64, line: u32| {
        vec![
            ("", "MUFU.RCP", "R2, R15".to_owned(), line),
            ("@!P0", "BRA", format!("{:#x}", at + 0x40), line),
            ("", "MOV", "R8, R7".to_owned(), line),
            ("", "CALL.REL.NOINC", "`($__internal_0_$__cuda_sm3x_div)".to_owned(), line),
        ]
    };
    let mut code = vec![("", "STS", "[R2], R3".to_owned(), 1), ("@P1", "BRA", "0xa0".to_owned(), 2)];
    code.extend(division(0x20, 3));
    code.extend(division(0x60, 4));
    code.push(("", "EXIT", String::new(), 5));
    let code: Vec<(&str, &str, &str, u32)> = code.iter().map(|(a, b, c, line)| (*a, *b, c.as_str(), *line)).collect();
    let lines = [(1, 8, None), (2, 8, Some(0)), (3, 5, None), (4, 5, None), (5, 8, None)];
    assert_eq!(executed(&listing(&code), &lines), known(&[8, 8, 5, 5, 0, 0, 5, 5, 0, 0, 8]));
}

#[test]
fn what_copies_that_are_known_account_for_leaves_nothing_for_others() {
    // Four iterations run in the block of four, as its store shows.
    let code = listing(&[
        ("@P0", "BRA", "0x30", 1),
        ("", "STS", "[R2], R3", 3),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("@P1", "BRA", "0x60", 20),
        ("", "FFMA", "R5, R5, R4, R6", 2),
        ("", "FADD", "R5, R5, R4", 2),
        ("", "EXIT", "", 5),
    ]);
    let counts = executed(&code, &[(1, 16, Some(0)), (2, 4, None), (3, 4, None), (5, 16, None)]);
    assert_eq!(counts[..6], known(&[16, 4, 4, 16, 0, 0]));
}

#[test]
fn a_branch_that_the_compiler_made_of_several_decides_nothing() {
    // The unconditional branch is never executed in the PTX, and is conditional in the machine code.
    let ptx = ".entry k(\nbra.uni $L_2;\n$L_2:\nret;\n@%p1 bra $L_2;\nst.global.u32 [%rd1], %r1;";
    let code = [
        ("@P2", "BRA", "0x20", 5),
        ("", "STG.E", "[R2], R4", 6),
        ("@P0", "BRA", "0x40", 2),
        ("", "EXIT", "", 20),
        ("", "EXIT", "", 4),
    ];
    let code = Listing { ptx: ptx.to_owned(), ..listing(&code) };
    let counts = executed(&code, &[(2, 0, Some(0)), (5, 8, Some(0)), (6, 3, None)]);
    assert_eq!(counts[..3], known(&[8, 3, 8]));
}

#[test]
fn lanes_that_break_out_of_a_wait_are_not_waited_for() {
    let code = listing(&[
        ("", "BSSY", "B0, 0x70", 1),
        ("@P0", "BRA", "0x60", 2),
        ("", "STS", "[R2], R3", 3),
        ("@P1", "BREAK", "B0", 4),
        ("@P1", "BRA", "0x80", 4),
        ("", "STS", "[R2], R4", 5),
        ("", "BSYNC", "B0", 5),
        ("", "MOV", "R2, R5", 20),
        ("", "EXIT", "", 7),
    ]);
    let lines = [(1, 8, None), (2, 8, Some(2)), (3, 7, None), (4, 7, Some(3)), (5, 6, None), (7, 8, None)];
    // Three paths came from the branch, and six from the store.
    assert_eq!(executed(&code, &lines)[..8], known(&[8, 8, 7, 7, 7, 6, 9, 9]));
}

#[test]
fn a_block_has_no_count_where_its_instructions_say_nothing() {
    let code = listing(&[
        ("", "STS", "[R2], R3", 1),
        ("", "BRX", "R4 -0x30", 2),
        ("", "LDG.E", "R4, [R2]", 5),
        ("", "EXIT", "", 20),
        ("", "LDG.E", "R4, [R2]", 5),
        ("", "EXIT", "", 20),
    ]);
    let counts = executed(&code, &[(1, 3, None), (2, 3, None), (5, 3, None)]);
    assert_eq!(counts, [Some(3), Some(3), None, None, None, None]);
}

/// ptxas unrolls `for (i = tid; i < 2048; i += 256)` four times. It puts a first iteration in front, with a guard that
/// cannot hold: the block is only entered if `tid > 0x7ff` is false.
fn unrolled_behind_a_first_round(compared: &str) -> Listing {
    listing(&[
        ("", "ISETP.GT.U32.AND", "P0, PT, R0, 0x7ff, PT", 1),
        ("@P0", "BRA", "0xe0", 2),
        ("", "ISETP.GE.U32.AND", compared, 3),
        ("@P2", "STS", "[R11], R2", 4),
        ("@P1", "BRA", "0xa0", 5),
        ("", "STS", "[R11], R4", 4),
        ("", "STS", "[R11+0x400], R5", 4),
        ("", "STS", "[R11+0x800], R6", 4),
        ("", "STS", "[R11+0xc00], R7", 4),
        ("@!P1", "BRA", "0x50", 5),
        ("@!P1", "STS", "[R11], R5", 4),
        ("@!P1", "STS", "[R11+0x400], R6", 4),
        ("@P0", "STS", "[R11], R4", 4),
        ("", "NOP", "", 5),
        ("", "BAR.SYNC", "0x0", 6),
        ("", "EXIT", "", 7),
    ])
}

#[test]
fn a_first_round_that_a_comparison_rules_out_is_no_copy_of_a_loop() {
    let lines =
        [(1, 8, None), (2, 8, Some(0)), (3, 8, None), (4, 64, None), (5, 64, Some(0)), (6, 8, None), (7, 8, None)];
    // The eight iterations of each of eight warps are two iterations of the unrolled loop.
    let ruled_out = executed(&unrolled_behind_a_first_round("P2, PT, R0.reuse, 0x800, PT"), &lines);
    assert_eq!(ruled_out[5..10], known(&[16; 5])[..]);
    // A comparison with another number or register rules nothing out.
    for other in ["P2, PT, R0, 0x700, PT", "P2, PT, R3, 0x800, PT"] {
        assert_eq!(executed(&unrolled_behind_a_first_round(other), &lines)[5], None, "{other}");
    }
}

/// An H100 executes each instruction of the loop 576 times. 64 warps leave the loop after ten iterations, the first of
/// which the compiler peeled off.
#[test]
fn a_loop_without_its_first_round_is_executed_once_less_by_each_warp() {
    let code = listing(&[
        ("", "LDG.E", "R7, [R2]", 1),
        ("", "IMAD", "R7, R7, 0x5, R7", 3),
        ("", "IMAD.MOV.U32", "R0, RZ, RZ, 0x1", 5),
        ("", "LOP3.LUT", "R2, R0, R7, RZ, 0x3c, !PT", 2),
        ("", "IADD3", "R0, R0, 0x1, RZ", 4),
        ("", "IMAD", "R7, R7, 0x5, R2", 3),
        ("@P0", "BRA", "0x30", 5),
        ("", "STG.E", "[R2], R7", 6),
        ("", "EXIT", "", 7),
    ]);
    let rounds = [(2, 640, None), (3, 640, None), (4, 640, None), (5, 640, Some(0))];
    let lines = [&[(1, 64, None)], &rounds[..], &[(6, 64, None), (7, 64, None)]].concat();
    assert_eq!(executed(&code, &lines), known(&[64, 64, 64, 576, 576, 576, 576, 64, 64]));
}
