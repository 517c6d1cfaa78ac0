//! Says before the first match where agents will not get from language models what they ask for.
//!
//! Nothing is wrong then: an agent may do without. But whoever reads its score should know that no
//! model earned it, or that one earned it with less than the agent asks for. It is told on standard
//! error and stands in no record.
//!
//! Not here: what a server of some kind offers (`arena_remote`), what agents do without a model.

use arena_core::config::models::ServerKind;
use arena_core::config::{ModelConfig, ModelSource};

use crate::render::transcript::count;

/// Most agents that one note names.
const NAMED_MAX: usize = 8;

/// What an agent can ask, and of whom it may.
pub struct Borrower<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its component can ask a model at all.
    pub asks_models: bool,
    /// The models that it is lent, by name.
    pub models: &'a [String],
}

/// Returns a note if agents that can ask a model are lent none. `advice` says how to lend one.
pub fn note_unlent(borrowers: &[Borrower<'_>], advice: &str) -> Option<String> {
    let unlent = borrowers.iter().filter(|of| of.asks_models && of.models.is_empty());
    let names = list(unlent.map(|of| of.name))?;
    Some(format!(
        "note: no language model is lent to {names}: such an agent plays a fallback then, a \
         built-in one its formula; {advice}"
    ))
}

/// Returns a note for each model whose server knows no field for what agents may ask of it.
pub fn note_limited(models: &[ModelConfig], borrowers: &[Borrower<'_>]) -> Vec<String> {
    let is_limited = |model: &&ModelConfig| match &model.source {
        ModelSource::Remote(remote) => remote.server == ServerKind::OpenAi,
        ModelSource::Script(_) | ModelSource::Weights(_) => false,
    };
    let note = |model: &ModelConfig| {
        let asking =
            borrowers.iter().filter(|of| of.asks_models && of.models.contains(&model.name));
        let names = list(asking.map(|of| of.name))?;
        Some(format!(
            "note: model `{}` does not offer grammars, top-k or min-p, as its server is of kind \
             `openai`: requests of {names} for them are refused, and agents of this program then \
             ask without them; a server that does is of kind `vllm` or `llama-server`",
            model.name
        ))
    };
    models.iter().filter(is_limited).filter_map(note).collect()
}

/// Names each agent once; `None` where there is none.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut shown: Vec<&str> = Vec::new();
    for name in names {
        if !shown.contains(&name) {
            shown.push(name);
        }
    }
    let more = shown.len().saturating_sub(NAMED_MAX);
    let mut shown: Vec<String> =
        shown.into_iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    if more > 0 {
        shown.push(count(more as u64, "more agent"));
    }
    let last = shown.pop()?;
    match shown.is_empty() {
        true => Some(last),
        false => Some(format!("{} and {last}", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_named_once_and_not_without_end() {
        let all = |names: &[&'static str]| list(names.iter().copied());
        assert_eq!(all(&[]), None);
        assert_eq!(all(&["a", "a"]).as_deref(), Some("`a`"));
        assert_eq!(all(&["a", "b", "c"]).as_deref(), Some("`a`, `b` and `c`"));
        let many = all(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).expect("a list");
        assert!(many.ends_with("`g`, `h` and 2 more agents"), "{many}");
    }

    #[test]
    fn only_agents_that_can_ask_and_may_not_are_named() {
        let lent = ["m".to_owned()];
        let of = |name, asks_models, models| Borrower { name, asks_models, models };
        let all = [of("formula", false, &[][..]), of("lent", true, &lent), of("bare", true, &[])];
        let note = note_unlent(&all, "lend it").expect("a note");
        assert!(note.contains("lent to `bare`: such"), "{note}");
        assert_eq!(note_unlent(&all[..2], "lend it"), None);
    }
}
