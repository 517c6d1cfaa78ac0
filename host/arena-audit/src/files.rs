//! Which files a log's folder may hold.
//!
//! Names are derived from numbers and hashes, never taken from the log. What no log of this
//! content has is a finding, since nobody could say what it is for. The folder of what is
//! withheld is passed over: it is not published.
//!
//! Not here: tiles, bundles and the bytes of blobs (`arena_log::check`).

use std::collections::BTreeSet;

use arena_core::announcement::{ANNOUNCEMENT_BYTES_MAX, Announcement};
use arena_log::hash::Hash;
use arena_log::note::Vkey;
use arena_log::storage::ItemKind;
use arena_log::tile;

use crate::folder::Folder;
use crate::heads::HEAD_BYTES_MAX;
use crate::results::RESULTS_FILE;
use crate::verdict::{Finding, Findings};

/// Most names at the top of a folder.
const TOP_NAMES_MAX: usize = 256;
/// Most names that a folder of blobs holds: one for each agent and model, and two more.
const BLOB_NAMES_MAX: usize = 4_096;
/// Largest component, in bytes: no larger one is ever compiled.
pub const COMPONENT_BYTES_MAX: u64 = 24 << 20;
/// Largest model script or manifest, in bytes.
pub const MODEL_BYTES_MAX: u64 = 64 << 20;
/// Largest catalog, in bytes.
pub const CATALOG_BYTES_MAX: u64 = 256 << 20;

/// Looks through the folder's top, its heads from witnesses, its key and the names of its blobs.
pub(crate) fn check(
    folder: &Folder,
    log: &Vkey,
    opening: Option<[u8; 32]>,
    announcement: Option<&Announcement>,
) -> Findings {
    let mut found = Findings::default();
    found.check(check_top(folder));
    found.check(check_vkey(folder, log));
    check_blobs(&mut found, folder, &known(opening, announcement));
    found
}

/// Looks through a ledger's folder as [`check`] does. `known` are the blobs that its entries name,
/// and the most bytes of each; a step that a crash took may have left others, no larger. Returns
/// how many there are.
pub(crate) fn check_ledger(
    found: &mut Findings,
    folder: &Folder,
    log: &Vkey,
    known: &[(Hash, u64)],
    bytes_max: u64,
) -> u64 {
    found.check(check_top(folder));
    found.check(check_vkey(folder, log));
    let mut others = Findings::default();
    let names = list_blobs(&mut others, folder);
    found.merge(others);
    let mut known = known.to_vec();
    let before = known.len();
    let named: BTreeSet<Hash> = known.iter().map(|(hash, _)| *hash).collect();
    for path in names {
        let hash = path.rsplit('/').next().and_then(Hash::from_hex);
        match hash.filter(|hash| tile::blob(hash) == path) {
            Some(hash) if named.contains(&hash) => {}
            Some(hash) => known.push((hash, bytes_max)),
            None => found.add(Finding::new("the blob", "one", "none of this name").within(path)),
        }
    }
    check_lengths(found, folder, &known);
    (known.len() - before) as u64
}

fn check_top(folder: &Folder) -> Result<(), Finding> {
    for item in folder.list("", TOP_NAMES_MAX)? {
        let wanted = match item.name.as_str() {
            tile::CHECKPOINT | tile::VKEY | RESULTS_FILE => ItemKind::File,
            tile::CHECKPOINTS | tile::TILE | tile::ATTACHMENT | tile::BLOB => ItemKind::Folder,
            tile::PRIVATE | tile::WITNESS => ItemKind::Folder,
            name => {
                let finding = Finding::new("the name", shown(item.kind), "none of this name");
                return Err(finding.within(name));
            }
        };
        if item.kind != wanted {
            let finding = Finding::new("the name", shown(item.kind), shown(wanted));
            return Err(finding.within(item.name));
        }
    }
    Ok(())
}

fn shown(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::File => "a file",
        ItemKind::Folder => "a folder",
        ItemKind::Special => "a link, pipe or device",
    }
}

