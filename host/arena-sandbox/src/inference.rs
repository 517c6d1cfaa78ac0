//! The language models that a guest may ask, as conversations that the host holds.
//!
//! What a guest can meet in a legal run (unknown model, spent budget) is a value. A provider that
//! fails is nobody's fault and voids the match.
//!
//! Not here: what may be spent and what a reply must be (`arena_llm::allowance`), and models
//! themselves.

use std::sync::Arc;

use arena_core::dialogue;
use arena_core::fault::{Fault, VoidReason};
use arena_core::seat::{ModelCall, Sampling};
use arena_llm::allowance::{Answer, Refusal};
use arena_llm::model::{Completion, FinishReason, LanguageModel};
use arena_llm::request::{
    CONVERSATION_BYTES_MAX, CallKey, ChatRole, MESSAGE_BYTES_MAX, MESSAGES_MAX, Message, Request,
};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use crate::bindings::arena::negotiation::inference as wit;
use crate::precheck::INFERENCE;
use crate::state::{SeatState, Stop, charge_bytes, enter};

/// How many requests of a guest may be refused in one turn before that is its fault.
pub const TURNED_AWAY_MAX: u32 = 16;

/// Bytes of all open conversations of one seat together.
pub const CHATS_BYTES_MAX: usize = 4 << 20;

/// What a guest reads when a request keeps the host's bounds and cannot be answered. One text for
/// every reason: see [`arena_llm::allowance`].
const REFUSED: &str = "it cannot answer this: the conversation may be too long for what is left \
                       or for the model, or the request ask for what the model does not offer";

/// A conversation that a guest has opened.
pub struct Chat {
    model: Arc<dyn LanguageModel>,
    messages: Vec<Message>,
    bytes: usize,
}

type Context<'a> = StoreContextMut<'a, SeatState>;

/// Defines the interface `inference`.
pub(crate) fn link(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut instance = linker.instance(INFERENCE)?;
    instance.resource("chat", ResourceType::host::<Chat>(), |mut ctx, rep| {
        if let Some(chat) = ctx.data_mut().chats.get_mut(rep as usize) {
            *chat = None;
        }
        Ok(())
    })?;
    instance.func_wrap("[static]chat.open", |ctx: Context<'_>, (model,): (String,)| {
        Ok((open(ctx, &model)?,))
    })?;
    instance.func_wrap(
        "[method]chat.add",
        |ctx: Context<'_>, (chat, role, text): (Resource<Chat>, wit::ChatRole, String)| {
            Ok((add(ctx, &chat, role, text)?,))
        },
    )?;
    instance.func_wrap(
        "[method]chat.complete",
        |ctx: Context<'_>, (chat, params): (Resource<Chat>, wit::Params)| {
            Ok((complete(ctx, &chat, params)?,))
        },
    )?;
    instance.func_wrap("models", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((ctx.data().grants.models.iter().map(|model| describe(&**model)).collect::<Vec<_>>(),))
    })?;
    instance.func_wrap("remaining", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        let left = ctx.data().allowance.remaining();
        Ok((wit::Budget {
            calls: left.calls,
            input_tokens: left.input_tokens,
            output_tokens: left.output_tokens,
        },))
    })
}

fn describe(model: &dyn LanguageModel) -> wit::ModelInfo {
    let info = model.info();
    wit::ModelInfo { name: info.name, context_tokens: info.context_tokens }
}

fn open(mut ctx: Context<'_>, name: &str) -> wasmtime::Result<Result<Resource<Chat>, wit::Error>> {
    enter(&mut ctx, name.len())?;
    let state = ctx.data_mut();
    let Some(model) = state.grants.models.iter().find(|model| model.info().name == name) else {
        return Ok(Err(wit::Error::ModelNotSupported));
    };
    let chat = Chat { model: Arc::clone(model), messages: Vec::new(), bytes: 0 };
    let slot = match state.chats.iter().position(Option::is_none) {
        Some(free) => free,
        None if state.chats.len() < state.handles_max as usize => {
            state.chats.push(None);
            state.chats.len() - 1
        }
        None => return Err(Stop::fault(Fault::Protocol)),
    };
    state.chats[slot] = Some(chat);
    let rep = u32::try_from(slot).map_err(|_| Stop::fault(Fault::Protocol))?;
    Ok(Ok(Resource::new_own(rep)))
}

/// Finds an open conversation. The engine has checked the handle; a missing entry is ours.
fn find<'a>(state: &'a mut SeatState, chat: &Resource<Chat>) -> wasmtime::Result<&'a mut Chat> {
    state.chats.get_mut(chat.rep() as usize).and_then(Option::as_mut).ok_or_else(|| {
        Stop::void(VoidReason::Host, "a live chat handle has no conversation".to_owned())
    })
}

