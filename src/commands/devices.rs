//! `runner devices`: prints the properties of each GPU.

use crate::cli::DevicesArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_backend::cuda;
use runner_types::{DeviceId, DeviceInfo};

pub fn run(args: &DevicesArgs, console: &mut Console) -> Result<Exit, Failure> {
    let devices = cuda::probe().map_err(Failure::environment)?;
    if devices.is_empty() {
        return Err(Failure::environment("the driver lists no GPU; CUDA_VISIBLE_DEVICES may hide it"));
    }
    let text = if args.json { json(&devices)? } else { text(&devices)? };
    console.print(&text)?;
    Ok(Exit::Success)
}

fn text(devices: &[(DeviceId, DeviceInfo)]) -> Result<String, Failure> {
    let driver = cuda::driver_version().map_err(Failure::environment)?;
    let version = driver.version.unwrap_or_else(|| "of unknown version".to_owned());
    let mut text = format!("driver {version}, CUDA {}.{}\n", driver.cuda.0, driver.cuda.1);
    for (id, info) in devices {
        text.push('\n');
        text.push_str(&runner_report::device(id, info));
    }
    Ok(text)
}

/// Input for `runner plan --device-profile`. Free memory is omitted, since it changes constantly.
fn json(devices: &[(DeviceId, DeviceInfo)]) -> Result<String, Failure> {
    let profiles: Vec<DeviceInfo> =
        devices.iter().map(|(_, info)| DeviceInfo { memory_free: None, ..info.clone() }).collect();
    serde_json::to_string_pretty(&profiles)
        .map(|text| text + "\n")
        .map_err(|error| Failure::environment(format!("cannot write the devices as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Bytes;

    fn h100() -> DeviceInfo {
        DeviceInfo { memory_free: Some(Bytes(84_400_000_000)), ..runner_types::h100() }
    }

    #[test]
    fn json_is_a_profile_without_the_free_memory() -> Result<(), Box<dyn std::error::Error>> {
        let id = DeviceId { ordinal: 0, uuid: None };
        let text = json(&[(id, h100())])?;
        let read: Vec<DeviceInfo> = serde_json::from_str(&text)?;
        assert_eq!(read, [DeviceInfo { memory_free: None, ..h100() }]);
        assert!(!text.contains("memory_free"), "{text}");
        Ok(())
    }
}
