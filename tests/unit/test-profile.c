/* Where the time goes: categories sum to the time of an answer, cost next to nothing, and can be read at any time.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-toy-model.h"
#include "ox-profile.h"
#include "ox-session-private.h"

#include <time.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITISED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITISED
#endif

static guint64
now_ns (clockid_t clock)
{
  struct timespec t;

  g_assert_cmpint (clock_gettime (clock, &t), ==, 0);
  return (guint64) t.tv_sec * 1000000000u + (guint64) t.tv_nsec;
}

static guint64
spend (guint64 nanoseconds)
{
  guint64 begin = now_ns (CLOCK_MONOTONIC), now;

  do
    now = now_ns (CLOCK_MONOTONIC);
  while (now - begin < nanoseconds);
  return now - begin;
}

static void
test_clock (void)
{
  OxProfiler profiler = { 0 };
  OxProfileClock clock = { .profiler = &profiler };
  OxProfile profile, later;
  guint64 begin, end;

  /* A clock that stands measures nothing, nor one without sums. */
  ox_profile_lap (&clock, OX_PROFILE_NORM);
  ox_profile_stop (&clock);
  ox_profile_start (&(OxProfileClock) { 0 }, OX_PROFILE_NORM);
  ox_profiler_read (&profiler, &profile);
  g_assert_cmpuint (ox_profile_get_total (&profile), ==, 0);

  begin = now_ns (CLOCK_MONOTONIC);
  ox_profile_start (&clock, OX_PROFILE_OTHER);
  spend (1000000);
  ox_profile_lap (&clock, OX_PROFILE_MATMUL);
  spend (3000000);
  ox_profile_start (&clock, OX_PROFILE_SAMPLING);
  spend (2000000);
  ox_profile_lap (&clock, OX_PROFILE_TOKENIZER);
  spend (1000000);
  ox_profile_stop (&clock);
  spend (1000000);
  ox_profile_stop (&clock);
  end = now_ns (CLOCK_MONOTONIC);
  ox_profiler_read (&profiler, &profile);
  g_assert_cmpuint (profile.calls[OX_PROFILE_OTHER], ==, 1);
  g_assert_cmpuint (profile.calls[OX_PROFILE_MATMUL], ==, 1);
  g_assert_cmpuint (profile.calls[OX_PROFILE_SAMPLING], ==, 1);
  g_assert_cmpuint (profile.calls[OX_PROFILE_NORM], ==, 0);
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_OTHER], >=, 1000000);
  /* What was going on before the inner start goes on behind its stop. */
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_MATMUL], >=, 4000000);
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_SAMPLING], >=, 2000000);
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_TOKENIZER], >=, 1000000);
  g_assert_cmpuint (ox_profile_get_total (&profile), <=, end - begin);

  ox_profile_start (&clock, OX_PROFILE_IO);
  ox_profile_stop (&clock);
  ox_profiler_read (&profiler, &later);
  ox_profile_subtract (&later, &profile);
  g_assert_cmpuint (later.calls[OX_PROFILE_IO], ==, 1);
  g_assert_cmpuint (later.calls[OX_PROFILE_MATMUL], ==, 0);
  g_assert_cmpuint (later.nanoseconds[OX_PROFILE_MATMUL], ==, 0);
  ox_profiler_reset (&profiler);
  ox_profiler_read (&profiler, &profile);
  g_assert_cmpuint (ox_profile_get_total (&profile), ==, 0);
  g_assert_cmpuint (profile.calls[OX_PROFILE_IO], ==, 0);
}

/* Deeper than is kept: stops still find their starts. */
static void
test_depth (void)
{
  OxProfiler profiler = { 0 };
  OxProfileClock clock = { .profiler = &profiler };

  for (guint i = 0; i < 3 * OX_PROFILE_DEPTH; i++)
    ox_profile_start (&clock, OX_PROFILE_OTHER);
  ox_profile_lap (&clock, OX_PROFILE_NORM);
  for (guint i = 0; i < 3 * OX_PROFILE_DEPTH; i++)
    ox_profile_stop (&clock);
  g_assert_cmpuint (clock.depth, ==, 0);
  g_assert_cmpuint (profiler.calls[OX_PROFILE_NORM], ==, 1);
}

static void
test_names (void)
{
  for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++) {
    g_assert_nonnull (ox_profile_category_get_name (c));
    for (guint d = 0; d < c; d++)
      g_assert_cmpstr (ox_profile_category_get_name (c), !=, ox_profile_category_get_name (d));
  }
}

