//! However a batch is put together, its rows get what the dense model gives them.

use arena_burn::device::BurnDevice;
use arena_burn::executor::BurnExecutor;
use arena_model::executor::{AdapterId, BlockId, Executor as _, ExecutorError};
use arena_weights::adapter::Adapter;
use arena_weights::config::Architecture;
use burn::module::Param;
use burn::tensor::{Int, Tensor, TensorData};

use crate::tiny::{self, ARCHITECTURES, Piece, Random, assert_close, piece, run};

/// Runs a check of every architecture on every device.
fn on_all(check: impl Fn(&mut BurnExecutor, Architecture, BurnDevice)) {
    for device in tiny::devices() {
        for architecture in ARCHITECTURES {
            check(&mut tiny::executor(architecture, device), architecture, device);
        }
    }
}

/// Returns the dense model's logits of one sequence.
fn dense(architecture: Architecture, device: BurnDevice, tokens: &[u32]) -> Vec<f32> {
    let device = device.open().expect("the device is there");
    let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    let ids: Tensor<2, Int> = Tensor::from_data(TensorData::new(ids, [1, tokens.len()]), &device);
    let logits = tiny::model(architecture, &device).forward(ids);
    logits.into_data().try_to_vec().expect("logits are f32")
}

#[test]
fn a_prompt_gets_the_dense_models_logits() {
    on_all(|executor, architecture, device| {
        let tokens = Random(1).tokens(37);
        let found = run(executor, &[piece(0, &tokens, &[5, 2, 9])]);
        let expected = dense(architecture, device, &tokens);
        assert_close(&found, &expected, &format!("{architecture:?} on {device}"));
    });
}

#[test]
fn a_prompt_in_chunks_and_token_by_token_gets_the_same_logits() {
    on_all(|executor, architecture, device| {
        let tokens = Random(2).tokens(23);
        let mut found = run(executor, &[piece(0, &tokens[..7], &[5])]);
        found.extend(run(executor, &[piece(7, &tokens[7..18], &[5, 2])]));
        for at in 18..23 {
            found.extend(run(executor, &[piece(at, &tokens[at..at + 1], &[5, 2])]));
        }
        let expected = dense(architecture, device, &tokens);
        assert_close(&found, &expected, &format!("{architecture:?} on {device}"));
    });
}

#[test]
fn ragged_sequences_in_one_batch_get_what_each_gets_alone() {
    on_all(|executor, architecture, device| {
        let texts: Vec<Vec<u32>> =
            [19, 3, 40, 1].into_iter().map(|count| Random(count).tokens(count as usize)).collect();
        let blocks: [&[u32]; 4] = [&[0, 7], &[3], &[11, 1, 4], &[8]];
        // The first two are continued by one row, the third gets the rest of its prompt, the
        // fourth is new.
        let cached = [18, 2, 25, 0];
        for at in 0..3 {
            run(executor, &[piece(0, &texts[at][..cached[at]], blocks[at])]);
        }
        let pieces: Vec<Piece> =
            (0..4).map(|at| piece(cached[at], &texts[at][cached[at]..], blocks[at])).collect();
        let found = run(executor, &pieces);
        let vocab = executor.shape().vocab;
        let expected: Vec<f32> = (0..4)
            .flat_map(|at| dense(architecture, device, &texts[at])[cached[at] * vocab..].to_vec())
            .collect();
        assert_close(&found, &expected, &format!("{architecture:?} on {device}"));
    });
}

#[test]
fn a_row_reads_what_another_sequence_writes_in_the_same_batch() {
    on_all(|executor, architecture, device| {
        let tokens = Random(3).tokens(20);
        let vocab = executor.shape().vocab;
        let shared = piece(0, &tokens[..16], &[6]);
        let found = run(executor, &[shared, piece(16, &tokens[16..], &[6, 10])]);
        let expected = dense(architecture, device, &tokens);
        assert_close(
            &found[16 * vocab..],
            &expected[16 * vocab..],
            &format!("{architecture:?} on {device}"),
        );
    });
}

#[test]
fn a_copied_block_is_continued_like_its_original() {
    on_all(|executor, architecture, device| {
        let tokens = Random(4).tokens(12);
        run(executor, &[piece(0, &tokens[..9], &[2])]);
        executor.copy_rows(BlockId(2), BlockId(10), 9).expect("the device works");
        // The original goes on differently, and must not be felt.
        run(executor, &[piece(9, &[1, 2, 3], &[2])]);
        let found = run(executor, &[piece(9, &tokens[9..], &[10])]);
        let vocab = executor.shape().vocab;
        let expected = dense(architecture, device, &tokens);
        assert_close(&found, &expected[9 * vocab..], &format!("{architecture:?} on {device}"));
    });
}

#[test]
fn blocks_used_again_forget_what_they_held() {
    on_all(|executor, architecture, device| {
        run(executor, &[piece(0, &Random(5).tokens(32), &[3, 4])]);
        let tokens = Random(6).tokens(21);
        let found = run(executor, &[piece(0, &tokens, &[4, 3])]);
        let expected = dense(architecture, device, &tokens);
        assert_close(&found, &expected, &format!("{architecture:?} on {device}"));
    });
}

