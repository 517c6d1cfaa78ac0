//! `arena log export`: the matches or turns of a log as rows, for other programs.
//!
//! Rows are written as they are read; memory does not grow with the log.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::cli::log::ExportArgs;
use crate::error::{CliError, Complaint};
use crate::matches::{Found, Matches};
use crate::outputs::{Output, Readers};
use crate::render::rows::{self, Column, Match, Value};
use crate::render::transcript::count;
use crate::screen;

/// What one row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A match.
    Matches,
    /// A turn.
    Turns,
}

impl Subject {
    /// Returns the columns of its rows.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Subject::Matches => rows::MATCHES,
            Subject::Turns => rows::TURNS,
        }
    }

    /// Hands over the rows of one match, in order.
    ///
    /// # Errors
    /// Whatever `take` answers.
    pub fn rows<E>(
        self,
        played: &Match<'_>,
        take: &mut dyn FnMut(&[Value<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Subject::Matches => take(&rows::match_row(played)),
            Subject::Turns => {
                let turns = played.record.iter().flat_map(|record| record.turns.iter().enumerate());
                let mut turns = turns.map(|(index, turn)| rows::turn_row(played, index, turn));
                turns.try_for_each(|row| take(&row))
            }
        }
    }
}

/// Writes the rows.
///
/// # Errors
/// The log is damaged, transcripts are withheld where they are needed, or the rows cannot be
/// written.
pub fn run(args: &ExportArgs) -> Result<(), CliError> {
    let mut matches = Matches::open(&args.log)?;
    let subject = if args.turns { Subject::Turns } else { Subject::Matches };
    if subject == Subject::Turns && matches.is_withheld() {
        return Err(withheld(&args.log));
    }
    if args.parquet {
        return write_parquet(args, &mut matches, subject);
    }
    let style = if args.csv { Style::Csv } else { Style::JsonLines };
    match &args.out {
        Some(path) => {
            let mut output = Output::begin(path, Readers::Anyone)?;
            let rows = write(&mut matches, subject, style, &mut output, &|error| {
                let failed = format!("cannot write `{}`", path.display());
                CliError::Infrastructure(Complaint::new(failed, error))
            })?;
            output.finish()?;
            screen::remark(&format!("{}: {}", path.display(), count(rows, "row")));
            Ok(())
        }
        None => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            let fails = |error: &io::Error| CliError::from_stdout(error);
            write(&mut matches, subject, style, &mut stdout, &fails)?;
            stdout.flush().map_err(|error| CliError::from_stdout(&error))
        }
    }
}

/// How a row becomes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Csv,
    JsonLines,
}

/// Writes every row as a line and returns how many there were.
fn write(
    matches: &mut Matches,
    subject: Subject,
    style: Style,
    output: &mut dyn Write,
    fails: &dyn Fn(&io::Error) -> CliError,
) -> Result<u64, CliError> {
    let columns = subject.columns();
    if style == Style::Csv {
        let head = rows::csv_head(columns);
        output.write_all(head.as_bytes()).map_err(|error| fails(&error))?;
    }
    let mut rows = 0;
    while let Some(found) = matches.next_match()? {
        let played = played(matches, &found);
        let mut take = |row: &[Value<'_>]| {
            let line = match style {
                Style::Csv => rows::csv_line(row),
                Style::JsonLines => rows::json_line(columns, row),
            };
            rows += 1;
            output.write_all(line.as_bytes())
        };
        subject.rows(&played, &mut take).map_err(|error| fails(&error))?;
    }
    Ok(rows)
}

/// Puts a match together as rows need it.
pub fn played<'a>(matches: &'a Matches, found: &'a Found) -> Match<'a> {
    Match {
        entry_index: found.entry_index,
        entry: &found.entry,
        names: matches.names(found),
        record: found.record.as_ref(),
    }
}

fn withheld(log: &Path) -> CliError {
    let failed = format!("cannot export the turns of `{}`", log.display());
    let fact = "transcripts are withheld until the log is closed";
    let hint = "`--matches` exports what is public so far";
    CliError::Input(Complaint::new(failed, fact).hint(hint))
}

#[cfg(feature = "parquet")]
fn write_parquet(
    args: &ExportArgs,
    matches: &mut Matches,
    subject: Subject,
) -> Result<(), CliError> {
    let path = args.out.as_deref().expect("the command line asks for a file");
    let rows = crate::render::parquet::write(matches, subject, path)?;
    screen::remark(&format!("{}: {}", path.display(), count(rows, "row")));
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn write_parquet(_: &ExportArgs, _: &mut Matches, _: Subject) -> Result<(), CliError> {
    let fact = "this program was built without the feature `parquet`";
    let hint = "build it with `cargo build --features parquet`, or use `--csv`";
    Err(CliError::Config(Complaint::new("cannot write Parquet", fact).hint(hint)))
}
