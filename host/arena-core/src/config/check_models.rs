//! Checks the `[[models]]` tables of a tournament file.

use std::collections::BTreeSet;

use toml::Spanned;

use super::MODELS_MAX;
use super::check::Checked;
use super::error::Mistake;
use super::models::{
    CACHE_MIB, CACHE_MIB_MAX, CONCURRENCY, CONCURRENCY_MAX, CONTEXT_TOKENS, CONTEXT_TOKENS_MAX,
    CONTEXT_TOKENS_MIN, Device, ModelConfig, ModelSource, REMOTE_MODEL_BYTES_MAX, REMOTE_RETRIES,
    REMOTE_RETRIES_MAX, RemoteConfig, SLOTS, SLOTS_MAX, ServerKind, TIMEOUT_SECONDS,
    TIMEOUT_SECONDS_MAX, URL_BYTES_MAX, VARIABLE_BYTES_MAX, WeightsConfig, WeightsSource,
};
use super::parse::RawModel;
use super::values::{check_digest, check_length, check_name, check_path, number, number_or};

pub(super) fn check_models(raw: Vec<Spanned<RawModel>>) -> Checked<Vec<ModelConfig>> {
    let mut models = Vec::new();
    let mut names = BTreeSet::new();
    for given in raw {
        if models.len() >= MODELS_MAX {
            return Err(Mistake::at(given.span(), format!("more than `{MODELS_MAX}` models")));
        }
        let name = check_name(&given.get_ref().name)?;
        if !names.insert(name.clone()) {
            let span = given.get_ref().name.span();
            return Err(Mistake::at(span, format!("a second model named `{name}`")));
        }
        let source = check_source(&given, &name)?;
        models.push(ModelConfig { name, source });
    }
    Ok(models)
}

/// The keys that say what answers, in this order.
const SOURCES: [&str; 3] = ["script", "weights", "url"];

fn check_source(given: &Spanned<RawModel>, name: &str) -> Checked<ModelSource> {
    let raw = given.get_ref();
    let sources = [&raw.script, &raw.weights, &raw.url];
    let named: Vec<usize> = (0..SOURCES.len()).filter(|&at| sources[at].is_some()).collect();
    match named.as_slice() {
        [] => Err(Mistake::at(given.span(), "nothing answers for this model".to_owned())
            .hint("give it a `script`, `weights` or a `url`".to_owned())),
        &[only] => {
            check_effects(raw, only)?;
            check_chosen(raw, name)
        }
        &[first, second, ..] => {
            let span = sources[second].as_ref().map_or(0..0, Spanned::span);
            let message = format!("`{}` beside `{}`", SOURCES[second], SOURCES[first]);
            Err(Mistake::at(span, message).hint("a model has one of them".to_owned()))
        }
    }
}

/// Refuses a key that means nothing for what answers.
fn check_effects(raw: &RawModel, source: usize) -> Checked<()> {
    // Places in `SOURCES`.
    const WEIGHTS: &[usize] = &[1];
    const URL: &[usize] = &[2];
    const BOTH: &[usize] = &[1, 2];
    let keys = [
        ("device", raw.device.as_ref().map(Spanned::span), WEIGHTS),
        ("adapter", raw.adapter.as_ref().map(Spanned::span), WEIGHTS),
        ("context", raw.context.as_ref().map(Spanned::span), BOTH),
        ("cache_mib", raw.cache_mib.as_ref().map(Spanned::span), WEIGHTS),
        ("slots", raw.slots.as_ref().map(Spanned::span), WEIGHTS),
        ("sha256", raw.sha256.as_ref().map(Spanned::span), WEIGHTS),
        ("remote_model", raw.remote_model.as_ref().map(Spanned::span), URL),
        ("server", raw.server.as_ref().map(Spanned::span), URL),
        ("key_env", raw.key_env.as_ref().map(Spanned::span), URL),
        ("timeout_seconds", raw.timeout_seconds.as_ref().map(Spanned::span), URL),
        ("retries", raw.retries.as_ref().map(Spanned::span), URL),
        ("concurrency", raw.concurrency.as_ref().map(Spanned::span), URL),
    ];
    for (key, span, of) in keys {
        if let Some(span) = span
            && !of.contains(&source)
        {
            let message = format!("`{key}` has no effect on a model with `{}`", SOURCES[source]);
            return Err(Mistake::at(span, message).hint("leave it out".to_owned()));
        }
    }
    Ok(())
}

fn check_chosen(raw: &RawModel, name: &str) -> Checked<ModelSource> {
    if let Some(script) = &raw.script {
        return Ok(ModelSource::Script(check_path(script)?));
    }
    if let Some(weights) = &raw.weights {
        return Ok(ModelSource::Weights(check_weights(raw, weights)?));
    }
    let url = raw.url.as_ref().expect("one of the three is there");
    Ok(ModelSource::Remote(check_remote(raw, url, name)?))
}

