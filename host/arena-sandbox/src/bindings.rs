//! Types and typed calls generated from `guest-sdk/wit/arena.wit`, world `agent`.
//!
//! Not here: what the imports do (`imports`, `inference`).

#![allow(missing_docs, reason = "generated: the WIT file documents these items")]

wasmtime::component::bindgen!({
    world: "agent",
    path: "../../guest-sdk/wit",
    imports: { default: trappable },
    with: { "arena:negotiation/inference.chat": crate::inference::Chat },
});
