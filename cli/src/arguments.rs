//! What the command takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Lists and sets the immediate values of running programs.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "A program is found when it calls immediate::control::serve(). Values are written \
                  as `list` shows them.\n\n\
                  Exit status: 0 done; 1 the program refused, `watch` lost it, `inspect` found \
                  faults or differences; 2 wrong arguments, an unknown name, a value or a file \
                  that cannot be used; 3 no such program."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which program.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The program: its process id, or the name of its file. Not needed when only one serves.
    #[arg(short, long, global = true, value_name = "PID|NAME")]
    pub(crate) program: Option<String>,
    /// The path of the program's socket.
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "program")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show programs and their variables.
    List {
        /// Which variables: `*` stands for any text, `?` for one character.
        patterns: Vec<String>,
        /// Show programs only.
        #[arg(long, conflicts_with = "patterns")]
        programs: bool,
        /// Show all that is known of each variable.
        #[arg(short, long)]
        long: bool,
    },
    /// Print values.
    Get {
        /// The variables' names.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Set variables, all at one instant or none.
    Set {
        /// Names and values.
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
        assignments: Vec<(String, String)>,
        /// Bring the old values back after this time, as in `30s`, also if this command is gone.
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        time: Option<Duration>,
    },
    /// Print a line whenever a variable changes.
    Watch {
        /// Which variables.
        patterns: Vec<String>,
        /// How often to look.
        #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
        every: Duration,
        /// End after so many changes.
        #[arg(long, value_name = "NUMBER")]
        count: Option<usize>,
    },
    /// Show how a set is carried out, and what it cost.
    Status,
    /// Show live values on the whole terminal; set them by keys.
    Top {
        /// Which variables.
        patterns: Vec<String>,
        /// How often to look.
        #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
        every: Duration,
    },
    /// Show the variables and sites in a file: a program, a library, for any target.
    Inspect {
        /// The file.
        file: PathBuf,
        /// Check that each site is what its record says, and that no record and no site is left out.
        #[arg(long)]
        verify: bool,
        /// Compare with a running process: which sites differ from the file, and why.
        #[arg(long, value_name = "PID", conflicts_with = "verify")]
        diff: Option<u32>,
    },
    /// Print a script that completes this command's arguments in a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name is missing before `=`".into()),
        Some((name, value)) => Ok((name.to_string(), value.to_string())),
        None => Err("write NAME=VALUE".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        Ok(_) => Err("give one millisecond or more".into()),
        Err(error) => Err(format!("{error}; write it as in 30s, 500ms, 1h 30m")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_whole() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn assignments_split_at_the_first_sign() {
        assert_eq!(assignment("a::B=x=y"), Ok(("a::B".into(), "x=y".into())));
        assert_eq!(assignment("a::B="), Ok(("a::B".into(), String::new())));
        assert!(assignment("a::B").is_err());
        assert!(assignment("=1").is_err());
    }

    #[test]
    fn times() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        for bad in ["", "30", "0s", "-1s", "1ns", "soon"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
