//! Reading a fleet from Parquet: rows that tamis wrote, or sums by another engine.
//!
//! Columns are found by name. Integers are read from all types that engines use for sums: 32 or 64 bits, and decimals
//! without fractional digits.

use std::fs::File;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{AsBytes, ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use tamis_abi::{Arch, Nr};
use tamis_profile::rows::{Collected, Key, Kind, Row, RowError, run_of};
use tamis_profile::{Args, Fleet, Origin, RunId};
use tamis_session::path_text::path_of;

use crate::{Failure, quietly};

/// The most rows of a group, because a group is held in memory.
const MAX_GROUP: i64 = 1 << 24;

/// A column of a group.
enum Column {
    /// No such column.
    Missing,
    Texts(Vec<Option<ByteArray>>),
    Numbers(Vec<Option<u64>>),
}

/// Reads a file.
pub fn read(path: &str) -> Result<Fleet, Failure> {
    let damaged = |error: ParquetError| Failure::input(format!("{path}: {error}"));
    let file =
        File::open(path_of(path)).map_err(|error| Failure::input(format!("{path}: {error}")))?;
    let reader = catch_panic(|| SerializedFileReader::new(file)).map_err(damaged)?;
    let mut collected = Collected::default();
    let mut rows = 0;
    for number in 0..reader.num_row_groups() {
        let group = catch_panic(|| Group::read(reader.get_row_group(number)?.as_ref()));
        let group = group.map_err(damaged)?;
        let mut run = None;
        for row in 0..group.rows {
            rows += 1;
            let added = group.run(row, &mut run);
            let added = added.and_then(|()| {
                let key = group.key(row)?;
                let count = |column: &Column| column.number(row).ok_or(RowError::Count);
                let (count, runs) = (count(&group.count)?, count(&group.runs)?);
                let run = run.as_ref().map(|(_, (id, origin))| (id, origin));
                let named = run.filter(|_| group.run.text(row).is_some());
                collected.add(&Row {
                    run: named,
                    key,
                    count,
                    runs,
                })
            });
            added.map_err(|error| {
                Failure::input(format!("{path}: row {rows}: {}", error.message()))
            })?;
        }
    }
    let fleet = collected.finish();
    fleet.map_err(|error| Failure::input(format!("{path}: {}", error.message())))
}

/// Runs the reader of the crate, which panics on some damaged files, such as one with a negative offset. The panic
/// becomes an error about the file.
fn catch_panic<R>(read: impl FnOnce() -> Result<R, ParquetError>) -> Result<R, ParquetError> {
    let damage = || ParquetError::General("the file is damaged".to_owned());
    quietly(read).unwrap_or_else(|| Err(damage()))
}

/// The columns of a group of rows.
struct Group {
    rows: usize,
    run: Column,
    machine: Column,
    program: Column,
    kind: Column,
    arch: Column,
    nr: Column,
    arg: Column,
    value: Column,
    args: Column,
    count: Column,
    runs: Column,
}

impl Group {
    fn read(group: &dyn RowGroupReader) -> Result<Group, ParquetError> {
        let rows = group.metadata().num_rows();
        if !(0..=MAX_GROUP).contains(&rows) {
            let message = format!("a group of {rows} rows; at most {MAX_GROUP} are read");
            return Err(ParquetError::General(message));
        }
        let rows = rows as usize;
        let column = |name: &str| column(group, name, rows);
        Ok(Group {
            rows,
            run: column("run")?,
            machine: column("machine")?,
            program: column("program")?,
            kind: column("kind")?,
            arch: column("arch")?,
            nr: column("nr")?,
            arg: column("arg")?,
            value: column("value")?,
            args: column("args")?,
            count: column("count")?,
            runs: column("runs")?,
        })
    }

    /// Replaces the current run by that of a row, if it is a different one.
    fn run(
        &self,
        row: usize,
        last: &mut Option<(ByteArray, (RunId, Origin))>,
    ) -> Result<(), RowError> {
        let Some(id) = self.run.text(row) else {
            return Ok(());
        };
        let text = |text: Option<&ByteArray>| -> Result<String, RowError> {
            let text = text.map(ByteArray::data).unwrap_or_default();
            String::from_utf8(text.to_vec()).map_err(|_| RowError::Run)
        };
        let machine = text(self.machine.text(row))?;
        let program = text(self.program.text(row))?;
        let is_same = last.as_ref().is_some_and(|(known, (_, origin))| {
            known == id && origin.machine() == machine && origin.program() == program
        });
        if !is_same {
            let named = run_of(&text(Some(id))?, &machine, &program)?;
            *last = Some((id.clone(), named));
        }
        Ok(())
    }

    fn key(&self, row: usize) -> Result<Key, RowError> {
        let text = |column: &Column| {
            let text = column.text(row)?;
            std::str::from_utf8(text.data()).ok().map(str::to_owned)
        };
        let kind = text(&self.kind).and_then(|name| Kind::from_name(&name));
        let kind = kind.ok_or(RowError::Kind)?;
        let call = match kind {
            Kind::Run => None,
            _ => {
                let arch = text(&self.arch).and_then(|name| Arch::from_name(&name));
                let arch = arch.ok_or(RowError::Arch)?;
                let nr = self.nr.number(row).and_then(|nr| u32::try_from(nr).ok());
                let nr = nr.filter(|nr| arch.owns_number(*nr));
                Some((arch, Nr(nr.ok_or(RowError::Number)?)))
            }
        };
        let arg = self.arg.number(row).map(u8::try_from).transpose();
        Ok(Key {
            kind,
            call,
            arg: arg.map_err(|_| RowError::Place)?,
            value: self.value.number(row),
            args: match text(&self.args) {
                Some(args) => Some(list(&args).ok_or(RowError::Place)?),
                None => None,
            },
        })
    }
}

/// Parses six hexadecimal numbers.
fn list(text: &str) -> Option<Args> {
    let mut args = Args::default();
    let mut words = text.split(' ');
    for arg in &mut args {
        *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    words.next().is_none().then_some(args)
}

impl Column {
    fn text(&self, row: usize) -> Option<&ByteArray> {
        match self {
            Column::Texts(texts) => texts.get(row)?.as_ref(),
            _ => None,
        }
    }

    fn number(&self, row: usize) -> Option<u64> {
        match self {
            Column::Numbers(numbers) => *numbers.get(row)?,
            _ => None,
        }
    }
}

/// Reads a column of a group by its name.
fn column(group: &dyn RowGroupReader, name: &str, rows: usize) -> Result<Column, ParquetError> {
    let columns = group.metadata().columns();
    let place = columns
        .iter()
        .position(|column| column.column_path().string() == name);
    let Some(place) = place else {
        return Ok(Column::Missing);
    };
    let is_text = matches!(
        name,
        "run" | "machine" | "program" | "kind" | "arch" | "args"
    );
    let most = columns[place].column_descr().max_def_level();
    match group.get_column_reader(place)? {
        ColumnReader::ByteArrayColumnReader(reader) if is_text => {
            Ok(Column::Texts(values(reader, rows, most, Some)?))
        }
        ColumnReader::Int32ColumnReader(reader) if !is_text => {
            let number = |value: i32| Some(u64::from(value.cast_unsigned()));
            Ok(Column::Numbers(values(reader, rows, most, number)?))
        }
        ColumnReader::Int64ColumnReader(reader) if !is_text => Ok(Column::Numbers(values(
            reader,
            rows,
            most,
            |value: i64| Some(value.cast_unsigned()),
        )?)),
        ColumnReader::FixedLenByteArrayColumnReader(reader) if !is_text => {
            Ok(Column::Numbers(values(reader, rows, most, |value| {
                big_endian(value.as_bytes())
            })?))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            Ok(Column::Numbers(values(reader, rows, most, |value| {
                big_endian(value.as_bytes())
            })?))
        }
        _ => {
            let message = format!("the column `{name}` has neither text nor whole numbers");
            Err(ParquetError::General(message))
        }
    }
}

/// A number of a decimal column; `None` if it is negative or has more than 64 bits.
fn big_endian(bytes: &[u8]) -> Option<u64> {
    let start = bytes
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(bytes.len());
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let digits = &bytes[start..];
    let is_small = digits.len() <= size_of::<u64>() && !is_negative;
    is_small.then(|| {
        digits
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    })
}

/// All values of a column; a column without optional values has no levels.
fn values<T: DataType, R>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    most: i16,
    convert: impl Fn(T::T) -> Option<R>,
) -> Result<Vec<Option<R>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let wants_levels = (most > 0).then_some(&mut levels);
        let (records, _, _) = reader.read_records(rows - read, wants_levels, None, &mut values)?;
        if records == 0 {
            let message = "a column has fewer values than rows".to_owned();
            return Err(ParquetError::General(message));
        }
        read += records;
    }
    let mut values = values.into_iter();
    if most == 0 {
        return Ok(values.map(convert).collect());
    }
    let present = levels.into_iter().map(|level| level == most);
    Ok(present
        .map(|is_there| is_there.then(|| values.next()).flatten().and_then(&convert))
        .collect())
}
