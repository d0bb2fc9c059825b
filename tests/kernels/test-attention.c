/* Attention: every instruction set against a plain softmax in float64, with grouped heads, windows and a ring that wraps.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <string.h>

typedef struct {
  size_t m, n_heads, n_kv_heads, head_dim, capacity, position, window;
} AttentionCase;

static const AttentionCase cases[] = {
  { 1, 1, 1, 64, 1, 0, 0 },        /* one key */
  { 1, 4, 1, 256, 64, 63, 0 },     /* Gemma 3's heads, one full block of keys */
  { 1, 9, 3, 64, 70, 64, 0 },      /* SmolLM2's heads, a block and one key */
  { 5, 4, 2, 32, 40, 0, 0 },       /* a prompt from its beginning */
  { 3, 2, 2, 80, 200, 150, 0 },    /* a head that is no whole number of vectors */
  { 4, 3, 1, 12, 90, 70, 0 },      /* nor of short ones */
  { 2, 2, 1, 64, 130, 1000, 100 }, /* a window inside a ring that has wrapped */
  { 7, 4, 1, 64, 20, 33, 5 },      /* a window shorter than the chunk */
  { 2, 8, 8, 128, 600, 511, 512 }, /* a window that has just filled */
  { 2, 2, 1, 512, 32, 8, 1 },      /* each sees only itself */
};

/* Softmax in float64. A score errs by dim·ε·Σ|q·k|·scale, an exponential turns that into a relative error of its weight (twice,
 * as the largest score is off as well); the running sums add one ε a key. */
static void
expect (const OxAttention *a, size_t query, size_t head, double *out, double *bound)
{
  size_t kv = head / (a->n_heads / a->n_kv_heads), dim = a->head_dim, end = a->position + query + 1;
  size_t begin = a->window != 0 && end > a->window ? end - a->window : 0;
  const float *q = a->q + (query * a->n_heads + head) * dim;
  g_autofree double *scores = g_new (double, end - begin);
  double largest = -INFINITY, total = 0, score_error = 0;

  for (size_t p = begin; p < end; p++) {
    const float *k = a->k + (kv * a->capacity + p % a->capacity) * dim;
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < dim; i++) {
      sum += (double) q[i] * k[i];
      magnitude += fabs ((double) q[i] * k[i]);
    }
    scores[p - begin] = sum * a->scale;
    score_error = fmax (score_error, ((double) dim + 3) * 0x1p-24 * magnitude * a->scale);
    largest = fmax (largest, scores[p - begin]);
  }
  for (size_t p = begin; p < end; p++) {
    scores[p - begin] = exp (scores[p - begin] - largest);
    total += scores[p - begin];
  }
  for (size_t i = 0; i < dim; i++) {
    double sum = 0, magnitude = 0;
    for (size_t p = begin; p < end; p++) {
      double t = scores[p - begin] / total * a->v[(kv * a->capacity + p % a->capacity) * dim + i];
      sum += t;
      magnitude += fabs (t);
    }
    out[i] = sum;
    /* Weights below 2^-126 of the greatest may vanish: nothing beside 1e-30. */
    bound[i] = magnitude * (4 * score_error + (2.0 * (double) (end - begin) + 20) * 0x1p-24) + 1e-30;
  }
}

static void
check_case (const KernelLevel *level, const AttentionCase *c, KernelInput input, KernelRandom *random)
{
  size_t q_floats = c->m * c->n_heads * c->head_dim, kv_floats = c->n_kv_heads * c->capacity * c->head_dim;
  float *q = guarded_new (q_floats * sizeof (float), sizeof (float)),
        *out = guarded_new (q_floats * sizeof (float), sizeof (float));
  float *k = guarded_new (kv_floats * sizeof (float), sizeof (float)),
        *v = guarded_new (kv_floats * sizeof (float), sizeof (float));
  g_autofree double *expected = g_new (double, c->head_dim), *bound = g_new (double, c->head_dim);
  OxAttention a = { q,
                    k,
                    v,
                    out,
                    c->m,
                    c->n_heads,
                    c->n_kv_heads,
                    c->head_dim,
                    c->capacity,
                    c->position,
                    c->window,
                    1 / sqrtf ((float) c->head_dim) };
  float *scratch = guarded_new (ox_attention_scratch (&a) * sizeof (float), sizeof (float));

  kernel_fill_floats (random, input, q, q_floats);
  kernel_fill_floats (random, input, k, kv_floats);
  kernel_fill_floats (random, input, v, kv_floats);
  /* Large scores: their exponentials overflow unless the maximum is taken off first. */
  if (input == INPUT_EXTREME)
    for (size_t i = 0; i < q_floats; i++)
      q[i] *= 60;
  memset (out, 0x7f, q_floats * sizeof (float));

  for (size_t query = c->m; query-- > 0;)
    for (size_t kv = 0; kv < c->n_kv_heads; kv++)
      level->kernels.attention (&a, query, kv, scratch);
  for (size_t query = 0; query < c->m; query++)
    for (size_t head = 0; head < c->n_heads; head++) {
      const float *got = out + (query * c->n_heads + head) * c->head_dim;
      expect (&a, query, head, expected, bound);
      for (size_t i = 0; i < c->head_dim; i++)
        if (!(fabs (got[i] - expected[i]) <= bound[i]))
          g_error ("%s, case %zu, %s input, query %zu, head %zu: element %zu is %.9g, expected %.9g ± %.3g",
                   level->name, (size_t) (c - cases), kernel_input_names[input], query, head, i, got[i], expected[i],
                   bound[i]);
    }
  guarded_free (q);
  guarded_free (k);
  guarded_free (v);
  guarded_free (out);
  guarded_free (scratch);
}

static void
test_attention (gconstpointer data)
{
  KernelRandom random = { 11 };

  for (size_t c = 0; c < G_N_ELEMENTS (cases); c++) {
    check_case (data, &cases[c], INPUT_NORMAL, &random);
    check_case (data, &cases[c], INPUT_ZERO, &random);
    check_case (data, &cases[c], INPUT_SUBNORMAL, &random);
    check_case (data, &cases[c], INPUT_EXTREME, &random);
  }
}

int
main (int argc, char **argv)
{
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  for (size_t l = 0; l < n_levels; l++) {
    g_autofree char *path = g_strdup_printf ("/attention/%s", levels[l].name);
    g_test_add_data_func (path, &levels[l], test_attention);
  }
  return g_test_run ();
}
