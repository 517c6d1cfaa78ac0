//! A real server: llama.cpp's, with SmolLM2-135M, started here and ended with the test.
//!
//! It needs `tests/parity/install.sh` (the server) and `arena model pull smollm2` (the model), and
//! says so where it finds them missing.

use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use arena_core::config::models::ServerKind;
use arena_core::seat::Sampling;
use arena_llm::model::{FinishReason, LanguageModel, ModelError};
use arena_llm::request::{CallKey, ChatRole, Message, Request};
use arena_remote::model::RemoteModel;
use arena_remote::options::RemoteOptions;

/// Longest time that the server may take to load its model and say its address.
const START_MAX: Duration = Duration::from_secs(120);
/// Longest address, in bytes.
const ADDRESS_BYTES_MAX: u64 = 256;
const QUESTION: &str = "What is the capital of France?";

struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself when its standard input is closed; this does not wait for that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the model of the store, as `arena model pull smollm2` leaves it.
fn model_file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let store = folder("ARENA_MODELS")
        .or_else(|| folder("XDG_DATA_HOME").map(|data| data.join("arena/models")))
        .or_else(|| folder("HOME").map(|home| home.join(".local/share/arena/models")));
    store.map(|store| store.join("smollm2/model.gguf")).filter(|file| file.exists())
}

fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("stderr can be written to");
}

fn start() -> Option<Server> {
    let python = root().join("target/venv/bin/python");
    if !python.exists() {
        skipped("no server of models to ask: run `tests/parity/install.sh`");
        return None;
    }
    let Some(file) = model_file() else {
        skipped("no model to serve: run `arena model pull smollm2`");
        return None;
    };
    let process = Command::new(python)
        .arg(root().join("tests/parity/serve.py"))
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python can be started");
    // From here on it is ended with the test, also where it never speaks.
    let mut server = Server { process, address: String::new() };
    let stdout = server.process.stdout.take().expect("piped");
    server.address = match first_line(stdout, START_MAX) {
        Ok(line) => line,
        Err(why) => panic!("the server of models did not start: {why}"),
    };
    assert!(server.address.starts_with("http://127.0.0.1:"), "{:?}", server.address);
    Some(server)
}

/// Returns the first line of what a process writes, if it comes in time.
fn first_line(output: impl Read + Send + 'static, wait: Duration) -> Result<String, String> {
    let (sender, receiver) = channel();
    // It ends with the process at the latest, for its output is closed then.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(output.take(ADDRESS_BYTES_MAX)).read_line(&mut line);
        // Nobody receives what comes too late.
        let _ = sender.send(read.map(|_| line));
    });
    match receiver.recv_timeout(wait) {
        Ok(Ok(line)) if line.ends_with('\n') => Ok(line.trim().to_owned()),
        Ok(Ok(line)) => Err(format!("its output ended with `{line}`, within its first line")),
        Ok(Err(error)) => Err(format!("its output cannot be read: {error}")),
        Err(RecvTimeoutError::Timeout) => Err(format!("it wrote no line within {wait:?}")),
        Err(RecvTimeoutError::Disconnected) => Err("its output could not be waited for".to_owned()),
    }
}

fn model(server: &Server, kind: ServerKind) -> RemoteModel {
    RemoteModel::new(RemoteOptions {
        name: "far".to_owned(),
        base_url: format!("{}/v1", server.address),
        remote_model: "smollm2".to_owned(),
        server: kind,
        api_key: None,
        timeout: Duration::from_secs(300),
        retries: 0,
        backoff: Duration::ZERO,
        concurrency: NonZeroU32::new(2).expect("not zero"),
        context_tokens: 1_024,
    })
    .expect("good options")
}

fn request(text: &str) -> Request {
    Request {
        model: "far".to_owned(),
        messages: vec![Message { role: ChatRole::User, text: text.to_owned(), tokens: vec![] }],
        max_tokens: 12,
        sampling: Sampling { temperature_milli: 0, top_k: 0, top_p_milli: 1_000, min_p_milli: 0 },
        stop: vec![],
        grammar: None,
        key: CallKey { seat_seed: 11, call_index: 0 },
    }
}

fn prompt_of_the_fixture() -> Vec<u32> {
    let path = root().join("tests/parity/fixtures/smollm2.json");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let fixture: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cases = fixture["cases"].as_array().expect("cases");
    let case = cases.iter().find(|case| case["name"] == "chat-question").expect("the case");
    serde_json::from_value(case["ids"].clone()).expect("ids")
}

fn greedy_replies_have_tokens_and_scores(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let completion = model.complete(&request(QUESTION)).expect("a completion");
    assert!(!completion.text.is_empty(), "{completion:?}");
    let tokens = completion.tokens.as_ref().expect("with tokens");
    assert_eq!(tokens.prompt, prompt_of_the_fixture());
    assert_eq!(completion.input_tokens as usize, tokens.prompt.len());
    for token in &tokens.output {
        assert_eq!(token.top.len(), 5, "{token:?}");
        assert_eq!(token.sampled_logprob_micro, 0);
        // Greedy choice takes the likeliest.
        assert_eq!(token.top[0].id, token.id, "{token:?}");
    }
    let plain = self::model(server, ServerKind::OpenAi).complete(&request(QUESTION));
    let plain = plain.expect("a completion");
    // Not compared by its text: what the server has cached may flip a near tie there.
    assert_eq!((plain.tokens, plain.input_tokens), (None, completion.input_tokens));
}

