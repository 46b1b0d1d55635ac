//! What is loaded: variables, modules, sites.

use std::fmt;

use crate::descriptor::Place;
use crate::error::Error;
use crate::initial;
use crate::lock;
use crate::record::{Form, Test};
use crate::registry::{Entry, EntryId, Registry};
use crate::update::{self, Mode};

/// A variable that is loaded, for programs that list and set by name.
///
/// It may outlive the module that declares the variable: then it keeps what it knew, and setting is
/// [`Error::Unloaded`].
#[derive(Clone, Debug)]
pub struct Variable {
    pub(crate) id: EntryId,
    name: String,
    doc: String,
    type_name: String,
    initial: String,
    value: String,
    file: String,
    line: u32,
    column: u32,
    is_shared: bool,
}

impl Variable {
    pub(crate) fn new(id: EntryId, entry: &Entry) -> Self {
        let descriptor = entry.descriptor;
        let Place { file, line, column } = descriptor.place();
        Variable {
            id,
            name: descriptor.name().to_string(),
            doc: descriptor.doc().to_string(),
            type_name: descriptor.type_name().to_string(),
            initial: descriptor.show(descriptor.initial()),
            value: descriptor.show(entry.bits()),
            file: file.to_string(),
            line,
            column,
            is_shared: descriptor.is_shared(),
        }
    }

    /// Looks at the entry, if it is still this variable's.
    fn look<R>(&self, look: impl FnOnce(&Registry, &Entry) -> R) -> Option<R> {
        let mut locked = lock::lock().ok()?;
        let registry = locked.registry();
        let entry = registry.entry(self.id).filter(|entry| self.is(entry))?;
        Some(look(registry, entry))
    }

    pub(crate) fn is(&self, entry: &Entry) -> bool {
        entry.descriptor.name() == self.name && entry.descriptor.place().line == self.line
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first line of its documentation, or nothing.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The value now, as text.
    #[must_use]
    pub fn value(&self) -> String {
        self.look(|_, entry| entry.descriptor.show(entry.bits()))
            .unwrap_or_else(|| self.value.clone())
    }

    /// The initial value in the built file, as text.
    #[must_use]
    pub fn initial(&self) -> &str {
        &self.initial
    }

    /// How many sites read it.
    #[must_use]
    pub fn site_count(&self) -> usize {
        self.look(|_, entry| entry.site_count()).unwrap_or(0)
    }

    /// How often it has been set.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.look(|_, entry| entry.updates).unwrap_or(0)
    }

    /// The file that declares it, as given to the compiler.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of the declaration, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The place in the source: `file:line:column`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// Whether all modules that declare it by this name share it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The path of the module that declares it.
    #[must_use]
    pub fn module(&self) -> String {
        self.look(|registry, entry| {
            entry.module.and_then(|place| registry.module(place)).map(|module| module.path.clone())
        })
        .flatten()
        .unwrap_or_default()
    }

    /// Sets the variable from text, in the notation of [`value`](Variable::value).
    ///
    /// # Errors
    ///
    /// [`Error::BadValue`] says what would be valid; otherwise as
    /// [`Immediate::set`](crate::Immediate::set). Nothing has changed.
    pub fn set_text(&self, text: &str) -> Result<(), Error> {
        let mut locked = lock::lock()?;
        let registry = locked.registry();
        let change = match registry.entry(self.id).filter(|entry| self.is(entry)) {
            Some(entry) => initial::assign(entry, text)?,
            None => return Err(Error::Unloaded { variable: self.name.clone() }),
        };
        update::apply(registry, &[change], Mode::Live)
    }
}

/// The variables of all loaded modules, in the order in which they were registered.
///
/// ```
/// use immediate::{Immediate, immediate};
///
/// /// Requests that may wait.
/// #[immediate]
/// static QUEUE: Immediate<u16> = Immediate::new(64);
///
/// let queue = immediate::variables().find(|one| one.name().ends_with("QUEUE")).expect("declared");
/// assert_eq!((queue.type_name(), queue.initial()), ("u16", "64"));
/// assert_eq!(queue.doc(), "Requests that may wait.");
/// ```
pub fn variables() -> impl Iterator<Item = Variable> {
    let list: Vec<Variable> = lock::lock().map_or_else(
        |_| Vec::new(),
        |mut locked| {
            locked.registry().entries().map(|(id, entry)| Variable::new(id, entry)).collect()
        },
    );
    list.into_iter()
}

