//! The interfaces of arena that a guest may call: inference, training, trace.
//!
//! What a guest can meet in a legal run (unknown model, spent budget) is a value. A provider that
//! fails is nobody's fault and voids the match.
//!
//! Not here: WASI (`wasi`), and models themselves (`arena-llm`).

use std::sync::Arc;

use arena_core::config::limits::{METRIC_NAME_BYTES_MAX, METRICS_MAX};
use arena_core::fault::{Fault, VoidReason};
use arena_core::seat::ModelCall;
use arena_llm::model::{Completion, FinishReason, LanguageModel, ModelError};
use arena_llm::request::{
    CONVERSATION_BYTES_MAX, CallKey, ChatRole, MESSAGE_BYTES_MAX, MESSAGES_MAX, Message, Request,
};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use crate::bindings::arena::negotiation::{inference as wit, training};
use crate::state::{SeatState, Stop, TrainingMode, charge_bytes, enter};

/// How often a guest may ask after its budget is spent before that is its fault.
pub const TURNED_AWAY_MAX: u32 = 16;

/// Bytes of all open conversations of one seat together.
pub const CHATS_BYTES_MAX: usize = 4 << 20;

/// What a guest reads when a model cannot answer a request that keeps the host's bounds.
const REFUSED: &str = "it cannot continue this conversation, which may be too long";

/// What a note counts at least, in bytes: its length field in the record.
const NOTE_BYTES_MIN: u32 = 4;

/// A conversation that a guest has opened.
pub struct Chat {
    model: Arc<dyn LanguageModel>,
    messages: Vec<Message>,
    bytes: usize,
}

type Context<'a> = StoreContextMut<'a, SeatState>;

