/* The sampler: the reference's distributions; draws that follow them; the same seed gives the same draws everywhere; fast on a
 * large vocabulary.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <math.h>
#include <string.h>

#include "golden/ox-golden-text.h"
#include "text/ox-sampler.h"

#define LARGE 262144

static const OxSampling plain = { .temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 1 };

static void
on_result (const OxGoldenResult *result, gpointer most)
{
  if (result->verdict != OX_GOLDEN_OK)
    g_test_message ("%s: %g", result->name, result->difference);
  if (result->difference > *(double *) most)
    *(double *) most = result->difference;
}

static void
test_golden (void)
{
  g_autofree char *path = g_build_filename (g_getenv ("OX_TEST_DATA"), "golden", "sampler", "cases.json", NULL);
  double most = 0;
  OxGoldenReport report = { .func = on_result, .user_data = &most };
  g_autoptr (GError) error = NULL;

  g_assert_true (ox_golden_text_run (path, NULL, &report, NULL, &error));
  g_assert_no_error (error);
  g_test_message ("greatest difference %g", most);
  g_assert_cmpuint (report.n_over + report.n_not_computed, ==, 0);
  g_assert_cmpuint (report.n_ok, ==, 70);
}

static OxSampler *
sampler_new (OxSampling sampling, guint n)
{
  g_autoptr (GError) error = NULL;
  OxSampler *sampler = ox_sampler_new (&sampling, n, NULL, 0, &error);

  g_assert_no_error (error);
  return sampler;
}

static guint32
sample (OxSampler *sampler, const float *logits)
{
  g_autoptr (GError) error = NULL;
  guint32 id = G_MAXUINT32;

  g_assert_true (ox_sampler_sample (sampler, logits, &id, &error));
  g_assert_no_error (error);
  return id;
}

static void
test_frequencies (void)
{
  static const float logits[] = { 0, 1, -1, 2, -INFINITY, 0.5f };
  OxSampler *sampler = sampler_new (plain, G_N_ELEMENTS (logits));
  g_autoptr (GArray) expected = ox_sampler_distribution (sampler, logits, NULL);
  guint counts[G_N_ELEMENTS (logits)] = { 0 };
  guint rounds = 100000;

  for (guint i = 0; i < rounds; i++)
    counts[sample (sampler, logits)]++;
  g_assert_cmpuint (counts[4], ==, 0);
  /* Five standard deviations. */
  for (guint i = 0; i < expected->len; i++) {
    OxCandidate c = g_array_index (expected, OxCandidate, i);

    g_assert_cmpfloat (fabs (counts[c.id] - rounds * c.p), <, 5 * sqrt (rounds * c.p * (1 - c.p)));
  }
  ox_sampler_free (sampler);
}