const ADAPTED: [&str; 3] = [
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.1.self_attn.o_proj.weight",
    "model.layers.1.mlp.down_proj.weight",
];

/// Returns an executor with an adapter added to its weights.
fn merged(architecture: Architecture, device: BurnDevice, adapter: &Adapter) -> BurnExecutor {
    let opened = device.open().expect("the device is there");
    let mut model = tiny::model(architecture, &opened);
    for (name, layer) in &adapter.layers {
        let weight = match name.as_str() {
            name if name.contains("q_proj") => &mut model.layers[0].attention.query.weight,
            name if name.contains("o_proj") => &mut model.layers[1].attention.output.weight,
            _ => match &mut model.layers[1].feed_forward {
                arena_burn::transformer::FeedForward::Dense(mlp) => &mut mlp.down.weight,
                arena_burn::transformer::FeedForward::Experts(_) => unreachable!("not adapted"),
            },
        };
        let mut change = vec![0.0; layer.rows * layer.columns];
        for (at, change) in change.iter_mut().enumerate() {
            let (input, output) = (at / layer.rows, at % layer.rows);
            *change = (0..3)
                .map(|r| 0.5 * layer.a[r * layer.columns + input] * layer.b[output * 3 + r])
                .sum();
        }
        let change = TensorData::new(change, [layer.columns, layer.rows]);
        *weight = Param::from_tensor(weight.val() + Tensor::from_data(change, &opened));
    }
    tiny::serve(model, architecture, device)
}

#[test]
fn an_adapter_changes_its_own_rows_as_if_it_were_added_to_the_weights() {
    for device in tiny::devices() {
        let architecture = Architecture::Llama;
        let adapter = tiny::adapter(&tiny::config(architecture), &ADAPTED);
        let mut executor = tiny::executor(architecture, device);
        executor.set_adapter(AdapterId(1), Some(&adapter)).expect("it fits the model");
        let (first, second) = (Random(8).tokens(5), Random(9).tokens(4));
        let mut adapted = piece(0, &second, &[1]);
        adapted.adapter = Some(AdapterId(1));
        let found = run(&mut executor, &[piece(0, &first, &[0]), adapted]);

        let mut expected = dense(architecture, device, &first);
        let mut merged = merged(architecture, device, &adapter);
        expected.extend(run(&mut merged, &[piece(0, &second, &[1])]));
        assert_close(&found, &expected, &format!("{architecture:?} on {device}"));
        let unchanged = dense(architecture, device, &second);
        let changed = found[first.len() * 91..].iter().zip(&unchanged);
        assert!(changed.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) > 0.05);
    }
}

#[test]
fn an_adapter_that_does_not_fit_names_the_weight() {
    let mut llama = tiny::executor(Architecture::Llama, BurnDevice::Flex);
    let mut mixture = tiny::executor(Architecture::Qwen3Moe, BurnDevice::Flex);
    let config = tiny::config(Architecture::Llama);
    let mut wrong = tiny::adapter(&config, &ADAPTED);
    wrong.layers.get_mut(ADAPTED[0]).expect("it is adapted").columns = 35;
    let error = |executor: &mut BurnExecutor, adapter: &Adapter| match executor
        .set_adapter(AdapterId(0), Some(adapter))
    {
        Err(error @ ExecutorError::Adapter { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        error(&mut llama, &wrong),
        "adapter of `model.layers.0.self_attn.q_proj.weight`: it changes [60, 35], the weight is \
         [60, 36]"
    );
    assert_eq!(
        error(&mut llama, &tiny::adapter(&config, &["model.layers.2.mlp.up_proj.weight"])),
        "adapter of `model.layers.2.mlp.up_proj.weight`: the model has no linear layer of this name"
    );
    assert_eq!(
        error(&mut mixture, &tiny::adapter(&config, &ADAPTED[2..])),
        "adapter of `model.layers.1.mlp.down_proj.weight`: the model has no linear layer of this \
         name"
    );
}

#[test]
fn an_executor_says_what_computes() {
    for device in tiny::devices() {
        let description = tiny::executor(Architecture::Llama, device).description();
        let lines: Vec<&str> = description.lines().collect();
        assert_eq!(lines[0], format!("device={device}"));
        let named =
            lines.iter().any(|line| line.len() > "adapter=".len() && line.starts_with("adapter="));
        assert_eq!(named, device != BurnDevice::Flex, "{description}");
        assert_eq!(lines[lines.len() - 3..], ["kernels=burn 0.22.1", "weights=f32", "cache=f32"]);
    }
}

#[test]
fn a_cache_below_one_block_is_refused() {
    let model = tiny::model(Architecture::Llama, &BurnDevice::Flex.open().expect("it is there"));
    let config = tiny::config(Architecture::Llama);
    let error = BurnExecutor::new(config, model, BurnDevice::Flex, 5_119)
        .err()
        .expect("a block takes 5120 bytes");
    assert_eq!(error.to_string(), "a cache of 5119 bytes has no place for a block of 5120 bytes");
}