/// Defines the imports of the world `agent`.
pub(crate) fn link(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    // The instance exists even where a guest imports only its types.
    linker.instance("arena:negotiation/types@0.1.0")?;
    link_inference(linker)?;
    link_training(linker)?;
    let mut trace = linker.instance("arena:negotiation/trace@0.1.0")?;
    trace.func_wrap("note", |ctx: Context<'_>, (text,): (String,)| note(ctx, text))
}

fn link_inference(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("arena:negotiation/inference@0.1.0")?;
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
    push(chat, role, text);
    Ok(Ok(()))
}

fn push(chat: &mut Chat, role: ChatRole, text: String) {
    chat.bytes += text.len();
    chat.messages.push(Message { role, text });
}

fn complete(
    mut ctx: Context<'_>,
    chat: &Resource<Chat>,
    params: wit::Params,
) -> wasmtime::Result<Result<wit::Completion, wit::Error>> {
    let stop_bytes = params.stop.iter().map(String::len).sum::<usize>();
    let bytes = find(ctx.data_mut(), chat)?.bytes;
    enter(&mut ctx, bytes.saturating_add(stop_bytes))?;
    let state = ctx.data_mut();
    if state.finishing {
        // The match is over and its record cannot be voided any more.
        return Ok(Err(wit::Error::Unavailable));
    }
    let call_index = u32::try_from(state.usage.model_calls.len()).unwrap_or(u32::MAX);
    let key = CallKey { seat_seed: state.seed, call_index };
    let open = find(state, chat)?;
    let model = Arc::clone(&open.model);
    let request = Request {
        model: model.info().name,
        messages: open.messages.clone(),
        max_tokens: params.max_tokens,
        temperature_milli: params.temperature_milli,
        top_p_milli: params.top_p_milli,
        stop: params.stop,
        key,
    };
    if let Err(error) = request.check() {
        return value(error).map(Err);
    }
    let Ok(admitted) = state.allowance.admit(request) else {
        return turn_away(state).map(Err);
    };
    let answer = model.complete(&admitted.request);
    // Waiting for a model is not the guest's time.
    let ticks = ctx.data().deadline_ticks;
    ctx.set_epoch_deadline(ticks);
    let settled = answer
        .map_err(unworded)
        .and_then(|reply| ctx.data_mut().allowance.settle(&admitted, reply));
    match settled {
        Ok(completion) => {
            charge_bytes(&mut ctx, completion.text.len() as u64)?;
            let request_sha256 = admitted.request.sha256();
            record(ctx.data_mut(), chat, admitted.request.model, request_sha256, completion).map(Ok)
        }
        Err(error) => value(error).map(Err),
    }
}

/// Takes a model's own words out of its refusal. Records hold answers and no refusals, so a match
/// can only be executed again from its record if every refusal reads the same.
fn unworded(error: ModelError) -> ModelError {
    match error {
        ModelError::InvalidInput(_) => ModelError::InvalidInput(REFUSED.to_owned()),
        other => other,
    }
}

/// Makes a value of what the caller did wrong, and ends the match for what the model did.
fn value(error: ModelError) -> wasmtime::Result<wit::Error> {
    match error {
        ModelError::NotSupported => Ok(wit::Error::ModelNotSupported),
        ModelError::InvalidInput(detail) => Ok(wit::Error::InvalidInput(detail)),
        ModelError::Unavailable(detail) => Err(Stop::void(VoidReason::ModelProvider, detail)),
    }
}

fn turn_away(state: &mut SeatState) -> wasmtime::Result<wit::Error> {
    state.turned_away += 1;
    if state.turned_away > TURNED_AWAY_MAX {
        return Err(Stop::fault(Fault::ModelBudget));
    }
    Ok(wit::Error::BudgetExhausted)
}

/// Appends the reply to the conversation and writes the call down.
fn record(
    state: &mut SeatState,
    chat: &Resource<Chat>,
    model: String,
    request_sha256: [u8; 32],
    completion: Completion,
) -> wasmtime::Result<wit::Completion> {
    push(find(state, chat)?, ChatRole::Assistant, completion.text.clone());
    let index = u32::try_from(state.usage.model_calls.len()).unwrap_or(u32::MAX);
    state.usage.model_calls.push(ModelCall {
        act_index: state.act_count.saturating_sub(1),
        model,
        request_sha256,
        text: completion.text.clone(),
        finish_reason: completion.finish_reason.code(),
        input_tokens: completion.input_tokens,
        output_tokens: completion.output_tokens,
        weight_milli: None,
    });
    let finish_reason = match completion.finish_reason {
        FinishReason::Stop => wit::FinishReason::Stop,
        FinishReason::Length => wit::FinishReason::Length,
        FinishReason::Budget => wit::FinishReason::Budget,
    };
    let Completion { text, input_tokens, output_tokens, .. } = completion;
    let usage = wit::Usage { input_tokens, output_tokens };
    Ok(wit::Completion { index, text, finish_reason, usage })
}

/// Importing `training` without the grant is allowed, so that one component serves both:
/// its calls count as host calls and have no effect.
fn link_training(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("arena:negotiation/training@0.1.0")?;
    instance.func_wrap("get-mode", |mut ctx: Context<'_>, ()| {
        enter(&mut ctx, 0)?;
        Ok((match ctx.data().grants.training {
            Some(TrainingMode::Train) => training::Mode::Train,
            Some(TrainingMode::Evaluate) | None => training::Mode::Evaluate,
        },))
    })?;
    instance.func_wrap("weigh", |mut ctx: Context<'_>, (completion, weight): (u32, u32)| {
        enter(&mut ctx, 0)?;
        let state = ctx.data_mut();
        if state.grants.training == Some(TrainingMode::Train)
            && let Some(call) = state.usage.model_calls.get_mut(completion as usize)
        {
            call.weight_milli = Some(weight);
        }
        Ok(())
    })?;
    instance.func_wrap("metric", |mut ctx: Context<'_>, (name, milli): (String, i32)| {
        enter(&mut ctx, name.len())?;
        let state = ctx.data_mut();
        // What does not fit into the record is dropped.
        let fits = name.len() as u64 <= METRIC_NAME_BYTES_MAX
            && (state.usage.metrics.len() as u64) < METRICS_MAX;
        if state.grants.training.is_some() && fits {
            state.usage.metrics.push((name, milli));
        }
        Ok(())
    })
}

/// Keeps as much of a note as the seat's trace still holds.
fn note(mut ctx: Context<'_>, mut text: String) -> wasmtime::Result<()> {
    enter(&mut ctx, text.len())?;
    let state = ctx.data_mut();
    if state.usage.trace_cut {
        return Ok(());
    }
    let left = state.trace_bytes_left;
    let counted = u32::try_from(text.len()).unwrap_or(u32::MAX).max(NOTE_BYTES_MIN);
    match left.checked_sub(counted) {
        Some(rest) => state.trace_bytes_left = rest,
        None => {
            text.truncate(text.floor_char_boundary(left as usize));
            state.trace_bytes_left = 0;
            state.usage.trace_cut = true;
        }
    }
    if !text.is_empty() || !state.usage.trace_cut {
        state.usage.trace.push(text);
    }
    Ok(())
}
