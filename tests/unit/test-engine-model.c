/* Models: what the plan tells, what loading takes, and what is refused.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"
#include "ox-session-private.h"

#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <glib/gstdio.h>

/* Sanitizers slow everything down and want address space of their own. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED TRUE
#else
#define SANITIZED FALSE
#endif

/* Weights zero and not on disk: half a gigabyte to load. */
static const OxToyModel large = {
  .sparse = TRUE, .f16 = TRUE, .layers = 4, .hidden = 2048, .feed_forward = 8192, .heads = 16
};

static guint64
resident_bytes (void)
{
  g_autofree char *text = NULL;
  guint64 pages = 0;

  g_assert_true (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL));
  pages = g_ascii_strtoull (strchr (text, ' ') + 1, NULL, 10);
  return pages * (guint64) sysconf (_SC_PAGESIZE);
}

static void
assert_refused (const OxToyModel *toy, int code, const char *word)
{
  char *path = ox_toy_model_make (toy);
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, &error);

  g_assert_null (model);
  g_assert_error (error, OX_ERROR, code);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, path));
  g_assert_nonnull (strstr (error->message, word));
  ox_toy_model_delete (path);
}

static void
test_missing_tensor (void)
{
  assert_refused (&(OxToyModel) { .missing = "blk.1.ffn_up.weight" }, OX_ERROR_DAMAGED, "blk.1.ffn_up.weight");
  assert_refused (&(OxToyModel) { .gemma = TRUE, .missing = "blk.0.post_ffw_norm.weight" }, OX_ERROR_DAMAGED,
                  "blk.0.post_ffw_norm.weight");
  assert_refused (&(OxToyModel) { .missing = "output_norm.weight" }, OX_ERROR_DAMAGED, "output_norm.weight");
}

static void
test_wrong_shape (void)
{
  assert_refused (&(OxToyModel) { .misshapen = "blk.0.attn_k.weight" }, OX_ERROR_DAMAGED, "blk.0.attn_k.weight");
  assert_refused (&(OxToyModel) { .misshapen = "blk.1.attn_norm.weight" }, OX_ERROR_DAMAGED, "blk.1.attn_norm.weight");
}

static void
test_vocabulary_too_large (void)
{
  assert_refused (&(OxToyModel) { .lost_rows = 8 }, OX_ERROR_DAMAGED, "token");
}

