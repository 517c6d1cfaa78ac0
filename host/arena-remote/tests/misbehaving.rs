//! Servers that are dead, slow, endless or wrong: each is an error after a bounded time, and none
//! is the seat's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use arena_core::config::models::ServerKind;
use arena_core::seat::Sampling;
use arena_llm::model::{Completion, LanguageModel, ModelError, REPLY_BYTES_MAX};
use arena_llm::request::{CallKey, ChatRole, Message, Request};
use arena_remote::model::RemoteModel;
use arena_remote::options::{ApiKey, RemoteOptions};

/// Longest request that a server of these tests reads.
const REQUEST_BYTES_MAX: usize = 1 << 20;

const GOOD: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Deal."},
    "finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#;

type Change = fn(&mut Request);

/// What a server does with one connection.
enum Answer {
    /// Writes this and closes.
    Says(Vec<u8>),
    /// Reads the request and says nothing until the client leaves.
    Hangs,
    /// Begins an answer and never ends it.
    Endless,
}

fn http(status: &str, headers: &str, body: &[u8]) -> Answer {
    let len = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n{headers}\r\n");
    Answer::Says([head.as_bytes(), body].concat())
}

fn ok(body: &str) -> Answer {
    http("200 OK", "content-type: application/json\r\n", body.as_bytes())
}

/// Starts a server that gives one answer per connection. Returns its address and what it is sent.
fn serve(answers: Vec<Answer>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let Some(request) = read_request(&mut stream) else { continue };
            // The test may have ended.
            let _ = sender.send(request);
            give(&answer, stream);
        }
    });
    (format!("http://{address}/v1"), receiver)
}

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().ok()?.take(REQUEST_BYTES_MAX as u64));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let len = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; len?.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}

fn give(answer: &Answer, mut stream: TcpStream) {
    match answer {
        Answer::Says(bytes) => {
            // The client may have read enough.
            let _ = stream.write_all(bytes);
        }
        Answer::Hangs => {
            let _ = stream.read(&mut [0]);
        }
        Answer::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x1_0000], b"\r\n"].concat();
            while stream.write_all(&chunk).is_ok() {}
        }
    }
}

fn options(base_url: &str) -> RemoteOptions {
    RemoteOptions {
        name: "far".to_owned(),
        base_url: base_url.to_owned(),
        remote_model: "small".to_owned(),
        server: ServerKind::OpenAi,
        api_key: None,
        timeout: Duration::from_secs(20),
        retries: 0,
        backoff: Duration::ZERO,
        concurrency: NonZeroU32::new(2).expect("not zero"),
        context_tokens: 64,
    }
}

fn request() -> Request {
    let text = "What do you pay?".to_owned();
    Request {
        model: "far".to_owned(),
        messages: vec![Message { role: ChatRole::User, text, tokens: vec![] }],
        max_tokens: 8,
        sampling: Sampling { temperature_milli: 700, top_k: 0, top_p_milli: 950, min_p_milli: 0 },
        stop: vec![],
        grammar: None,
        key: CallKey { seat_seed: 7, call_index: 2 },
    }
}

fn ask(
    answers: Vec<Answer>,
    change: fn(&mut RemoteOptions),
) -> (Result<Completion, ModelError>, Receiver<String>) {
    let (url, requests) = serve(answers);
    let mut options = options(&url);
    change(&mut options);
    let model = RemoteModel::new(options).expect("good options");
    (without_address(model.complete(&request()), &url), requests)
}

/// Checks that a failure begins with the server's address, and takes it away.
fn without_address(
    found: Result<Completion, ModelError>,
    url: &str,
) -> Result<Completion, ModelError> {
    found.map_err(|error| match error {
        ModelError::Unavailable(detail) => {
            let rest = detail.strip_prefix(&format!("`{url}`: "));
            ModelError::Unavailable(rest.unwrap_or_else(|| panic!("{detail}")).to_owned())
        }
        refused => refused,
    })
}

/// Asks a server that fails, and compares how the detail begins.
fn check(answers: Vec<Answer>, expected: &str) {
    let (found, _) = ask(answers, |_| ());
    match found {
        Err(ModelError::Unavailable(detail)) => {
            assert!(detail.starts_with(expected), "{detail}");
            assert!(detail.chars().count() < 500, "{detail}");
        }
        other => panic!("expected `{expected}`, found {other:?}"),
    }
}

