//! What a program allows: protocol, writer, guarantee.

use std::sync::OnceLock;
use std::time::Duration;

use immediate_arch::{Limits, Protocol, Writer};

use crate::error::Error;
use crate::initial::environment;
use crate::lock;
use crate::module::report;
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
/// [`Error::ConfiguredTooLate`] after the first set; nothing has changed. A protocol or a writer in the
/// environment that does not exist is reported on standard error and is left out.
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
    registry.patcher.limit(limits(config));
    registry.is_configured = true;
    Ok(())
}

/// Takes the environment's settings into account, once, if the program did not configure.
pub(crate) fn settle(registry: &mut Registry) {
    if !registry.is_configured {
        registry.patcher.limit(limits(Config::default()));
        registry.is_configured = true;
    }
}

fn limits(config: Config) -> Limits {
    let (protocol, writer) = *ASKED.get_or_init(|| {
        let protocols = [Protocol::CHOICES, &[Protocol::Single]].concat();
        let protocol = from_environment("IMMEDIATE_PROTOCOL", &protocols, Protocol::name);
        (protocol, from_environment("IMMEDIATE_WRITER", Writer::ALL, Writer::name))
    });
    Limits {
        protocol: protocol.or(config.protocol),
        writer: writer.or(config.writer),
        one_instant: config.one_instant,
        stop_signal: config.stop_signal,
        stop_within: config.stop_within,
    }
}

/// What the environment asks for. What is wrong in it is reported once.
static ASKED: OnceLock<(Option<Protocol>, Option<Writer>)> = OnceLock::new();

fn from_environment<T: Copy>(setting: &str, all: &[T], name: fn(T) -> &'static str) -> Option<T> {
    let found = environment(setting).filter(|found| !found.is_empty())?;
    let known = all.iter().find(|one| name(**one) == found);
    if known.is_none() {
        let names: Vec<_> = all.iter().map(|one| name(*one)).collect();
        let valid = names.join(" or ");
        report(&format!("{setting}: {found:?} is not known and is left out: give {valid}"));
    }
    known.copied()
}
