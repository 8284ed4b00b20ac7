//! A group reuses the inputs of the previous one if the buffers are the same.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::rig::{N, case, device, group, kernel, right};
use crate::{GroupCache, run_group};
use runner_types::{CaseJob, ElementType, FillPlan, Value};

/// A case that copies `len` random integers.
fn random(len: u64) -> CaseJob {
    let mut job = case("it", ElementType::I32);
    job.buffers.iter_mut().for_each(|buffer| buffer.len = len);
    job.buffers[0].fill = Some(FillPlan::Uniform { low: Value::Int(0), high: Value::Int(1 << 30), seed: 5 });
    job
}

/// Runs groups in one process, one for each length; returns the inputs that the kernel saw in each.
fn inputs_of(lengths: &[u64]) -> Vec<HashSet<Vec<u8>>> {
    let mut cache = GroupCache::default();
    let run = |len: &u64| {
        let seen: Arc<Mutex<HashSet<Vec<u8>>>> = Arc::default();
        let into = Arc::clone(&seen);
        let it = kernel(move |call| {
            into.lock().unwrap().insert(call.read(0)?);
            right(call)
        });
        run_group(&mut device(vec![("it", it)]), &group(vec![random(*len)]), &mut cache, &mut |_| ()).unwrap();
        seen.lock().unwrap().clone()
    };
    lengths.iter().map(run).collect()
}

#[test]
fn the_next_group_with_the_same_buffers_has_the_same_sets_of_inputs() {
    let [first, second] = <[_; 2]>::try_from(inputs_of(&[N, N])).unwrap();
    assert_eq!((first.len(), &first), (3, &second));
}

/// The third group shares only the manifest's set of inputs with the first.
#[test]
fn after_a_group_with_other_buffers_the_seeds_are_new() {
    let [first, _, third] = <[_; 3]>::try_from(inputs_of(&[N, N / 2, N])).unwrap();
    assert_eq!((third.len(), first.intersection(&third).count()), (3, 1));
}