static OxModel *
load (const OxToyModel *toy)
{
  char *path = ox_toy_model_make (toy);
  g_autoptr (GError) error = NULL;
  OxModel *model = ox_model_load (path, &(OxModelOptions) { .threads = 2 }, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  ox_toy_model_delete (path);
  return model;
}

static void
slow_event (const OxEvent *event, gpointer user_data)
{
  if (event->type == OX_EVENT_END)
    *(guint64 *) user_data += spend (2000000);
}

/* An answer of a chat: prompt, tokens, events. Returns its wall time. */
static guint64
answer (OxSession *session, guint tokens, guint64 *in_events)
{
  OxSampling sampling = { .temperature = 0.8f, .top_p = 0.95f, .top_k = 40, .repetition_penalty = 1, .seed = 1 };
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  guint64 begin;

  sampling.max_tokens = tokens;
  for (guint i = 0; i < 40; i++)
    g_string_append (text, "Tell me about the sea. ");
  ox_chat_append (chat, OX_ROLE_USER, text->str);
  begin = now_ns (CLOCK_MONOTONIC);
  ox_session_generate (session, chat, &sampling, slow_event, in_events, NULL, &error);
  g_assert_no_error (error);
  return now_ns (CLOCK_MONOTONIC) - begin;
}

/* The categories of an answer sum to its time. */
static void
test_answer (void)
{
  static const OxProfileCategory seen[] = {
    OX_PROFILE_MATMUL,   OX_PROFILE_ATTENTION, OX_PROFILE_NORM,      OX_PROFILE_ELEMENTWISE, OX_PROFILE_IO,
    OX_PROFILE_SAMPLING, OX_PROFILE_TOKENIZER, OX_PROFILE_RECURRENT, OX_PROFILE_OTHER,
  };
  g_autoptr (OxModel) model = load (&(OxToyModel) { .layers = 4, .hidden = 256, .feed_forward = 512 });
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  OxProfile before, profile;
  guint64 wall, in_events = 0;

  ox_model_get_profile (model, &before);
  g_assert_cmpuint (before.nanoseconds[OX_PROFILE_LOAD], >, 0);
  g_assert_cmpuint (before.nanoseconds[OX_PROFILE_MATMUL], ==, 0);
  wall = answer (session, 30, &in_events);
  ox_model_get_profile (model, &profile);
  ox_profile_subtract (&profile, &before);
  for (guint i = 0; i < G_N_ELEMENTS (seen); i++)
    if (seen[i] != OX_PROFILE_RECURRENT)
      g_assert_cmpuint (profile.nanoseconds[seen[i]], >, 0);
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_LOAD], ==, 0);
  g_assert_cmpuint (profile.nanoseconds[OX_PROFILE_OTHER], >=, in_events);
  /* Layer by layer, in the prompt's chunk and for each token. */
  g_assert_cmpuint (profile.calls[OX_PROFILE_ATTENTION], >=, 2 * 4 * 2);
  g_assert_cmpuint (ox_profile_get_total (&profile), <=, wall);
  g_assert_cmpfloat ((double) ox_profile_get_total (&profile) / wall, >=, 0.97);

  ox_model_reset_profile (model);
  ox_model_get_profile (model, &profile);
  g_assert_cmpuint (ox_profile_get_total (&profile), ==, 0);
  /* A session's own clock stands again. */
  g_assert_cmpuint (session->ops->profile.depth, ==, 0);
}