#[test]
fn a_good_answer_is_a_completion_without_tokens() {
    let (found, requests) = ask(vec![ok(GOOD)], |_| ());
    let completion = found.expect("a completion");
    assert_eq!(completion.text, "Deal.");
    assert_eq!((completion.input_tokens, completion.output_tokens), (9, 3));
    assert_eq!(completion.tokens, None);
    let sent = requests.recv().expect("one request");
    let (head, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
    let expected = r#"{"model":"small","messages":[{"role":"user","content":"What do you pay?"}],
        "max_tokens":8,"temperature":0.7,"top_p":0.95,"seed":1234,"stream":false}"#;
    let mut expected: serde_json::Value = serde_json::from_str(expected).expect("JSON");
    let found: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert!(found["seed"].as_u64().is_some_and(|seed| seed <= i32::MAX as u64), "{found}");
    expected["seed"] = found["seed"].clone();
    assert_eq!(found, expected);
}

#[test]
fn the_same_call_draws_from_the_same_seed_and_another_from_another() {
    let seed = |key| {
        let (url, requests) = serve(vec![ok(GOOD)]);
        let model = RemoteModel::new(options(&url)).expect("good options");
        model.complete(&Request { key, ..request() }).expect("a completion");
        let sent = requests.recv().expect("one request");
        let (_, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        body["seed"].as_u64().expect("a number")
    };
    let key = CallKey { seat_seed: 7, call_index: 2 };
    assert_eq!(seed(key), seed(key));
    assert_ne!(seed(key), seed(CallKey { call_index: 3, ..key }));
    assert_ne!(seed(key), seed(CallKey { seat_seed: 8, ..key }));
}

#[test]
fn a_dead_port_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let model = RemoteModel::new(RemoteOptions { retries: 2, ..options(&url) }).expect("good");
    match model.complete(&request()) {
        Err(ModelError::Unavailable(detail)) => assert!(detail.contains("refused"), "{detail}"),
        other => panic!("found {other:?}"),
    }
}

#[test]
fn a_server_that_hangs_is_left_after_the_time_out() {
    let (found, _) = ask(vec![Answer::Hangs], |o| o.timeout = Duration::from_millis(100));
    match found {
        Err(ModelError::Unavailable(detail)) => {
            assert!(detail.starts_with("no answer in time"), "{detail}");
        }
        other => panic!("found {other:?}"),
    }
}

#[test]
fn an_endless_answer_is_read_to_a_bound() {
    check(vec![Answer::Endless], "answered with more than 279296 bytes");
}

#[test]
fn an_answer_that_announces_too_much_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{";
    check(vec![Answer::Says(head.into())], "answered with more than 279296 bytes");
}

#[test]
fn passing_failures_are_tried_again() {
    let failures = || {
        vec![
            http("500 Internal Server Error", "", b"out of memory"),
            http("503 Service Unavailable", "", b""),
            http("429 Too Many Requests", "retry-after: 0\r\n", b"{}"),
            Answer::Says(vec![]),
            ok(GOOD),
        ]
    };
    let (found, requests) = ask(failures(), |options| options.retries = 4);
    assert_eq!(found.expect("the fifth attempt").text, "Deal.");
    let sent: Vec<String> = requests.iter().collect();
    assert_eq!(sent.len(), 5);
    assert!(sent.iter().all(|request| *request == sent[0]), "{sent:?}");
    let (found, _) = ask(failures(), |options| options.retries = 1);
    let detail = "answered `503 Service Unavailable`: ``".to_owned();
    assert_eq!(found, Err(ModelError::Unavailable(detail)));
}

#[test]
fn a_key_is_shown_to_the_server_and_to_nobody_else() {
    // Cargo sets it for every test; a test cannot set a variable of its own without `unsafe`.
    let variable = "CARGO_PKG_NAME";
    let (url, requests) = serve(vec![http("401 Unauthorized", "", b"wrong key arena-remote!")]);
    let api_key = Some(ApiKey::from_variable(variable).expect("set and plain"));
    let options = RemoteOptions { api_key, ..options(&url) };
    assert!(!format!("{options:?}").contains("arena-remote"), "{options:?}");
    let found = RemoteModel::new(options).expect("good options").complete(&request());
    let found = without_address(found, &url);
    let detail = "answered `401 Unauthorized`: `wrong key [key]!`".to_owned();
    assert_eq!(found, Err(ModelError::Unavailable(detail)));
    let sent = requests.recv().expect("one request");
    assert!(sent.to_lowercase().contains("authorization: bearer arena-remote\r\n"), "{sent}");
}