fn check_weights(raw: &RawModel, given: &Spanned<String>) -> Checked<WeightsConfig> {
    let context = CONTEXT_TOKENS_MIN..=CONTEXT_TOKENS_MAX;
    Ok(WeightsConfig {
        weights: match WeightsSource::parse(&check_path(given)?) {
            WeightsSource::Named(_) => WeightsSource::Named(check_stored(given)?),
            path => path,
        },
        device: raw.device.as_ref().map_or(Ok(Device::default()), check_device)?,
        adapter: raw.adapter.as_ref().map(check_path).transpose()?,
        context_tokens: raw.context.as_ref().map(|given| number(given, context)).transpose()?,
        cache_mib: number_or(&raw.cache_mib, 1..=CACHE_MIB_MAX, CACHE_MIB)?,
        slots: number_or(&raw.slots, 1..=SLOTS_MAX, SLOTS)?,
        sha256: raw.sha256.as_ref().map(check_digest).transpose()?,
    })
}

/// Checks a name of the store, which is also that of a folder in it.
fn check_stored(given: &Spanned<String>) -> Checked<String> {
    let name = check_name(given).map_err(|mistake| {
        mistake.hint("a name of `arena model list`, or a path such as `./model.gguf`".to_owned())
    })?;
    if name.starts_with('.') {
        let message = format!("`{name}` is not the name of a model");
        return Err(Mistake::at(given.span(), message).hint("a path has a slash in it".to_owned()));
    }
    Ok(name)
}

fn check_device(given: &Spanned<String>) -> Checked<Device> {
    let found = Device::ALL.into_iter().find(|device| device.name() == given.get_ref());
    found.ok_or_else(|| unknown(given, &Device::ALL.map(Device::name)))
}

fn check_server(given: &Spanned<String>) -> Checked<ServerKind> {
    let found = ServerKind::ALL.into_iter().find(|kind| kind.name() == given.get_ref());
    found.ok_or_else(|| unknown(given, &ServerKind::ALL.map(ServerKind::name)))
}

/// Lists what is known. The nearest alone would not do: `gpu` is nearer to `cpu` than to what is
/// meant.
fn unknown(given: &Spanned<String>, known: &[&str]) -> Mistake {
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    Mistake::at(given.span(), format!("unknown value `{}`", given.get_ref()))
        .hint(format!("known here: {}", known.join(", ")))
}

fn check_remote(raw: &RawModel, url: &Spanned<String>, name: &str) -> Checked<RemoteConfig> {
    let remote_model = match &raw.remote_model {
        Some(given) => {
            check_length(given, 1..=REMOTE_MODEL_BYTES_MAX)?;
            given.get_ref().clone()
        }
        None => name.to_owned(),
    };
    let context = CONTEXT_TOKENS_MIN..=CONTEXT_TOKENS_MAX;
    let timeout = 1..=TIMEOUT_SECONDS_MAX;
    Ok(RemoteConfig {
        url: check_url(url)?,
        remote_model,
        server: raw.server.as_ref().map_or(Ok(ServerKind::default()), check_server)?,
        key_env: raw.key_env.as_ref().map(check_variable).transpose()?,
        timeout_seconds: number_or(&raw.timeout_seconds, timeout, TIMEOUT_SECONDS)?,
        retries: number_or(&raw.retries, 0..=REMOTE_RETRIES_MAX, REMOTE_RETRIES)?,
        concurrency: number_or(&raw.concurrency, 1..=CONCURRENCY_MAX, CONCURRENCY)?,
        context_tokens: number_or(&raw.context, context, CONTEXT_TOKENS)?,
    })
}

fn check_url(given: &Spanned<String>) -> Checked<String> {
    check_length(given, 1..=URL_BYTES_MAX)?;
    let url = given.get_ref();
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| url.strip_prefix(scheme));
    let is_address = |rest: &str| !rest.is_empty() && !rest.starts_with('/');
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let Some(rest) = rest.filter(|rest| is_address(rest) && is_plain) else {
        let message = format!("`{url}` is not an address");
        return Err(Mistake::at(given.span(), message)
            .hint("such as `http://127.0.0.1:8080/v1`".to_owned()));
    };
    // The file is published with the log.
    if rest.split('/').next().unwrap_or_default().contains('@') || url.contains(['?', '#']) {
        let message = "an address holds no user, password or query".to_owned();
        return Err(Mistake::at(given.span(), message)
            .hint("name an environment variable that holds the key: `key_env`".to_owned()));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn check_variable(given: &Spanned<String>) -> Checked<String> {
    let name = given.get_ref();
    let is_variable = (1..=VARIABLE_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit();
    if is_variable {
        return Ok(name.clone());
    }
    // Whoever wrote the key itself here must not see it in a message that others may see.
    let message = "not the name of an environment variable".to_owned();
    Err(Mistake::at(given.span(), message)
        .hint("give the variable's name, such as `OPENAI_API_KEY`, and never the key".to_owned()))
}
