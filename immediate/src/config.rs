//! What a program allows: protocol, writer, guarantee.

use std::time::Duration;

use immediate_arch::{Limits, Protocol, Writer};

use crate::error::Error;
use crate::initial::environment;
use crate::lock;
use crate::registry::Registry;
use crate::runtime;

/// What a program allows when code is changed.
///
/// ```
/// use immediate::{Config, Protocol};
///
/// immediate::configure(Config { protocol: Some(Protocol::Int3), ..Config::default() })?;
/// # Ok::<(), immediate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Use this protocol and no other; `None` chooses the best that can be used. The environment
    /// `IMMEDIATE_PROTOCOL` overrides it.
    pub protocol: Option<Protocol>,
    /// Use this writer and no other; `None` chooses. The environment `IMMEDIATE_WRITER` overrides
    /// it.
    pub writer: Option<Writer>,
    /// The real-time signal that the protocol `stop-world` stops threads with; `None` takes the
    /// highest that the program does not handle.
    pub stop_signal: Option<i32>,
    /// How long stopping the threads may take before a set fails; `None` is one second.
    pub stop_within: Option<Duration>,
    /// Refuse to set where a batch would not be one instant for all threads, sites and variables.
    pub one_instant: bool,
}

/// Says what the program allows, before the first set.
///
/// # Errors
///
/// [`Error::ConfiguredTooLate`] after the first set, [`Error::BadConfiguration`] if the environment
/// names a protocol or a writer that does not exist. Nothing has changed.
///
/// ```
/// # use immediate::{Config, Error, Immediate, immediate};
/// #[immediate]
/// static LIMIT: Immediate<u8> = Immediate::new(1);
/// LIMIT.set(2)?;
/// assert_eq!(immediate::configure(Config::default()), Err(Error::ConfiguredTooLate));
/// # Ok::<(), Error>(())
/// ```
pub fn configure(config: Config) -> Result<(), Error> {
    match runtime::foreign() {
        Some(there) => there.configure(&config),
        None => configure_here(config),
    }
}

/// The same for this copy's runtime.
pub(crate) fn configure_here(config: Config) -> Result<(), Error> {
    let mut locked = lock::lock()?;
    let registry = locked.registry();
    if registry.has_been_set {
        return Err(Error::ConfiguredTooLate);
    }
    let limits = limits(config)?;
    registry.patcher.limit(limits);
    registry.is_configured = true;
    Ok(())
}

/// Takes the environment's settings into account, once, if the program did not configure.
pub(crate) fn settle(registry: &mut Registry) -> Result<(), Error> {
    if !registry.is_configured {
        let limits = limits(Config::default())?;
        registry.patcher.limit(limits);
        registry.is_configured = true;
    }
    Ok(())
}

fn limits(config: Config) -> Result<Limits, Error> {
    let all = [Protocol::CHOICES, &[Protocol::Single]].concat();
    let protocol = from_environment("IMMEDIATE_PROTOCOL", &all, Protocol::name)?;
    let writer = from_environment("IMMEDIATE_WRITER", Writer::ALL, Writer::name)?;
    Ok(Limits {
        protocol: protocol.or(config.protocol),
        writer: writer.or(config.writer),
        one_instant: config.one_instant,
        stop_signal: config.stop_signal,
        stop_within: config.stop_within,
    })
}

fn from_environment<T: Copy>(
    setting: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Option<T>, Error> {
    let Some(found) = environment(setting) else { return Ok(None) };
    if found.is_empty() {
        return Ok(None);
    }
    match all.iter().find(|one| name(**one) == found) {
        Some(one) => Ok(Some(*one)),
        None => {
            let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
            let valid = names.join(" or ");
            Err(Error::BadConfiguration { setting: setting.to_string(), found, valid })
        }
    }
}
