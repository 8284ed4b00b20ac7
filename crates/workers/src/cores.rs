//! Divides the host's cores among the workers of several GPUs, so that host work for one GPU does not run on another
//! GPU's cores.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of cores in ascending order, displayed in Linux's format `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// Cores that this process may use; empty if the system does not report them.
    pub fn available() -> Self {
        let Ok(set) = sched_getaffinity(None) else { return Self::default() };
        Self((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
    }

    /// Cores on the NUMA node of the device with this PCI address.
    pub fn near(pci_address: &str) -> Option<Self> {
        let folder = Path::new("/sys/bus/pci/devices").join(pci_address.to_lowercase());
        std::fs::read_to_string(folder.join("local_cpulist")).ok()?.trim().parse().ok()
    }

    /// Pins this thread, and every thread it starts, to these cores.
    pub fn pin(&self) -> std::io::Result<()> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        Ok(sched_setaffinity(None, &set)?)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Divides the available cores among devices. Devices that are near the same cores split them evenly, in order. If a
/// device's near cores are unknown or not available, or if near cores overlap partly, all cores are divided evenly. With
/// fewer cores than devices, sets are empty and workers are not pinned.
pub fn divide(available: &Cores, near: &[Option<Cores>]) -> Vec<Cores> {
    let usable: Vec<Vec<usize>> = near
        .iter()
        .map(|near| {
            let is_near = |core: &usize| near.as_ref().is_some_and(|near| near.0.contains(core));
            let found: Vec<usize> = available.0.iter().copied().filter(is_near).collect();
            if found.is_empty() { available.0.clone() } else { found }
        })
        .collect();
    // Devices near the same cores share them. Partly overlapping sets would give a core to two devices.
    let is_disjoint = |a: &[usize], b: &[usize]| a == b || !a.iter().any(|core| b.contains(core));
    let clean = usable.iter().all(|a| usable.iter().all(|b| is_disjoint(a, b)));
    let usable = if clean { usable } else { vec![available.0.clone(); near.len()] };
    let part = |(at, cores): (usize, &Vec<usize>)| {
        let sharing = usable.iter().filter(|other| *other == cores).count();
        let place = usable[..at].iter().filter(|other| *other == cores).count();
        let size = cores.len() / sharing;
        Cores(cores.iter().copied().skip(place * size).take(size).collect())
    };
    usable.iter().enumerate().map(part).collect()
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut is_first = true;
        while let Some(&first) = rest.first() {
            let length = rest.iter().enumerate().take_while(|(at, core)| **core == first + at).count();
            let comma = if is_first { "" } else { "," };
            match length {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", first + length - 1)?,
            }
            (rest, is_first) = (&rest[length..], false);
        }
        Ok(())
    }
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a list of cores such as 0-3,8");
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let bounds: (usize, usize) =
                (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
            if bounds.0 > bounds.1 || bounds.1 >= CpuSet::MAX_CPU {
                return Err(wrong());
            }
            cores.extend(bounds.0..=bounds.1);
        }
        cores.sort_unstable();
        cores.dedup();
        Ok(Self(cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(text: &str) -> Cores {
        text.parse().unwrap_or_default()
    }

    fn divided(available: &str, near: &[Option<&str>]) -> Vec<String> {
        let near: Vec<Option<Cores>> = near.iter().map(|text| text.map(cores)).collect();
        divide(&cores(available), &near).iter().map(Cores::to_string).collect()
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for text in ["0", "0-3", "0-3,8", "1,3,5-7"] {
            assert_eq!(cores(text).to_string(), text);
        }
        assert_eq!(cores("3,1,2,2").to_string(), "1-3");
        for wrong in ["", "a", "3-1", "0-99999999", "1-", "-1"] {
            assert!(wrong.parse::<Cores>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn devices_on_different_nodes_get_their_own_node() {
        assert_eq!(divided("0-15", &[Some("0-7"), Some("8-15")]), ["0-7", "8-15"]);
    }

    #[test]
    fn devices_on_one_node_share_it() {
        let two = [Some("0-7"), Some("0-7"), Some("8-15"), Some("8-15")];
        assert_eq!(divided("0-15", &two), ["0-3", "4-7", "8-11", "12-15"]);
    }

    #[test]
    fn without_knowledge_of_nodes_all_cores_are_shared() {
        assert_eq!(divided("0-15", &[None, None]), ["0-7", "8-15"]);
        // A container that only has cores of another node.
        assert_eq!(divided("16-19", &[Some("0-7"), Some("0-7")]), ["16-17", "18-19"]);
        // No core is given to two devices, even if the near sets overlap.
        assert_eq!(divided("0-7", &[Some("0-3"), None]), ["0-3", "4-7"]);
    }

    #[test]
    fn fewer_cores_than_devices_restrict_no_worker() {
        assert_eq!(divided("0", &[None, None]), ["", ""]);
    }

    #[test]
    fn a_pinned_thread_has_only_these_cores() -> Result<(), Box<dyn std::error::Error>> {
        let Some(&first) = Cores::available().0.first() else { return Ok(()) };
        let pinned = std::thread::spawn(move || Cores(vec![first]).pin().map(|()| Cores::available()));
        assert_eq!(pinned.join().map_err(|_| "the thread panicked")??, Cores(vec![first]));
        Ok(())
    }
}