#[test]
fn a_reply_that_holds_the_key_is_a_failure_which_does_not_show_it() {
    // Cargo sets both for every test.
    let (secret, placeholder) = ("CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR");
    let ask = |variable: &str, text: &str| {
        let (url, _requests) = serve(vec![ok(&GOOD.replace("Deal.", text))]);
        let api_key = Some(ApiKey::from_variable(variable).expect("set and plain"));
        let model = RemoteModel::new(RemoteOptions { api_key, ..options(&url) });
        without_address(model.expect("good options").complete(&request()), &url)
    };
    // The last one is where a long reply is cut: half of the key would be kept.
    let long = "x".repeat(REPLY_BYTES_MAX - 6) + "arena-remote";
    for text in ["arena-remote", "My key is arena-remote.", "\\u0061rena-remote", &long] {
        let detail = "replied with the API key that it was shown".to_owned();
        assert_eq!(ask(secret, text), Err(ModelError::Unavailable(detail)), "{text}");
    }
    assert!(ask(secret, "arena-remot").is_ok());
    // What is that short is no secret but a word that servers without keys are shown.
    let placeholder_text = env!("CARGO_PKG_VERSION_MAJOR");
    assert!(ask(placeholder, placeholder_text).is_ok(), "{placeholder_text}");
}

#[test]
fn a_variable_without_a_key_is_named() {
    let error = ApiKey::from_variable("ARENA_NO_SUCH_KEY").expect_err("not set");
    assert_eq!(error.to_string(), "variable `ARENA_NO_SUCH_KEY` is not set");
}

#[test]
fn a_server_that_asks_for_a_long_wait_is_not_waited_for() {
    let busy = || http("429 Too Many Requests", "retry-after: 3600\r\n", b"later");
    let (found, _) = ask(vec![busy(), ok(GOOD)], |options| options.retries = 3);
    let detail = "answered `429 Too Many Requests`: `later`".to_owned();
    assert_eq!(found, Err(ModelError::Unavailable(detail)));
}

#[test]
fn lasting_failures_are_not_tried_again() {
    for status in ["401 Unauthorized", "404 Not Found", "422 Unprocessable Entity"] {
        let (found, requests) = ask(vec![http(status, "", b"no"), ok(GOOD)], |o| o.retries = 3);
        let detail = format!("answered `{status}`: `no`");
        assert_eq!(found, Err(ModelError::Unavailable(detail)));
        assert_eq!(requests.try_iter().count(), 1);
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let moved = http("307 Temporary Redirect", "location: http://127.0.0.1:1/v1\r\n", b"");
    check(vec![moved], "answered `307 Temporary Redirect`");
}

#[test]
fn what_is_no_completion_is_unavailable() {
    let no = "answered with what is no completion: ";
    check(vec![ok("<html><body>Welcome to \x1b[31mnginx")], &format!("{no}expected value"));
    check(vec![ok(&GOOD[..60])], &format!("{no}EOF while parsing"));
    check(vec![ok("[]")], no);
    check(vec![ok("{}")], &format!("{no}missing field `choices`"));
    check(vec![ok("null")], no);
    check(vec![ok("")], &format!("{no}EOF"));
    let deep = "[".repeat(100_000);
    check(vec![ok(&deep)], no);
    let mut not_utf8 = GOOD.as_bytes().to_vec();
    let place = GOOD.find("Deal").expect("the text is in it");
    not_utf8[place] = 0xff;
    check(vec![http("200 OK", "", &not_utf8)], no);
    for (from, to) in [
        ("\"Deal.\"", "17"),
        ("\"Deal.\"", "[\"Deal.\"]"),
        ("\"completion_tokens\":3", "\"completion_tokens\":-3"),
        ("\"completion_tokens\":3", "\"completion_tokens\":3.5"),
        ("\"completion_tokens\":3", "\"completion_tokens\":4294967296"),
        ("\"prompt_tokens\":9", "\"prompt_tokens\":null"),
        ("\"prompt_tokens\":9", &format!("\"prompt_tokens\":\"{}\"", "\u{9b}".repeat(9_000))),
    ] {
        check(vec![ok(&GOOD.replace(from, to))], no);
    }
}

#[test]
fn an_end_that_nobody_asked_for_is_unavailable() {
    let answer = GOOD.replace("\"stop\"", &format!("\"tool\\u001b{}\"", "x".repeat(9_000)));
    check(vec![ok(&answer)], "ended its reply for `tool\\u{1b}xxx");
}

#[test]
fn more_tokens_than_asked_for_are_unavailable() {
    let answer = GOOD.replace("\"completion_tokens\":3", "\"completion_tokens\":9");
    check(vec![ok(&answer)], "replied with 9 tokens, was asked for at most 8");
}

#[test]
fn an_answer_that_breaks_off_is_unavailable() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\":";
    check(vec![Answer::Says(head.into())], "no answer");
    check(vec![Answer::Says(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())], "no answer");
}

