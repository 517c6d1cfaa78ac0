//! Updates by hand, and the rates of a run.

use super::*;

fn parameters(shapes: &[&[usize]]) -> Vec<Parameter> {
    let parameter = |(number, shape): (usize, &&[usize])| Parameter {
        name: format!("p{number}"),
        shape: shape.to_vec(),
    };
    shapes.iter().enumerate().map(parameter).collect()
}

/// Without shortening.
fn adam() -> AdamW {
    AdamW { norm_max: f64::MAX, ..AdamW::default() }
}

fn close(found: f32, expected: f64) {
    let found = f64::from(found);
    assert!(
        (found - expected).abs() <= 2e-7 * expected.abs().max(1e-3),
        "{found} is not {expected}"
    );
}

#[test]
fn updates_follow_the_documented_formula() {
    let adam = AdamW { beta1: 0.8, beta2: 0.9, epsilon: 1e-3, weight_decay: 0.1, norm_max: 1e9 };
    let shape = parameters(&[&[1, 2]]);
    let mut values = vec![vec![1.0_f32, -2.0]];
    let mut moments = Moments::new(&shape);
    let (mut expected, mut first, mut second) = ([1.0_f64, -2.0], [0.0_f64; 2], [0.0_f64; 2]);
    for (step, gradient) in (1..).zip([[0.5_f32, -1.0], [0.25, 2.0], [-1.0, 0.0]]) {
        let mut gradients = vec![gradient.to_vec()];
        adam.update(0.01, &shape, &mut values, &mut gradients, &mut moments).expect("it fits");
        for place in 0..2 {
            let gradient = f64::from(gradient[place]);
            expected[place] *= 1.0 - 0.01 * 0.1;
            first[place] = 0.8 * first[place] + 0.2 * gradient;
            second[place] = 0.9 * second[place] + 0.1 * gradient * gradient;
            let mean = first[place] / (1.0 - 0.8_f64.powi(step));
            let spread = (second[place] / (1.0 - 0.9_f64.powi(step))).sqrt();
            expected[place] -= 0.01 * mean / (spread + 1e-3);
            close(values[0][place], expected[place]);
        }
    }
    assert_eq!(moments.step, 3);
}

#[test]
fn the_first_update_moves_every_value_by_the_rate() {
    // m/(1 - β₁) = g and v/(1 - β₂) = g², so the step is rate g/(|g| + ε).
    let shape = parameters(&[&[3]]);
    let mut values = vec![vec![0.0_f32; 3]];
    let mut gradients = vec![vec![1e-3_f32, -5.0, 0.0]];
    let mut moments = Moments::new(&shape);
    let update = adam().update(0.1, &shape, &mut values, &mut gradients, &mut moments);
    let update = update.expect("it fits");
    close(values[0][0], -0.1 * 1e-3 / (1e-3 + 1e-8));
    close(values[0][1], 0.1);
    assert_eq!(values[0][2], 0.0);
    assert!((update.gradient_norm - 25.000_001_f64.sqrt()).abs() < 1e-9);
}

#[test]
fn numbers_of_pytorch_come_out() {
    // torch.optim.AdamW of PyTorch 2.15 on float64, lr=1e-3 and its other defaults.
    let shape = parameters(&[&[1, 2]]);
    let mut values = vec![vec![0.5_f32, -0.25]];
    let mut moments = Moments::new(&shape);
    for (gradient, expected) in [
        ([0.1_f32, 2.0], [0.498_995_000_1, -0.250_997_5]),
        ([-0.2, 0.0], [0.499_356_113_7, -0.251_665_048_3]),
        ([0.3, -1.0], [0.499_007_879, -0.251_839_798_8]),
    ] {
        let mut gradients = vec![gradient.to_vec()];
        adam().update(1e-3, &shape, &mut values, &mut gradients, &mut moments).expect("it fits");
        close(values[0][0], expected[0]);
        close(values[0][1], expected[1]);
    }
}

#[test]
fn only_tensors_of_two_axes_decay() {
    let shape = parameters(&[&[2, 1], &[2], &[1, 1, 2]]);
    let mut values = vec![vec![1.0_f32; 2]; 3];
    let mut gradients = vec![vec![0.0_f32; 2]; 3];
    let decaying = AdamW { weight_decay: 0.5, ..adam() };
    decaying
        .update(0.1, &shape, &mut values, &mut gradients, &mut Moments::new(&shape))
        .expect("it fits");
    assert_eq!(values, [vec![0.95; 2], vec![1.0; 2], vec![0.95; 2]]);
}

#[test]
fn long_gradients_are_shortened_together_and_short_ones_left_alone() {
    let shape = parameters(&[&[1], &[2]]);
    let shorten = |norm_max: f64| {
        let mut gradients = vec![vec![3.0_f32], vec![0.0, 4.0]];
        let update = AdamW { norm_max, ..adam() }
            .update(
                0.1,
                &shape,
                &mut [vec![0.0], vec![0.0; 2]],
                &mut gradients,
                &mut Moments::new(&shape),
            )
            .expect("it fits");
        assert_eq!(update.gradient_norm, 5.0);
        gradients
    };
    let short = shorten(1.0);
    // PyTorch adds a millionth to the norm.
    close(short[0][0], 3.0 / 5.000_001);
    close(short[1][1], 4.0 / 5.000_001);
    assert_eq!(shorten(5.0), [vec![3.0], vec![0.0, 4.0]]);
}