static void
test_seed (void)
{
  static const float logits[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
  /* xoshiro256** seeded by splitmix64(7): the first draws, by an implementation of its own in Python. */
  static const guint32 expected[] = { 5, 2, 6, 7, 7, 6, 0, 0, 3, 1, 4, 5 };
  OxSampling sampling = plain;
  guint n_different = 0;

  sampling.seed = 7;
  {
    g_autoptr (OxSampler) a = sampler_new (sampling, 8);

    for (gsize i = 0; i < G_N_ELEMENTS (expected); i++)
      g_assert_cmpuint (sample (a, logits), ==, expected[i]);
  }
  /* Seed 0: a new one each time. */
  sampling.seed = 0;
  {
    g_autoptr (OxSampler) a = sampler_new (sampling, 8);
    g_autoptr (OxSampler) b = sampler_new (sampling, 8);

    for (guint i = 0; i < 64; i++)
      n_different += sample (a, logits) != sample (b, logits);
  }
  g_assert_cmpuint (n_different, >, 0);
}

static void
test_penalties_reset (void)
{
  static const float logits[] = { 2, 1.5f, 1 };
  OxSampling sampling = plain;
  g_autoptr (OxSampler) sampler = NULL;

  sampling.temperature = 0;
  sampling.presence_penalty = 1;
  sampler = sampler_new (sampling, 3);
  g_assert_cmpuint (sample (sampler, logits), ==, 0);
  ox_sampler_accept (sampler, 0, FALSE);
  g_assert_cmpuint (sample (sampler, logits), ==, 0);
  ox_sampler_accept (sampler, 0, TRUE);
  g_assert_cmpuint (sample (sampler, logits), ==, 1);
  ox_sampler_accept (sampler, 1, TRUE);
  /* 1, 0.5, 1: the lowest id of equals. */
  g_assert_cmpuint (sample (sampler, logits), ==, 0);
  ox_sampler_accept (sampler, G_MAXUINT32, TRUE);
  ox_sampler_reset (sampler);
  g_assert_cmpuint (sample (sampler, logits), ==, 0);
}

static int
compare_ids (gconstpointer a, gconstpointer b)
{
  const OxCandidate *x = a, *y = b;

  return x->id < y->id ? -1 : x->id > y->id;
}

static void
assert_same (GArray *a, GArray *b)
{
  g_array_sort (a, compare_ids);
  g_array_sort (b, compare_ids);
  g_assert_cmpuint (a->len, ==, b->len);
  for (guint i = 0; i < a->len; i++) {
    const OxCandidate *x = &g_array_index (a, OxCandidate, i), *y = &g_array_index (b, OxCandidate, i);

    g_assert_cmpuint (x->id, ==, y->id);
    g_assert_cmpfloat_with_epsilon (x->p, y->p, 1e-12);
  }
}

/* A limit on what may come next gives what logits of -inf elsewhere give, whatever the settings; and goes away again. */
static void
test_allowed (void)
{
  static const OxSampling settings[] = {
    { .temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 1 },
    { .temperature = 0, .top_p = 1, .repetition_penalty = 1.5f, .seed = 1 },
    { .temperature = 0.7f, .top_k = 5, .top_p = 0.8f, .min_p = 0.05f, .repetition_penalty = 1.3f, .seed = 1 },
    { .temperature = 1, .top_k = 40, .top_p = 1, .repetition_penalty = 1, .presence_penalty = 1, .seed = 1 },
  };
  enum { N = 100, N_BITS = 90 };
  guint32 suppress[] = { 3, 60 };

  for (guint round = 0; round < 400; round++) {
    const OxSampling *setting = settings + round % G_N_ELEMENTS (settings);
    g_autoptr (GError) error = NULL;
    g_autoptr (OxSampler) limited = ox_sampler_new (setting, N, suppress, 2, &error);
    g_autoptr (OxSampler) free = ox_sampler_new (setting, N, suppress, 2, &error);
    float logits[N], holes[N];
    guint32 bits[4] = { 0 };
    g_autoptr (GArray) a = NULL;
    g_autoptr (GArray) b = NULL;
    g_autoptr (GArray) c = NULL;
    g_autoptr (GArray) d = NULL;

    for (guint32 i = 0; i < N; i++) {
      gboolean allowed = i == 7 || g_test_rand_int_range (0, 4) == 0;

      logits[i] = (float) g_test_rand_double_range (-4, 4);
      bits[i / 32] |= (guint32) allowed << i % 32;
      holes[i] = allowed && i < N_BITS ? logits[i] : -INFINITY;
    }
    for (guint i = 0; i < 20; i++) {
      guint32 id = (guint32) g_test_rand_int_range (0, N);

      ox_sampler_accept (limited, id, i % 2);
      ox_sampler_accept (free, id, i % 2);
    }
    ox_sampler_set_allowed (limited, bits, N_BITS);
    a = ox_sampler_distribution (limited, logits, &error);
    b = ox_sampler_distribution (free, holes, &error);
    g_assert_no_error (error);
    assert_same (a, b);

    ox_sampler_set_allowed (limited, NULL, 0);
    c = ox_sampler_distribution (limited, logits, &error);
    d = ox_sampler_distribution (free, logits, &error);
    g_assert_no_error (error);
    assert_same (c, d);
  }
  {
    g_autoptr (OxSampler) sampler = sampler_new (plain, N);
    const float logits[N] = { 0 };
    guint32 none[4] = { 0 }, id;
    g_autoptr (GError) error = NULL;

    ox_sampler_set_allowed (sampler, none, N);
    g_assert_false (ox_sampler_sample (sampler, logits, &id, &error));
    g_assert_error (error, OX_ERROR, OX_ERROR_NUMERIC);
  }
}

static void
test_bad (void)
{
  float logits[] = { 1, NAN, 2 };
  g_autoptr (OxSampler) sampler = sampler_new (plain, 3);
  g_autoptr (GError) error = NULL;
  OxSampling sampling = { 0 };
  guint32 id;

  g_assert_false (ox_sampler_sample (sampler, logits, &id, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_NUMERIC);
  g_clear_error (&error);
  g_assert_null (ox_sampler_new (&sampling, 3, NULL, 0, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
  g_clear_error (&error);
  sampling = plain;
  sampling.temperature = NAN;
  g_assert_null (ox_sampler_new (&sampling, 3, NULL, 0, &error));
  g_assert_error (error, OX_ERROR, OX_ERROR_INVALID);
}

/* A temperature that takes the quotient out of range of a double. */
static void
test_tiny_temperature (void)
{
  static const float logits[] = { -3e38f, 1e38f, 3e38f, 2e38f };
  OxSampling sampling = plain;
  g_autoptr (OxSampler) sampler = NULL;
  g_autoptr (GArray) expected = NULL;

  sampling.temperature = 1e-38f;
  sampler = sampler_new (sampling, 4);
  expected = ox_sampler_distribution (sampler, logits, NULL);
  g_assert_nonnull (expected);
  g_assert_cmpuint (expected->len, ==, 1);
  g_assert_cmpuint (g_array_index (expected, OxCandidate, 0).id, ==, 2);
}

/* A large vocabulary against the definition, done plainly by sorting; and its time, for information. */
static int
compare_down (gconstpointer pa, gconstpointer pb)
{
  double a = *(const double *) pa, b = *(const double *) pb;

  return a > b ? -1 : a < b;
}

static void
test_large (void)
{
  g_autofree float *logits = g_new (float, LARGE);
  g_autofree double *sorted = g_new (double, LARGE);
  OxSampling settings[] = { plain, plain, plain, plain };
  static const char *const names[] = { "top_k 64, top_p 0.95", "greedy", "top_p 0.95", "everything" };
  double sum = 0;

  for (guint i = 0; i < LARGE; i++) {
    logits[i] = (float) (4 * (g_test_rand_double () + g_test_rand_double () + g_test_rand_double () - 1.5) * 3);
    sorted[i] = logits[i];
  }
  qsort (sorted, LARGE, sizeof *sorted, compare_down);
  settings[0].top_k = 64;
  settings[0].top_p = 0.95f;
  settings[1].temperature = 0;
  settings[2].top_p = 0.95f;
  for (gsize s = 0; s < G_N_ELEMENTS (settings); s++) {
    g_autoptr (OxSampler) sampler = sampler_new (settings[s], LARGE);
    gint64 begin = g_get_monotonic_time ();

    for (guint i = 0; i < 20; i++)
      sample (sampler, logits);
    g_test_message ("%s: %.3f ms", names[s], (double) (g_get_monotonic_time () - begin) / 20e3);
  }
  {
    OxSampling sampling = plain;
    g_autoptr (OxSampler) sampler = NULL;
    g_autoptr (GArray) found = NULL;

    sampling.top_k = 64;
    sampler = sampler_new (sampling, LARGE);
    found = ox_sampler_distribution (sampler, logits, NULL);
    for (guint i = 0; i < 64; i++)
      sum += exp (sorted[i] - sorted[0]);
    g_assert_cmpuint (found->len, >=, 64);
    for (guint i = 0; i < found->len; i++) {
      OxCandidate c = g_array_index (found, OxCandidate, i);

      g_assert_cmpfloat ((double) logits[c.id], >=, sorted[63]);
      if (found->len == 64)
        g_assert_cmpfloat (fabs (c.p - exp (logits[c.id] - sorted[0]) / sum), <, 1e-12);
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sampler/golden", test_golden);
  g_test_add_func ("/sampler/frequencies", test_frequencies);
  g_test_add_func ("/sampler/seed", test_seed);
  g_test_add_func ("/sampler/penalties-reset", test_penalties_reset);
  g_test_add_func ("/sampler/allowed", test_allowed);
  g_test_add_func ("/sampler/bad", test_bad);
  g_test_add_func ("/sampler/tiny-temperature", test_tiny_temperature);
  g_test_add_func ("/sampler/large", test_large);
  return g_test_run ();
}
