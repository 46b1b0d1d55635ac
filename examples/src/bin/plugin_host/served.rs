//! A plugin that serves requests, and the slot in which it is replaced while it does.

#![allow(unsafe_code)]

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use immediate::plugin::{Plugin, PluginError};

/// A plugin with its functions. They are called as long as this lives, and no longer.
pub(crate) struct Served {
    serve: extern "C" fn(u64) -> u64,
    version: extern "C" fn() -> u64,
    profiled: extern "C" fn() -> u64,
    plugin: Plugin,
}

impl Served {
    pub(crate) fn load(path: &Path) -> Result<Self, PluginError> {
        // SAFETY: our own plugins; they export these functions with these types.
        unsafe {
            let plugin = Plugin::load(path)?;
            let serve = *plugin.get("plugin_serve")?;
            let version = *plugin.get("plugin_version")?;
            let profiled = *plugin.get("plugin_profiled")?;
            Ok(Served { serve, version, profiled, plugin })
        }
    }

    pub(crate) fn name(&self) -> String {
        self.plugin.path().display().to_string()
    }

    pub(crate) fn serve(&self, number: u64) -> u64 {
        (self.serve)(number)
    }

    pub(crate) fn version(&self) -> u64 {
        (self.version)()
    }

    pub(crate) fn profiled(&self) -> u64 {
        (self.profiled)()
    }

    /// What the plugin answers when it mixes so often.
    pub(crate) fn expected(&self, number: u64, rounds: u32) -> u64 {
        let mix = |mixed: u64, _| mixed.wrapping_mul(3).wrapping_add(self.version());
        (0..rounds).fold(number, mix)
    }
}

/// Where requests find the plugin of the moment.
pub(crate) struct Slot(RwLock<Option<Arc<Served>>>);

impl Slot {
    pub(crate) fn new() -> Self {
        Slot(RwLock::new(None))
    }

    pub(crate) fn get(&self) -> Option<Arc<Served>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the plugin that is there; 0 or false without one.
    pub(crate) fn ask<R: Default>(&self, question: impl Fn(&Served) -> R) -> R {
        self.get().map(|plugin| question(&plugin)).unwrap_or_default()
    }

    /// Puts another plugin there, waits until nobody is in the old one, and unloads it. Tells whether
    /// it is gone; true if there was none.
    pub(crate) fn replace(&self, next: Option<Served>) -> Result<bool, PluginError> {
        let next = next.map(Arc::new);
        let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *slot, next);
        drop(slot);
        let Some(mut old) = old else { return Ok(true) };
        loop {
            match Arc::try_unwrap(old) {
                Ok(alone) => return alone.plugin.unload(),
                Err(shared) => old = shared,
            }
            thread::yield_now();
        }
    }
}
