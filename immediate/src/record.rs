//! The tables that every module carries: what the templates of the sites wrote into it.
//!
//! All references are self-relative 32-bit distances, so that a table needs no relocation. A
//! variable is referred to by a slot in the module's global offset table; the slot's alignment
//! leaves two bits free, which hold the kind of the site.
//!
//! # Invariants
//!
//! * `R1` A [`Header`] is written by the templates in `immediate-arch` or by `include/immediate.h`;
//!   it lies in its module's read-only data. That its bounds enclose tables of that module, and that
//!   their records refer to it, is looked at when the module registers ([`Header::tables`]).
//! * `R2` Records are immutable and live as long as their module is loaded.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::Range;

use immediate_arch::KnownText;

use crate::comparison::{Operator, compare};
use crate::descriptor::Descriptor;
use crate::variable::{Head, Untyped};

/// Version of the layout below, as the templates write it.
const LAYOUT: u32 = 1;

/// What a module hands to the runtime.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    layout: u32,
    /// Bytes of the header that follow the layout's number.
    size: u32,
    bounds: [[i32; 2]; 4],
}

/// A variable that the module declares.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct VariableRecord {
    variable: i32,
}

/// A value site, or a branch site that reads a `bool`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SiteRecord {
    code: i32,
    variable: i32,
    target: i32,
}

/// A branch site that compares with a constant.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ComparisonRecord {
    site: SiteRecord,
    operator: u32,
    constant: [u32; 2],
}

/// A branch site with a test of its own.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TestRecord {
    site: SiteRecord,
    test: i32,
}

/// The address that lies `distance` bytes from `field`.
fn resolve(field: &i32) -> usize {
    std::ptr::from_ref(field).addr().wrapping_add_signed(*field as isize)
}

impl VariableRecord {
    /// The variable, or `None` for the record of zeros that begins every table.
    ///
    /// # Safety
    ///
    /// The record is in a module's table (R2).
    pub(crate) unsafe fn variable(&self) -> Option<Untyped<'static>> {
        // SAFETY: by the caller.
        unsafe { variable(&self.variable) }
    }
}

/// # Safety
///
/// `field` is the variable reference of a record in a module's table.
unsafe fn variable(field: &i32) -> Option<Untyped<'static>> {
    if *field == 0 {
        return None;
    }
    let slot = (resolve(field) & !3) as *const *const Head;
    // SAFETY: R1; the slot is filled before constructors run, with the address of a variable that is
    // a `static` and lives as long as this module (invariant I2 of `variable`).
    unsafe { Untyped::from_address(*slot) }
}

impl SiteRecord {
    pub(crate) fn code(&self) -> usize {
        resolve(&self.code)
    }

    /// # Safety
    ///
    /// The record is in a module's table (R2).
    pub(crate) unsafe fn variable(&self) -> Option<Untyped<'static>> {
        // SAFETY: by the caller.
        unsafe { variable(&self.variable) }
    }

    fn target(&self) -> usize {
        resolve(&self.target)
    }

    /// The low bits of the variable reference, which lie in the low bits of the distance because the
    /// field and the slot it refers to are aligned: one of the constants below.
    #[inline]
    fn kind(&self) -> u32 {
        self.variable.cast_unsigned() & 3
    }
}

/// A value site.
const VALUE: u32 = 0;
/// A branch that is taken when the outcome of its test is true.
const TAKEN_ON_TRUE: u32 = 1;
/// A branch that is taken when it is false.
const TAKEN_ON_FALSE: u32 = 2;

/// What decides whether a branch site is taken.
#[derive(Clone, Copy)]
pub(crate) enum Test {
    /// The variable, a `bool`.
    Plain,
    /// A comparison with a constant, given by its bits.
    Comparison(Operator, u64),
    /// A function of the bits.
    Function(extern "C" fn(u64) -> bool),
}

/// A site, with its references resolved.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    /// Address of the instruction.
    pub(crate) code: usize,
    pub(crate) form: Form,
}

/// The two forms of sites.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Gives the value.
    Value,
    /// Goes to `target` when the outcome of its test is `taken_on`.
    Branch { target: usize, taken_on: bool, test: Test },
}

/// A branch site of a `bool`, with its references resolved: goes to `target` when the `bool` is
/// `taken_on`.
pub(crate) struct Branch {
    pub(crate) code: usize,
    pub(crate) target: usize,
    pub(crate) taken_on: bool,
}

impl Test {
    /// Its outcome when the variable has these bits.
    pub(crate) fn outcome(self, descriptor: &Descriptor, bits: u64) -> bool {
        match self {
            Test::Plain => bits != 0,
            Test::Comparison(operator, constant) => {
                compare(descriptor.kind(), descriptor.size(), bits, operator, constant)
            }
            Test::Function(test) => test(bits),
        }
    }
}

