//! Instruction forms on a real GPU: the files of `crates/ptx-conformance/ops`, and the catalogue of forms on many
//! inputs.
//!
//! With `RUNNER_RECORD=folder`, the results are written there, one file per opcode, to be committed in
//! `crates/ptx-conformance/vectors`. Otherwise they are compared with the committed ones. `RUNNER_PTX` overrides the
//! location of `crates/ptx-conformance`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use runner_backend::{DeviceError, LaunchArg};

use crate::gpu::{Gpu, gpu, launch};
use ptx_conformance::files::{OpFile, files, folder};
use ptx_conformance::judge::agree;
use ptx_conformance::{CASES, Form, Record, forms};

const ONE: (u32, u32, u32) = (1, 1, 1);

/// Runs a module's kernel `test` with one block. Returns `bytes` of results from a buffer that was zeroed before.
fn results(gpu: &mut Gpu, ptx: &str, threads: u32, input: &[u8], bytes: usize) -> Result<Vec<u8>, DeviceError> {
    let module = gpu.load(ptx, &["test"])?;
    let kernel = gpu.device.kernel(module, "test")?;
    let out = gpu.buffer(&vec![0; bytes]);
    let mut args = vec![LaunchArg::Buffer(out)];
    let mut buffers = vec![out];
    if !input.is_empty() {
        let (from, scratch) = (gpu.buffer(input), gpu.buffer(&vec![0; bytes]));
        args = [from, out, scratch].map(LaunchArg::Buffer).to_vec();
        buffers.extend([from, scratch]);
    }
    gpu.run(vec![launch(kernel, ONE, (threads, 1, 1), args)])?;
    let got = gpu.read(out);
    for buffer in buffers {
        gpu.device.free(buffer)?;
    }
    gpu.device.unload(module)?;
    Ok(got)
}

fn record(gpu: &mut Gpu) -> Vec<Record> {
    let device = gpu.device.info().name.clone();
    let mut records: Vec<Record> = Vec::new();
    for form in forms() {
        if records.last().is_none_or(|r| r.op != form.op) {
            records.push(Record { op: form.op.clone(), device: device.clone(), ..Record::default() });
        }
        let record = records.last_mut().unwrap();
        match results(gpu, &form.ptx(), CASES as u32, &Form::bytes(&form.inputs()), 8 * CASES) {
            Ok(bytes) => {
                let width = form.result.result_digits();
                let mut digits = String::new();
                for value in crate::gpu::words(&bytes) {
                    write!(digits, "{value:0width$x}").unwrap();
                }
                record.forms.insert(form.name, digits);
            }
            Err(error @ DeviceError::ContextLost(_)) => panic!("`{}`: {error}", form.name),
            Err(error) => {
                record.refused.insert(form.name, error.to_string());
            }
        }
    }
    records
}

/// The first cases in which two records of a form differ.
fn differences(form: &Form, ours: &str, committed: &str) -> Option<String> {
    let (ours, theirs) = (Record::results(form.result, ours), Record::results(form.result, committed));
    let wrong: Vec<String> = (form.inputs().iter().zip(&ours).zip(&theirs))
        .filter(|((inputs, ours), theirs)| !agree(form, inputs, **ours, **theirs))
        .map(|((inputs, ours), theirs)| format!("{inputs:x?} gives {ours:#x}, committed is {theirs:#x}"))
        .collect();
    let first = wrong.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("\n    ");
    let differs = !wrong.is_empty() || ours.len() != theirs.len();
    differs.then(|| format!("`{}`: {} of {CASES} cases:\n    {first}", form.name, wrong.len()))
}

#[test]
#[ignore = "needs a GPU"]
fn every_form_gives_the_results_that_are_committed() {
    let mut gpu = gpu();
    let records = record(&mut gpu);
    if let Some(to) = std::env::var_os("RUNNER_RECORD").map(PathBuf::from) {
        std::fs::create_dir_all(&to).unwrap();
        for record in &records {
            let text = serde_json::to_string_pretty(record).unwrap() + "\n";
            std::fs::write(to.join(format!("{}.json", record.op)), text).unwrap();
        }
        return;
    }
    let by_name: BTreeMap<(String, String), Form> =
        forms().into_iter().map(|f| ((f.op.clone(), f.name.clone()), f)).collect();
    let mut wrong = Vec::new();
    for ours in records {
        let text = std::fs::read_to_string(folder().join("vectors").join(format!("{}.json", ours.op))).unwrap();
        let committed: Record = serde_json::from_str(&text).unwrap();
        for (name, digits) in &ours.forms {
            let form = &by_name[&(ours.op.clone(), name.clone())];
            match committed.forms.get(name) {
                Some(theirs) => wrong.extend(differences(form, digits, theirs)),
                None => wrong.push(format!("`{name}` is not in the committed record of `{}`", ours.op)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs a GPU"]
fn every_operation_gives_the_lanes_that_its_file_expects() {
    let mut gpu = gpu();
    let mut wrong = Vec::new();
    // Skips files that fault, which would make the context unusable; files that only the simulator refuses; files that
    // need a newer GPU than an H100; and files that crash the driver's compiler and with it this process.
    let fit = |f: &OpFile| f.fails.is_none() && f.refused.is_none() && f.needs.is_none() && f.crashes.is_none();
    for file in files().into_iter().filter(fit) {
        let found = results(&mut gpu, &file.ptx, 32, &[], 32 * file.width);
        if let Err(DeviceError::ContextLost(why)) = &found {
            wrong.push(format!("{}: {why}; the files after it were not run", file.name));
            break;
        }
        let judged = found.map_err(|e| e.to_string()).and_then(|bytes| file.judge(&bytes));
        wrong.extend(judged.err().map(|e| format!("{}: {e}", file.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
