//! Compares the simulator with hardware: results from an H100, committed under `crates/ptx-conformance/vectors`.

use simt::{LaunchError, LaunchSpec, Machine, Options, SimError, profiles};

use ptx_conformance::files::folder;
use ptx_conformance::judge::agree;
use ptx_conformance::{CASES, Form, Record, forms};

fn run(form: &Form) -> Result<Vec<u64>, LaunchError> {
    run_on(form, &form.inputs())
}

/// Runs a form on given inputs and returns its results, one set per thread.
pub fn run_on(form: &Form, inputs: &[Vec<u64>]) -> Result<Vec<u64>, LaunchError> {
    let mut machine = Machine::new(profiles().remove(0), Options { threads: Some(1), ..Options::default() })?;
    let module = machine.load(&form.ptx())?;
    let inputs = Form::bytes(inputs);
    let from = machine.alloc(inputs.len() as u64)?;
    machine.write(from, &inputs)?;
    let cells = 8 * CASES;
    let (to, scratch) = (machine.alloc(cells as u64)?, machine.alloc(cells as u64)?);
    machine.fill(to, cells as u64, 0)?;
    let args = [from, to, scratch].map(|address| address.to_le_bytes().to_vec());
    let block = [CASES as u32, 1, 1];
    let spec = LaunchSpec {
        kernel: "test",
        grid: [1, 1, 1],
        block,
        shared: 0,
        cooperative: false,
        cluster: None,
        args: &args,
    };
    machine.launch(module, &spec)?;
    let mut bytes = vec![0; cells];
    machine.read(to, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect())
}

/// Describes the first cases of a form that the simulator gets wrong.
fn differences(form: &Form, committed: &str) -> Option<String> {
    let ours = match run(form) {
        Ok(ours) => ours,
        Err(LaunchError::Refused(error @ SimError::Load { .. })) => return Some(error.to_string()),
        Err(error) => return Some(format!("`{}`: {error}", form.name)),
    };
    let wrong: Vec<String> = (form.inputs().iter().zip(&ours).zip(Record::results(form.result, committed)))
        .filter(|((inputs, ours), theirs)| !agree(form, inputs, **ours, *theirs))
        .map(|((inputs, ours), theirs)| format!("{inputs:x?} gives {ours:#x}, the GPU {theirs:#x}"))
        .collect();
    let first = wrong.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("\n    ");
    (!wrong.is_empty()).then(|| format!("`{}`: {} of {CASES} cases:\n    {first}", form.name, wrong.len()))
}

#[test]
fn every_form_is_run_or_refused_by_its_opcode() {
    for form in forms() {
        match run(&form) {
            Ok(results) => assert_eq!(results.len(), CASES),
            Err(LaunchError::Refused(error @ SimError::Load { .. })) => {
                assert!(error.to_string().contains(&format!("`{}", form.op)), "`{}`: {error}", form.name);
            }
            Err(error) => panic!("`{}`: {error}", form.name),
        }
    }
}

#[test]
fn the_simulator_gives_what_the_gpu_gave() {
    let mut wrong = Vec::new();
    for form in forms() {
        let path = folder().join("vectors").join(format!("{}.json", form.op));
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let record: Record = serde_json::from_str(&text).unwrap();
        if let Some(committed) = record.forms.get(&form.name) {
            wrong.extend(differences(&form, committed));
        }
    }
    assert!(wrong.is_empty(), "{} forms differ:\n{}", wrong.len(), wrong.join("\n"));
}
