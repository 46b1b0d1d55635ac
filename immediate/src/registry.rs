//! The registry: which modules are loaded, which variables they declare, which sites read each.
//!
//! Setting a variable visits its own sites and no others: each variable has, for each module that
//! reads it, a run of the module's `order`, an index that groups the module's sites by variable. The
//! index is built by counting, without hashing, in one pass more than reading the records.
//!
//! Modules may share a variable: then several declarations, each with a backing value of its own that
//! every set brings up to date, are one entry.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering;

use immediate_arch::{KnownText, Outcome, Patcher, TextId};

use crate::batch::Change;
use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::record::{Header, SiteIndex, Tables};
use crate::variable::Untyped;

/// All that is known, behind the update lock.
pub(crate) struct Registry {
    pub(crate) patcher: Patcher,
    modules: Vec<Option<Module>>,
    variables: Vec<Option<Entry>>,
    /// Places in `variables` that hold nothing.
    free: Vec<usize>,
    /// The entries that modules share.
    shared: BTreeMap<Identity, EntryId>,
    /// Modules that were refused: load address, header, and why.
    refused: Vec<(usize, usize, String)>,
    /// Lines for whoever registers a module, to be reported when the lock is let go.
    reports: Vec<String>,
    /// How the last batch that changed code was carried out.
    pub(crate) last: Option<Outcome>,
    /// Batches that succeeded.
    pub(crate) updates: u64,
    /// Whether the configuration has been settled.
    pub(crate) is_configured: bool,
    /// Whether a variable has been set, after which `configure` is refused.
    pub(crate) has_been_set: bool,
}

/// A loaded module.
pub(crate) struct Module {
    pub(crate) header: &'static Header,
    pub(crate) path: String,
    pub(crate) base: usize,
    pub(crate) tables: Tables,
    texts: Vec<(KnownText, TextId)>,
    /// Site indices, grouped by variable, sorted by address inside a group.
    order: Box<[SiteIndex]>,
    /// How many sites it has: an instruction counts once.
    sites: usize,
    /// Instructions that two variables read; found before the first change.
    folded: Option<Vec<(usize, [SiteIndex; 2])>>,
}

/// What makes declarations in several modules one variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    name: String,
    type_name: String,
    size: usize,
}

impl Identity {
    fn of(descriptor: &Descriptor) -> Self {
        let (name, size) = (descriptor.name().to_string(), descriptor.size());
        Identity { name, type_name: descriptor.type_name(), size }
    }
}

/// A `static` that declares a variable.
#[derive(Clone, Copy)]
pub(crate) struct Declaration {
    pub(crate) variable: Untyped<'static>,
    pub(crate) descriptor: &'static Descriptor,
    /// The module whose table has it.
    pub(crate) module: Option<usize>,
}

/// A registered variable.
pub(crate) struct Entry {
    pub(crate) variable: Untyped<'static>,
    pub(crate) descriptor: &'static Descriptor,
    /// The module whose table declares it.
    pub(crate) module: Option<usize>,
    /// Later declarations that share it.
    others: Vec<Declaration>,
    groups: Vec<Group>,
    pub(crate) updates: u64,
    /// The module whose sites are not what its value says, and why, if so.
    pub(crate) stale: Option<(usize, Error)>,
    /// What the batch that is being prepared sets it to.
    pub(crate) pending: Option<u128>,
}

/// The sites of one variable in one module: a run of its `order`.
#[derive(Clone, Copy)]
struct Group {
    module: usize,
    first: u32,
    count: u32,
}

/// A place in the list of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryId(usize);

impl EntryId {
    pub(crate) fn at(place: usize) -> Self {
        EntryId(place)
    }

    pub(crate) fn place(self) -> usize {
        self.0
    }
}

impl Registry {
    pub(crate) const fn new() -> Self {
        Registry {
            patcher: Patcher::new(),
            modules: Vec::new(),
            variables: Vec::new(),
            free: Vec::new(),
            shared: BTreeMap::new(),
            refused: Vec::new(),
            reports: Vec::new(),
            last: None,
            updates: 0,
            is_configured: false,
            has_been_set: false,
        }
    }

    /// The variable's entry, if it has been registered.
    #[inline]
    pub(crate) fn entry_of(&self, variable: Untyped<'_>) -> Option<EntryId> {
        let place = variable.entry.load(Ordering::Relaxed).checked_sub(1)? as usize;
        let entry = self.variables.get(place)?.as_ref()?;
        entry.is_declared_by(variable).then_some(EntryId(place))
    }

