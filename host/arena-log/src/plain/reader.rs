//! Reads a log from its start, one entry in memory at a time.
//!
//! Every byte is checked. A reader takes no lock: the log of a run in progress can be read
//! up to where it has come.
//!
//! Not here: cutting a torn tail (`writer`).

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::{Damage, LogError};
use super::frame::{self, Header, Prefix};
use super::medium;
use super::writer::UNSYNCED_BYTES_MAX;
use super::{Boundary, FILE_NAME};

/// Bytes fetched from the file at once.
const READ_BYTES: usize = 256 << 10;

/// Reads the entries of one log in order.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: BufReader<File>,
    header_torn: bool,
    boundary: Boundary,
    entry: Vec<u8>,
}

impl LogReader {
    /// Opens a log: the file itself, or the folder that holds it.
    ///
    /// # Errors
    /// There is none, it cannot be read, or it is not a log of this layout.
    pub fn open(path: &Path) -> Result<LogReader, LogError> {
        let path = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        medium::refuse_special(&path)?;
        let file = File::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => LogError::Missing { path: path.clone() },
            _ => LogError::Io { doing: "open", path: path.clone(), source },
        })?;
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let mut start = Vec::with_capacity(frame::HEADER_BYTES + 1);
        let limit = frame::HEADER_BYTES as u64;
        let read_error = |source| LogError::Io { doing: "read", path: path.clone(), source };
        (&mut file).take(limit + 1).read_to_end(&mut start).map_err(read_error)?;
        let header_torn = match frame::read_header(&start) {
            Header::Good => false,
            Header::Torn => true,
            Header::Version(found) => return Err(LogError::Version { path, found }),
            Header::Foreign => return Err(LogError::NotALog { path }),
        };
        let offset = if header_torn { 0 } else { limit };
        file.seek(SeekFrom::Start(offset)).map_err(read_error)?;
        let boundary = Boundary { entry_count: 0, offset };
        Ok(LogReader { path, file, header_torn, boundary, entry: Vec::new() })
    }

    /// Returns the file that is read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the place after the last entry that was read.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// Reads the next entry; `None` after the last one.
    ///
    /// # Errors
    /// [`LogError::TornTail`] when the rest is what a crash leaves, [`LogError::Damaged`] when
    /// bytes changed. Asking again gives the same error: nothing is skipped.
    pub fn next_entry(&mut self) -> Result<Option<&[u8]>, LogError> {
        if self.header_torn {
            return Err(self.torn_tail(self.length()?));
        }
        match self.read_frame() {
            Ok(Ok(true)) => Ok(Some(&self.entry)),
            Ok(Ok(false)) => Ok(None),
            Ok(Err(damage)) => Err(self.classify(damage)?),
            Err(source) => Err(self.read_error(source)),
        }
    }

    /// Reads one frame into `self.entry`; false at the end of the file.
    fn read_frame(&mut self) -> io::Result<Result<bool, Damage>> {
        let mut prefix = [0; frame::PREFIX_BYTES];
        let count = read_up_to(&mut self.file, &mut prefix)?;
        if count == 0 {
            return Ok(Ok(false));
        }
        if count < prefix.len() {
            return Ok(Err(Damage::Short));
        }
        let prefix = match Prefix::read(prefix) {
            Ok(prefix) => prefix,
            Err(damage) => return Ok(Err(damage)),
        };
        self.entry.resize(prefix.entry_bytes(), 0);
        if read_up_to(&mut self.file, &mut self.entry)? < self.entry.len() {
            return Ok(Err(Damage::Short));
        }
        if let Err(damage) = prefix.check(self.boundary.offset, &self.entry) {
            return Ok(Err(damage));
        }
        self.boundary.entry_count += 1;
        self.boundary.offset += (frame::PREFIX_BYTES + self.entry.len()) as u64;
        Ok(Ok(true))
    }

    /// Tells a torn tail from damage, and leaves the reader before the bad bytes.
    fn classify(&mut self, damage: Damage) -> Result<LogError, LogError> {
        let Boundary { entry_count: entry_index, offset } = self.boundary;
        let length = self.length()?;
        self.file.seek(SeekFrom::Start(offset)).map_err(|source| self.read_error(source))?;
        // The writer syncs more often than this, so a crash cannot reach further back.
        let mut torn = length.saturating_sub(offset) <= UNSYNCED_BYTES_MAX;
        if torn {
            let mut tail = Vec::new();
            let read = (&mut self.file).take(UNSYNCED_BYTES_MAX).read_to_end(&mut tail);
            read.map_err(|source| self.read_error(source))?;
            torn = !frame::holds_later_frame(&tail, offset);
            self.file.seek(SeekFrom::Start(offset)).map_err(|source| self.read_error(source))?;
        }
        if torn {
            return Ok(self.torn_tail(length));
        }
        Ok(LogError::Damaged { path: self.path.clone(), entry_index, offset, damage })
    }

    fn torn_tail(&self, length: u64) -> LogError {
        LogError::TornTail {
            path: self.path.clone(),
            entry_index: self.boundary.entry_count,
            offset: self.boundary.offset,
            bytes: length.saturating_sub(self.boundary.offset),
        }
    }

    fn length(&self) -> Result<u64, LogError> {
        let metadata = self.file.get_ref().metadata();
        metadata.map(|metadata| metadata.len()).map_err(|source| self.read_error(source))
    }

    fn read_error(&self, source: io::Error) -> LogError {
        LogError::Io { doing: "read", path: self.path.clone(), source }
    }
}

/// Fills `target` as far as the file goes and returns how far that was.
fn read_up_to(file: &mut impl Read, target: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < target.len() {
        match file.read(&mut target[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
