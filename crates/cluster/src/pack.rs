//! Packs shards into tasks with enough work: thousands of tiny jobs overload a scheduler.

use super::{Job, Work};

/// Fills tasks in order until each has `least` seconds of work. The remainder joins the last task, so a task is shorter
/// only if it is the only one.
pub fn pack(job: &Job, work: impl IntoIterator<Item = Work>, least: f64) -> Vec<Vec<Work>> {
    let mut tasks: Vec<Vec<Work>> = Vec::new();
    let (mut open, mut seconds) = (Vec::new(), 0.0);
    for shard in work {
        open.push(shard);
        seconds += job.seconds(shard);
        if seconds >= least {
            tasks.push(std::mem::take(&mut open));
            seconds = 0.0;
        }
    }
    match tasks.last_mut() {
        Some(last) => last.append(&mut open),
        None if open.is_empty() => {}
        None => tasks.push(open),
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    fn sizes(seconds: &[&[f64]], least: f64) -> Vec<usize> {
        let experiment = |seconds: &&[f64]| Experiment { seconds: seconds.to_vec(), ..Experiment::default() };
        let job = Job { experiments: seconds.iter().map(experiment).collect(), ..Job::default() };
        pack(&job, job.work(), least).iter().map(Vec::len).collect()
    }

    #[test]
    fn small_experiments_share_a_task() {
        assert_eq!(sizes(&[&[200.0], &[200.0], &[200.0], &[600.0], &[100.0]], 600.0), [3, 2]);
        assert_eq!(sizes(&[&[1.0], &[2.0]], 600.0), [2]);
        assert_eq!(sizes(&[&[700.0, 600.0, 650.0]], 600.0), [1, 1, 1]);
        assert_eq!(sizes(&[&[0.0, 0.0]], 0.0), [1, 1]);
        assert_eq!(sizes(&[], 600.0), [0usize; 0]);
    }
}
