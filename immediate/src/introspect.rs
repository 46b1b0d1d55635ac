//! What is loaded: variables, modules, sites.

use std::fmt;

use crate::descriptor::Place;
use crate::error::Error;
use crate::initial;
use crate::lock;
use crate::record::{Form, Test};
use crate::registry::{Entry, EntryId, Registry};
use crate::runtime;
use crate::update::{self, Mode};

/// A variable that is loaded, for programs that list and set by name.
///
/// It may outlive the module that declares the variable: then it keeps what it knew, and setting is
/// [`Error::Unloaded`].
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its place in the registry.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) type_name: String,
    pub(crate) initial: String,
    pub(crate) value: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) is_shared: bool,
    pub(crate) module: String,
    pub(crate) sites: usize,
    pub(crate) updates: u64,
}

impl Variable {
    pub(crate) fn new(registry: &Registry, id: EntryId, entry: &Entry) -> Self {
        let descriptor = entry.descriptor;
        let Place { file, line, column } = descriptor.place();
        let module = entry.module.and_then(|place| registry.module(place));
        Variable {
            place: id.place(),
            name: descriptor.name().to_string(),
            doc: descriptor.doc().to_string(),
            type_name: descriptor.type_name(),
            initial: descriptor.show(descriptor.initial()),
            value: descriptor.show(entry.bits()),
            file: file.to_string(),
            line,
            column,
            is_shared: descriptor.is_shared(),
            module: module.map(|module| module.path.clone()).unwrap_or_default(),
            sites: entry.site_count(),
            updates: entry.updates,
        }
    }

    /// The variable as it is now, if it is still loaded.
    fn now(&self) -> Option<Variable> {
        let now = match runtime::foreign() {
            Some(there) => there.variables().ok()?.into_iter().find(|now| now.place == self.place),
            None => {
                let mut locked = lock::lock().ok()?;
                let registry = locked.registry();
                let id = EntryId::at(self.place);
                registry.entry(id).map(|entry| Variable::new(registry, id, entry))
            }
        };
        now.filter(|now| self.is(now))
    }

    /// Whether it is the same declaration, or a shared variable of the same name.
    pub(crate) fn is(&self, now: &Variable) -> bool {
        now.name == self.name
            && now.type_name == self.type_name
            && (self.is_shared || (&now.file, now.line) == (&self.file, self.line))
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
        self.now().map_or_else(|| self.value.clone(), |now| now.value)
    }

    /// The initial value in the built file, as text.
    #[must_use]
    pub fn initial(&self) -> &str {
        &self.initial
    }

    /// How many sites read it.
    #[must_use]
    pub fn site_count(&self) -> usize {
        self.now().map_or(0, |now| now.sites)
    }

    /// How often it has been set.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.now().map_or(0, |now| now.updates)
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

    /// The path of the module that declares it; of a shared variable, the first of those loaded.
    /// Empty once it has been unloaded.
    #[must_use]
    pub fn module(&self) -> String {
        self.now().map(|now| now.module).unwrap_or_default()
    }

    /// Sets the variable from text, in the notation of [`value`](Variable::value).
    ///
    /// # Errors
    ///
    /// [`Error::BadValue`] says what would be valid; otherwise as
    /// [`Immediate::set`](crate::Immediate::set). Nothing has changed.
    pub fn set_text(&self, text: &str) -> Result<(), Error> {
        match runtime::foreign() {
            Some(there) => there.set_text(self, text),
            None => set_text_here(self.place, &self.name, &self.file, self.line, text),
        }
    }
}

/// Sets a variable of this copy's runtime from text.
pub(crate) fn set_text_here(
    place: usize,
    name: &str,
    file: &str,
    line: u32,
    text: &str,
) -> Result<(), Error> {
    let setters = lock::setters()?;
    let mut locked = setters.registry()?;
    let registry = locked.registry();
    let is = |entry: &&Entry| {
        let declared = entry.descriptor.place();
        entry.descriptor.name() == name
            && (entry.descriptor.is_shared() || (declared.file, declared.line) == (file, line))
    };
    let change = match registry.entry(EntryId::at(place)).filter(is) {
        Some(entry) => initial::assign(entry, text)?,
        None => return Err(Error::Unloaded { variable: name.to_string() }),
    };
    update::apply(registry, &[change], Mode::Live)
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
    let list = match runtime::foreign() {
        Some(there) => there.variables(),
        None => list_here(),
    };
    list.unwrap_or_default().into_iter()
}

/// The variables that this copy's runtime knows.
pub(crate) fn list_here() -> Result<Vec<Variable>, Error> {
    let mut locked = lock::lock()?;
    let registry = locked.registry();
    Ok(registry.entries().map(|(id, entry)| Variable::new(registry, id, entry)).collect())
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
        None => {
            let names: Vec<String> = variables().map(|variable| variable.name).collect();
            Err(initial::unknown(names.iter().map(String::as_str), name))
        }
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
    let list = match runtime::foreign() {
        Some(there) => there.modules(),
        None => modules_here(),
    };
    list.into_iter()
}

/// The modules that this copy's runtime knows.
pub(crate) fn modules_here() -> Vec<Module> {
    lock::lock().map_or_else(
        |_| Vec::new(),
        |mut locked| {
            let registry = locked.registry();
            let declared_in = |place| {
                let all = registry.entries().flat_map(|(_, entry)| entry.declarations());
                all.filter(|one| one.module == Some(place)).count()
            };
            let described = registry.modules().map(|(place, module)| Module {
                path: module.path.clone(),
                base: module.base,
                variables: declared_in(place),
                sites: module.site_count(),
            });
            described.collect()
        },
    )
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
    let list = match runtime::foreign() {
        Some(there) => there.sites(),
        None => sites_here(),
    };
    list.into_iter()
}

/// The sites that this copy's runtime knows.
pub(crate) fn sites_here() -> Vec<Site> {
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
    list
}
