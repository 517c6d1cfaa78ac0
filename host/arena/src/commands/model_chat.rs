//! `arena model chat`: talks to a model on the terminal.

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::Arc;

use arena_core::config::models::WeightsSource;
use arena_core::seat::Sampling;
use arena_llm::model::{FinishReason, LanguageModel, ModelError};
use arena_llm::request::{CallKey, ChatRole, MESSAGE_BYTES_MAX, Message, Request};
use arena_model::event::Listener;

use crate::cli::model::ChatArgs;
use crate::engines;
use crate::error::{CliError, Complaint};
use crate::live::{Live, Speaker};
use crate::model_files;
use crate::screen::{self, Tone};

/// Answers lines of standard input until it ends.
///
/// # Errors
/// There is no such model, it is wrong, or the conversation outgrows its context.
pub fn run(args: &ChatArgs) -> Result<(), CliError> {
    let named = model_files::find(&WeightsSource::parse(&args.model))?;
    let live = Arc::new(Live::on_stdout());
    let shown = Arc::clone(&live);
    let speaker = Speaker { name: String::new(), tone: Tone::Plain };
    let listener: Listener =
        Box::new(move |event| shown.write(&speaker, event.key.call_index, event.text));
    let model = engines::weights_named(&named, &args.engine, 1, Some(listener))?;
    let is_asked = io::stdin().is_terminal();
    if is_asked {
        screen::remark("an empty line is passed over, Ctrl-D ends");
    }
    let mut messages: Vec<Message> =
        args.system.iter().map(|text| message(ChatRole::System, text.clone())).collect();
    let mut lines = io::stdin().lock();
    // Ends with the input, or where a line outgrows the model.
    for call_index in 0.. {
        let Some(line) = next_line(&mut lines, is_asked)? else { return Ok(()) };
        messages.push(message(ChatRole::User, line));
        let request = request(args, &named.label, &messages, call_index);
        let reply = model.complete(&request).map_err(|error| complain(&args.model, &error))?;
        live.end();
        if let Some(error) = live.failure() {
            return Err(CliError::from_stdout(&error));
        }
        if reply.finish_reason == FinishReason::Length {
            screen::remark("note: the reply was cut; `--max-tokens` or `--context` allow more");
        }
        let tokens = reply.tokens.map(|tokens| tokens.output).unwrap_or_default();
        let tokens = tokens.iter().map(|token| token.id).collect();
        messages.push(Message { role: ChatRole::Assistant, text: reply.text, tokens });
    }
    unreachable!("a conversation is bounded by the model's context")
}

fn message(role: ChatRole, text: String) -> Message {
    Message { role, text, tokens: Vec::new() }
}

fn request(args: &ChatArgs, model: &str, messages: &[Message], call_index: u32) -> Request {
    Request {
        model: model.to_owned(),
        messages: messages.to_vec(),
        max_tokens: args.max_tokens,
        sampling: Sampling {
            temperature_milli: args.temperature.milli,
            top_k: args.top_k,
            top_p_milli: args.top_p.milli,
            min_p_milli: 0,
        },
        stop: Vec::new(),
        grammar: None,
        key: CallKey { seat_seed: args.seed, call_index },
    }
}

/// Reads the next line that is not empty; `None` at the end.
fn next_line(lines: &mut impl BufRead, is_asked: bool) -> Result<Option<String>, CliError> {
    let fails = |fact: &dyn std::fmt::Display| {
        CliError::Input(Complaint::new("cannot read standard input", fact))
    };
    // Every pass reads a line, and the input has an end.
    loop {
        if is_asked {
            screen::ask("> ");
        }
        let mut line = String::new();
        let limit = MESSAGE_BYTES_MAX as u64 + 1;
        let read = lines.by_ref().take(limit).read_line(&mut line);
        if read.map_err(|error| fails(&error))? == 0 {
            return Ok(None);
        }
        if line.len() as u64 == limit {
            return Err(fails(&format!("a line of more than {MESSAGE_BYTES_MAX} bytes")));
        }
        let said = line.trim();
        if !said.is_empty() {
            return Ok(Some(said.to_owned()));
        }
    }
}

fn complain(model: &str, error: &ModelError) -> CliError {
    let complaint = Complaint::new(format!("cannot talk to `{model}`"), error);
    match error {
        ModelError::InvalidInput(_) => {
            CliError::Config(complaint.hint("begin a new chat, or give more `--context`"))
        }
        _ => CliError::Infrastructure(complaint),
    }
}