/// The tables of one module.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    pub(crate) variables: &'static [VariableRecord],
    sites: &'static [SiteRecord],
    comparisons: &'static [ComparisonRecord],
    tests: &'static [TestRecord],
}

/// What is wrong with a module's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Layout { found: u32 },
    Table { name: &'static str, bytes: usize, record: usize },
    Outside { name: &'static str, index: usize, what: &'static str },
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Layout { found } => {
                write!(out, "its records have layout {found}, this runtime reads layout {LAYOUT}")
            }
            Broken::Table { name, bytes, record } => write!(
                out,
                "its table of {name} has {} bytes, which is no whole number of records of \
                 {record} bytes at their alignment inside the module",
                bytes.cast_signed()
            ),
            Broken::Outside { name, index, what } => {
                write!(out, "record {index} of its table of {name} has {what} outside the module")
            }
        }
    }
}

impl Header {
    /// The tables between the bounds, whose records stay inside the module: `loaded` are its
    /// segments, `texts` those with code.
    pub(crate) fn tables(
        &'static self,
        loaded: &[Range<usize>],
        texts: &[KnownText],
    ) -> Result<Tables, Broken> {
        if self.layout != LAYOUT || self.size as usize != size_of::<Header>() - 4 {
            return Err(Broken::Layout { found: self.layout });
        }
        let [variables, sites, comparisons, tests] = &self.bounds;
        let tables = Tables {
            variables: table(variables, "variables", loaded)?,
            sites: table(sites, "sites", loaded)?,
            comparisons: table(comparisons, "comparisons", loaded)?,
            tests: table(tests, "tests", loaded)?,
        };
        tables.check(loaded, texts)?;
        Ok(tables)
    }
}

/// The only place where section bounds become a slice.
fn table<R>(
    [start, end]: &'static [i32; 2],
    name: &'static str,
    loaded: &[Range<usize>],
) -> Result<&'static [R], Broken> {
    let (start, end) = (resolve(start), resolve(end));
    let record = size_of::<R>();
    let bytes = end.wrapping_sub(start);
    let is_inside = loaded.iter().any(|segment| segment.start <= start && end <= segment.end);
    let is_whole = bytes.is_multiple_of(record) && start.is_multiple_of(align_of::<R>());
    if end < start || !is_inside || !is_whole {
        return Err(Broken::Table { name, bytes, record });
    }
    // SAFETY: R1, R2; any bytes are valid in the fields of a record.
    Ok(unsafe { std::slice::from_raw_parts(start as *const R, bytes / record) })
}

/// Names a site inside a module: its table in the upper bits, its index below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteIndex(u32);

impl SiteIndex {
    /// The name of its table and its index there.
    fn place(self) -> (&'static str, usize) {
        let name = ["sites", "comparisons", "tests", ""][(self.0 >> TABLE_SHIFT) as usize];
        (name, (self.0 & INDEX_MASK) as usize)
    }
}

const TABLE_SHIFT: u32 = 30;
const INDEX_MASK: u32 = (1 << TABLE_SHIFT) - 1;

impl Tables {
    /// Whether these are the same tables.
    pub(crate) fn are(&self, other: &Tables) -> bool {
        self.variables.as_ptr() == other.variables.as_ptr()
    }

    /// Looks whether every record refers to its own module, so that following it is sound.
    fn check(&self, loaded: &[Range<usize>], texts: &[KnownText]) -> Result<(), Broken> {
        // Most often all of them are in one segment.
        let mut segment = 0..0;
        let mut is_slot = |field: &i32| {
            let slot = resolve(field) & !3;
            let end = slot.wrapping_add(size_of::<usize>());
            let is_in = |one: &Range<usize>| one.start <= slot && slot < end && end <= one.end;
            if !is_in(&segment) {
                segment = loaded.iter().find(|one| is_in(one)).cloned().unwrap_or(0..0);
            }
            slot.is_multiple_of(align_of::<usize>()) && is_in(&segment)
        };
        let outside = |name, index, what| Err(Broken::Outside { name, index, what });
        for (index, record) in self.variables.iter().enumerate() {
            if record.variable != 0 && !is_slot(&record.variable) {
                return outside("variables", index, "its variable");
            }
        }
        // Most often all of them are in one text.
        let mut text = KnownText { start: 0, end: 0 };
        let mut is_code = |address: usize| {
            if !(text.start..text.end).contains(&address) {
                let home = texts.iter().find(|one| (one.start..one.end).contains(&address));
                text = *home.unwrap_or(&text);
            }
            (text.start..text.end).contains(&address)
        };
        let mut broken = None;
        self.each_record(|index, record| {
            let what = if record.variable == 0 {
                return;
            } else if !is_slot(&record.variable) {
                "its variable"
            } else if !is_code(record.code()) {
                "its code"
            } else if record.kind() != VALUE && !is_code(record.target()) {
                "its target"
            } else if Self::is_test(index) && !is_code(self.test_address(index)) {
                "its test"
            } else {
                return;
            };
            broken.get_or_insert((index, what));
        });
        let Some((index, what)) = broken else { return Ok(()) };
        let (name, place) = index.place();
        outside(name, place, what)
    }

