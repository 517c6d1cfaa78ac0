//! From a row of logits to a token and its log-probabilities.
//!
//! In this order: tokens that a grammar forbids, and ids without a meaning, are left out; the
//! logits are divided by the temperature; of what is left, top-k keeps the likeliest, then top-p
//! the smallest number of likeliest whose share reaches it, then min-p those with at least its
//! share of the likeliest one's probability. That is the order of `transformers`; vLLM puts min-p
//! before top-k, and llama.cpp divides by the temperature last, so that their top-p and min-p
//! look at other distributions unless the temperature is 1. Ties go to the lower id. Temperature
//! 0 takes the likeliest token that is allowed.
//!
//! Sums are in f64 and in a fixed order, exponentials the kernels': the same bits everywhere.
//!
//! Not here: where draws come from (`sequence`), masks (`grammar`).

use arena_core::seat::{SampledToken, Sampling, TOP_TOKENS_MAX, TokenScore};
use arena_kernels::choice::top_k;
use arena_kernels::reduction::{exp, exp_and_sum, maximum, weighted_sum};

/// Logits whose exponentials are summed in one go.
const CHUNK: usize = 1_024;
/// How many of the likeliest tokens are looked at first for a cut; then this factor more.
const PREFIX_FIRST: usize = 64;
const PREFIX_FACTOR: usize = 16;

/// The logits of a row are no distribution: one is NaN or infinite, or all are lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDistribution;

/// What a token is sampled from.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The model's logits, `[vocab]`.
    pub logits: &'a [f32],
    /// Ids from here on have no meaning and are never sampled.
    pub token_count: usize,
    /// The allowed tokens, one bit each, lowest bit first; `None` allows all.
    pub mask: Option<&'a [u32]>,
}

/// Which token is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The one that 64 random bits say.
    Draw(u64),
    /// This one, to be scored.
    Forced(u32),
}

/// Picks a token and scores it.
///
/// # Errors
/// See [`NoDistribution`].
pub fn sample(
    row: Row<'_>,
    sampling: Sampling,
    pick: Pick,
) -> Result<SampledToken, NoDistribution> {
    let own = Exponentials::new(row.logits, 1.0)?;
    let (id, sampled) = if sampling.temperature_milli == 0 {
        let likeliest = likeliest(row).ok_or(NoDistribution)?;
        match pick {
            Pick::Forced(id) if id != likeliest => (id, f64::NEG_INFINITY),
            Pick::Forced(_) | Pick::Draw(_) => (likeliest, 0.0),
        }
    } else {
        Distribution::new(row, sampling)?.pick(pick)
    };
    let score = |id: u32| micro(own.log_probability(row.logits[id as usize]));
    let top = top_k(row.logits, TOP_TOKENS_MAX);
    let top = top.into_iter().map(|(id, _)| TokenScore { id, logprob_micro: score(id) }).collect();
    Ok(SampledToken { id, logprob_micro: score(id), sampled_logprob_micro: micro(sampled), top })
}

/// What is said of a token under the whole distribution of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScore {
    /// The natural logarithm of its probability: what [`sample`] gives in millionths where
    /// nothing is cut.
    pub logprob: f64,
    /// The distribution's entropy, in nats.
    pub entropy: f64,
    /// The largest logit.
    pub max: f32,
    /// `ln(sum(e^((x - max) / temperature)))`.
    pub log_total: f64,
}

/// Scores a token under the softmax of `logits / temperature`, whose entropy is
/// `ln(total) - sum(e^s s) / total` with `s = (x - max) / temperature`.
///
/// # Errors
/// See [`NoDistribution`].
///
/// # Panics
/// If there is no logit for the token.
pub fn score(logits: &[f32], token: u32, temperature: f32) -> Result<RowScore, NoDistribution> {
    let mut moment = 0.0;
    let all = Exponentials::sum_up(logits, temperature, |scaled, weights| {
        moment += f64::from(weighted_sum(weights, scaled));
    })?;
    let log_total = libm::log(all.total);
    Ok(RowScore {
        logprob: all.log_probability(logits[token as usize]),
        entropy: log_total - moment / all.total,
        max: all.max,
        log_total,
    })
}

/// Scales a logarithm to millionths; what is too small is the lowest number.
fn micro(logarithm: f64) -> i32 {
    // A cast from f64 takes the nearest i32.
    (logarithm * 1e6).round() as i32
}

