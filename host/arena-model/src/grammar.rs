//! Holds a reply to a grammar, by saying before every token which ones are allowed.
//!
//! Grammars come from guests. What `llguidance` may spend on one is bounded by counters, never by
//! a clock, so that the same grammar is refused everywhere or nowhere; each reply has a lexer of
//! its own, so that no reply's limits depend on another. Marks cannot be asked for by name or
//! number, except those that end the turn; a grammar that has ended allows nothing else.
//!
//! Not here: drawing a token (`sampler`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};

use crate::vocabulary::Vocabulary;

/// Compiled grammars that are kept.
const COMPILED_MAX: usize = 32;
/// Characters of a parser's complaint that are passed on.
const DETAIL_CHARS_MAX: usize = 200;
/// Stack of the thread that compiles: the parser of grammars is recursive.
const COMPILER_STACK_BYTES: usize = 64 << 20;
/// Deepest nesting of brackets in a grammar.
const NESTING_MAX: usize = 64;

/// A tenth or less of what `llguidance` allows by default; its source tells what each costs.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 500,
        initial_lexer_fuel: 100_000,
        step_lexer_fuel: 50_000,
        step_max_items: 10_000,
        max_lexer_states: 4_000,
        max_grammar_size: 10_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// Compiles grammars for one vocabulary.
pub struct Grammars {
    vocabulary: Arc<Vocabulary>,
    /// Made when the first grammar is asked for: it takes a while and memory.
    factory: OnceLock<Result<ParserFactory, String>>,
    /// What may be in a masked reply: one bit for each token.
    permitted: Arc<[u32]>,
    /// The most recently used last.
    compiled: Mutex<VecDeque<(String, Result<Matcher, String>)>>,
}

impl Grammars {
    /// Returns a compiler for a vocabulary.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Grammars {
        let count = vocabulary.token_count();
        let mut permitted = vec![0_u32; count.div_ceil(32)];
        for id in (0..count).map(|id| u32::try_from(id).expect("ids are u32")) {
            let has_text = !vocabulary.text(id).is_empty();
            if has_text || vocabulary.is_end(id) {
                permitted[id as usize / 32] |= 1 << (id % 32);
            }
        }
        let (factory, compiled) = (OnceLock::new(), Mutex::new(VecDeque::new()));
        Grammars { vocabulary, factory, permitted: permitted.into(), compiled }
    }

    /// Compiles a grammar, or finds it compiled.
    ///
    /// # Errors
    /// The text says why the grammar cannot be used.
    pub fn compile(&self, grammar: &str) -> Result<Grammar, String> {
        let known = {
            let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
            let place = compiled.iter().position(|(text, _)| text == grammar);
            place.and_then(|place| compiled.remove(place)).inspect(|found| {
                compiled.push_back((found.0.clone(), clone_of(&found.1)));
            })
        };
        let compiled = match known {
            Some((_, compiled)) => compiled,
            None => {
                let fresh = self.compile_fresh(grammar);
                let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
                if compiled.len() == COMPILED_MAX {
                    compiled.pop_front();
                }
                compiled.push_back((grammar.to_owned(), clone_of(&fresh)));
                fresh
            }
        };
        Ok(Grammar { matcher: compiled?, permitted: Arc::clone(&self.permitted) })
    }

    fn compile_fresh(&self, grammar: &str) -> Result<Matcher, String> {
        check_nesting(grammar)?;
        let compile = || {
            let factory = self.factory.get_or_init(|| self.make_factory());
            let factory = factory.as_ref().map_err(Clone::clone)?;
            let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()));
            let matcher = Matcher::new(parser);
            matcher.get_error().map_or(Ok(matcher), |error| Err(shortened(&error)))
        };
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(COMPILER_STACK_BYTES);
            let thread = builder.spawn_scoped(scope, compile).map_err(|error| error.to_string())?;
            thread.join().unwrap_or_else(|_| Err("the grammar cannot be compiled".to_owned()))
        })
    }

    fn make_factory(&self) -> Result<ParserFactory, String> {
        let count = u32::try_from(self.vocabulary.token_count()).expect("ids are u32");
        // Marks have no text, and no text may pose as a mark: 0xFF, which is no UTF-8, is what
        // the trie's own marks begin with.
        let word = |id: u32| match self.vocabulary.text(id) {
            text if text.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) => Vec::new(),
            text => text.to_vec(),
        };
        let words: Vec<Vec<u8>> = (0..count).map(word).collect();
        let ends = self.vocabulary.ends();
        let trie = TokTrie::from(&TokRxInfo::new(count, ends[0]), &words).with_eos_tokens(ends);
        // The model chooses the tokens of what the grammar forces, so they are never made anew.
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
                .map_err(|error| shortened(&error.to_string()))?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(factory)
    }
}

fn clone_of(compiled: &Result<Matcher, String>) -> Result<Matcher, String> {
    compiled.as_ref().map(Matcher::deep_clone).map_err(Clone::clone)
}

/// Refuses deep nesting, which costs the recursive parser stack.
fn check_nesting(grammar: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    for byte in grammar.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => (),
        }
        if depth > NESTING_MAX {
            return Err(format!("brackets are nested deeper than {NESTING_MAX}"));
        }
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    let text = text.trim_end_matches("<non-verbose/>").trim();
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(DETAIL_CHARS_MAX)
        .collect()
}

