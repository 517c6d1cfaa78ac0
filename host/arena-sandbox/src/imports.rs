//! The interfaces of arena that a guest may call besides models: training and trace.
//!
//! Not here: language models (`inference`) and WASI (`wasi`).

use arena_core::config::limits::{METRIC_NAME_BYTES_MAX, METRICS_MAX};
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::bindings::arena::negotiation::training;
use crate::inference;
use crate::state::{SeatState, TrainingMode, enter};

/// What a note counts at least, in bytes: its length field in the record.
const NOTE_BYTES_MIN: u32 = 4;

type Context<'a> = StoreContextMut<'a, SeatState>;

/// Defines the imports of the world `agent`.
pub(crate) fn link(linker: &mut Linker<SeatState>) -> wasmtime::Result<()> {
    // The instance exists even where a guest imports only its types.
    linker.instance("arena:negotiation/types@0.1.0")?;
    inference::link(linker)?;
    link_training(linker)?;
    let mut trace = linker.instance("arena:negotiation/trace@0.1.0")?;
    trace.func_wrap("note", |ctx: Context<'_>, (text,): (String,)| note(ctx, text))
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
