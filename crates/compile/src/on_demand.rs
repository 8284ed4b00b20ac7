//! What only some sources need: nvcc and headers of libraries. It is located or fetched when the first such source is
//! compiled.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::cache::Cache;
use super::fetch::Network;
use super::library_headers::LibraryHeaders;
use super::plugin::Nvcc;
use super::toolkit::Toolkit;

/// Folders of headers, or why there are none, by library.
type Headers = BTreeMap<&'static str, Result<Vec<PathBuf>, String>>;

/// nvcc and the headers of libraries, for sources that need them.
#[derive(Clone)]
pub struct OnDemand {
    cache: Cache,
    network: Network,
    say: Arc<dyn Fn(&str) + Send + Sync>,
    nvcc: Arc<OnceLock<Result<Nvcc, String>>>,
    headers: Arc<Mutex<Headers>>,
}

impl OnDemand {
    /// Searches for nothing yet. `say` receives progress of fetching, from any thread.
    pub fn new(cache: Cache, network: Network, say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { cache, network, say: Arc::new(say), nvcc: Arc::default(), headers: Arc::default() }
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
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").field("network", &self.network).finish_non_exhaustive()
    }
}
