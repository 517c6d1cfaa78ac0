//! `arena log index`: an SQLite file of a log's matches and turns, for queries.
//!
//! It can be made again from the log at any time, and nothing that judges reads it. The file
//! takes its name only once it is whole.

use std::fs;
use std::path::Path;

use arena_core::hexadecimal::hex;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql, Transaction};

use crate::cli::log::IndexArgs;
use crate::commands::log_export::{Subject, played};
use crate::error::{CliError, Complaint};
use crate::matches::Matches;
use crate::outputs;
use crate::render::rows::{Column, Kind, Value};
use crate::render::transcript::count;
use crate::screen;

/// Builds the file.
///
/// # Errors
/// The log is damaged, or the file cannot be written.
pub fn run(args: &IndexArgs) -> Result<(), CliError> {
    let mut matches = Matches::open(&args.log)?;
    let new = outputs::beside(&args.out);
    let fails = |error: &dyn std::fmt::Display| {
        let failed = format!("cannot write the index `{}`", args.out.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    match fs::remove_file(&new) {
        // What an earlier run left when it was killed was never finished.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fails(&error)),
        _ => {}
    }
    let built = build(&new, &mut matches);
    let counts = match built {
        Ok(counts) => counts,
        Err(Failure::Log(error)) => return Err(error),
        Err(Failure::Sql(error)) => return Err(fails(&error)),
    };
    outputs::name(&new, &args.out)?;
    let [matches, turns] = counts;
    screen::results(&format!(
        "{out}: {matches}, {turns}\nnext: sqlite3 {out} \
         'SELECT buyer, seller, avg(buyer_reward) FROM matches GROUP BY 1, 2'\n",
        out = args.out.display(),
        matches = count(matches, "match"),
        turns = count(turns, "turn"),
    ))
}

/// Why there is no index.
enum Failure {
    Log(CliError),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sql(error)
    }
}

/// Fills a new file and returns how many matches and turns are in it.
fn build(path: &Path, matches: &mut Matches) -> Result<[u64; 2], Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = Connection::open_with_flags(path, flags)?;
    // A file that is not whole is thrown away, so it needs no journal.
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    let transaction = connection.transaction()?;
    create(&transaction)?;
    write_agents(&transaction, matches)?;
    let counts = write_rows(&transaction, matches)?;
    transaction.execute_batch(
        "CREATE INDEX matches_by_agents ON matches (buyer, seller);
         CREATE INDEX turns_by_match ON turns (entry_index, turn_index);",
    )?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(counts)
}

fn create(transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    for (table, subject) in [("matches", Subject::Matches), ("turns", Subject::Turns)] {
        let columns: Vec<String> = subject.columns().iter().map(definition).collect();
        let columns = columns.join(", ");
        transaction.execute_batch(&format!("CREATE TABLE {table} ({columns}) STRICT;"))?;
    }
    transaction.execute_batch(
        "CREATE TABLE agents (agent INTEGER PRIMARY KEY, name TEXT NOT NULL,
                              component_sha256 TEXT NOT NULL, params TEXT NOT NULL) STRICT;",
    )
}

fn definition(column: &Column) -> String {
    let kind = match column.kind {
        Kind::Number | Kind::Flag => "INTEGER",
        Kind::Real => "REAL",
        Kind::Text => "TEXT",
    };
    format!("\"{}\" {kind}", column.name)
}

fn write_agents(transaction: &Transaction<'_>, matches: &Matches) -> Result<(), rusqlite::Error> {
    let mut insert = transaction.prepare("INSERT INTO agents VALUES (?, ?, ?, ?)")?;
    for (place, agent) in (0_i64..).zip(&matches.announcement.agents) {
        let component = hex(&agent.component_sha256);
        insert.execute((place, &agent.name, component, &agent.params))?;
    }
    Ok(())
}

fn write_rows(transaction: &Transaction<'_>, matches: &mut Matches) -> Result<[u64; 2], Failure> {
    let subjects = [(Subject::Matches, "matches"), (Subject::Turns, "turns")];
    let mut inserts = Vec::new();
    for (subject, table) in subjects {
        let places = vec!["?"; subject.columns().len()].join(", ");
        let insert = transaction.prepare(&format!("INSERT INTO {table} VALUES ({places})"))?;
        inserts.push((subject, insert));
    }
    let mut counts = [0; 2];
    while let Some(found) = matches.next_match().map_err(Failure::Log)? {
        let played = played(matches, &found);
        for ((subject, insert), count) in inserts.iter_mut().zip(&mut counts) {
            subject.rows(&played, &mut |row| {
                *count += 1;
                write_row(insert, row)
            })?;
        }
    }
    Ok(counts)
}

fn write_row(insert: &mut Statement<'_>, row: &[Value<'_>]) -> Result<(), rusqlite::Error> {
    let cells = row.iter().map(Cell);
    insert.execute(rusqlite::params_from_iter(cells)).map(drop)
}

/// A value on its way into the index.
struct Cell<'a>(&'a Value<'a>);

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Owned(SqlValue::Null),
            Value::Number(number) => match i64::try_from(*number) {
                Ok(number) => ToSqlOutput::Owned(SqlValue::Integer(number)),
                Err(error) => return Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
            },
            Value::Real(number) => ToSqlOutput::Owned(SqlValue::Real(*number)),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Flag(flag) => ToSqlOutput::Owned(SqlValue::Integer(i64::from(*flag))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_sql_cannot_hold_is_an_error_and_not_another_number() {
        let (most, more) = (Value::Number(i64::MAX as u64), Value::Number(i64::MAX as u64 + 1));
        assert!(Cell(&most).to_sql().is_ok());
        assert!(Cell(&more).to_sql().is_err());
    }

    #[test]
    fn every_table_can_be_created() {
        let mut connection = Connection::open_in_memory().expect("a database");
        let transaction = connection.transaction().expect("a transaction");
        create(&transaction).expect("sound definitions");
        let tables: i64 = transaction
            .query_row("SELECT count(*) FROM pragma_table_list WHERE strict = 1", [], |row| {
                row.get(0)
            })
            .expect("a count");
        assert_eq!(tables, 3);
    }
}