const TOO_LONG: &str = r#"{"error":{"message":"This model's maximum context length is 64 tokens.",
    "type":"invalid_request_error","code":"context_length_exceeded"}}"#;

#[test]
fn a_conversation_that_is_too_long_is_the_seats_fault_only_where_it_can_be() {
    let refusal = || http("400 Bad Request", "", TOO_LONG.as_bytes());
    let (found, _) = ask(vec![refusal()], |_| ());
    let detail = "the conversation does not fit the context of 64 tokens".to_owned();
    assert_eq!(found, Err(ModelError::InvalidInput(detail)));
    let (found, _) = ask(vec![refusal()], |options| options.context_tokens = 8_192);
    assert!(matches!(found, Err(ModelError::Unavailable(_))), "{found:?}");
}

#[test]
fn what_a_server_has_no_field_for_is_refused_before_it_is_asked() {
    let model = RemoteModel::new(options("http://127.0.0.1:1/v1")).expect("good options");
    let changes: [(Change, &str); 4] = [
        (|r| r.sampling.top_k = 40, "`top-k` is not part of OpenAI's protocol"),
        (|r| r.sampling.min_p_milli = 50, "`min-p-milli` is not part of OpenAI's protocol"),
        (|r| r.grammar = Some("start: \"a\"".to_owned()), "`grammar` is not part of OpenAI's"),
        (|r| r.stop = vec!["x".to_owned(); 5], "`stop` is 5 texts, the server takes 4"),
    ];
    for (change, expected) in changes {
        let mut request = request();
        change(&mut request);
        match model.complete(&request) {
            Err(ModelError::InvalidInput(detail)) => {
                assert!(detail.starts_with(expected), "{detail}");
            }
            other => panic!("found {other:?}"),
        }
    }
    let other = Request { model: "near".to_owned(), ..request() };
    assert_eq!(model.complete(&other), Err(ModelError::NotSupported));
    assert_eq!(model.count_prompt(&request()), Ok(None));
}

#[test]
fn callers_wait_for_each_other_and_all_are_answered() {
    let (url, requests) = serve((0..12).map(|_| ok(GOOD)).collect());
    let model = RemoteModel::new(options(&url)).expect("good options");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..12)
            .map(|call_index| {
                let key = CallKey { seat_seed: 1, call_index };
                let (model, request) = (&model, Request { key, ..request() });
                scope.spawn(move || model.complete(&request))
            })
            .collect();
        for call in calls {
            let found = call.join().expect("no panic");
            assert_eq!(found.map(|completion| completion.text), Ok("Deal.".to_owned()));
        }
    });
    assert_eq!(requests.iter().count(), 12);
}

#[test]
fn a_models_identity_is_not_its_address() {
    let at = |url: &str, remote_model: &str| {
        let remote_model = remote_model.to_owned();
        RemoteModel::new(RemoteOptions { remote_model, ..options(url) }).expect("good").info()
    };
    let info = at("http://one/v1", "small\nrescore=yes");
    assert_eq!(info.sha256, at("https://other:8080/api", "small\nrescore=yes").sha256);
    assert_ne!(info.sha256, at("http://one/v1", "large").sha256);
    assert_eq!(
        info.engine,
        "device=remote\nserver=openai\nremote-model=small\\nrescore=yes\nrescore=no\n"
    );
}