/// The variable with this name.
///
/// ```
/// use immediate::{Immediate, immediate};
///
/// #[immediate(name = "server.queue")]
/// static QUEUE: Immediate<u16> = Immediate::new(64);
///
/// let queue = immediate::find("server.queue").expect("declared above");
/// queue.set_text("128")?;
/// assert_eq!(QUEUE.get(), 128);
/// # Ok::<(), immediate::Error>(())
/// ```
#[must_use]
pub fn find(name: &str) -> Option<Variable> {
    variables().find(|variable| variable.name == name)
}

/// The variable with this name, or an error that names similar ones.
///
/// # Errors
///
/// [`Error::UnknownName`].
pub fn lookup(name: &str) -> Result<Variable, Error> {
    match find(name) {
        Some(variable) => Ok(variable),
        None => Err(initial::unknown(lock::lock()?.registry(), name)),
    }
}

/// A loaded module that has variables or sites.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module {
    /// Path of its file.
    pub path: String,
    /// Load address: what is added to the addresses in the file.
    pub base: usize,
    /// How many variables it declares.
    pub variables: usize,
    /// How many sites it has.
    pub sites: usize,
}

/// The loaded modules that have variables or sites.
///
/// ```
/// for module in immediate::modules() {
///     println!("{}: {} sites at {:#x}", module.path, module.sites, module.base);
/// }
/// ```
pub fn modules() -> impl Iterator<Item = Module> {
    let list: Vec<Module> = lock::lock().map_or_else(
        |_| Vec::new(),
        |mut locked| {
            let registry = locked.registry();
            let described = registry.modules().map(|(place, module)| Module {
                path: module.path.clone(),
                base: module.base,
                variables: registry.entries().filter(|(_, e)| e.module == Some(place)).count(),
                sites: module.site_count(),
            });
            described.collect()
        },
    );
    list.into_iter()
}

/// One place in the code that reads a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// Name of the variable.
    pub variable: String,
    /// Path of the module.
    pub module: String,
    /// Address of the instruction.
    pub address: usize,
    /// Load address of the module.
    pub base: usize,
    /// What the instruction does.
    pub form: SiteForm,
}

/// What a site does with its variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SiteForm {
    /// Loads the value.
    Value,
    /// Goes to `target` when the test has the outcome `taken_on`.
    Branch {
        /// Where the branch leads.
        target: usize,
        /// The test: nothing for a `bool`, a comparison such as `>= 2` by its bits, or `test`.
        test: String,
        /// The outcome for which the branch is taken.
        taken_on: bool,
    },
}

impl fmt::Display for SiteForm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiteForm::Value => out.write_str("value"),
            SiteForm::Branch { target, test, taken_on } => {
                write!(
                    out,
                    "branch to {target:#x} when {test}{}{taken_on}",
                    if test.is_empty() { "" } else { " is " }
                )
            }
        }
    }
}

/// The sites of all loaded modules, variable by variable.
///
/// ```
/// use immediate::{Immediate, immediate, immediate_read};
///
/// #[immediate]
/// static LIMIT: Immediate<u32> = Immediate::new(10);
///
/// assert_eq!(immediate_read!(LIMIT), 10);
/// assert_eq!(immediate::sites().filter(|s| s.variable == LIMIT.name()).count(), LIMIT.site_count());
/// ```
pub fn sites() -> impl Iterator<Item = Site> {
    let mut list = Vec::new();
    if let Ok(mut locked) = lock::lock() {
        let registry = locked.registry();
        for (_, entry) in registry.entries() {
            for (module, index) in registry.sites_of(entry) {
                let Some(site) = module.tables.site(index) else { continue };
                let form = match site.form {
                    Form::Value => SiteForm::Value,
                    Form::Branch { target, taken_on, test } => {
                        let test = match test {
                            Test::Plain => String::new(),
                            Test::Comparison(operator, constant) => {
                                let constant = entry.descriptor.show(constant.into());
                                format!("{} {constant}", operator.symbol())
                            }
                            Test::Function(_) => "test".to_string(),
                        };
                        SiteForm::Branch { target, test, taken_on }
                    }
                };
                list.push(Site {
                    variable: entry.descriptor.name().to_string(),
                    module: module.path.clone(),
                    address: site.code,
                    base: module.base,
                    form,
                });
            }
        }
    }
    list.into_iter()
}