    pub(crate) fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.variables.get(id.0)?.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.variables.get_mut(id.0)?.as_mut()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        let all = self.variables.iter().enumerate();
        all.filter_map(|(place, entry)| Some((EntryId(place), entry.as_ref()?)))
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (usize, &Module)> {
        self.modules
            .iter()
            .enumerate()
            .filter_map(|(place, module)| Some((place, module.as_ref()?)))
    }

    pub(crate) fn module(&self, place: usize) -> Option<&Module> {
        self.modules.get(place)?.as_ref()
    }

    pub(crate) fn site_count(&self, variable: Untyped<'_>) -> usize {
        self.entry_of(variable).and_then(|id| self.entry(id)).map_or(0, Entry::site_count)
    }

    /// The sites of a variable: module by module, each sorted by address.
    pub(crate) fn sites_of(&self, entry: &Entry) -> impl Iterator<Item = (&Module, SiteIndex)> {
        self.runs_of(entry).flat_map(|(module, run)| run.iter().map(move |site| (module, *site)))
    }

    /// The same, as one run for each module.
    pub(crate) fn runs_of(&self, entry: &Entry) -> impl Iterator<Item = (&Module, &[SiteIndex])> {
        entry.groups.iter().filter_map(|group| self.run(group))
    }

    /// The sites of a variable in one module, if it has any there.
    pub(crate) fn run_in(&self, entry: &Entry, module: usize) -> Option<(&Module, &[SiteIndex])> {
        self.run(entry.groups.iter().find(|group| group.module == module)?)
    }

    fn run(&self, group: &Group) -> Option<(&Module, &[SiteIndex])> {
        let module = self.module(group.module)?;
        let first = group.first as usize;
        Some((module, &module.order[first..first + group.count as usize]))
    }

