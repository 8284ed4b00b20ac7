//! Kubernetes: an indexed Job, written as JSON.

use serde_json::{Map, Value, json};

use super::{Part, Scheduler, Script, ScriptError, Submitter, text};

/// Exit code for invalid options or files. A task that exits with it would fail on any other node, too.
const USAGE: i32 = 2;

/// Label of everything that belongs to a job, used to cancel it.
const LABEL: &str = "runner-job";

#[derive(Debug)]
pub struct Kubernetes;

impl Scheduler for Kubernetes {
    fn unsupported_keys(&self) -> &'static [&'static str] {
        &["partition", "account", "qos", "gres", "constraint", "extra", "warning"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["image", "claim", "mount"]
    }

    fn submitter(&self) -> Submitter {
        Submitter::User {
            cancelling: |name| format!("kubectl delete jobs --selector={LABEL}={}", label(name)),
            waiting: None,
        }
    }

    fn script(&self, part: &Part<'_>) -> Result<Script, ScriptError> {
        let (job, settings) = (part.job, &part.job.settings);
        // The simulator needs no GPU.
        let gpus = settings.gpus.clone().or_else(|| job.device.as_ref().map(|_| "1".to_owned()));
        let resources = [
            ("nvidia.com/gpu", gpus),
            ("cpu", settings.cpus.map(|cpus| cpus.to_string())),
            ("memory", settings.size().map(|(number, unit)| format!("{number}{unit}i"))),
        ];
        let limits: Map<String, Value> =
            resources.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        let command = part.setup()? + &part.task("JOB_COMPLETION_INDEX")?;
        let container = json!({
            "name": "task",
            "image": settings.image,
            "workingDir": text(&job.directory)?,
            "command": ["/bin/bash", "-c", command],
            "env": [{ "name": "RUNNER_CACHE", "value": text(&job.cache)? }],
            "volumeMounts": [{ "name": "shared", "mountPath": settings.mount }],
            "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
            // Kubernetes sets missing requests to the limits.
            "resources": { "limits": limits },
        });
        let value = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": label(&format!("{}-{}-{}", part.name(), part.number, part.first)),
                "labels": { LABEL: label(&part.name()) },
            },
            "spec": {
                "completionMode": "Indexed",
                "completions": part.count,
                "parallelism": settings.throttle.map_or(part.count, |most| most.get() as usize),
                "backoffLimitPerIndex": settings.requeues,
                "podFailurePolicy": { "rules": [
                    // Do not count a lost node as a failure of the pod.
                    { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
                    { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": [USAGE] } },
                ] },
                "template": { "spec": {
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": part.limit(),
                    "securityContext": pod_security(rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
                    "volumes": [{ "name": "shared", "persistentVolumeClaim": { "claimName": settings.claim } }],
                    "containers": [container],
                } },
            },
        });
        let path = part.file("json")?;
        Ok(Script {
            text: format!("{value:#}\n"),
            words: ["kubectl", "apply", "-f", &path].map(str::to_owned).to_vec(),
            path: path.into(),
        })
    }
}

/// Runs a task as the submitting user, who then owns the results on the shared volume. Clusters with the restricted pod
/// security standard refuse root.
fn pod_security(user: u32, group: u32) -> Value {
    let mut security = json!({ "seccompProfile": { "type": "RuntimeDefault" } });
    if user != 0 {
        security["runAsNonRoot"] = true.into();
        security["runAsUser"] = user.into();
        security["runAsGroup"] = group.into();
    }
    security
}

/// A valid Kubernetes label: at most 63 lower-case letters, digits and hyphens.
fn label(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(plain).collect();
    // Keep the end, which distinguishes the parts.
    let start = text.len().saturating_sub(63);
    text[start..].trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_runs_as_the_user_who_submits_unless_that_is_root() {
        let own = json!({ "seccompProfile": { "type": "RuntimeDefault" }, "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 100 });
        assert_eq!(pod_security(1000, 100), own);
        assert_eq!(pod_security(0, 0), json!({ "seccompProfile": { "type": "RuntimeDefault" } }));
    }
}
