//! Kernels' output, compared with the expected lines.

use super::rig::{case, copies, device, group, kernel, right, run};
use fake_backend::Call;
use runner_backend::DeviceError;
use runner_types::{CaseJob, ElementType, Event, Outcome, PrintedPlan, Unchecked, Verdict};

/// A case that copies and must print these lines.
fn printing(name: &str, lines: &[&str]) -> CaseJob {
    let lines = lines.iter().map(|&line| line.to_owned()).collect();
    CaseJob { printed: Some(PrintedPlan::Lines(lines)), ..case(name, ElementType::I32) }
}

fn says(text: &'static str) -> fake_backend::FakeKernel {
    kernel(move |call: &mut Call<'_>| {
        call.printed = text.to_owned();
        right(call)
    })
}

#[test]
fn a_case_that_prints_what_it_is_to_print_is_right_and_one_that_does_not_is_wrong() {
    let kernels = vec![("it", says("two\none\n")), ("mute", kernel(right)), ("chatty", says("one\ntwo\nthree\n"))];
    let cases = ["it", "mute", "chatty"].map(|name| printing(name, &["one", "two"])).to_vec();
    let said = run(device(kernels), &group(cases));
    assert_eq!((said.outcome("it"), said.verdict("it")), (Outcome::Measured, Some(&Verdict::Pass)));
    let mute = said.mismatch("mute");
    assert_eq!((mute.expected.as_str(), mute.got.as_str(), mute.wrong), ("`one`", "no such line", 2));
    let chatty = said.mismatch("chatty");
    assert_eq!((chatty.expected.as_str(), chatty.got.as_str(), chatty.wrong), ("no further line", "`three`", 1));
    // The text is reported once, for the checked launch.
    let texts = said.events.iter().filter(|event| matches!(event, Event::CasePrinted { .. }));
    assert_eq!(texts.count(), 2);
}

#[test]
fn what_a_kernel_prints_before_it_traps_is_kept() {
    let traps = kernel(|_: &mut Call<'_>| {
        Err(DeviceError::Trap { message: "no".to_owned(), printed: "one\ntwo\n".to_owned() })
    });
    let said = run(device(vec![("it", traps)]), &group(vec![case("it", ElementType::I32)]));
    assert_eq!(said.outcome("it"), Outcome::Trap { message: "no".to_owned() });
    let texts: Vec<&str> = said.events.iter().filter_map(printed).collect();
    assert_eq!(texts, ["one\ntwo\n"]);
}

fn printed(event: &Event) -> Option<&str> {
    if let Event::CasePrinted { text, .. } = event { Some(text) } else { None }
}

#[test]
fn under_a_profiler_lines_may_come_as_often_as_it_makes_the_launch() {
    let kernels = vec![("thrice", says("one\ntwo\none\ntwo\none\ntwo\n")), ("odd", says("one\ntwo\none\n"))];
    let cases = ["thrice", "odd"].map(|name| printing(name, &["one", "two"])).to_vec();
    let watched = run(device(kernels.clone()).watched(), &group(cases.clone()));
    assert_eq!((watched.outcome("thrice"), watched.verdict("thrice")), (Outcome::Measured, Some(&Verdict::Pass)));
    assert_eq!(watched.mismatch("odd").got, "`one`");
    assert_eq!(run(device(kernels), &group(cases)).mismatch("thrice").wrong, 4);
}

#[test]
fn lines_alone_are_a_check_and_wrong_elements_are_told_first() {
    let alone = CaseJob { checks: vec![], ..printing("alone", &["one"]) };
    let unchecked = CaseJob { checks: vec![], ..case("unchecked", ElementType::I32) };
    let mut wrong = printing("wrong", &["one"]);
    wrong.checks = vec![copies(ElementType::I32)];
    let silent_and_wrong = kernel(|call: &mut Call<'_>| call.write(1, 0, &[1, 2, 3, 4]));
    let kernels = vec![("alone", says("one")), ("unchecked", says("one")), ("wrong", silent_and_wrong)];
    let said = run(device(kernels), &group(vec![alone, unchecked, wrong]));
    assert_eq!(said.verdict("alone"), Some(&Verdict::Pass));
    assert_eq!(said.verdict("unchecked"), Some(&Verdict::Unchecked(Unchecked::NoCheck)));
    assert_eq!(said.mismatch("wrong").what, "out");
}

#[test]
fn a_file_of_lines_that_cannot_be_read_costs_its_case_alone() {
    let missing = PrintedPlan::File("/nowhere/lines.txt".into());
    let lost = CaseJob { printed: Some(missing), ..case("lost", ElementType::I32) };
    let said =
        run(device(vec![("lost", says("one")), ("it", says("one"))]), &group(vec![lost, printing("it", &["one"])]));
    let Outcome::Unresolved { message } = said.outcome("lost") else { panic!("{:?}", said.outcome("lost")) };
    assert!(message.starts_with("cannot read the lines of `/nowhere/lines.txt`: "), "{message}");
    assert_eq!(said.outcome("it"), Outcome::Measured);
}