    /// Registers a variable; the entry exists already if a module that reads it came first, or one
    /// that shares it. `path` is that of the module whose table is being read.
    pub(crate) fn add_variable(
        &mut self,
        variable: Untyped<'static>,
        module: Option<usize>,
        path: &str,
    ) -> Option<EntryId> {
        if let Some(id) = self.entry_of(variable) {
            let entry = self.variables[id.0].as_mut().expect("entry_of found it");
            if let (Some(module), Some(unplaced)) = (module, entry.module_of(variable)) {
                unplaced.get_or_insert(module);
            }
            return Some(id);
        }
        let descriptor = variable.descriptor.filter(|descriptor| descriptor.is_sound())?;
        let declaration = Declaration { variable, descriptor, module };
        let identity = descriptor.is_shared().then(|| Identity::of(descriptor));
        if let Some(identity) = &identity {
            if let Some(&id) = self.shared.get(identity) {
                let entry = self.variables[id.0].as_mut().expect("removed with its entry");
                let current = entry.bits();
                entry.others.push(declaration);
                Change::of_declaration(&declaration, current).commit();
                variable.entry.store(id.0 as u32 + 1, Ordering::Relaxed);
                return Some(id);
            }
            self.report_mismatch(identity, &declaration, path);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.variables.push(None);
            self.variables.len() - 1
        });
        self.variables[place] = Some(Entry {
            variable,
            descriptor,
            module,
            others: Vec::new(),
            groups: Vec::new(),
            updates: 0,
            stale: None,
            pending: None,
        });
        variable.entry.store(place as u32 + 1, Ordering::Relaxed);
        if let Some(identity) = identity {
            self.shared.insert(identity, EntryId(place));
        }
        Some(EntryId(place))
    }

    /// Says so where another module shares the name with another type.
    fn report_mismatch(&mut self, identity: &Identity, later: &Declaration, path: &str) {
        let Identity { name, type_name, .. } = identity;
        let first = self.shared.iter().find(|(other, _)| other.name == *name);
        let Some((other, earlier)) = first.and_then(|(one, id)| Some((one, self.entry(*id)?)))
        else {
            return;
        };
        let module = earlier.module.and_then(|place| self.module(place));
        let line = format!(
            "shared variable {name}: {path} declares it as {type_name} ({}), {} as {} ({}); the two \
             stay apart: declare both with one type",
            later.descriptor.place(),
            module.map_or("another module", |module| module.path.as_str()),
            other.type_name,
            earlier.descriptor.place(),
        );
        self.reports.push(line);
    }

    /// Registers a module and its variables, and groups its sites; changes no code. Tells where it
    /// is and what to report.
    pub(crate) fn add_module(
        &mut self,
        header: &'static Header,
        path: String,
        base: usize,
        tables: Tables,
        texts: &[KnownText],
    ) -> (usize, Vec<String>) {
        let place = self.modules.iter().position(Option::is_none).unwrap_or_else(|| {
            self.modules.push(None);
            self.modules.len() - 1
        });
        for record in tables.variables {
            // SAFETY: the tables are those of a module that is being loaded (R2).
            #[allow(unsafe_code)]
            if let Some(variable) = unsafe { record.variable() } {
                self.add_variable(variable, Some(place), &path);
            }
        }
        let order = self.group(place, &tables, &path);
        let groups = self.entries().flat_map(|(_, entry)| &entry.groups);
        let sites = groups.filter(|group| group.module == place).map(|group| group.count as usize);
        let sites = sites.sum();
        let texts = texts.iter().map(|text| (*text, self.patcher.add_text(*text))).collect();
        self.modules[place] =
            Some(Module { header, path, base, tables, texts, order, sites, folded: None });
        (place, mem::take(&mut self.reports))
    }

    /// Whether a module with these tables is registered. Several objects of C may hand over the one
    /// module that they are linked into.
    pub(crate) fn has_tables(&self, tables: &Tables) -> bool {
        self.modules().any(|(_, module)| module.tables.are(tables))
    }

    /// Groups the sites of a module by variable, by counting.
    fn group(&mut self, module: usize, tables: &Tables, path: &str) -> Box<[SiteIndex]> {
        // 1. How many sites each variable has.
        let mut next: Vec<u32> = vec![0; self.variables.len()];
        tables.each_site(|_, _, variable| {
            // Most are known: the module has declared them.
            let id = self.entry_of(variable).or_else(|| self.add_variable(variable, None, path));
            let Some(EntryId(place)) = id else { return };
            if next.len() <= place {
                next.resize(self.variables.len(), 0);
            }
            next[place] += 1;
        });
        // 2. Where each variable's run begins.
        let mut total = 0;
        let mut runs = Vec::new();
        for (place, count) in next.iter_mut().enumerate() {
            let first = total;
            total += *count;
            if *count > 0 {
                runs.push((place, Group { module, first, count: *count }));
            }
            *count = first;
        }
        // 3. The sites into their runs.
        let mut order = vec![SiteIndex::default(); total as usize].into_boxed_slice();
        tables.each_site(|index, _, variable| {
            if let Some(EntryId(place)) = self.entry_of(variable) {
                order[next[place] as usize] = index;
                next[place] += 1;
            }
        });
        // 4. Each run by address, once for each address: folded functions share their sites.
        for (place, mut group) in runs {
            let first = group.first as usize;
            let run = &mut order[first..first + group.count as usize];
            if !tables.ascends(run) {
                run.sort_by_key(|index| tables.code(*index));
                let mut kept = 1;
                for next in 1..run.len() {
                    if tables.code(run[next]) != tables.code(run[kept - 1]) {
                        run[kept] = run[next];
                        kept += 1;
                    }
                }
                group.count = kept as u32;
            }
            let entry = self.variables[place].as_mut().expect("counted above");
            entry.groups.push(group);
        }
        order
    }

    /// Remembers a module that is refused, until it is unmapped.
    pub(crate) fn refuse(&mut self, base: usize, header: &Header, why: String) {
        self.refused.push((base, std::ptr::from_ref(header).addr(), why));
    }

    /// Why the module at this load address was refused, if it was.
    pub(crate) fn refusal(&self, base: usize) -> Option<&str> {
        self.refused.iter().find(|(at, _, _)| *at == base).map(|(_, _, why)| why.as_str())
    }

    /// Forgets a module, before it is unmapped.
    pub(crate) fn remove_module(&mut self, header: &Header) {
        self.refused.retain(|(_, at, _)| *at != std::ptr::from_ref(header).addr());
        let found =
            self.modules().find(|(_, module)| std::ptr::eq(module.header, header)).map(|(p, _)| p);
        let Some(place) = found else { return };
        let module = self.modules[place].take().expect("found above");
        for (_, id) in &module.texts {
            self.patcher.remove_text(*id);
        }
        for (index, slot) in self.variables.iter_mut().enumerate() {
            if let Some(entry) = slot {
                entry.groups.retain(|group| group.module != place);
                entry.stale.take_if(|(module, _)| *module == place);
                let stays = entry.forget(place);
                if !stays || (entry.module.is_none() && entry.groups.is_empty()) {
                    *slot = None;
                    self.free.push(index);
                    if !stays {
                        self.shared.retain(|_, id| id.0 != index);
                    }
                }
            }
        }
    }

    /// Makes the sites of a module known to the trap handler, before its first change.
    ///
    /// # Errors
    ///
    /// [`Error::FoldedSites`] if `entry` has a site that another variable reads as well.
    pub(crate) fn prepare_texts(&mut self, id: EntryId) -> Result<(), Error> {
        let Some(entry) = self.entry(id) else { return Ok(()) };
        let places: Vec<usize> = entry.groups.iter().map(|group| group.module).collect();
        for place in places {
            let Some(module) = self.modules[place].as_mut() else { continue };
            if module.folded.is_none() {
                let (sites, folded) = module.sites_by_address();
                for (id, offsets) in sites {
                    self.patcher.set_sites(id, offsets);
                }
                module.folded = Some(folded);
            }
            let folded = module.folded.as_deref().unwrap_or_default();
            if folded.is_empty() {
                continue;
            }
            let module = self.module(place).expect("prepared above");
            for (address, pair) in module.folded.as_deref().unwrap_or_default() {
                let both = pair.map(|index| module.tables.variable(index));
                let ids = both.map(|variable| self.entry_of(variable?));
                if ids.contains(&Some(id)) && ids[0] != ids[1] {
                    let name = |variable: Option<Untyped<'_>>| {
                        let descriptor = variable.and_then(|variable| variable.descriptor);
                        descriptor.map_or("", Descriptor::name).to_string()
                    };
                    return Err(Error::FoldedSites {
                        address: *address,
                        variables: both.map(name),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Sorted offsets of the sites in each text.
type Offsets = Vec<(TextId, Box<[u32]>)>;

impl Module {
    /// All sites of the module, by text and address, and the instructions that two variables share.
    fn sites_by_address(&self) -> (Offsets, Vec<(usize, [SiteIndex; 2])>) {
        let mut all: Vec<(usize, SiteIndex)> = Vec::with_capacity(self.sites);
        self.tables.each_site(|index, record, _| all.push((record.code(), index)));
        all.sort_by_key(|(code, _)| *code);
        let mut folded = Vec::new();
        all.dedup_by(|(code, later), (kept, earlier)| {
            if code != kept {
                return false;
            }
            if self.tables.variable(*earlier) != self.tables.variable(*later) {
                folded.push((*code, [*earlier, *later]));
            }
            true
        });
        let offsets = self.texts.iter().map(|(text, id)| {
            let first = all.partition_point(|(code, _)| *code < text.start);
            let last = all.partition_point(|(code, _)| *code < text.end);
            let inside = all[first..last].iter().map(|(code, _)| (code - text.start) as u32);
            (*id, inside.collect())
        });
        (offsets.collect(), folded)
    }

    /// The text of this module that holds `address`; none if it lies outside.
    #[inline(never)]
    pub(crate) fn text_around(&self, address: usize) -> Range<usize> {
        let home = self.texts.iter().find(|(text, _)| (text.start..text.end).contains(&address));
        home.map_or(0..0, |(text, _)| text.start..text.end)
    }

    /// How many sites the module has.
    pub(crate) fn site_count(&self) -> usize {
        self.sites
    }
}

impl Entry {
    pub(crate) fn site_count(&self) -> usize {
        self.groups.iter().map(|group| group.count as usize).sum()
    }

    #[inline]
    fn is_declared_by(&self, variable: Untyped<'_>) -> bool {
        self.variable == variable || self.others.iter().any(|other| other.variable == variable)
    }

    /// The module of one of its declarations.
    fn module_of(&mut self, variable: Untyped<'_>) -> Option<&mut Option<usize>> {
        if self.variable == variable {
            return Some(&mut self.module);
        }
        let other = self.others.iter_mut().find(|other| other.variable == variable)?;
        Some(&mut other.module)
    }

    /// Forgets what a module declares; whether a declaration is left.
    fn forget(&mut self, module: usize) -> bool {
        self.others.retain(|other| other.module != Some(module));
        if self.module != Some(module) {
            return true;
        }
        if self.others.is_empty() {
            return false;
        }
        // The oldest of the others has the value as well.
        let first = self.others.remove(0);
        (self.variable, self.descriptor, self.module) =
            (first.variable, first.descriptor, first.module);
        true
    }

    /// Whether more than one declaration is this variable.
    pub(crate) fn is_shared_now(&self) -> bool {
        !self.others.is_empty()
    }

    /// Gives all of its declarations a value; changes no code.
    pub(crate) fn store(&self, bits: u128) {
        self.declarations().for_each(|one| Change::of_declaration(&one, bits).commit());
    }

    /// All of its declarations.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = Declaration> {
        let first = Declaration {
            variable: self.variable,
            descriptor: self.descriptor,
            module: self.module,
        };
        std::iter::once(first).chain(self.others.iter().copied())
    }

    /// The value that the variable has.
    pub(crate) fn bits(&self) -> u128 {
        let (size, is_pointer) = (self.descriptor.size(), self.descriptor.is_pointer());
        self.variable.backing(size, is_pointer).load()
    }
}