fn add(
    mut ctx: Context<'_>,
    chat: &Resource<Chat>,
    role: wit::ChatRole,
    text: String,
) -> wasmtime::Result<Result<(), wit::Error>> {
    enter(&mut ctx, text.len())?;
    let state = ctx.data_mut();
    let open_bytes: usize = state.chats.iter().flatten().map(|chat| chat.bytes).sum();
    let chat = find(state, chat)?;
    let bounds = [
        ("messages of a conversation", chat.messages.len() + 1, MESSAGES_MAX),
        ("bytes of a message", text.len(), MESSAGE_BYTES_MAX),
        ("bytes of a conversation", chat.bytes + text.len(), CONVERSATION_BYTES_MAX),
        ("bytes of all conversations", open_bytes + text.len(), CHATS_BYTES_MAX),
    ];
    if let Some((what, value, limit)) = bounds.into_iter().find(|(_, value, max)| value > max) {
        let detail = format!("{value} {what}, at most {limit} are allowed");
        return Ok(Err(wit::Error::InvalidInput(detail)));
    }
    let role = match role {
        wit::ChatRole::System => ChatRole::System,
        wit::ChatRole::User => ChatRole::User,
        wit::ChatRole::Assistant => ChatRole::Assistant,
    };
    push(chat, role, text, Vec::new());
    Ok(Ok(()))
}

fn push(chat: &mut Chat, role: ChatRole, text: String, tokens: Vec<u32>) {
    chat.bytes += text.len();
    chat.messages.push(Message { role, text, tokens });
}

fn complete(
    mut ctx: Context<'_>,
    chat: &Resource<Chat>,
    params: wit::Params,
) -> wasmtime::Result<Result<wit::Completion, wit::Error>> {
    let stop_bytes = params.stop.iter().map(String::len).sum::<usize>();
    let grammar_bytes = params.grammar.as_ref().map_or(0, String::len);
    let bytes = find(ctx.data_mut(), chat)?.bytes;
    enter(&mut ctx, bytes.saturating_add(stop_bytes).saturating_add(grammar_bytes))?;
    let state = ctx.data_mut();
    if state.finishing {
        // The match is over and its record cannot be voided any more.
        return Ok(Err(wit::Error::Unavailable));
    }
    let call_index = u32::try_from(state.usage.model_calls.len()).unwrap_or(u32::MAX);
    let key = CallKey { seat_seed: state.seed, call_index };
    let open = find(state, chat)?;
    let model = Arc::clone(&open.model);
    let request = request(&*model, open.messages.clone(), params, key);
    let asked = state.allowance.ask(&*model, request);
    // Waiting for a model is not the guest's time.
    let ticks = ctx.data().deadline_ticks;
    ctx.set_epoch_deadline(ticks);
    match asked {
        Ok(answer) => {
            let completion = record(ctx.data_mut(), chat, answer)?;
            // Only now: a guest that cannot pay asks the same again when the match is executed
            // again, and must find the call on the record.
            charge_bytes(&mut ctx, completion.text.len() as u64)?;
            Ok(Ok(completion))
        }
        Err(refusal) => value(ctx.data_mut(), &*model, refusal).map(Err),
    }
}

fn request(
    model: &dyn LanguageModel,
    messages: Vec<Message>,
    params: wit::Params,
    key: CallKey,
) -> Request {
    Request {
        model: model.info().name,
        messages,
        max_tokens: params.max_tokens,
        sampling: Sampling {
            temperature_milli: params.temperature_milli,
            top_k: params.top_k,
            top_p_milli: params.top_p_milli,
            min_p_milli: params.min_p_milli,
        },
        stop: params.stop,
        grammar: params.grammar,
        key,
    }
}

/// Makes a value of what the caller asked too much, and ends the match for what the model did.
fn value(
    state: &mut SeatState,
    model: &dyn LanguageModel,
    refusal: Refusal,
) -> wasmtime::Result<wit::Error> {
    let error = match refusal {
        Refusal::Invalid(detail) => return Ok(wit::Error::InvalidInput(detail)),
        Refusal::Failed(detail) => {
            let detail = format!("model `{}`: {detail}", model.info().name);
            return Err(Stop::void(VoidReason::ModelProvider, detail));
        }
        Refusal::Exhausted => wit::Error::BudgetExhausted,
        Refusal::Prompt => wit::Error::InvalidInput(REFUSED.to_owned()),
    };
    state.turned_away += 1;
    if state.turned_away > TURNED_AWAY_MAX {
        return Err(Stop::fault(Fault::ModelBudget));
    }
    Ok(error)
}

/// Appends the reply to the conversation and writes the call down.
fn record(
    state: &mut SeatState,
    chat: &Resource<Chat>,
    answer: Answer,
) -> wasmtime::Result<wit::Completion> {
    let Answer { request, completion } = answer;
    let request_sha256 = request.sha256();
    let Completion { text, finish_reason, input_tokens, output_tokens, tokens } = completion;
    let written = tokens.iter().flat_map(|tokens| tokens.output.iter().map(|token| token.id));
    push(find(state, chat)?, ChatRole::Assistant, text.clone(), written.collect());
    let calls = &mut state.usage.model_calls;
    let index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    let tokens =
        tokens.map(|tokens| dialogue::shorten(calls, &request.model, tokens.prompt, tokens.output));
    calls.push(ModelCall {
        act_index: state.act_count.saturating_sub(1),
        model: request.model,
        request_sha256,
        sampling: request.sampling,
        is_grammar_bound: request.grammar.is_some(),
        text: text.clone(),
        finish_reason: finish_reason.code(),
        input_tokens,
        output_tokens,
        weight_milli: None,
        tokens,
    });
    let finish_reason = match finish_reason {
        FinishReason::Stop => wit::FinishReason::Stop,
        FinishReason::Length => wit::FinishReason::Length,
        FinishReason::Budget => wit::FinishReason::Budget,
    };
    let usage = wit::Usage { input_tokens, output_tokens };
    Ok(wit::Completion { index, text, finish_reason, usage })
}
