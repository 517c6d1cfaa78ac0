//! Rows as an Apache Parquet file.
//!
//! One row group holds a bounded number of rows, so that memory does not grow with the log.
//! Numbers are unsigned 64-bit integers, and every column may be missing a value.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::commands::log_export::{Subject, played};
use crate::error::{CliError, Complaint};
use crate::matches::Matches;
use crate::outputs::{Output, Readers};
use crate::render::rows::{Column, Kind, Value};

/// Rows that are kept until they are written together.
const GROUP_ROWS: usize = 1 << 16;

/// Writes the rows of a log, and returns how many there are.
///
/// # Errors
/// The log is damaged, or the file cannot be written.
pub fn write(matches: &mut Matches, subject: Subject, path: &Path) -> Result<u64, CliError> {
    let fails = |error: &ParquetError| {
        let failed = format!("cannot write `{}`", path.display());
        CliError::Infrastructure(Complaint::new(failed, error))
    };
    let mut output = Output::begin(path, Readers::Anyone)?;
    let mut file = File::begin(subject.columns(), &mut output).map_err(|error| fails(&error))?;
    while let Some(found) = matches.next_match()? {
        let played = played(matches, &found);
        let taken = subject.rows(&played, &mut |row| file.add(row));
        taken.map_err(|error| fails(&error))?;
    }
    let rows = file.finish().map_err(|error| fails(&error))?;
    output.finish()?;
    Ok(rows)
}

/// A file under way.
struct File<'a> {
    writer: SerializedFileWriter<&'a mut Output>,
    columns: Vec<Gathered>,
    rows_waiting: usize,
    rows: u64,
}

impl<'a> File<'a> {
    fn begin(columns: &[Column], output: &'a mut Output) -> Result<File<'a>, ParquetError> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(output, schema(columns)?, Arc::new(properties))?;
        let columns = columns.iter().map(|column| Gathered::new(column.kind)).collect();
        Ok(File { writer, columns, rows_waiting: 0, rows: 0 })
    }

    fn add(&mut self, row: &[Value<'_>]) -> Result<(), ParquetError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.add(value);
        }
        self.rows_waiting += 1;
        self.rows += 1;
        if self.rows_waiting == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        self.rows_waiting = 0;
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close().map(drop)
    }

    fn finish(mut self) -> Result<u64, ParquetError> {
        if self.rows_waiting > 0 {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(self.rows)
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, ParquetError> = columns.iter().map(field).collect();
    Ok(Arc::new(Type::group_type_builder("row").with_fields(fields?).build()?))
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let unsigned = LogicalType::integer(64, false);
    let (physical, logical) = match column.kind {
        Kind::Number => (Physical::INT64, Some(unsigned)),
        Kind::Real => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

/// The values of one column that are not yet written, and for each row whether it has one.
struct Gathered {
    values: Values,
    levels: Vec<i16>,
}

enum Values {
    Numbers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl Gathered {
    fn new(kind: Kind) -> Gathered {
        let values = match kind {
            Kind::Number => Values::Numbers(Vec::new()),
            Kind::Real => Values::Reals(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
        };
        Gathered { values, levels: Vec::new() }
    }

    fn add(&mut self, value: &Value<'_>) {
        self.levels.push(i16::from(*value != Value::Null));
        match (&mut self.values, value) {
            (_, Value::Null) => {}
            // The column is marked as unsigned, which keeps the bits as they are.
            (Values::Numbers(values), Value::Number(number)) => values.push(*number as i64),
            (Values::Reals(values), Value::Real(number)) => values.push(*number),
            (Values::Texts(values), Value::Text(text)) => values.push(text.as_bytes().into()),
            (Values::Flags(values), Value::Flag(flag)) => values.push(*flag),
            _ => panic!("a value is of its column's kind"),
        }
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, &mut Output>,
    ) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        let mut column = group.next_column()?.expect("a group has as many columns as its schema");
        let levels = Some(levels.as_slice());
        match (&mut self.values, column.untyped()) {
            (Values::Numbers(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(&std::mem::take(values), levels, None)?;
            }
            (Values::Reals(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(&std::mem::take(values), levels, None)?;
            }
            (Values::Texts(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(&std::mem::take(values), levels, None)?;
            }
            (Values::Flags(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(&std::mem::take(values), levels, None)?;
            }
            _ => panic!("a column has the type of its schema"),
        }
        column.close()
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    const COLUMNS: &[Column] = &[
        Column { name: "number", kind: Kind::Number },
        Column { name: "real", kind: Kind::Real },
        Column { name: "text", kind: Kind::Text },
        Column { name: "flag", kind: Kind::Flag },
    ];

    /// Writes rows and returns what another reader of the format finds in the file.
    fn written(rows: &[[Value<'_>; 4]]) -> Vec<Vec<Field>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rows.parquet");
        let mut output = Output::begin(&path, Readers::Anyone).expect("a file");
        let mut file = File::begin(COLUMNS, &mut output).expect("a schema");
        rows.iter().try_for_each(|row| file.add(row)).expect("rows of these columns");
        assert_eq!(file.finish().expect("a whole file"), rows.len() as u64);
        output.finish().expect("a file of this name");
        let file = std::fs::File::open(&path).expect("the file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let found = reader.get_row_iter(None).expect("rows");
        let fields = found.map(|row| {
            let row = row.expect("a row");
            row.get_column_iter().map(|(_, field)| field.clone()).collect()
        });
        fields.collect()
    }

    #[test]
    fn every_kind_of_value_and_every_missing_one_is_read_back() {
        let full = [
            Value::Number(u64::MAX),
            Value::Real(-0.5),
            Value::Text("a\n\"".into()),
            Value::Flag(true),
        ];
        let empty = [Value::Null, Value::Null, Value::Null, Value::Null];
        assert_eq!(
            written(&[full, empty]),
            [
                vec![
                    Field::ULong(u64::MAX),
                    Field::Double(-0.5),
                    Field::Str("a\n\"".to_owned()),
                    Field::Bool(true),
                ],
                vec![Field::Null, Field::Null, Field::Null, Field::Null],
            ]
        );
        assert!(written(&[]).is_empty());
    }

    #[test]
    fn rows_beyond_a_group_are_in_the_next_one() {
        let rows: Vec<[Value<'_>; 4]> = (0..GROUP_ROWS as u64 + 1)
            .map(|number| [Value::Number(number), Value::Null, Value::Text("".into()), Value::Null])
            .collect();
        let found = written(&rows);
        assert_eq!(found.len(), rows.len());
        assert_eq!(found[GROUP_ROWS][0], Field::ULong(GROUP_ROWS as u64));
    }
}
