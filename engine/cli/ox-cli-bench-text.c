/* How fast models read prompts and write answers, and how fast they could: the limit of writing is reading all weights, keys and values
 * that a token touches once; that of reading a prompt is the arithmetic of its matrix products. The head counts for the former
 * alone, since only a prompt's last token has use for it. Attention, norms and the delta rule are not in the limit.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#include <math.h>
#include <string.h>

#include "ox-lookahead.h"
#include "ox-session-private.h"

/* Tokens that a pass of speculation checks: the newest and the guesses. */
#define VERIFIED 4
/* Runs of a step end early when they have taken so long. */
#define STEP_SECONDS 40
#define QUICK_STEP_SECONDS 8

typedef struct {
  OxBench *bench;
  const OxBenchSubject *subject;
  OxModel *model;
  OxSession *session;
  const OxBenchLevel *level;
  guint threads;
  guint32 *ids;  /* what prompts are cut from */
  float *logits; /* [vocab] */
} Text;

/* ---- What a token takes ----------------------------------------------------------------------------------------- */

/* Of a mixture of experts only the chosen ones are touched. */
static double
share (const OxConfig *config, const OxPackedMatrix *w)
{
  if (config->num_experts > 0 && (w->rows == config->moe_intermediate_size || w->cols == config->moe_intermediate_size))
    return (double) config->top_k_experts / config->num_experts;
  return 1;
}

/* Operations of a token's matrix products, without the head. */
static OxBenchWork
prefill_work (OxModel *model)
{
  const GPtrArray *matrices = model->network->handles.matrices;
  OxBenchWork work = { 0 };

  for (guint i = 0; i < matrices->len; i++) {
    const OxPackedMatrix *w = &((const OxMatrix *) g_ptr_array_index (matrices, i))->packed;

    if (w->rows != model->config->vocab_size)
      work.operations[ox_bench_kind (w)] += 2.0 * (double) w->rows * (double) w->cols * share (model->config, w);
  }
  return work;
}

/* Bytes that a token behind @depth others reads: packed weights, keys and values of layers that have their own, recurrent states. */
static OxBenchWork
decode_work (OxModel *model, guint depth)
{
  const GPtrArray *matrices = model->network->handles.matrices;
  const OxConfig *c = model->config;
  OxDeltaShape delta = ox_config_delta_shape (c);
  OxBenchWork work = { 0 };

  for (guint i = 0; i < matrices->len; i++) {
    const OxPackedMatrix *w = &((const OxMatrix *) g_ptr_array_index (matrices, i))->packed;
    size_t bytes = 0;

    w->kernel->packed_bytes (w->type, w->rows, w->cols, &bytes);
    work.bytes += (double) bytes * share (c, w);
  }
  for (guint i = 0; i < c->num_hidden_layers; i++) {
    guint keys = ox_config_is_sliding (c, i) ? MIN (depth, c->sliding_window) : depth;

    if (c->layer_kinds[i] == OX_LAYER_LINEAR)
      work.bytes += (double) ox_recurrent_bytes (&delta);
    else if (ox_config_kv_layer (c, i) == i)
      work.bytes +=
        (double) ox_kv_bytes (ox_config_kv_heads (c, i), ox_config_head_dim (c, i), model->state_options.kv_type, keys);
  }
  return work;
}

/* ---- Steps ------------------------------------------------------------------------------------------------------ */

/* Something that is timed: @prompt tokens read, or @written written, behind @depth others. */
typedef struct {
  guint prompt, written, depth;
} Step;

static char *
step_name (const Text *text, const Step *step)
{
  g_autofree char *what = step->prompt > 0 ? g_strdup_printf ("prefill%u", step->prompt) : g_strdup ("decode");
  g_autofree char *depth = step->depth > 0 ? g_strdup_printf ("@%uk", step->depth / 1024) : g_strdup ("");

  return g_strdup_printf ("%s%s/%s", what, depth, text->subject->name);
}

static gboolean
eval (Text *text, const guint32 *ids, guint n, GError **error)
{
  return ox_session_eval (text->session, ids, n, OX_LOGITS_LAST, text->logits, text->bench->cli->cancellable, error);
}

/* Brings the session to @depth tokens; what it holds of them is used. */
static gboolean
go_to_depth (Text *text, guint depth, GError **error)
{
  guint length;

  if (depth == 0)
    ox_session_reset (text->session);
  else if (ox_session_get_length (text->session) > depth)
    ox_session_truncate (text->session, depth);
  length = ox_session_get_length (text->session);
  return length == depth || eval (text, text->ids + length, depth - length, error);
}