/* An answer that is stopped or fails leaves no clock running. */
static void
test_failure (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { .nan = "blk.1.attn_q.weight" });
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (ox_session_complete (session, "Hello", NULL, NULL, NULL, NULL, &error));
  g_assert_cmpuint (session->ops->profile.depth, ==, 0);
  g_clear_error (&error);
  g_cancellable_cancel (cancelled);
  g_assert_false (ox_session_complete (session, "Hello there", NULL, NULL, NULL, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (session->ops->profile.depth, ==, 0);
}

/* What the laps of an answer cost, by their number: less than 0.5 % of the processor time of a small model's token. The toy stands in
 * for the smallest model that anybody talks to: SmolLM2 135M has 400 laps in a token of 3.5 ms and more. */
static void
test_cost (void)
{
  const guint laps = 20000, laps_a_token = 400;
  const double token_ns = 3.5e6;
  OxProfiler profiler = { 0 };
  OxProfileClock clock = { .profiler = &profiler };
  double best = G_MAXDOUBLE;

  ox_profile_start (&clock, OX_PROFILE_OTHER);
  for (guint round = 0; round < 30; round++) {
    guint64 begin = now_ns (CLOCK_THREAD_CPUTIME_ID);

    for (guint i = 0; i < laps; i++)
      ox_profile_lap (&clock, i % 2 == 0 ? OX_PROFILE_MATMUL : OX_PROFILE_NORM);
    best = MIN (best, (double) (now_ns (CLOCK_THREAD_CPUTIME_ID) - begin) / laps);
  }
  ox_profile_stop (&clock);
  g_test_message ("a lap costs %.1f ns, those of a token %.2f %%", best, 100 * best * laps_a_token / token_ns);
#if defined(__OPTIMIZE__) && !defined(SANITISED)
  g_assert_cmpfloat (best * laps_a_token, <, 0.005 * token_ns);
#endif
}

typedef struct {
  OxModel *model;
  gint stop; /* atomic */
  guint reads;
} Reader;

/* Numbers only grow, whoever looks and whenever. */
static gpointer
read_often (gpointer data)
{
  Reader *reader = data;
  OxProfile last, now;

  ox_model_get_profile (reader->model, &last);
  while (!g_atomic_int_get (&reader->stop)) {
    ox_model_get_profile (reader->model, &now);
    for (guint c = 0; c < OX_PROFILE_N_CATEGORIES; c++) {
      g_assert_cmpuint (now.nanoseconds[c], >=, last.nanoseconds[c]);
      g_assert_cmpuint (now.calls[c], >=, last.calls[c]);
    }
    last = now;
    reader->reads++;
    g_usleep (50);
  }
  return NULL;
}

static gpointer
answer_elsewhere (gpointer model)
{
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  guint64 in_events = 0;

  return GSIZE_TO_POINTER (answer (session, 20, &in_events));
}

/* Two answers at once, and somebody who looks. */
static void
test_threads (void)
{
  g_autoptr (OxModel) model = load (&(OxToyModel) { 0 });
  Reader reader = { .model = model };
  GThread *reading = g_thread_new ("reader", read_often, &reader);
  GThread *answers[2];
  OxProfile before, profile;
  guint64 wall = 0;

  ox_model_get_profile (model, &before);
  for (guint i = 0; i < 2; i++)
    answers[i] = g_thread_new ("answer", answer_elsewhere, model);
  for (guint i = 0; i < 2; i++)
    wall += GPOINTER_TO_SIZE (g_thread_join (answers[i]));
  g_atomic_int_set (&reader.stop, TRUE);
  g_thread_join (reading);
  g_assert_cmpuint (reader.reads, >, 0);
  ox_model_get_profile (model, &profile);
  ox_profile_subtract (&profile, &before);
  g_assert_cmpuint (ox_profile_get_total (&profile), <=, wall);
  g_assert_cmpfloat ((double) ox_profile_get_total (&profile) / wall, >=, 0.97);
}

typedef struct {
  OxModel *model; /* NULL: only listens */
  GString *text;
  gboolean saves;
} Switching;

static void
switch_event (const OxEvent *event, gpointer user_data)
{
  Switching *switching = user_data;

  if (event->type == OX_EVENT_TEXT)
    g_string_append (switching->text, event->text);
  if (switching->model != NULL) {
    switching->saves = !switching->saves;
    ox_model_set_power_saving (switching->model, switching->saves);
  }
}

static char *
text_of (OxModel *model, gboolean switches)
{
  static const OxSampling greedy = { .top_p = 1, .repetition_penalty = 1, .max_tokens = 20 };
  g_autoptr (OxSession) session = ox_session_new (model, NULL);
  Switching switching = { .model = switches ? model : NULL, .text = g_string_new (NULL) };
  g_autoptr (GError) error = NULL;

  ox_session_complete (session, "Once upon a time", &greedy, switch_event, &switching, NULL, &error);
  g_assert_no_error (error);
  return g_string_free (switching.text, FALSE);
}

/* Half of the threads, and back, also within an answer, which stays the same. */
static void
test_power_saving (void)
{
  const OxToyModel toy = { .hidden = 256, .feed_forward = 512 };
  g_autoptr (OxModel) model = load (&toy);
  g_autofree char *plain = text_of (model, FALSE), *switched = NULL;
  OxPool *pool = model->pool;
  guint all = ox_pool_get_limit (pool);

  g_assert_cmpuint (ox_pool_threads (pool), ==, 2);
  ox_model_set_power_saving (model, TRUE);
  g_assert_cmpuint (ox_pool_get_limit (pool), ==, 1);
  ox_model_set_power_saving (model, FALSE);
  g_assert_cmpuint (ox_pool_get_limit (pool), ==, all);
  switched = text_of (model, TRUE);
  g_assert_cmpstr (plain, !=, "");
  g_assert_cmpstr (switched, ==, plain);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/profile/clock", test_clock);
  g_test_add_func ("/profile/depth", test_depth);
  g_test_add_func ("/profile/names", test_names);
  g_test_add_func ("/profile/answer", test_answer);
  g_test_add_func ("/profile/failure", test_failure);
  g_test_add_func ("/profile/cost", test_cost);
  g_test_add_func ("/profile/threads", test_threads);
  g_test_add_func ("/profile/power-saving", test_power_saving);
  return g_test_run ();
}