static void
test_no_such_file (void)
{
  g_autofree char *path = g_build_filename (g_get_tmp_dir (), "there-is-no-such-model.gguf", NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (ox_model_load (path, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  g_assert_null (ox_model_plan (path, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NOT_FOUND);
}

static void
assert_same_plan (const OxModelPlan *a, const OxModelPlan *b)
{
  g_assert_cmpstr (a->path, ==, b->path);
  g_assert_cmpstr (a->name, ==, b->name);
  g_assert_cmpstr (a->architecture, ==, b->architecture);
  g_assert_cmpstr (a->format, ==, b->format);
  g_assert_cmpstr (a->chat_format, ==, b->chat_format);
  g_assert_cmpuint (a->capabilities, ==, b->capabilities);
  g_assert_cmpuint (a->parameters, ==, b->parameters);
  g_assert_cmpuint (a->file_bytes, ==, b->file_bytes);
  g_assert_cmpuint (a->weight_bytes, ==, b->weight_bytes);
  g_assert_cmpuint (a->kv_bytes_per_token, ==, b->kv_bytes_per_token);
  g_assert_cmpuint (a->state_bytes, ==, b->state_bytes);
  g_assert_cmpuint (a->context_length, ==, b->context_length);
  g_assert_cmpuint (a->context_length_max, ==, b->context_length_max);
}

static void
test_plan_of_toys (void)
{
  static const OxModelPrecision precisions[] = { OX_MODEL_PRECISION_AUTO, OX_MODEL_PRECISION_EXACT,
                                                 OX_MODEL_PRECISION_FAST };

  for (guint i = 0; i < 12; i++) {
    OxToyModel toy = { .gemma = i % 2 != 0, .base = i % 4 >= 2, .f16 = i % 8 >= 4 };
    OxModelOptions options = { .precision = precisions[i % 3], .context_length = i < 6 ? 0 : 512 };
    char *path = ox_toy_model_make (&toy);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModelPlan) plan = ox_model_plan (path, &options, NULL, &error);
    g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);

    g_assert_no_error (error);
    assert_same_plan (plan, ox_model_get_plan (model));
    g_assert_cmpstr (plan->architecture, ==, toy.gemma ? "gemma3" : "llama");
    g_assert_cmpstr (plan->chat_format, ==, toy.base ? NULL : toy.gemma ? "gemma3" : "chatml");
    g_assert_cmpint ((plan->capabilities & OX_CAPABILITY_CHAT) != 0, ==, !toy.base);
    g_assert_cmpint (plan->note != NULL, ==, toy.base);
    g_assert_cmpuint (plan->context_length, ==, i < 6 ? 4096 : 512);
    g_assert_cmpuint (plan->context_length_max, ==, 4096);
    g_assert_cmpuint (plan->memory_needed, >=, plan->weight_bytes + plan->state_bytes);
    g_assert_cmpuint (plan->memory_available, >, 0);
    ox_toy_model_delete (path);
  }
}

/* What the plan says of the weights is what the process grows by, however they are held. */
static void
check_what_it_takes (OxModelWeights weights, double bits)
{
  char *path = ox_toy_model_make (&large);
  OxModelOptions options = { .weights = weights, .no_packed_cache = TRUE };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModelPlan) plan = ox_model_plan (path, &options, NULL, &error);
  g_autoptr (OxModel) model = NULL;
  guint64 before, after;
  double expected;

  g_assert_no_error (error);
  if (plan->fit == OX_FIT_NOT) {
    g_test_skip ("half a gigabyte of memory is not free");
    ox_toy_model_delete (path);
    return;
  }
  /* What earlier tests have freed must not be taken for the model's. */
  malloc_trim (0);
  before = resident_bytes ();
  model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
  after = resident_bytes ();
  g_assert_no_error (error);
  assert_same_plan (plan, ox_model_get_plan (model));
  g_test_message ("planned %" G_GUINT64_FORMAT ", grew by %" G_GUINT64_FORMAT, plan->weight_bytes, after - before);
  expected = (double) plan->parameters * bits / 8;
  g_assert_cmpfloat ((double) plan->weight_bytes, >, 0.97 * expected);
  g_assert_cmpfloat ((double) plan->weight_bytes, <, 1.03 * expected);
  if (!SANITIZED) {
    g_assert_cmpfloat ((double) (after - before), >, 0.97 * (double) plan->weight_bytes);
    g_assert_cmpfloat ((double) (after - before), <, 1.03 * (double) plan->weight_bytes + (16 << 20));
  }
  ox_toy_model_delete (path);
}

static void
test_plan_is_what_it_takes (void)
{
  check_what_it_takes (OX_MODEL_WEIGHTS_STORED, 16);
  check_what_it_takes (OX_MODEL_WEIGHTS_Q8, 8.5);
  check_what_it_takes (OX_MODEL_WEIGHTS_Q4, 4.5);
}

/* What the options come to: precision, weights, keys and values. */
static void
test_plan_of_weights (void)
{
  static const struct {
    OxModelPrecision precision;
    OxModelWeights weights;
    OxModelKv kv;
    const char *format;
    guint kv_bits;
  } cases[] = {
    { OX_MODEL_PRECISION_AUTO, OX_MODEL_WEIGHTS_AUTO, OX_MODEL_KV_AUTO, "F16 as Q8", 16 * 4 },
    { OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_AUTO, OX_MODEL_KV_F32, "F16 as Q8", 32 * 4 },
    { OX_MODEL_PRECISION_EXACT, OX_MODEL_WEIGHTS_AUTO, OX_MODEL_KV_AUTO, "F16", 32 * 4 },
    { OX_MODEL_PRECISION_EXACT, OX_MODEL_WEIGHTS_Q8, OX_MODEL_KV_F16, "F16 as Q8", 16 * 4 },
    { OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_STORED, OX_MODEL_KV_BF16, "F16", 16 * 4 },
    { OX_MODEL_PRECISION_FAST, OX_MODEL_WEIGHTS_Q4, OX_MODEL_KV_Q8, "F16 as Q4", 34 },
  };
  OxToyModel toy = { .f16 = TRUE, .hidden = 128, .heads = 4 };
  char *path = ox_toy_model_make (&toy);
  /* Half floats of the kind that this processor multiplies faster. */
  OxType fast_half = ox_kernels ()->attention->fast_type == OX_TYPE_BF16 ? OX_TYPE_BF16 : OX_TYPE_F16;

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    OxModelOptions options = { .precision = cases[i].precision, .weights = cases[i].weights, .kv = cases[i].kv };
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModelPlan) plan = ox_model_plan (path, &options, NULL, &error);
    g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
    g_autoptr (OxSession) session = NULL;
    guint row_bytes = cases[i].kv_bits == 34 ? 34 : cases[i].kv_bits * 32 / 4 / 8;

    g_assert_no_error (error);
    assert_same_plan (plan, ox_model_get_plan (model));
    g_assert_cmpstr (plan->format, ==, cases[i].format);
    g_assert_null (plan->note);
    /* Keys and values of two layers, of heads of 32. */
    g_assert_cmpuint (plan->kv_bytes_per_token % (2 * 2 * row_bytes), ==, 0);
    session = ox_session_new (model, &error);
    g_assert_no_error (error);
    g_assert_cmpint (model->state_options.kv_type, ==,
                     cases[i].kv == OX_MODEL_KV_Q8     ? OX_TYPE_Q8_0
                     : cases[i].kv == OX_MODEL_KV_BF16 ? OX_TYPE_BF16
                     : cases[i].kv == OX_MODEL_KV_F16  ? OX_TYPE_F16
                     : cases[i].kv_bits == 64          ? fast_half
                                                       : OX_TYPE_F32);
  }
  ox_toy_model_delete (path);
}