#[test]
fn a_run_that_goes_on_from_its_state_is_the_same_run() {
    let shape = parameters(&[&[2, 2], &[3]]);
    let gradient = |step: u32| {
        let value = |place: u32| ((step * 31 + place * 17) % 13) as f32 / 7.0 - 0.9;
        vec![(0..4).map(value).collect::<Vec<f32>>(), (4..7).map(value).collect()]
    };
    let go = |mut values: Vec<Vec<f32>>, mut moments: Moments, steps: std::ops::Range<u32>| {
        for step in steps {
            let mut gradients = gradient(step);
            AdamW::default()
                .update(0.01, &shape, &mut values, &mut gradients, &mut moments)
                .expect("it fits");
        }
        (values, moments)
    };
    let start = vec![vec![0.3_f32; 4], vec![-0.1; 3]];
    let whole = go(start.clone(), Moments::new(&shape), 0..9);
    let (values, moments) = go(start, Moments::new(&shape), 0..4);
    assert_eq!(go(values, moments, 4..9), whole);
}

#[test]
fn a_gradient_that_is_no_number_changes_nothing() {
    let shape = parameters(&[&[1], &[2]]);
    for bad in [f32::NAN, f32::INFINITY] {
        let mut values = vec![vec![1.0_f32], vec![2.0; 2]];
        let mut moments = Moments::new(&shape);
        let mut gradients = vec![vec![0.1], vec![0.1, bad]];
        let error = adam().update(0.1, &shape, &mut values, &mut gradients, &mut moments);
        assert_eq!(
            error.expect_err("it is refused").to_string(),
            "a gradient of `p1` is not a finite number"
        );
        assert_eq!((values, moments), (vec![vec![1.0], vec![2.0; 2]], Moments::new(&shape)));
    }
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let shape = parameters(&[&[2, 3]]);
    let refused = |values: Vec<Vec<f32>>, gradients: Vec<Vec<f32>>, says: &str| {
        let (mut values, mut gradients) = (values, gradients);
        let mut moments = Moments::new(&shape);
        let error = adam().update(0.1, &shape, &mut values, &mut gradients, &mut moments);
        assert_eq!(error.expect_err(says).to_string(), says);
    };
    refused(vec![], vec![vec![0.0; 6]], "values of `0` parameters for `1`");
    refused(vec![vec![0.0; 6]], vec![vec![0.0; 5]], "`5` gradients for the `6` of `p0`");
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    let wrong = [
        (AdamW { beta1: 1.0, ..adam() }, "`beta1` is `1`"),
        (AdamW { beta2: -0.1, ..adam() }, "`beta2` is `-0.1`"),
        (AdamW { epsilon: 0.0, ..adam() }, "`epsilon` is `0`"),
        (AdamW { weight_decay: f64::NAN, ..adam() }, "`weight-decay` is `NaN`"),
        (AdamW { norm_max: 0.0, ..adam() }, "`norm-max` is `0`"),
    ];
    for (adam, says) in wrong {
        let error = adam.check().expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
    adam().check().expect("the defaults are sound");
}

fn schedule(decay: Decay, final_share: f64) -> Schedule {
    Schedule { peak: 1.0, warmup_steps: 4, decay, step_count: 12, final_share }
}

#[test]
fn the_rate_rises_to_its_peak_and_falls_as_it_was_told() {
    let check = |schedule: Schedule, expected: &[(u32, f64)]| {
        schedule.check().expect("its numbers are sound");
        for (step, rate) in expected {
            let found = schedule.rate(*step);
            assert!((found - rate).abs() < 1e-12, "{schedule:?} {step}: {found} is not {rate}");
        }
    };
    let warmup = [(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0)];
    for decay in [Decay::Constant, Decay::Linear, Decay::Cosine] {
        let final_share = if decay == Decay::Constant { 1.0 } else { 0.0 };
        check(schedule(decay, final_share), &warmup);
    }
    check(schedule(Decay::Constant, 1.0), &[(11, 1.0), (99, 1.0)]);
    check(schedule(Decay::Linear, 0.0), &[(6, 0.75), (11, 0.125), (12, 0.0), (99, 0.0)]);
    check(schedule(Decay::Linear, 0.5), &[(8, 0.75), (12, 0.5)]);
    let half = 0.5 * (1.0 + std::f64::consts::FRAC_1_SQRT_2);
    check(schedule(Decay::Cosine, 0.0), &[(6, half), (8, 0.5), (12, 0.0), (99, 0.0)]);
    let immediate = Schedule { warmup_steps: 0, ..schedule(Decay::Linear, 0.0) };
    check(immediate, &[(0, 1.0), (6, 0.5)]);
}

#[test]
fn schedules_that_make_no_sense_are_refused() {
    let wrong = [
        (Schedule { peak: 0.0, ..schedule(Decay::Linear, 0.0) }, "`rate` is `0`"),
        (Schedule { warmup_steps: 13, ..schedule(Decay::Linear, 0.0) }, "`warmup-steps` is `13`"),
        (schedule(Decay::Cosine, 1.1), "`final-share` is `1.1`"),
        (schedule(Decay::Constant, 0.5), "`final-share` is `0.5`"),
    ];
    for (schedule, says) in wrong {
        let error = schedule.check().expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}