fn sampled_replies_follow_the_calls_key(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let text = |call_index| {
        let mut request = request("Tell me something about bicycles.");
        request.sampling.temperature_milli = 1_000;
        request.key.call_index = call_index;
        let completion = model.complete(&request).expect("a completion");
        let tokens = completion.tokens.expect("with tokens");
        assert!(
            tokens.output.iter().all(|token| token.logprob_micro == token.sampled_logprob_micro)
        );
        completion.text
    };
    let texts: Vec<String> = (0..4).map(text).collect();
    assert!(texts.iter().any(|text| *text != texts[0]), "{texts:?}");
}

fn stop_texts_and_lengths_end_a_reply(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let short = Request { max_tokens: 2, ..request(QUESTION) };
    let completion = model.complete(&short).expect("a completion");
    assert_eq!((completion.output_tokens, completion.finish_reason), (2, FinishReason::Length));
    let whole = model.complete(&request(QUESTION)).expect("a completion").text;
    let third = whole.chars().nth(2).expect("a reply of several letters").to_string();
    let stopped = Request { stop: vec![third.clone()], ..request(QUESTION) };
    let completion = model.complete(&stopped).expect("a completion");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    let (before, _) = whole.split_once(&third).expect("it is in it");
    assert_eq!(completion.text, before);
}

fn a_grammar_binds_the_reply(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let grammar = Some("start: \"[BUY] $\" /[0-9]{2}/ \".50\"".to_owned());
    let completion = model.complete(&Request { grammar, ..request("Make an offer.") });
    let text = completion.expect("a completion").text;
    assert!(text.starts_with("[BUY] $") && text.ends_with(".50"), "{text}");
}

fn a_conversation_that_is_too_long_is_the_callers(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let found = model.complete(&request(&"price ".repeat(3_000)));
    let detail = "the conversation does not fit the context of 1024 tokens".to_owned();
    assert_eq!(found, Err(ModelError::InvalidInput(detail)));
}

fn two_calls_at_once_are_answered_each_with_its_own(server: &Server) {
    let model = model(server, ServerKind::LlamaServer);
    let start = Barrier::new(2);
    let ask = |place: usize| {
        let texts = ["What is a lamp?", "Tell me at length what bicycles are good for."];
        // The grammars leave one text to each, so that mixed up replies are told apart.
        let replies = ["[BUY] $10.50", "[SELL] $99.00 and not a cent less"];
        let grammar = Some(format!("start: \"{}\"", replies[place]));
        let bound = Request { grammar, max_tokens: 40, ..request(texts[place]) };
        start.wait();
        let bound = model.complete(&bound);
        start.wait();
        let free = model.complete(&request(texts[place]));
        // Only now may one of them panic: the other would wait for it.
        let (bound, free) = (bound.expect("a completion"), free.expect("a completion"));
        assert_eq!(bound.text, replies[place]);
        let tokens = free.tokens.expect("with tokens");
        assert_eq!(free.input_tokens, bound.input_tokens, "the prompt is the same one");
        tokens.prompt
    };
    let [first, second] = std::thread::scope(|scope| {
        [0, 1].map(|place| scope.spawn(move || ask(place))).map(|call| call.join())
    });
    let (first, second) = (first.expect("no panic"), second.expect("no panic"));
    assert!(first.len() < second.len(), "{first:?} is of the shorter text, {second:?}");
}

#[test]
fn a_process_that_does_not_say_its_address_is_told_by_what_it_did() {
    let brief = Duration::from_millis(1);
    let long = Duration::from_secs(60);
    let (silent, silence) = std::io::pipe().expect("a pipe");
    assert_eq!(first_line(silent, brief), Err("it wrote no line within 1ms".to_owned()));
    drop(silence);
    let said = |text: &'static str| first_line(text.as_bytes(), long);
    assert_eq!(said("http://a\nmore"), Ok("http://a".to_owned()));
    for (text, shown) in [("", ""), ("http://", "http://")] {
        let why = format!("its output ended with `{shown}`, within its first line");
        assert_eq!(said(text), Err(why));
    }
}

#[test]
fn a_real_server_answers_as_the_seam_asks() {
    let Some(server) = start() else { return };
    greedy_replies_have_tokens_and_scores(&server);
    sampled_replies_follow_the_calls_key(&server);
    stop_texts_and_lengths_end_a_reply(&server);
    a_grammar_binds_the_reply(&server);
    a_conversation_that_is_too_long_is_the_callers(&server);
    two_calls_at_once_are_answered_each_with_its_own(&server);
}