/// The key in the folder is nobody's proof, but a wrong one would mislead.
fn check_vkey(folder: &Folder, log: &Vkey) -> Result<(), Finding> {
    let Some(bytes) = folder.read(tile::VKEY, HEAD_BYTES_MAX)? else {
        return Ok(());
    };
    let wanted = format!("{log}\n");
    if bytes == wanted.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&bytes);
    Err(Finding::new("the key", found.trim_end(), wanted.trim_end()).within(tile::VKEY))
}

/// Reads the cosigned heads in the folder of the witnesses, but for those under way.
pub(crate) fn witnessed(folder: &Folder, found: &mut Findings) -> Vec<(String, Vec<u8>)> {
    // Each of them may be under way to be replaced.
    let mut items = match folder.list(tile::WITNESS, 2 * tile::WITNESS_NAMES_MAX) {
        Ok(items) => items,
        Err(finding) => {
            found.add(finding);
            return Vec::new();
        }
    };
    items.retain(|item| item.kind != ItemKind::File || !tile::is_under_way(&item.name));
    if items.len() > tile::WITNESS_NAMES_MAX {
        let wanted = format!("at most {}", tile::WITNESS_NAMES_MAX);
        let finding = Finding::new("the names in the folder", items.len(), wanted);
        found.add(finding.within(tile::WITNESS));
        return Vec::new();
    }
    let mut heads = Vec::new();
    for item in items {
        let path = format!("{}/{}", tile::WITNESS, item.name);
        if item.kind != ItemKind::File {
            found.add(Finding::new("the name", shown(item.kind), "a file").within(path));
            continue;
        }
        match folder.read(&path, HEAD_BYTES_MAX) {
            Ok(Some(bytes)) => heads.push((path, bytes)),
            Ok(None) => {}
            Err(finding) => found.add(finding),
        }
    }
    heads
}

/// Returns every blob that a tournament may have, with the most bytes that it may have.
fn known(opening: Option<[u8; 32]>, announcement: Option<&Announcement>) -> Vec<(Hash, u64)> {
    let most = ANNOUNCEMENT_BYTES_MAX as u64;
    let mut known: Vec<(Hash, u64)> =
        opening.into_iter().map(|opening| (Hash(opening), most)).collect();
    let Some(announcement) = announcement else {
        return known;
    };
    known.push((Hash(announcement.catalog_sha256), CATALOG_BYTES_MAX));
    let agents = announcement.agents.iter();
    known.extend(agents.map(|agent| (Hash(agent.component_sha256), COMPONENT_BYTES_MAX)));
    let models = announcement.models.iter();
    known.extend(models.map(|model| (Hash(model.sha256), MODEL_BYTES_MAX)));
    known
}

fn check_blobs(found: &mut Findings, folder: &Folder, known: &[(Hash, u64)]) {
    let names: BTreeSet<String> = known.iter().map(|(hash, _)| tile::blob(hash)).collect();
    for path in list_blobs(found, folder) {
        if !names.contains(&path) {
            found.add(Finding::new("the blob", "one", "none of this name").within(path));
        }
    }
    check_lengths(found, folder, known);
}

/// Lists the paths of all blobs.
fn list_blobs(found: &mut Findings, folder: &Folder) -> Vec<String> {
    let mut paths = Vec::new();
    let groups = match folder.list(tile::BLOB, BLOB_NAMES_MAX) {
        Ok(groups) => groups,
        Err(finding) => {
            found.add(finding);
            return paths;
        }
    };
    for group in groups {
        let path = format!("{}/{}", tile::BLOB, group.name);
        let items = match folder.list(&path, BLOB_NAMES_MAX) {
            Ok(items) => items,
            Err(finding) => {
                found.add(finding);
                continue;
            }
        };
        for item in items {
            let path = format!("{path}/{}", item.name);
            match item.kind {
                ItemKind::File => paths.push(path),
                _ => found.add(Finding::new("the blob", "one", "none of this name").within(path)),
            }
        }
    }
    paths
}

fn check_lengths(found: &mut Findings, folder: &Folder, known: &[(Hash, u64)]) {
    for (hash, most) in known {
        let path = tile::blob(hash);
        match folder.length(&path) {
            Ok(Some(length)) if length > *most => {
                let wanted = format!("at most {most}");
                found.add(Finding::new("the bytes", length, wanted).within(path));
            }
            Ok(_) => {}
            Err(finding) => found.add(finding),
        }
    }
}