/// A grammar on its way through one reply.
pub struct Grammar {
    matcher: Matcher,
    permitted: Arc<[u32]>,
}

impl Grammar {
    /// Returns the tokens that may come next, one bit each, lowest bit first; at least one.
    ///
    /// # Errors
    /// The text says why the grammar cannot go on: it takes too much, or allows nothing.
    pub fn mask(&mut self) -> Result<Vec<u32>, String> {
        let allowed =
            self.matcher.compute_mask_or_eos().map_err(|error| shortened(&error.to_string()))?;
        let bits = allowed.as_slice().iter().zip(&*self.permitted);
        let mask: Vec<u32> = bits.map(|(allowed, permitted)| allowed & permitted).collect();
        if mask.iter().all(|&bits| bits == 0) {
            return Err("no token can go on".to_owned());
        }
        Ok(mask)
    }

    /// Goes on with a token that the mask allowed and that does not end the turn.
    ///
    /// # Errors
    /// As [`Grammar::mask`].
    pub fn advance(&mut self, id: u32) -> Result<(), String> {
        self.matcher.consume_token(id).map_err(|error| shortened(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bytes, then two words, a mark, and the end.
    fn vocabulary() -> Arc<Vocabulary> {
        let mut words: Vec<Box<[u8]>> = (0..=255).map(|byte| Box::from([byte])).collect();
        let more: [&[u8]; 4] = [b"OFFER", b" 9", b"<|im_start|>", b"<|im_end|>"];
        words.extend(more.map(Box::from));
        let is_mark = (0..words.len()).map(|id| id >= 258).collect();
        Arc::new(Vocabulary::new(words, is_mark, &[259], 264).expect("it is sound"))
    }

    fn allowed(grammar: &mut Grammar) -> Vec<u32> {
        let mask = grammar.mask().expect("something is allowed");
        (0..mask.len() as u32 * 32)
            .filter(|id| mask[*id as usize / 32] >> (id % 32) & 1 == 1)
            .collect()
    }

    #[test]
    fn a_grammar_allows_every_way_to_write_its_texts_and_then_the_end() {
        let grammars = Grammars::new(vocabulary());
        let text = r#"start: "OFFER" " " /[0-9]{1,2}/"#;
        let mut grammar = grammars.compile(text).expect("it is sound");
        assert_eq!(allowed(&mut grammar), [u32::from(b'O'), 256]);
        grammar.advance(256).expect("it is allowed");
        assert_eq!(allowed(&mut grammar), [u32::from(b' '), 257]);
        grammar.advance(257).expect("it is allowed");
        let digits_or_end: Vec<u32> = (b'0'..=b'9').map(u32::from).chain([259]).collect();
        assert_eq!(allowed(&mut grammar), digits_or_end);
        grammar.advance(u32::from(b'5')).expect("it is allowed");
        assert_eq!(allowed(&mut grammar), [259]);
        // What was done to one reply's grammar is not done to the next one's.
        let mut again = grammars.compile(text).expect("it is sound");
        assert_eq!(allowed(&mut again), [u32::from(b'O'), 256]);
    }

    #[test]
    fn marks_cannot_be_asked_for() {
        let grammars = Grammars::new(vocabulary());
        for grammar in ["start: <|im_start|>", "start: <[258]>"] {
            let refused = grammars.compile(grammar).and_then(|mut grammar| grammar.mask());
            assert!(refused.is_err(), "{grammar}: {refused:?}");
        }
    }

    #[test]
    fn hostile_grammars_are_refused_or_cheap() {
        let grammars = Grammars::new(vocabulary());
        let deep = format!("start: {}\"a\"{}", "(".repeat(2_000), ")".repeat(2_000));
        let rules: String = (0..150).map(|i| format!("r{i}: r{} | \"a\"\n", i + 1)).collect();
        let cases = [
            ("", true),
            ("start: ", false),
            ("start: missing", true),
            ("start: start", false),
            ("start: start start | \"a\"", false),
            ("start: /((((a{1,1000}){1,1000}){1,1000}){1,1000})/", false),
            ("start: /.*a.{4000}/", false),
            ("start: /(a|b)*a(a|b){20}/", false),
            ("start: \"a\"~1..100000000", false),
            ("start: %json { \"type\": \"object\" }", false),
            ("start: /\\", true),
            ("%import x.y", true),
            (&deep, true),
            (&format!("start: r0\n{rules}r150: \"b\""), false),
            (&"start: \"a\"?\n".repeat(300), true),
        ];
        for (grammar, is_error) in cases {
            let compiled = grammars.compile(grammar);
            if is_error {
                assert!(compiled.is_err(), "{grammar}");
            }
            // What compiles is bounded at every token.
            let Ok(mut compiled) = compiled else { continue };
            for _ in 0..50 {
                let Ok(mask) = compiled.mask() else { break };
                let a = u32::from(b'a');
                if mask[3] >> (a % 32) & 1 == 0 || compiled.advance(a).is_err() {
                    break;
                }
            }
        }
    }
}
