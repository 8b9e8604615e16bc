//! Writing a fleet as Parquet.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use tamis_abi::syscall;
use tamis_profile::rows::{Kind, Row};
use tamis_profile::{Fleet, Overlap};

use super::columns::SCHEMA;
use crate::Failure;
use crate::profile::refuse;

/// The rows of a group; engines read groups in parallel.
const GROUP: usize = 1 << 18;

/// A column with optional values.
struct Optional<T> {
    values: Vec<T>,
    is_there: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Optional<T> {
        Optional {
            values: Vec::new(),
            is_there: Vec::new(),
        }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.is_there.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// The rows of a group, by column.
#[derive(Default)]
struct Group {
    rows: usize,
    run: Optional<ByteArray>,
    machine: Optional<ByteArray>,
    program: Optional<ByteArray>,
    kind: Vec<ByteArray>,
    arch: Optional<ByteArray>,
    nr: Optional<i64>,
    call: Optional<ByteArray>,
    arg: Optional<i32>,
    value: Optional<i64>,
    args: Optional<ByteArray>,
    count: Vec<i64>,
    runs: Vec<i64>,
}

/// The reason why nothing is written.
enum Error {
    Overlap(Overlap),
    Parquet(ParquetError),
}

impl From<Overlap> for Error {
    fn from(overlap: Overlap) -> Error {
        Error::Overlap(overlap)
    }
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Error {
        Error::Parquet(error)
    }
}

/// The bytes of the file.
pub fn bytes(fleet: &Fleet) -> Result<Vec<u8>, Failure> {
    written(fleet).map_err(|error| match error {
        Error::Overlap(overlap) => refuse(&overlap),
        Error::Parquet(error) => Failure::bug(error.to_string(), "please report this"),
    })
}

fn written(fleet: &Fleet) -> Result<Vec<u8>, Error> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("tamis".to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = Group::default();
    fleet.rows(|row| {
        group.push(&row);
        if group.rows == GROUP {
            std::mem::take(&mut group).write(&mut writer)?;
        }
        Ok::<(), Error>(())
    })?;
    if group.rows > 0 {
        group.write(&mut writer)?;
    }
    Ok(writer.into_inner()?)
}

impl Group {
    fn push(&mut self, row: &Row<'_>) {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        let named = |name: &str| (!name.is_empty()).then(|| text(name));
        let key = &row.key;
        self.rows += 1;
        self.run.push(row.run.map(|(id, _)| text(id.as_str())));
        self.machine
            .push(row.run.and_then(|(_, at)| named(at.machine())));
        self.program
            .push(row.run.and_then(|(_, at)| named(at.program())));
        self.kind.push(ByteArray::from(key.kind.name()));
        self.arch
            .push(key.call.map(|(arch, _)| ByteArray::from(arch.name())));
        self.nr.push(key.call.map(|(_, nr)| i64::from(nr.0)));
        let name = key.call.and_then(|(arch, nr)| syscall::name(arch, nr));
        self.call.push(name.map(ByteArray::from));
        self.arg.push(key.arg.map(i32::from));
        // The column's type stores the bits of an unsigned number.
        self.value.push(key.value.map(u64::cast_signed));
        self.args.push(key.args.map(|args| {
            let args = args.map(|value| format!("{value:#x}"));
            text(&args.join(" "))
        }));
        debug_assert_eq!(key.args.is_some(), key.kind == Kind::Sample);
        self.count.push(row.count.cast_signed());
        self.runs.push(row.runs.cast_signed());
    }

    fn write(self, writer: &mut SerializedFileWriter<Vec<u8>>) -> Result<(), ParquetError> {
        let mut to = writer.next_row_group()?;
        let group = &mut to;
        column::<ByteArrayType>(group, &self.run.values, Some(&self.run.is_there))?;
        column::<ByteArrayType>(group, &self.machine.values, Some(&self.machine.is_there))?;
        column::<ByteArrayType>(group, &self.program.values, Some(&self.program.is_there))?;
        column::<ByteArrayType>(group, &self.kind, None)?;
        column::<ByteArrayType>(group, &self.arch.values, Some(&self.arch.is_there))?;
        column::<Int64Type>(group, &self.nr.values, Some(&self.nr.is_there))?;
        column::<ByteArrayType>(group, &self.call.values, Some(&self.call.is_there))?;
        column::<Int32Type>(group, &self.arg.values, Some(&self.arg.is_there))?;
        column::<Int64Type>(group, &self.value.values, Some(&self.value.is_there))?;
        column::<ByteArrayType>(group, &self.args.values, Some(&self.args.is_there))?;
        column::<Int64Type>(group, &self.count, None)?;
        column::<Int64Type>(group, &self.runs, None)?;
        to.close()?;
        Ok(())
    }
}

/// Writes the next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    is_there: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let end = || ParquetError::General("the schema has fewer columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(end)?;
    column.typed::<T>().write_batch(values, is_there, None)?;
    column.close()
}