/// The sums of `e^((x - max) / temperature)`, in chunks.
struct Exponentials<'a> {
    logits: &'a [f32],
    max: f32,
    temperature: f32,
    sums: Vec<f32>,
    total: f64,
}

impl<'a> Exponentials<'a> {
    fn new(logits: &'a [f32], temperature: f32) -> Result<Exponentials<'a>, NoDistribution> {
        Exponentials::sum_up(logits, temperature, |_, _| ())
    }

    /// Sums the exponentials of chunks. `each` is shown what is scaled of a chunk, and their
    /// exponentials.
    fn sum_up(
        logits: &'a [f32],
        temperature: f32,
        mut each: impl FnMut(&[f32], &[f32]),
    ) -> Result<Exponentials<'a>, NoDistribution> {
        let max = maximum(logits);
        let (mut scaled, mut weights) = ([0.0; CHUNK], [0.0; CHUNK]);
        let sums = logits
            .chunks(CHUNK)
            .map(|chunk| {
                let (scaled, weights) = (&mut scaled[..chunk.len()], &mut weights[..chunk.len()]);
                scale(chunk, max, temperature, scaled);
                weights.copy_from_slice(scaled);
                let sum = exp_and_sum(weights, 0.0);
                each(scaled, weights);
                sum
            })
            .collect::<Vec<f32>>();
        let total = sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
        // The likeliest token adds 1, so a sound total is at least that.
        let is_sound = max.is_finite() && total.is_finite() && total >= 1.0;
        is_sound
            .then_some(Exponentials { logits, max, temperature, sums, total })
            .ok_or(NoDistribution)
    }

    fn weight(&self, logit: f32) -> f32 {
        exp((logit - self.max) / self.temperature)
    }

    fn log_probability(&self, logit: f32) -> f64 {
        f64::from((logit - self.max) / self.temperature) - libm::log(self.total)
    }

    /// Returns the first token at which the sum of weights passes the drawn share of all.
    fn draw(&self, bits: u64) -> u32 {
        let mut left = unit(bits) * self.total;
        let mut last = 0;
        for (chunk, sum) in self.sums.iter().enumerate() {
            if f64::from(*sum) <= left {
                left -= f64::from(*sum);
                continue;
            }
            let start = chunk * CHUNK;
            for (place, &logit) in self.logits[start..].iter().take(CHUNK).enumerate() {
                let weight = f64::from(self.weight(logit));
                if weight > 0.0 {
                    last = start + place;
                }
                if weight > left {
                    return id(last);
                }
                left -= weight;
            }
            // Rounding can leave a little at the end of the chunk: its last token has it.
            return id(last);
        }
        // The same at the end of all.
        let behind = self.logits.iter().rposition(|&logit| self.weight(logit) > 0.0);
        id(behind.expect("the likeliest token has a weight"))
    }
}

fn scale(logits: &[f32], max: f32, temperature: f32, out: &mut [f32]) {
    for (out, logit) in out.iter_mut().zip(logits) {
        *out = (logit - max) / temperature;
    }
}

fn id(place: usize) -> u32 {
    u32::try_from(place).expect("ids are u32")
}

/// Returns a number in 0..1 with 53 random bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the likeliest token that is allowed.
fn likeliest(row: Row<'_>) -> Option<u32> {
    let logits = &row.logits[..row.token_count];
    let Some(mask) = row.mask else {
        return arena_kernels::choice::arg_max(logits);
    };
    let better = |best: Option<(u32, f32)>, next: (u32, f32)| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    };
    allowed(logits, mask).fold(None, better).map(|(id, _)| id)
}

/// Goes through the allowed tokens and their logits, by id.
fn allowed<'a>(logits: &'a [f32], mask: &'a [u32]) -> impl Iterator<Item = (u32, f32)> + 'a {
    let words = logits.chunks(32).zip(mask).enumerate();
    words.flat_map(|(word, (logits, bits))| {
        let set = (0..logits.len()).filter(move |place| bits >> place & 1 == 1);
        set.map(move |place| (id(word * 32 + place), logits[place]))
    })
}

/// What is left of a row's distribution after mask, temperature and cuts.
enum Distribution<'a> {
    /// Nothing is left out.
    Whole(Exponentials<'a>),
    /// These tokens with their weights, and the sum of the weights.
    Cut { tokens: Vec<(u32, f32, f32)>, total: f64 },
}

