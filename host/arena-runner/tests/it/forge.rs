//! Writes logs that a run could have left, and some that no run leaves.

use std::path::Path;

use arena_log::blobs::Visibility;
use arena_log::checkpoint::Head;
use arena_log::writer::{LogWriter, Record};

use crate::stage::{Item, Stage};

/// Writes a log of these items with everything that its announcement names, and signs where a
/// run would have signed its opening.
pub fn played(stage: &Stage, folder: &Path, items: &[Item]) -> LogWriter {
    let mut writer = LogWriter::create(folder, stage.settings()).expect("an empty folder");
    let announcement = stage.announcement.encode();
    writer.put_blob(&announcement, Visibility::Public).expect("the disk works");
    for blob in &stage.blobs {
        writer.put_blob(blob, Visibility::Private).expect("the disk works");
    }
    let opening_size = 1 + usize::from(stage.draw.is_some());
    for (place, item) in items.iter().enumerate() {
        append(&mut writer, item);
        if place < opening_size {
            sign(&mut writer);
        }
    }
    writer
}

pub fn append(writer: &mut LogWriter, item: &Item) {
    let record = Record { entry: &item.entry.encode(), attachment: &item.attachment };
    writer.append_all(&[record]).expect("the disk works");
}

pub fn sign(writer: &mut LogWriter) -> Head {
    writer.checkpoint().expect("the disk works")
}
