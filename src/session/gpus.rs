//! Selects the GPUs for `--devices`.

use crate::cli::TargetArgs;
use crate::cli::options::Target;
use crate::failure::Failure;
use runner_backend::Backend as _;
use runner_backend::cuda::{self, Cuda};
use runner_backend::sim::SimBackend;
use runner_types::{DeviceId, DeviceInfo};
use runner_workers::cores::{Cores, divide};

#[derive(Debug, Clone)]
pub struct Gpu {
    /// Ordinal that the user gave.
    pub number: u32,
    pub target: Target,
    pub info: DeviceInfo,
    pub cores: Cores,
}

/// GPUs selected with `--devices`. With `--backend sim`, one simulator per number.
pub fn select(args: &TargetArgs, named: &str) -> Result<Vec<Gpu>, Failure> {
    let target = Target::resolve(args)?;
    let simulates = matches!(target, Target::Simulator(_));
    let listed = if simulates {
        let backend = SimBackend::new(None, simt::Options::default()).map_err(Failure::environment)?;
        simulated(named, &backend.devices().map_err(Failure::environment)?)
    } else {
        Cuda::Timed.devices().map_err(Failure::environment)?
    };
    let chosen = choose(named, &listed).map_err(Failure::usage)?;
    let near = |(id, _): &(DeviceId, DeviceInfo)| {
        let address = (!simulates).then(|| cuda::pci_address(id.ordinal).ok())??;
        Cores::near(&address)
    };
    let near: Vec<Option<Cores>> = chosen.iter().map(near).collect();
    let cores = divide(&Cores::available(), &near);
    let gpu = |((id, info), cores): ((DeviceId, DeviceInfo), Cores)| {
        let target = if simulates { target.clone() } else { Target::Gpu(id.ordinal) };
        Gpu { number: id.ordinal, target, info, cores }
    };
    Ok(chosen.into_iter().zip(cores).map(gpu).collect())
}

fn simulated(named: &str, devices: &[(DeviceId, DeviceInfo)]) -> Vec<(DeviceId, DeviceInfo)> {
    let mut numbers: Vec<u32> = named.split(',').filter_map(|word| word.trim().parse().ok()).collect();
    if numbers.is_empty() {
        numbers.push(0);
    }
    let each = |number: u32| {
        devices.iter().take(1).map(move |(_, info)| (DeviceId { ordinal: number, uuid: None }, info.clone()))
    };
    numbers.into_iter().flat_map(each).collect()
}

/// Selects devices by `all`, or by comma-separated ordinals and UUIDs. Only GPUs of one model can share a matrix.
fn choose(named: &str, listed: &[(DeviceId, DeviceInfo)]) -> Result<Vec<(DeviceId, DeviceInfo)>, String> {
    let find = |word: &str| {
        let is_it = |id: &DeviceId| match word.parse::<u32>() {
            Ok(ordinal) => id.ordinal == ordinal,
            Err(_) => id.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(word)),
        };
        let found = listed.iter().find(|(id, _)| is_it(id)).cloned();
        found.ok_or_else(|| format!("--devices {named}: there is no GPU `{word}`; `runner devices` lists them"))
    };
    let mut chosen: Vec<(DeviceId, DeviceInfo)> = match named {
        "all" => listed.to_vec(),
        _ => named.split(',').map(|word| find(word.trim())).collect::<Result<_, _>>()?,
    };
    chosen.sort_by_key(|(id, _)| id.ordinal);
    chosen.dedup_by_key(|(id, _)| id.ordinal);
    let Some((_, first)) = chosen.first() else { return Err("--devices all: this machine has no GPU".to_owned()) };
    if let Some((id, other)) = chosen.iter().find(|(_, info)| info.name != first.name) {
        return Err(format!(
            "--devices {named}: GPU {} is {}, another is {}; results of different GPUs cannot share a report: name \
             those of one model",
            id.ordinal, other.name, first.name
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::h100;

    fn listed() -> Vec<(DeviceId, DeviceInfo)> {
        let gpu = |ordinal: u32, name: &str| {
            let id = DeviceId { ordinal, uuid: Some(format!("GPU-{ordinal}")) };
            (id, DeviceInfo { name: name.to_owned(), ..h100() })
        };
        vec![gpu(0, "H100"), gpu(1, "H100"), gpu(2, "A100")]
    }

    fn chosen(named: &str) -> Result<Vec<u32>, String> {
        Ok(choose(named, &listed())?.into_iter().map(|(id, _)| id.ordinal).collect())
    }

    #[test]
    fn gpus_are_named_by_number_or_uuid() {
        assert_eq!(chosen("0,1"), Ok(vec![0, 1]));
        assert_eq!(chosen("1, gpu-0,1"), Ok(vec![0, 1]));
        assert_eq!(chosen("2"), Ok(vec![2]));
        let unknown = chosen("0,7").err().unwrap_or_default();
        assert_eq!(unknown, "--devices 0,7: there is no GPU `7`; `runner devices` lists them");
        assert_eq!(choose("all", &[]), Err("--devices all: this machine has no GPU".to_owned()));
    }

    #[test]
    fn gpus_of_different_models_do_not_share_a_report() {
        let mixed = chosen("all").err().unwrap_or_default();
        assert!(mixed.contains("GPU 2 is A100, another is H100"), "{mixed}");
    }
}
