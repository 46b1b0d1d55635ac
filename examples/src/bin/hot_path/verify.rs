//! Whether what was counted is right: equal to what the code counts whose switches are compiled
//! out, and, for what a switch adds, to what the code counts in which it is compiled in.

use crate::compiled::{CompiledIn, CompiledOut};
use crate::scan::{Counts, PART_NAMES, PARTS, scan};
use crate::switches::State;

/// What a scan of one piece of text must count.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) off: Counts,
    on: Counts,
}

impl Expected {
    pub(crate) fn of(piece: &[u8]) -> Expected {
        Expected { off: scan::<CompiledOut, 0>(piece), on: scan::<CompiledIn, 0>(piece) }
    }

    /// Compares counts with what is expected: exactly, if the switches were in one state from
    /// before the scan until after it; else what no switch changes exactly, and the rest within the
    /// bounds of off and on.
    ///
    /// # Errors
    ///
    /// What was counted and what would have been right.
    pub(crate) fn check(&self, counts: &Counts, state: Option<&State>) -> Result<(), String> {
        let (found, off, on) = (&counts.totals, &self.off.totals, &self.on.totals);
        equal("lines", found.lines, off.lines)?;
        equal("words", found.words, off.words)?;
        equal("bytes", found.bytes, off.bytes)?;
        equal("words in the table", found.matches, off.matches)?;
        let by_table = counts.profile.by_table;
        equal("lines by either table", by_table[0] + by_table[1], off.lines)?;
        let Some(state) = state else {
            between("long lines", found.long, on.long, off.long)?;
            for (part, name) in PART_NAMES.iter().enumerate() {
                let bounds = counts.profile.parts[part].iter().zip(self.on.profile.parts[part]);
                for (found, most) in bounds {
                    between(name, (*found).into(), 0, most.into())?;
                }
            }
            return Ok(());
        };
        equal("long lines", found.long, if state.is_limit_high { on.long } else { off.long })?;
        let by_this = by_table[usize::from(state.is_table_second)];
        equal("lines by the table in use", by_this, off.lines)?;
        for (part, is_on) in state.parts().into_iter().enumerate() {
            let expected = if is_on { &self.on } else { &self.off };
            for (found, right) in
                counts.profile.parts[part].iter().zip(expected.profile.parts[part])
            {
                equal(PART_NAMES[part], (*found).into(), right.into())?;
            }
        }
        Ok(())
    }
}

impl State {
    /// Which parts of the profile are on.
    fn parts(&self) -> [bool; PARTS] {
        [
            self.lines,
            self.words,
            self.matches,
            self.capitals,
            self.verbosity >= 1,
            self.verbosity >= 2,
            self.verbosity & 4 != 0,
        ]
    }
}

fn equal(what: &str, found: u64, right: u64) -> Result<(), String> {
    if found == right { Ok(()) } else { Err(format!("counted {found} {what}, right is {right}")) }
}

fn between(what: &str, found: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(format!("counted {found} {what}, right is {least} to {most}"))
    }
}
