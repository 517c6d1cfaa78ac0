//! A log's folder on a real disk.
//!
//! Only regular files are opened and only real folders walked through: a link or a pipe that
//! someone has put into the folder is refused, wherever in the path it lies.
//!
//! Not here: what is written, and in which order (`writer`).

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::LogError;
use crate::storage::{Item, ItemKind, Sink, Source, Storage};
use crate::tile;

/// A folder on a real disk.
#[derive(Debug)]
pub struct Disk {
    root: OwnedFd,
    folder: PathBuf,
    syncs_everything: bool,
}

impl Disk {
    /// Takes up a folder that is there.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub fn open(folder: &Path) -> Result<Disk, LogError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(root) => {
                let syncs_everything = reports_what_it_loses(&root);
                Ok(Disk { root, folder: folder.to_owned(), syncs_everything })
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Err(LogError::Missing { path: folder.to_owned() }),
            Err(errno) => {
                let source = errno.into();
                Err(LogError::Io { doing: "open", path: folder.to_owned(), source })
            }
        }
    }

    /// Creates the folder, durably, where it does not exist.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(folder: &Path) -> Result<Disk, LogError> {
        if !folder.exists() {
            let made = make_durable_folder(folder);
            let error = |source| LogError::Io { doing: "create", path: folder.to_owned(), source };
            made.map_err(error)?;
        }
        Disk::open(folder)
    }

    /// Opens `path`, walking from folder to folder without following a link.
    fn open_at(&self, path: &str, flags: OFlags) -> io::Result<File> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        // A pipe without a writer would block whoever opens it.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let opened = rustix::fs::openat(folder, name, flags, mode).map_err(unlinked)?;
        let file = File::from(opened);
        if !file.metadata()?.is_file() {
            return Err(special());
        }
        Ok(file)
    }

    /// Opens the folder that holds `path`; `None` is the root.
    fn parent<'a>(&self, path: &'a str) -> io::Result<(Option<OwnedFd>, &'a str)> {
        match path.rsplit_once('/') {
            None => Ok((None, path)),
            Some((folder, name)) => Ok((Some(self.open_folder(folder)?), name)),
        }
    }

    fn open_folder(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = None;
        for part in path.split('/') {
            assert!(!matches!(part, "" | "." | ".."), "paths are computed from numbers and hashes");
            let at = folder.as_ref().unwrap_or(&self.root);
            let opened = rustix::fs::openat(at, part, flags, Mode::empty());
            folder = Some(opened.map_err(unlinked)?);
        }
        folder.ok_or_else(special)
    }
}

impl Storage for Disk {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(self.open_at(path, OFlags::RDONLY)?))
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        Ok(Box::new(self.open_at(path, flags)?))
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        // What is withheld is for its owner alone.
        let mode = if path == tile::PRIVATE { 0o700 } else { 0o777 };
        match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => self.open_folder(path).map(drop),
            Err(errno) => Err(errno.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from_folder, from_name) = self.parent(from)?;
        let (to_folder, to_name) = self.parent(to)?;
        let from_folder = from_folder.as_ref().unwrap_or(&self.root);
        let to_folder = to_folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::renameat(from_folder, from_name, to_folder, to_name)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn remove_folder(&self, path: &str) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return Ok(rustix::fs::fsync(&self.root)?);
        }
        File::from(self.open_folder(path)?).sync_all()
    }

    fn sync_everything(&self) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if self.syncs_everything {
            // The folder has been open since before the first write, so an error that comes
            // up anywhere between is reported here.
            rustix::fs::syncfs(&self.root)?;
            return Ok(true);
        }
        Ok(self.syncs_everything)
    }

    fn list(&self, path: &str, most: usize) -> io::Result<Option<Vec<Item>>> {
        let opened = if path.is_empty() { None } else { Some(self.open_folder(path)?) };
        let folder = opened.as_ref().unwrap_or(&self.root);
        let mut items = Vec::new();
        for item in Dir::read_from(folder)? {
            let item = item?;
            if matches!(item.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            if items.len() == most {
                return Ok(None);
            }
            let mut found = item.file_type();
            if found == FileType::Unknown {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let stat = rustix::fs::statat(folder, item.file_name(), flags)?;
                found = FileType::from_raw_mode(stat.st_mode);
            }
            let name = item.file_name().to_str();
            let kind = match found {
                FileType::RegularFile if name.is_ok() => ItemKind::File,
                FileType::Directory if name.is_ok() => ItemKind::Folder,
                _ => ItemKind::Special,
            };
            let name = item.file_name().to_string_lossy().into_owned();
            items.push(Item { name, kind });
        }
        items.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(items))
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Sink>> {
        let file = self.open_at(path, OFlags::RDWR | OFlags::CREATE)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        Ok(Box::new(file))
    }
}

impl Sink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Creates a folder and whatever is missing above it, and makes the new names durable.
fn make_durable_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists());
    let missing: Vec<&Path> = missing.collect();
    fs::create_dir_all(folder)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn special() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is a link or no regular file")
}

/// What the system says of a link that is not followed, or of a file in a folder's place.
fn unlinked(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => special(),
        errno => errno.into(),
    }
}

/// File systems whose `syncfs` waits for everything and makes it durable (the `f_type` of
/// statfs(2)): ext4, XFS, Btrfs, F2FS, and tmpfs, which promises nothing anyway.
#[cfg(target_os = "linux")]
const SYNCED_WHOLE: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// Returns whether syncing the whole file system makes durable and reports all that syncing
/// file by file does. It is several times faster, because the disk is asked once.
#[cfg(target_os = "linux")]
fn reports_what_it_loses(root: &OwnedFd) -> bool {
    // Before Linux 5.8, syncfs(2) does not report a failed write.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let kind = rustix::fs::fstatfs(root).map(|found| found.f_type as u32);
    version >= (5, 8) && kind.is_ok_and(|kind| SYNCED_WHOLE.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn reports_what_it_loses(_: &OwnedFd) -> bool {
    false
}
