//! Language models behind OpenAI-compatible servers.
//!
//! [`model::RemoteModel`] sends a request to a server and checks what comes back. Servers are not
//! trusted: whatever one does wrong, slow, endless or forged, is
//! [`arena_llm::model::ModelError::Unavailable`] after a bounded time and within bounded memory,
//! and never a sporting result. The key is read from an environment variable and is in no message.
//!
//! What a server replies can neither be computed again nor scored by us, and a message that spells
//! the marks of a server's chat template may be read as them there.
//!
//! Not here: budgets (`arena-llm`), matches, engines of our own (`arena-model`).

pub mod model;
pub mod options;

mod endpoint;
mod exchange;
mod excerpt;
mod llama_server;
mod reply;
mod wire;
