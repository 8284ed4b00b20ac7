//! Tools that only some sources need: nvcc and headers of libraries. They are located or fetched when the first such
//! source is compiled.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::assembler::Assembler;
use super::cache::Cache;
use super::disassembler::Disassembler;
use super::fetch::Network;
use super::library_headers::LibraryHeaders;
use super::nvcc::Nvcc;
use super::toolkit::Toolkit;
use runner_process::programs::Programs;
use runner_types::{CompileFailure, CompileUnit, Compiled};

/// Header folders by library, or why there are none.
type Headers = BTreeMap<&'static str, Result<Vec<PathBuf>, String>>;

/// nvcc and the headers of libraries, for sources that need them.
#[derive(Clone)]
pub struct OnDemand {
    cache: Cache,
    network: Network,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    nvcc: Arc<OnceLock<Result<Nvcc, String>>>,
    headers: Arc<Mutex<Headers>>,
    disassembler: Arc<OnceLock<Result<Disassembler, String>>>,
    assembler: Arc<OnceLock<Result<Assembler, String>>>,
}

impl OnDemand {
    /// Does not search for anything yet. Fetching progress goes to `say`, from any thread.
    pub fn new(cache: Cache, network: Network, say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            cache,
            network,
            say: Arc::new(say),
            nvcc: Arc::default(),
            headers: Arc::default(),
            disassembler: Arc::default(),
            assembler: Arc::default(),
        }
    }

    /// Finds nvcc once; other threads wait.
    pub(super) fn nvcc(&self, toolkit: &Toolkit) -> Result<&Nvcc, &str> {
        let ensure = || Nvcc::ensure(toolkit, &self.cache, self.network, &mut |line| (self.say)(line));
        let found = self.nvcc.get_or_init(|| ensure().map_err(|error| error.to_string()));
        found.as_ref().map_err(String::as_str)
    }

    /// Finds the headers of a library once per library; other threads wait.
    pub(super) fn headers(&self, toolkit: &Toolkit, library: &'static LibraryHeaders) -> Result<Vec<PathBuf>, String> {
        let mut found = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        let ensure = || library.ensure(toolkit, &self.cache, self.network, &mut |line| (self.say)(line));
        found.entry(library.name).or_insert_with(ensure).clone()
    }

    /// File with the machine instructions of a unit that was compiled to PTX, or why there is none. A source that is
    /// PTX is assembled first, as a driver would.
    pub(super) fn list(
        &self,
        unit: &CompileUnit,
        compiled: &Compiled,
        capability: (u32, u32),
    ) -> Result<PathBuf, String> {
        let failed = |failure: CompileFailure| failure.summary;
        if !compiled.parts.is_empty() {
            return Err("it is linked from several sources".to_owned());
        }
        let cubin = match &compiled.machine {
            Some(cubin) => cubin.clone(),
            None => self.assembler()?.assemble(unit, compiled, capability).map_err(failed)?.code,
        };
        let kernels: Vec<&str> = compiled.kernels.values().map(String::as_str).collect();
        // With device-side launches, list all kernels: those that kernels launch are not among the unit's.
        let kernels = (!unit.settings.relocatable).then_some(&*kernels);
        self.disassembler()?.list_into_cache(&cubin, kernels, capability).map_err(failed)
    }

    fn disassembler(&self) -> Result<&Disassembler, String> {
        let mut say = |line: &str| (self.say)(line);
        let mut ensure = || Disassembler::ensure(&Programs::of_this_machine(), &self.cache, self.network, &mut say);
        self.disassembler
            .get_or_init(move || ensure().map_err(|error| error.to_string()))
            .as_ref()
            .map_err(String::clone)
    }

    fn assembler(&self) -> Result<&Assembler, String> {
        let mut say = |line: &str| (self.say)(line);
        let mut ensure = || Assembler::ensure(&Programs::of_this_machine(), &self.cache, self.network, &mut say);
        self.assembler.get_or_init(|| ensure().map_err(|error| error.to_string())).as_ref().map_err(String::clone)
    }
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").field("network", &self.network).finish_non_exhaustive()
    }
}
