/* How long a model takes to be ready, the first time and again with its packed weights kept on disk, and what memory it takes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#include <malloc.h>
#include <math.h>

#include "ox-session-private.h"

#define PROMPT 512
#define WRITTEN 16
/* As long a context as is used: what is planned for it is then also taken. */
#define CONTEXT (PROMPT + WRITTEN)

typedef struct {
  double seconds;      /* until a session could take tokens */
  double packed_bytes; /* of weights */
  double state_bytes;
  double peak_bytes; /* over what the process had before; 0: the system does not tell */
} Start;

/* Lowers the high-water mark of resident memory to what is resident now (proc(5), clear_refs). */
static void
forget_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "we");

  if (file == NULL)
    return;
  fputs ("5", file);
  fclose (file);
}

static gboolean
use_a_little (OxBench *bench, OxModel *model, OxSession *session, GError **error)
{
  guint vocab = model->config->vocab_size, context = model->plan->context_length;
  guint prompt = MIN (PROMPT, context - MIN (WRITTEN, context / 2));
  g_autofree guint32 *ids = g_new (guint32, prompt);
  g_autofree float *logits = g_new (float, vocab);

  for (guint i = 0; i < prompt; i++)
    ids[i] = (guint32) ((i + 1) * G_GUINT64_CONSTANT (7919) % vocab);
  if (!ox_session_eval (session, ids, prompt, OX_LOGITS_LAST, logits, bench->cli->cancellable, error))
    return FALSE;
  for (guint i = 0; i < WRITTEN && prompt + i < context; i++) {
    guint32 id = (guint32) model->kernels->argmax (logits, vocab);

    if (!ox_session_eval (session, &id, 1, OX_LOGITS_LAST, logits, bench->cli->cancellable, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
start_once (OxBench *bench, const OxBenchSubject *subject, guint threads, Start *start, GError **error)
{
  g_autoptr (OxModel) model = NULL;
  OxSession *session;
  guint64 before, peak;
  gint64 begin;
  gboolean ok;

  malloc_trim (0);
  forget_peak ();
  before = ox_cli_process_memory ("VmRSS:");
  begin = ox_clock_now ();
  model = ox_bench_load (bench, subject, threads, CONTEXT, TRUE, error);
  session = model != NULL ? ox_session_new (model, error) : NULL;
  if (session == NULL)
    return FALSE;
  start->seconds = (double) MAX (ox_clock_now () - begin, 1) / G_USEC_PER_SEC;
  start->packed_bytes = (double) model->plan->weight_bytes;
  start->state_bytes = (double) model->plan->state_bytes;
  ok = use_a_little (bench, model, session, error);
  peak = ox_cli_process_memory ("VmHWM:");
  start->peak_bytes = peak > before ? (double) (peak - before) : 0;
  ox_session_free (session);
  return ok;
}

static void
add_start (OxBench *bench, const char *name, const Start *start, const OxBenchLimits *limits)
{
  const OxBenchLevel *level = &g_array_index (bench->levels, OxBenchLevel, bench->levels->len - 1);
  OxBenchResult *result = ox_bench_add (bench, name, "s", start->seconds, NULL, limits->threads, level->name);

  /* Nothing is ready before its weights are in memory, and they do not come faster than memory is read. */
  result->less = TRUE;
  if (limits->read > 0)
    result->limit = start->packed_bytes / limits->read;
}

gboolean
ox_bench_starts (OxBench *bench, const OxBenchSubject *subject, GError **error)
{
  const OxBenchLevel *level = &g_array_index (bench->levels, OxBenchLevel, bench->levels->len - 1);
  guint threads = g_array_index (bench->threads, guint, bench->threads->len - 1);
  g_autofree char *first_name = g_strconcat ("load/", subject->name, NULL);
  g_autofree char *second_name = g_strconcat ("load-again/", subject->name, NULL);
  g_autofree char *memory_name = g_strconcat ("peak-memory/", subject->name, NULL);
  OxBenchLimits limits;
  OxBenchResult *result;
  Start first, second;

  if (!ox_bench_wants (bench, first_name) && !ox_bench_wants (bench, second_name) &&
      !ox_bench_wants (bench, memory_name))
    return TRUE;
  ox_bench_say (bench, "Start: %s", subject->name);
  ox_bench_limits_init (&limits, threads, level->mask);
  ox_bench_limits_measure (bench, &limits, OX_BENCH_READ);
  /* Its buffer would be in the way of large models. */
  ox_bench_limits_release (bench);
  /* What an earlier start kept would make the first a second one. */
  if (!ox_packed_cache_clear (error) || !start_once (bench, subject, threads, &first, error))
    return FALSE;
  if (ox_bench_wants (bench, first_name))
    add_start (bench, first_name, &first, &limits);
  if (!start_once (bench, subject, threads, &second, error))
    return FALSE;
  if (ox_bench_wants (bench, second_name))
    add_start (bench, second_name, &second, &limits);
  if (ox_bench_wants (bench, memory_name) && second.peak_bytes > 0) {
    result = ox_bench_add (bench, memory_name, "MB", MAX (first.peak_bytes, second.peak_bytes) / 1e6, NULL, threads,
                           level->name);
    result->less = TRUE;
    result->limit = (second.packed_bytes + second.state_bytes) / 1e6;
  }
  return ox_packed_cache_clear (error);
}