impl<'a> Distribution<'a> {
    fn new(row: Row<'a>, sampling: Sampling) -> Result<Distribution<'a>, NoDistribution> {
        let logits = &row.logits[..row.token_count];
        let temperature = sampling.temperature_milli as f32 / 1_000.0;
        let top_k_count = match sampling.top_k as usize {
            0 => logits.len(),
            count => count.min(logits.len()),
        };
        let is_cut = sampling.top_p_milli < 1_000 || sampling.min_p_milli > 0;
        if row.mask.is_none() && top_k_count == logits.len() {
            let all = Exponentials::new(logits, temperature)?;
            return Ok(if is_cut { cut_whole(&all, sampling) } else { Distribution::Whole(all) });
        }
        let mut tokens: Vec<(u32, f32)> = match row.mask {
            Some(mask) => allowed(logits, mask).collect(),
            None => top_k(logits, top_k_count),
        };
        if row.mask.is_some() && (is_cut || top_k_count < tokens.len()) {
            let by_logit = |left: &(u32, f32), right: &(u32, f32)| {
                right.1.partial_cmp(&left.1).expect("sound logits are no NaN")
            };
            // A stable sort: ties stay in the order of ids.
            tokens.sort_by(by_logit);
            tokens.truncate(top_k_count);
        }
        let max = tokens.iter().map(|&(_, logit)| logit).fold(f32::NEG_INFINITY, f32::max);
        if !max.is_finite() {
            return Err(NoDistribution);
        }
        let mut tokens = weigh(tokens, max, temperature);
        let total = sum(&tokens);
        if let Some(kept) = kept_count(&tokens, total, sampling) {
            tokens.truncate(kept);
        }
        let total = sum(&tokens);
        Ok(Distribution::Cut { tokens, total })
    }

    /// Returns the token and the logarithm of its probability.
    fn pick(&self, pick: Pick) -> (u32, f64) {
        match (self, pick) {
            (Distribution::Whole(all), Pick::Draw(bits)) => {
                let id = all.draw(bits);
                (id, all.log_probability(all.logits[id as usize]))
            }
            (Distribution::Whole(all), Pick::Forced(id)) => match all.logits.get(id as usize) {
                Some(&logit) => (id, all.log_probability(logit)),
                None => (id, f64::NEG_INFINITY),
            },
            (Distribution::Cut { tokens, total }, Pick::Draw(bits)) => {
                let mut left = unit(bits) * total;
                let drawn = tokens.iter().find(|(_, _, weight)| {
                    left -= f64::from(*weight);
                    left < 0.0
                });
                let &(id, scaled, _) = drawn.or(tokens.last()).expect("a distribution has a token");
                (id, f64::from(scaled) - libm::log(*total))
            }
            (Distribution::Cut { tokens, total }, Pick::Forced(id)) => {
                let found = tokens.iter().find(|&&(token, _, _)| token == id);
                let logarithm = found.map(|&(_, scaled, _)| f64::from(scaled) - libm::log(*total));
                (id, logarithm.unwrap_or(f64::NEG_INFINITY))
            }
        }
    }
}

/// Cuts a whole row by top-p and min-p without sorting all of it.
fn cut_whole<'a>(all: &Exponentials<'a>, sampling: Sampling) -> Distribution<'a> {
    let mut count = PREFIX_FIRST.min(all.logits.len());
    loop {
        let mut tokens = weigh(top_k(all.logits, count), all.max, all.temperature);
        let kept = kept_count(&tokens, all.total, sampling);
        if kept.is_some() || count == all.logits.len() {
            tokens.truncate(kept.unwrap_or(count));
            let total = sum(&tokens);
            return Distribution::Cut { tokens, total };
        }
        count = (count * PREFIX_FACTOR).min(all.logits.len());
    }
}

/// Puts to each token its scaled logit and its weight.
fn weigh(tokens: Vec<(u32, f32)>, max: f32, temperature: f32) -> Vec<(u32, f32, f32)> {
    let weighed = tokens.into_iter().map(|(id, logit)| {
        let scaled = (logit - max) / temperature;
        (id, scaled, exp(scaled))
    });
    weighed.collect()
}

fn sum(tokens: &[(u32, f32, f32)]) -> f64 {
    tokens.iter().map(|&(_, _, weight)| f64::from(weight)).sum()
}

