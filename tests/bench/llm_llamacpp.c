/* Measures llama.cpp as arena's engine measures itself: the same file, slots, tokens and threads.
 *
 * usage: llm_llamacpp MODEL.gguf BACKENDS_DIR THREADS PROMPT DECODE SEQUENCES...
 *
 * Every sequence has a prompt of its own; all prompts are computed in batches of 512 rows, then
 * all sequences go on together, one row each per step, by the likeliest token. Every step looks
 * at all logits of every sequence, as any sampler must. Prints one line of JSON per load.
 *
 * Not here: what is compared with what (llm_ratio.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "ggml-backend.h"
#include "llama.h"

enum { BATCH_ROWS = 512, CONTEXTS_MAX = 64 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void fail(const char *what) {
    fprintf(stderr, "error: %s\n", what);
    exit(1);
}

static void quiet(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void push(struct llama_batch *b, llama_token id, int pos, int seq, int logits) {
    b->token[b->n_tokens] = id;
    b->pos[b->n_tokens] = pos;
    b->n_seq_id[b->n_tokens] = 1;
    b->seq_id[b->n_tokens][0] = seq;
    b->logits[b->n_tokens] = (int8_t)logits;
    b->n_tokens++;
}

static llama_token likeliest(struct llama_context *ctx, int row, int vocab) {
    const float *logits = llama_get_logits_ith(ctx, row);
    if (!logits) fail("no logits for a row that asked for them");
    int best = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void measure(struct llama_model *model, int threads, int prompt, int decode, int seqs) {
    struct llama_context_params p = llama_context_default_params();
    /* Wrong defaults mean that the header is not the library's. */
    if (p.n_batch != 2048 || p.n_ubatch != 512) fail("the header is not of the library's version");
    p.n_ctx = (uint32_t)(seqs * ((prompt + decode + 255) / 256 * 256));
    p.n_batch = BATCH_ROWS;
    p.n_ubatch = BATCH_ROWS;
    p.n_seq_max = (uint32_t)seqs;
    p.n_threads = p.n_threads_batch = threads;
    p.no_perf = true;
    struct llama_context *ctx = llama_init_from_model(model, p);
    if (!ctx) fail("no context");
    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    struct llama_batch batch = llama_batch_init(BATCH_ROWS, 0, 1);
    llama_token *last = calloc((size_t)seqs, sizeof *last);
    int *row_of = calloc((size_t)seqs, sizeof *row_of);
    unsigned long long state = 1;

    double start = now(), cpu = cpu_seconds();
    batch.n_tokens = 0;
    for (int s = 0; s < seqs; s++) {
        for (int i = 0; i < prompt; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            row_of[s] = batch.n_tokens;
            push(&batch, (llama_token)((state >> 33) % (unsigned)vocab), i, s, i + 1 == prompt);
            if (i + 1 == prompt) last[s] = -1;
            const int ends = s + 1 == seqs && i + 1 == prompt;
            if (batch.n_tokens == BATCH_ROWS || ends) {
                if (llama_decode(ctx, batch)) fail("a prompt was not computed");
                for (int d = 0; d <= s; d++)
                    if (last[d] == -1) last[d] = likeliest(ctx, row_of[d], vocab);
                batch.n_tokens = 0;
            }
        }
    }
    const double prefill = now() - start, prefill_cpu = cpu_seconds() - cpu;

    start = now(), cpu = cpu_seconds();
    for (int n = 0; n < decode; n++) {
        batch.n_tokens = 0;
        for (int s = 0; s < seqs; s++) push(&batch, last[s], prompt + n, s, 1);
        if (llama_decode(ctx, batch)) fail("a step was not computed");
        for (int s = 0; s < seqs; s++) last[s] = likeliest(ctx, s, vocab);
    }
    const double steps = now() - start, steps_cpu = cpu_seconds() - cpu;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("{\"engine\": \"llama.cpp\", \"sequences\": %d, \"prefill\": %.1f, \"decode\": %.1f, "
           "\"prefill_per_cpu_second\": %.1f, \"decode_per_cpu_second\": %.1f, "
           "\"peak_mib\": %.0f}\n",
           seqs, seqs * prompt / prefill, seqs * decode / steps, seqs * prompt / prefill_cpu,
           seqs * decode / steps_cpu, u.ru_maxrss / 1024.0);
    fflush(stdout);
    free(last);
    free(row_of);
    llama_batch_free(batch);
    llama_free(ctx);
}

int main(int argc, char **argv) {
    if (argc < 7) fail("usage: llm_llamacpp MODEL BACKENDS THREADS PROMPT DECODE SEQUENCES...");
    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(argv[2]);
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) fail("the model cannot be loaded");
    const int threads = atoi(argv[3]), prompt = atoi(argv[4]), decode = atoi(argv[5]);
    if (threads < 1 || prompt < 1 || decode < 1) fail("numbers must be at least 1");
    for (int i = 6; i < argc; i++) measure(model, threads, prompt, decode, atoi(argv[i]));
    llama_model_free(model);
    return 0;
}