/* Seconds of one run; 0 with an error. */
static double
run_once (Text *text, const Step *step, GError **error)
{
  gsize vocab = text->model->config->vocab_size;
  gint64 start;

  /* An answer needs a token before it. */
  if (!go_to_depth (text, MAX (step->depth, step->written > 0 ? 1 : 0), error))
    return 0;
  start = ox_clock_now ();
  if (step->prompt > 0 && !eval (text, text->ids, step->prompt, error))
    return 0;
  for (guint i = 0; i < step->written; i++) {
    guint32 id = (guint32) text->model->kernels->argmax (text->logits, vocab);

    if (!eval (text, &id, 1, error))
      return 0;
  }
  return (double) MAX (ox_clock_now () - start, 1) / G_USEC_PER_SEC;
}

static gboolean
bench_step (Text *text, const Step *step, GError **error)
{
  OxBench *bench = text->bench;
  g_autofree char *name = step_name (text, step);
  guint n = step->prompt + step->written, measured = OX_BENCH_READ;
  OxBenchWork work = decode_work (text->model, step->depth + step->written / 2);
  gboolean compares = bench->peer != NULL && text->subject->path != NULL;
  gint64 begin = g_get_monotonic_time ();
  double best = INFINITY, peer = NAN;
  OxProfile profile = { 0 };
  OxBenchLimits limits;
  OxBenchResult *result;

  if (!ox_bench_wants (bench, name) || step->depth + n > text->model->plan->context_length)
    return TRUE;
  if (step->prompt > 0) {
    work = prefill_work (text->model);
    measured = 0;
    for (guint kind = 0; kind < OX_N_PEAK_KINDS; kind++)
      if (work.operations[kind] > 0)
        measured |= 1u << kind;
  }
  ox_bench_limits_init (&limits, text->threads, text->level->mask);
  for (int i = 0; i < bench->repeat; i++) {
    double seconds;

    if (i > 0 && g_get_monotonic_time () - begin > (bench->quick ? QUICK_STEP_SECONDS : STEP_SECONDS) * G_USEC_PER_SEC)
      break;
    ox_bench_limits_measure (bench, &limits, measured);
    if (compares) {
      double rate =
        ox_bench_peer_run (bench, text->subject->path, text->threads, step->prompt, step->written, step->depth, error);

      if (isnan (rate))
        return FALSE;
      peer = isnan (peer) ? rate : MAX (peer, rate);
    }
    ox_model_reset_profile (text->model);
    seconds = run_once (text, step, error);
    if (seconds <= 0)
      return FALSE;
    if (seconds < best) {
      best = seconds;
      ox_model_get_profile (text->model, &profile);
    }
  }
  ox_bench_limits_measure (bench, &limits, measured);
  result = ox_bench_add (bench, name, "tok/s", n / best, &work, text->threads, text->level->name);
  ox_bench_limits_apply (bench, &limits);
  result->peer = peer;
  if (bench->profile)
    result->profile = profile;
  return TRUE;
}

/* ---- Speculation ------------------------------------------------------------------------------------------------ */

typedef struct {
  const guint32 *path; /* what will be said */
  guint length, prompt;
} Foresight;

static guint
foresee (const guint32 *tokens, guint n_tokens, guint32 newest, guint n, guint32 *ids, gpointer user_data)
{
  const Foresight *foresight = user_data;
  guint next = n_tokens - foresight->prompt + 1;

  for (guint i = 0; i < n; i++)
    ids[i] = foresight->path[MIN (next + i, foresight->length - 1)];
  return n;
}

/* What a pass that checks VERIFIED tokens costs beside one for a single token, when every guess is right: plain and speculative decoding
 * take turns, so that both see the same machine. The limit is one: both read all weights once. */
static gboolean
bench_verify (Text *text, GError **error)
{
  OxBench *bench = text->bench;
  g_autofree char *name = g_strconcat ("verify4/", text->subject->name, NULL);
  guint n = MAX ((guint) bench->decode_tokens / VERIFIED, 1) * VERIFIED, prompt = 16;
  g_autofree guint32 *path = g_new (guint32, n + 1);
  Foresight foresight = { path, n, prompt };
  double plain = INFINITY, ahead = INFINITY;
  OxBenchResult *result;

  if (prompt + n > text->model->plan->context_length)
    return TRUE;
  for (int i = 0; i < 2 * bench->repeat; i++) {
    g_autoptr (OxLookahead) lookahead = ox_lookahead_new (text->session, NULL);
    const float *logits = text->logits;
    gint64 start;
    double seconds;

    ox_session_reset (text->session);
    if (!eval (text, text->ids, prompt, error))
      return FALSE;
    if (i % 2 == 1)
      ox_lookahead_force (lookahead, VERIFIED - 1, foresee, &foresight);
    else
      ox_lookahead_off (lookahead);
    ox_lookahead_begin (lookahead, NULL, 0);
    start = ox_clock_now ();
    for (guint j = 0; j < n; j++) {
      path[j] = (guint32) text->model->kernels->argmax (logits, text->model->config->vocab_size);
      if (!ox_lookahead_advance (lookahead, path[j], n - 1 - j, &logits, bench->cli->cancellable, error))
        return FALSE;
    }
    if (!ox_lookahead_settle (lookahead, error))
      return FALSE;
    seconds = (double) MAX (ox_clock_now () - start, 1) / G_USEC_PER_SEC;
    if (i % 2 == 1)
      ahead = MIN (ahead, seconds);
    else
      plain = MIN (plain, seconds);
  }
  /* n tokens plainly are n passes, ahead n / VERIFIED of them. */
  result = ox_bench_add (bench, name, "passes", ahead * VERIFIED / plain, NULL, text->threads, text->level->name);
  result->less = TRUE;
  result->limit = 1;
  return TRUE;
}

