//! Whatever fails, nobody waits for ever.

use std::sync::Arc;

use arena_llm::model::{LanguageModel, ModelError};
use arena_model::engine::{Engine, EngineOptions, ModelParts};
use arena_model::error::EngineError;
use arena_model::executor::{AdapterId, Batch, BlockId, Executor, ExecutorError};
use arena_weights::adapter::Adapter;
use arena_weights::config::ModelConfig;

use crate::fixture::{Setup, at_once, executor, options, request, weights};

/// What a step does after the first ones.
#[derive(Clone, Copy)]
enum Fate {
    Fail,
    Panic,
    NotANumber,
}

struct Fragile {
    inner: arena_model::cpu::CpuExecutor,
    steps_left: usize,
    fate: Fate,
}

impl Executor for Fragile {
    fn shape(&self) -> &ModelConfig {
        self.inner.shape()
    }

    fn description(&self) -> String {
        "device=fragile".to_owned()
    }

    fn block_count(&self) -> usize {
        self.inner.block_count()
    }

    fn forward(&mut self, batch: &Batch, logits: &mut Vec<f32>) -> Result<(), ExecutorError> {
        self.inner.forward(batch, logits)?;
        if self.steps_left > 0 {
            self.steps_left -= 1;
            return Ok(());
        }
        match self.fate {
            Fate::Fail => Err(ExecutorError::Device("out of memory".to_owned())),
            Fate::Panic => panic!("a bug"),
            Fate::NotANumber => {
                logits.fill(f32::NAN);
                Ok(())
            }
        }
    }

    fn copy_rows(&mut self, from: BlockId, to: BlockId, rows: usize) -> Result<(), ExecutorError> {
        self.inner.copy_rows(from, to, rows)
    }

    fn set_adapter(
        &mut self,
        slot: AdapterId,
        adapter: Option<&Adapter>,
    ) -> Result<(), ExecutorError> {
        self.inner.set_adapter(slot, adapter)
    }
}

fn fragile(fate: Fate, slots: usize) -> Arc<Engine> {
    let weights = weights("tiny-llama");
    let setup = Setup { slots, ..Setup::default() };
    let inner = executor(&weights, setup);
    let parts = ModelParts::read(&weights, [0; 32]).expect("the fixture is sound");
    let executor = Box::new(Fragile { inner, steps_left: 4, fate });
    Engine::start(executor, parts, options(setup)).expect("the engine starts")
}

#[test]
fn when_the_executor_fails_every_waiting_and_later_caller_learns_why() {
    for (fate, reason) in
        [(Fate::Fail, "device failed: out of memory"), (Fate::Panic, "the engine panicked: a bug")]
    {
        let engine = fragile(fate, 2);
        let requests: Vec<_> = (0..12).map(|index| request("Go on.", 200, index)).collect();
        let unavailable = Err(ModelError::Unavailable(reason.to_owned()));
        for reply in at_once(&engine, &requests) {
            // The first may have ended before.
            assert!(reply.is_ok() || reply == unavailable, "{reply:?}");
        }
        assert_eq!(engine.complete(&requests[0]), unavailable);
        let swapped = engine.swap_adapter(None);
        assert!(matches!(swapped, Err(EngineError::Failed(why)) if why == reason));
    }
}

#[test]
fn logits_that_are_no_numbers_fail_the_reply_and_not_the_engine() {
    let engine = fragile(Fate::NotANumber, 4);
    for _ in 0..2 {
        let reply = engine.complete(&request("Go on.", 200, 0));
        assert!(matches!(reply, Err(ModelError::Unavailable(_))), "{reply:?}");
    }
}

#[test]
fn options_out_of_their_bounds_are_refused() {
    let weights = weights("tiny-llama");
    let refused = |setup: Setup, change: &dyn Fn(&mut EngineOptions)| {
        let mut options = options(setup);
        change(&mut options);
        let parts = ModelParts::read(&weights, [0; 32]).expect("the fixture is sound");
        let started = Engine::start(Box::new(executor(&weights, setup)), parts, options);
        started.err().expect("it is refused").to_string()
    };
    let base = Setup::default();
    let small = Setup { blocks: 16, ..base };
    for (setup, change, message) in [
        (base, (|o| o.slots = 0) as fn(&mut EngineOptions), "`slots` is 0, allowed are 1 to 1024"),
        (base, |o| o.step_tokens = 64, "`step-tokens` is 64, allowed are 80 to 7168"),
        (
            base,
            |o| o.context_tokens = Some(257),
            "context is 257 tokens, allowed are 2 to the model's 256",
        ),
        (small, |_| (), "cache has 16 blocks, one context takes 17"),
    ] {
        assert_eq!(refused(setup, &change), message);
    }
    let tiny = arena_model::cpu::CpuExecutor::load(&weights, std::num::NonZeroUsize::MIN, 100);
    assert_eq!(
        tiny.err().expect("it is refused").to_string(),
        "a cache of 100 bytes has no place for a block of 8192 bytes"
    );
}