/// Returns how many of the likeliest tokens top-p and min-p keep, if the answer is among these.
/// `total` is the weight of all that they are the likeliest of, and the likeliest's is 1.
fn kept_count(tokens: &[(u32, f32, f32)], total: f64, sampling: Sampling) -> Option<usize> {
    let least = f64::from(sampling.min_p_milli) / 1_000.0;
    let share =
        (sampling.top_p_milli < 1_000).then(|| f64::from(sampling.top_p_milli) / 1_000.0 * total);
    let mut so_far = 0.0;
    for (place, &(_, _, weight)) in tokens.iter().enumerate() {
        if sampling.min_p_milli > 0 && f64::from(weight) < least {
            return Some(place);
        }
        so_far += f64::from(weight);
        if share.is_some_and(|share| so_far >= share) {
            return Some(place + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Sampling = Sampling { temperature_milli: 1_000, ..Sampling::GREEDY };

    fn row(logits: &[f32]) -> Row<'_> {
        Row { logits, token_count: logits.len(), mask: None }
    }

    /// What can be sampled, with its probability, by scoring every token.
    fn support(row: Row<'_>, sampling: Sampling) -> Vec<(u32, f64)> {
        let ids = 0..u32::try_from(row.logits.len()).expect("few");
        let scores = ids.map(|id| {
            let token = sample(row, sampling, Pick::Forced(id)).expect("it is a distribution");
            (id, token.sampled_logprob_micro)
        });
        let scores = scores.filter(|&(_, logarithm)| logarithm > i32::MIN);
        scores.map(|(id, logarithm)| (id, (f64::from(logarithm) / 1e6).exp())).collect()
    }

    fn check(sampling: Sampling, mask: Option<&[u32]>, expected: &[(u32, f64)]) {
        // Probabilities 1/2, 1/4, 1/8, 1/16, 1/16.
        let logits = [8.0_f32, 4.0, 2.0, 1.0, 1.0].map(libm::logf);
        let found = support(Row { mask, ..row(&logits) }, sampling);
        let ids = |of: &[(u32, f64)]| of.iter().map(|&(id, _)| id).collect::<Vec<u32>>();
        assert_eq!(ids(&found), ids(expected));
        for ((_, found), (id, expected)) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "token {id}: {found}, not {expected}");
        }
    }

    #[test]
    fn every_cut_keeps_the_likeliest_and_makes_them_a_distribution() {
        let sixteenths = |weights: &[(u32, f64)], of: f64| -> Vec<(u32, f64)> {
            weights.iter().map(|&(id, weight)| (id, weight / of)).collect()
        };
        let all = [(0, 8.0), (1, 4.0), (2, 2.0), (3, 1.0), (4, 1.0)];
        check(PLAIN, None, &sixteenths(&all, 16.0));
        check(Sampling::GREEDY, None, &[(0, 1.0)]);
        check(Sampling { top_k: 2, ..PLAIN }, None, &sixteenths(&all[..2], 12.0));
        // Ties go to the lower id.
        check(Sampling { top_k: 4, ..PLAIN }, None, &sixteenths(&all[..4], 15.0));
        // Exactly three quarters are enough for three quarters.
        check(Sampling { top_p_milli: 750, ..PLAIN }, None, &sixteenths(&all[..2], 12.0));
        check(Sampling { top_p_milli: 751, ..PLAIN }, None, &sixteenths(&all[..3], 14.0));
        check(Sampling { top_p_milli: 1, ..PLAIN }, None, &[(0, 1.0)]);
        check(Sampling { min_p_milli: 250, ..PLAIN }, None, &sixteenths(&all[..3], 14.0));
        check(Sampling { min_p_milli: 1_000, ..PLAIN }, None, &[(0, 1.0)]);
        // Of two thirds and one third, top-p counts the first only.
        let both = Sampling { top_k: 2, top_p_milli: 660, ..PLAIN };
        check(both, None, &[(0, 1.0)]);
        // Temperature 1/2 squares the weights, and comes first: 64/86 is less than 0.75.
        let hot = Sampling { temperature_milli: 500, top_p_milli: 750, ..PLAIN };
        check(hot, None, &[(0, 64.0 / 80.0), (1, 16.0 / 80.0)]);
    }

    #[test]
    fn a_mask_comes_before_everything() {
        let mask = Some(&[0b11010][..]);
        check(PLAIN, mask, &[(1, 4.0 / 6.0), (3, 1.0 / 6.0), (4, 1.0 / 6.0)]);
        check(Sampling::GREEDY, mask, &[(1, 1.0)]);
        check(Sampling { top_k: 2, ..PLAIN }, mask, &[(1, 0.8), (3, 0.2)]);
        check(Sampling { min_p_milli: 300, ..PLAIN }, mask, &[(1, 1.0)]);
    }

    #[test]
    fn the_models_own_distribution_is_told_whatever_is_sampled() {
        let logits = [0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0];
        let sampling = Sampling { temperature_milli: 100, top_k: 1, ..PLAIN };
        let token = sample(row(&logits), sampling, Pick::Draw(0)).expect("it is a distribution");
        assert_eq!((token.id, token.sampled_logprob_micro), (5, 0));
        // ln(1 + 1/e + .. + 1/e^5) = 0.456193.
        assert_eq!(token.logprob_micro, -456_193);
        let top: Vec<(u32, i32)> =
            token.top.iter().map(|score| (score.id, score.logprob_micro)).collect();
        let expected = [(5, -456_193), (4, -1_456_193), (3, -2_456_193), (2, -3_456_193)];
        assert_eq!(top[..4], expected);
        assert_eq!(top.len(), TOP_TOKENS_MAX);
    }

    #[test]
    fn ids_without_a_meaning_are_never_sampled() {
        let logits = [0.0, 1.0, 50.0];
        let few = Row { token_count: 2, ..row(&logits) };
        for sampling in [PLAIN, Sampling::GREEDY, Sampling { top_k: 2, ..PLAIN }] {
            assert!(support(few, sampling).iter().all(|&(id, _)| id < 2));
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        let none: [&[f32]; 4] = [
            &[0.0, f32::NAN],
            &[0.0, f32::INFINITY],
            &[f32::NEG_INFINITY, f32::NEG_INFINITY],
            &[f32::NAN, f32::NAN],
        ];
        for logits in none {
            for sampling in [PLAIN, Sampling::GREEDY, Sampling { top_k: 1, ..PLAIN }] {
                assert_eq!(sample(row(logits), sampling, Pick::Draw(1)), Err(NoDistribution));
            }
        }
        let one = [f32::NEG_INFINITY, 3.0];
        let token = sample(row(&one), PLAIN, Pick::Draw(u64::MAX)).expect("one is possible");
        assert_eq!((token.id, token.logprob_micro), (1, 0));
    }

    #[test]
    fn draws_are_as_frequent_as_they_are_likely() {
        // Long enough for several chunks, with most weight in the last.
        let logits: Vec<f32> = (0..2_500).map(|id| if id < 2_490 { -8.0 } else { 0.0 }).collect();
        let share = 10.0 / (10.0 + 2_490.0 * libm::exp(-8.0));
        for sampling in [PLAIN, Sampling { top_k: 2_499, ..PLAIN }] {
            let mut state = 1_u64;
            let mut count = 0;
            for _ in 0..2_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let token = sample(row(&logits), sampling, Pick::Draw(state));
                count += u32::from(token.expect("it is a distribution").id >= 2_490);
            }
            let found = f64::from(count) / 2_000.0;
            assert!((found - share).abs() < 0.03, "{found}, not {share}");
        }
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_scored_the_same_and_sums_to_one(
            logits in prop::collection::vec(-12.0_f32..12.0, 1..200),
            bits: u64,
            mask: Option<u64>,
            temperature_milli in 1_u32..=2_000,
            top_k in 0_u32..30,
            top_p_milli in 1_u32..=1_000,
            min_p_milli in 0_u32..=1_000,
        ) {
            let sampling = Sampling { temperature_milli, top_k, top_p_milli, min_p_milli };
            let words = mask.map(|bits| [(bits >> 32) as u32 | 1, bits as u32, 0, 9, 0, 0, !0]);
            let mask = words.as_ref().map(|words| &words[..]);
            let row = Row { mask, ..row(&logits) };
            let drawn = sample(row, sampling, Pick::Draw(bits)).expect("it is a distribution");
            let scored = sample(row, sampling, Pick::Forced(drawn.id));
            prop_assert_eq!(Ok(&drawn), scored.as_ref());
            prop_assert!(drawn.sampled_logprob_micro > i32::MIN);
            let is_scaled = temperature_milli != 1_000;
            prop_assert!(is_scaled || drawn.sampled_logprob_micro >= drawn.logprob_micro - 2);
            let total: f64 = support(row, sampling).iter().map(|&(_, share)| share).sum();
            prop_assert!((total - 1.0).abs() < 1e-3, "{}", total);
        }
    }
}
