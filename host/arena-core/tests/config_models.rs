//! The `[[models]]` tables of a tournament file: every key, and what holds where none is given.

use arena_core::config::models::{
    CACHE_MIB, CONCURRENCY, CONTEXT_TOKENS, Device, REMOTE_RETRIES, RemoteConfig, SLOTS,
    ServerKind, TIMEOUT_SECONDS, WeightsConfig, WeightsSource,
};
use arena_core::config::{ModelSource, TournamentConfig};

fn source(keys: &str) -> ModelSource {
    let text = format!(
        "name = \"m\"\nself_play = true\n[catalog]\nkind = \"synthetic\"\nitems = 1\n\
         [[agents]]\nname = \"a\"\ncomponent = \"builtin:a\"\nmodels = [\"small\"]\n\
         [[models]]\nname = \"small\"\n{keys}\n"
    );
    let config = TournamentConfig::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    config.models.into_iter().next().expect("one model").source
}

#[test]
fn weights_alone_take_every_default() {
    let expected = WeightsConfig {
        weights: WeightsSource::Named("smollm2".to_owned()),
        device: Device::Cpu,
        adapter: None,
        context_tokens: None,
        cache_mib: CACHE_MIB,
        slots: SLOTS,
        sha256: None,
    };
    assert_eq!(source("weights = \"smollm2\""), ModelSource::Weights(expected));
}

#[test]
fn every_key_of_weights_reaches_its_field() {
    let digest = "ab".repeat(32);
    let keys = format!(
        "weights = \"../models/tiny.gguf\"\ndevice = \"wgpu\"\nadapter = \"lora\"\n\
         context = 1024\ncache_mib = 96\nslots = 8\nsha256 = \"{digest}\""
    );
    let expected = WeightsConfig {
        weights: WeightsSource::Path("../models/tiny.gguf".to_owned()),
        device: Device::Wgpu,
        adapter: Some("lora".to_owned()),
        context_tokens: Some(1_024),
        cache_mib: 96,
        slots: 8,
        sha256: Some([0xab; 32]),
    };
    assert_eq!(source(&keys), ModelSource::Weights(expected));
}

#[test]
fn a_slash_or_an_ending_makes_a_path() {
    for path in ["./smollm2", "m.gguf", "/models/m", "a/b"] {
        assert_eq!(WeightsSource::parse(path), WeightsSource::Path(path.to_owned()));
    }
    for name in ["smollm2", "qwen3-0.6b", "gguf"] {
        assert_eq!(WeightsSource::parse(name), WeightsSource::Named(name.to_owned()));
    }
}

#[test]
fn a_server_is_asked_for_the_model_by_its_own_name_unless_told() {
    let expected = RemoteConfig {
        url: "http://127.0.0.1:8080/v1".to_owned(),
        remote_model: "small".to_owned(),
        server: ServerKind::OpenAi,
        key_env: None,
        timeout_seconds: TIMEOUT_SECONDS,
        retries: REMOTE_RETRIES,
        concurrency: CONCURRENCY,
        context_tokens: CONTEXT_TOKENS,
    };
    assert_eq!(source("url = \"http://127.0.0.1:8080/v1/\""), ModelSource::Remote(expected));
}

#[test]
fn every_key_of_a_server_reaches_its_field() {
    let keys = "url = \"https://arena.example/v1\"\nremote_model = \"org/small\"\n\
                server = \"vllm\"\n\
                key_env = \"ARENA_MODEL_KEY\"\ntimeout_seconds = 7\nretries = 0\n\
                concurrency = 2\ncontext = 512";
    let expected = RemoteConfig {
        url: "https://arena.example/v1".to_owned(),
        remote_model: "org/small".to_owned(),
        server: ServerKind::Vllm,
        key_env: Some("ARENA_MODEL_KEY".to_owned()),
        timeout_seconds: 7,
        retries: 0,
        concurrency: 2,
        context_tokens: 512,
    };
    assert_eq!(source(keys), ModelSource::Remote(expected));
}