/* Heads of 16 do not fill blocks of 32. */
static void
test_kv_that_does_not_suit (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { 0 });
  OxModelOptions options = { .kv = OX_MODEL_KV_Q8 };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
  g_autoptr (OxSession) session = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (model->state_options.kv_type, ==, OX_TYPE_F16);
  session = ox_session_new (model, &error);
  g_assert_no_error (error);
  ox_toy_model_delete (path);
}

/* Where 8 bits do not fit, 4 bits it is, and the plan says so. A file so large that this computer can be found between the two. */
static void
test_auto_falls_to_q4 (void)
{
  guint64 total, available;
  OxToyModel toy = { .sparse = TRUE, .f16 = TRUE, .layers = 1, .hidden = 4096, .heads = 32 };
  char *path;
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModelPlan) plan = NULL;

  /* Three matrices [feed_forward, hidden] a layer take what is free at 6.5 bits a weight. */
  ox_platform_get_memory (&total, &available);
  toy.layers = (guint) CLAMP (available / ((guint64) 3 * 4096 * (1 << 18) * 13 / 16), 1, 400);
  toy.feed_forward = (guint) (available / 13 * 16 / toy.layers / 3 / 4096 / 32 * 32);
  path = ox_toy_model_make (&toy);
  plan = ox_model_plan (path, NULL, NULL, &error);
  g_assert_no_error (error);
  g_test_message ("%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT, plan->format, plan->memory_needed,
                  plan->memory_available);
  g_assert_cmpstr (plan->format, ==, "F16 as Q4");
  g_assert_cmpint (plan->fit, !=, OX_FIT_NOT);
  g_assert_nonnull (strstr (plan->note, "4 bits"));
  ox_toy_model_delete (path);
}

/* Rounded weights give nearly the same logits: 8 bits nearer than 4. */
static void
test_rounded_logits (void)
{
  static const OxModelWeights weights[] = { OX_MODEL_WEIGHTS_STORED, OX_MODEL_WEIGHTS_Q8, OX_MODEL_WEIGHTS_Q4 };
  char *path = ox_toy_model_make (&(OxToyModel) { .f16 = TRUE, .hidden = 128 });
  guint32 ids[20];
  float logits[3][OX_TOY_VOCAB];
  double energy = 0, error_of[3] = { 0 };

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    ids[i] = (i * 37) % 256;
  for (guint w = 0; w < 3; w++) {
    OxModelOptions options = { .precision = OX_MODEL_PRECISION_EXACT, .weights = weights[w], .threads = w + 1 };
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
    g_autoptr (OxSession) session = ox_session_new (model, &error);

    g_assert_true (ox_session_eval (session, ids, G_N_ELEMENTS (ids), OX_LOGITS_LAST, logits[w], NULL, &error));
    for (guint i = 0; i < OX_TOY_VOCAB; i++) {
      double difference = logits[w][i] - logits[0][i];

      energy += w == 0 ? (double) logits[0][i] * logits[0][i] : 0;
      error_of[w] += difference * difference;
    }
  }
  for (guint w = 0; w < 3; w++)
    error_of[w] = sqrt (error_of[w] / energy);
  g_test_message ("relative error of logits: Q8 %.4f, Q4 %.4f", error_of[1], error_of[2]);
  g_assert_cmpfloat (error_of[1], >, 0);
  g_assert_cmpfloat (error_of[1], <, 0.06);
  /* The steps of 4 bits are 16 times as wide. */
  g_assert_cmpfloat (error_of[2], >, 4 * error_of[1]);
  g_assert_cmpfloat (error_of[2], <, 0.5);
  ox_toy_model_delete (path);
}