    /// The function of a site that has a test of its own.
    fn test_address(&self, index: SiteIndex) -> usize {
        resolve(&self.tests[(index.0 & INDEX_MASK) as usize].test)
    }

    /// Whether the codes of these sites ascend.
    pub(crate) fn ascends(&self, run: &[SiteIndex]) -> bool {
        if run.iter().all(|index| (index.0 as usize) < self.sites.len()) {
            // Of the plain table, as most are.
            let code = |index: &SiteIndex| self.sites[index.0 as usize].code();
            return run.is_sorted_by(|a, b| code(a) < code(b));
        }
        run.is_sorted_by(|a, b| self.code(*a) < self.code(*b))
    }

    /// Visits the site records of all tables, in order. A loop for each table: a chain of iterators
    /// costs a call a record.
    #[inline(always)]
    fn each_record(&self, mut visit: impl FnMut(SiteIndex, &'static SiteRecord)) {
        let number = |table: u32, index: usize| SiteIndex(table << TABLE_SHIFT | index as u32);
        for (index, record) in self.sites.iter().enumerate() {
            visit(number(0, index), record);
        }
        for (index, record) in self.comparisons.iter().enumerate() {
            visit(number(1, index), &record.site);
        }
        for (index, record) in self.tests.iter().enumerate() {
            visit(number(2, index), &record.site);
        }
    }

    /// Visits every site with its variable.
    #[inline(always)]
    pub(crate) fn each_site(
        &self,
        mut visit: impl FnMut(SiteIndex, &'static SiteRecord, Untyped<'static>),
    ) {
        self.each_record(|index, record| {
            // SAFETY: R2.
            if let Some(variable) = unsafe { record.variable() } {
                visit(index, record, variable);
            }
        });
    }

    #[inline]
    fn record(&self, index: SiteIndex) -> &'static SiteRecord {
        let place = (index.0 & INDEX_MASK) as usize;
        match index.0 >> TABLE_SHIFT {
            0 => &self.sites[place],
            1 => &self.comparisons[place].site,
            _ => &self.tests[place].site,
        }
    }

    /// Address of the site's instruction.
    pub(crate) fn code(&self, index: SiteIndex) -> usize {
        self.record(index).code()
    }

    /// The variable that the site reads.
    pub(crate) fn variable(&self, index: SiteIndex) -> Option<Untyped<'static>> {
        // SAFETY: R2.
        unsafe { self.record(index).variable() }
    }

    /// Whether the site has a test of its own.
    pub(crate) fn is_test(index: SiteIndex) -> bool {
        index.0 >> TABLE_SHIFT == 2
    }

    /// A branch site of a `bool`, resolved; `None` for all others.
    #[inline]
    pub(crate) fn plain_branch(&self, index: SiteIndex) -> Option<Branch> {
        // The indices of the other tables lie behind.
        let record = self.sites.get(index.0 as usize)?;
        let taken_on = match record.kind() {
            TAKEN_ON_TRUE => true,
            TAKEN_ON_FALSE => false,
            _ => return None,
        };
        Some(Branch { code: record.code(), target: record.target(), taken_on })
    }

    /// The site, resolved; `None` for what no template writes.
    pub(crate) fn site(&self, index: SiteIndex) -> Option<Site> {
        let record = self.record(index);
        let form = match record.kind() {
            VALUE => Form::Value,
            kind @ (TAKEN_ON_TRUE | TAKEN_ON_FALSE) => Form::Branch {
                target: record.target(),
                taken_on: kind == TAKEN_ON_TRUE,
                test: self.test(index)?,
            },
            _ => return None,
        };
        Some(Site { code: record.code(), form })
    }

    fn test(&self, index: SiteIndex) -> Option<Test> {
        let place = (index.0 & INDEX_MASK) as usize;
        Some(match index.0 >> TABLE_SHIFT {
            0 => Test::Plain,
            1 => {
                let ComparisonRecord { operator, constant, .. } = &self.comparisons[place];
                // SAFETY: eight bytes that are one number in the target's byte order.
                let constant = unsafe { std::mem::transmute::<[u32; 2], u64>(*constant) };
                Test::Comparison(Operator::from_number(*operator)?, constant)
            }
            _ => {
                let address = self.test_address(index) as *const ();
                // SAFETY: R1; the template refers to a function of this type.
                Test::Function(unsafe {
                    std::mem::transmute::<*const (), extern "C" fn(u64) -> bool>(address)
                })
            }
        })
    }
}