/* ---- A model ---------------------------------------------------------------------------------------------------- */

/* With all threads everything is measured, in a quick run of a few models only. */
static gboolean
is_whole (const Text *text, gboolean all_threads)
{
  return all_threads && (!text->bench->quick || text->subject->whole);
}

/* In an order in which a session that holds many tokens is used for all that needs them. */
static GArray *
choose_steps (Text *text, gboolean all_threads)
{
  OxBench *bench = text->bench;
  gboolean deep = is_whole (text, all_threads), deepest = all_threads && !bench->quick;
  guint written = (guint) bench->decode_tokens;
  const struct {
    gboolean chosen;
    Step step;
  } steps[] = {
    { all_threads, { 128, 0, 0 } },    { TRUE, { 512, 0, 0 } },        { TRUE, { 0, written, 0 } },
    { deep, { 2048, 0, 0 } },          { deep, { 0, written, 2048 } }, { deepest, { 8192, 0, 0 } },
    { deepest, { 0, written, 8192 } }, { deepest, { 512, 0, 8192 } },
  };
  GArray *chosen = g_array_new (FALSE, FALSE, sizeof (Step));

  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++) {
    g_autofree char *name = step_name (text, &steps[i].step);

    if (steps[i].chosen && ox_bench_wants (bench, name))
      g_array_append_val (chosen, steps[i].step);
  }
  return chosen;
}

static gboolean
run_steps (Text *text, const GArray *steps, guint most_tokens, gboolean verifies, GError **error)
{
  guint vocab = text->model->config->vocab_size;

  text->session = ox_session_new (text->model, error);
  if (text->session == NULL)
    return FALSE;
  text->logits = g_new (float, vocab);
  text->ids = g_new (guint32, most_tokens);
  /* Ids that mean nothing: a forward pass takes the same time whatever it reads. */
  for (guint i = 0; i < most_tokens; i++)
    text->ids[i] = (guint32) ((i + 1) * G_GUINT64_CONSTANT (7919) % vocab);
  /* Memory that is touched for the first time is not what is measured. */
  if (!eval (text, text->ids, MIN (64, most_tokens), error))
    return FALSE;
  for (guint i = 0; i < steps->len; i++)
    if (!bench_step (text, &g_array_index (steps, Step, i), error))
      return FALSE;
  return !verifies || bench_verify (text, error);
}

static gboolean
bench_with_threads (OxBench *bench, const OxBenchSubject *subject, guint threads, gboolean all_threads, GError **error)
{
  const OxBenchLevel *level = &g_array_index (bench->levels, OxBenchLevel, bench->levels->len - 1);
  Text text = { .bench = bench, .subject = subject, .threads = threads, .level = level };
  g_autoptr (GArray) steps = choose_steps (&text, all_threads);
  g_autofree char *verify = g_strconcat ("verify4/", subject->name, NULL);
  gboolean verifies = is_whole (&text, all_threads) && ox_bench_wants (bench, verify), ok;
  guint most_tokens = 64;

  if (steps->len == 0 && !verifies)
    return TRUE;
  for (guint i = 0; i < steps->len; i++) {
    const Step *step = &g_array_index (steps, Step, i);

    most_tokens = MAX (most_tokens, step->depth + step->prompt + step->written + 1);
  }
  ox_bench_say (bench, "Text: %s, %s, %u threads", subject->name, level->name, threads);
  text.model =
    ox_bench_load (bench, subject, threads, MAX (most_tokens, (guint) bench->decode_tokens + 64), FALSE, error);
  if (text.model == NULL)
    return FALSE;
  ok = run_steps (&text, steps, most_tokens, verifies, error);
  g_clear_pointer (&text.session, ox_session_free);
  ox_model_unref (text.model);
  g_free (text.ids);
  g_free (text.logits);
  return ok;
}

gboolean
ox_bench_text (OxBench *bench, const OxBenchSubject *subject, GError **error)
{
  for (guint t = bench->threads->len; t-- > 0;) {
    gboolean all_threads = t + 1 == bench->threads->len;

    if (!all_threads && bench->quick)
      break;
    if (!bench_with_threads (bench, subject, g_array_index (bench->threads, guint, t), all_threads, error))
      return FALSE;
  }
  return TRUE;
}