/* A model that cannot fit is refused with numbers, and tried when one insists. */
static void
test_memory_refusal (void)
{
  /* The weights are small; what does not fit is the promise of a context of a hundred million tokens. */
  OxToyModel toy = { .hidden = 1024, .layers = 8, .context = 1u << 27, .sparse = TRUE };
  char *path = ox_toy_model_make (&toy);
  OxModelOptions options = { .context_length = 1u << 27 };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModelPlan) plan = ox_model_plan (path, &options, NULL, &error);
  g_autoptr (OxModel) model = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (plan->fit, ==, OX_FIT_NOT);
  g_assert_cmpuint (plan->memory_needed, >, plan->memory_available);
  g_assert_null (ox_model_load (path, &options, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, plan->name));
  g_clear_error (&error);

  options.ignore_memory = TRUE;
  model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (model);
  ox_toy_model_delete (path);
}

/* Weights larger than any computer's memory: refused before anything is read. */
static void
test_memory_huge (void)
{
  OxToyModel toy = {
    .sparse = TRUE, .f16 = TRUE, .layers = 100, .hidden = 16384, .feed_forward = 1 << 20, .heads = 128
  };
  char *path = ox_toy_model_make (&toy);
  g_autoptr (GError) error = NULL;
  gint64 start = g_get_monotonic_time ();
  g_autoptr (OxModelPlan) plan = ox_model_plan (path, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpint (plan->fit, ==, OX_FIT_NOT);
  /* Even with 4 bits a weight. */
  g_assert_cmpuint (plan->weight_bytes, >, G_GUINT64_CONSTANT (2) << 40);
  g_assert_null (ox_model_load (path, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
  g_assert_cmpint (g_get_monotonic_time () - start, <, 2 * G_USEC_PER_SEC);
  ox_toy_model_delete (path);
}

static void
test_memory_runs_out_subprocess (void)
{
  char *path = ox_toy_model_make (&large);
  OxModelOptions options = { .ignore_memory = TRUE, .threads = 1 };
  struct rlimit limit = { 256u << 20, 256u << 20 };
  g_autoptr (GError) error = NULL;

  g_assert_no_errno (setrlimit (RLIMIT_AS, &limit));
  g_assert_null (ox_model_load (path, &options, NULL, NULL, NULL, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NO_MEMORY);
  ox_toy_model_delete (path);
}

/* Insisting does not end in a crash, either. */
static void
test_memory_runs_out (void)
{
  if (SANITIZED) {
    g_test_skip ("sanitizers reserve more address space than this test allows");
    return;
  }
  g_test_trap_subprocess ("/engine/model/memory/runs-out/subprocess", 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
}

/* ---- Progress and cancelling ---- */

typedef struct {
  double last;
  guint calls;
  GThread *thread;
  GCancellable *cancellable;
  double cancel_at;
  gint64 cancelled; /* when */
} Progress;

static void
on_progress (double fraction, gpointer user_data)
{
  Progress *progress = user_data;

  g_assert_cmpfloat (fraction, >=, progress->last);
  g_assert_cmpfloat (fraction, <=, 1);
  g_assert_true (g_thread_self () == progress->thread);
  progress->last = fraction;
  progress->calls++;
  if (progress->cancellable != NULL && fraction >= progress->cancel_at && progress->cancelled == 0) {
    progress->cancelled = g_get_monotonic_time ();
    g_cancellable_cancel (progress->cancellable);
  }
}

static void
test_progress (void)
{
  char *path = ox_toy_model_make (&large);
  Progress progress = { .thread = g_thread_self () };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, NULL, on_progress, &progress, NULL, &error);

  if (g_error_matches (error, OX_ERROR, OX_ERROR_NO_MEMORY)) {
    g_test_skip ("half a gigabyte of memory is not free");
  } else {
    g_assert_no_error (error);
    g_assert_cmpfloat (progress.last, ==, 1);
    g_assert_cmpuint (progress.calls, >=, 1);
  }
  ox_toy_model_delete (path);
}

static gpointer
cancel_soon (gpointer user_data)
{
  Progress *progress = user_data;

  g_usleep (30000);
  progress->cancelled = g_get_monotonic_time ();
  g_cancellable_cancel (progress->cancellable);
  return NULL;
}

/* From another thread, in the middle of loading: within 100 ms. Other programs can take the processor away, so the best of some tries
 * counts. */
static void
test_cancel (void)
{
  char *path = ox_toy_model_make (&large);
  /* Sanitizers make everything several times slower. */
  gint64 most = SANITIZED ? 500000 : 100000;
  gint64 best = G_MAXINT64;

  for (guint try = 0; try < 5 && best > most; try++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    Progress progress = { .thread = g_thread_self (), .cancellable = cancellable, .cancel_at = 2 };
    GThread *thread = g_thread_new ("cancel", cancel_soon, &progress);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, cancellable, &error);
    gint64 end = g_get_monotonic_time ();

    g_thread_join (thread);
    if (g_error_matches (error, OX_ERROR, OX_ERROR_NO_MEMORY)) {
      g_test_skip ("half a gigabyte of memory is not free");
      ox_toy_model_delete (path);
      return;
    }
    g_assert_null (model);
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    best = MIN (best, end - progress.cancelled);
  }
  g_test_message ("cancelled after %.1f ms", (double) best / 1000);
  g_assert_cmpint (best, <=, most);
  ox_toy_model_delete (path);
}

static void
test_cancelled_before (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { 0 });
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_null (ox_model_load (path, NULL, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (ox_model_plan (path, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  ox_toy_model_delete (path);
}

/* ---- Odds and ends ---- */

static void
test_options (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { 0 });
  OxModelOptions options = { .threads = 1, .context_length = 1u << 30 };
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, &options, NULL, NULL, NULL, &error);
  OxModel *other;

  g_assert_no_error (error);
  g_assert_cmpuint (ox_pool_threads (model->pool), ==, 1);
  /* No more than the model was made for. */
  g_assert_cmpuint (ox_model_get_plan (model)->context_length, ==, 4096);
  other = ox_model_ref (model);
  ox_model_unref (other);
  g_assert_nonnull (ox_model_get_tokenizer (model));
  ox_toy_model_delete (path);
}

static void
test_count_tokens (void)
{
  char *path = ox_toy_model_make (&(OxToyModel) { 0 });
  g_autoptr (GError) error = NULL;
  g_autoptr (OxModel) model = ox_model_load (path, NULL, NULL, NULL, NULL, &error);
  g_autoptr (OxChat) chat = ox_chat_new ();
  guint n = 0;

  g_assert_no_error (error);
  ox_chat_append (chat, OX_ROLE_USER, "abc");
  g_assert_true (ox_model_count_tokens (model, chat, &n, NULL, &error));
  /* <|im_start|> user \n a b c <|im_end|> \n <|im_start|> a s s i st an t \n: "an" and "user" are words. */
  g_assert_cmpuint (n, ==, 1 + 1 + 1 + 3 + 1 + 1 + 1 + 8 + 1);
  ox_toy_model_delete (path);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
  g_test_add_func ("/engine/model/missing-tensor", test_missing_tensor);
  g_test_add_func ("/engine/model/wrong-shape", test_wrong_shape);
  g_test_add_func ("/engine/model/vocabulary-too-large", test_vocabulary_too_large);
  g_test_add_func ("/engine/model/no-such-file", test_no_such_file);
  g_test_add_func ("/engine/model/plan/toys", test_plan_of_toys);
  g_test_add_func ("/engine/model/plan/is-what-it-takes", test_plan_is_what_it_takes);
  g_test_add_func ("/engine/model/plan/weights", test_plan_of_weights);
  g_test_add_func ("/engine/model/plan/kv-that-does-not-suit", test_kv_that_does_not_suit);
  g_test_add_func ("/engine/model/plan/falls-to-q4", test_auto_falls_to_q4);
  g_test_add_func ("/engine/model/rounded-logits", test_rounded_logits);
  g_test_add_func ("/engine/model/memory/refusal", test_memory_refusal);
  g_test_add_func ("/engine/model/memory/huge", test_memory_huge);
  g_test_add_func ("/engine/model/memory/runs-out", test_memory_runs_out);
  g_test_add_func ("/engine/model/memory/runs-out/subprocess", test_memory_runs_out_subprocess);
  g_test_add_func ("/engine/model/progress", test_progress);
  g_test_add_func ("/engine/model/cancel", test_cancel);
  g_test_add_func ("/engine/model/cancelled-before", test_cancelled_before);
  g_test_add_func ("/engine/model/options", test_options);
  g_test_add_func ("/engine/model/count-tokens", test_count_tokens);
  return g_test_run ();
}
