/* Linear attention: convolutions and the gated delta rule, every instruction set against float64, odd sizes, guard zones.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float *
random_row (KernelRandom *random, size_t n)
{
  float *row = guarded_new (n * sizeof (float), sizeof (float));

  kernel_fill_floats (random, INPUT_NORMAL, row, n);
  return row;
}

static void
check (const char *level, const char *what, size_t i, double got, double expected, double bound)
{
  if (!(fabs (got - expected) <= bound))
    g_error ("%s %s: element %zu is %.9g, expected %.9g ± %.3g", level, what, i, got, expected, bound);
}

/* A sum of products errs by ε for each; silu's slope is below 1.1, and it adds what exp, a sum and a quotient err by. */
static void
test_conv_silu (gconstpointer data)
{
  const KernelLevel *level = data;
  static const size_t sizes[] = { 1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 640 };
  KernelRandom random = { 1 };

  for (size_t s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (size_t taps = 1; taps <= 5; taps++) {
      size_t n = sizes[s], stride = n + taps % 3;
      float *w = random_row (&random, taps * stride - (stride - n)), *y = random_row (&random, n), *x[5];

      for (size_t j = 0; j < taps; j++)
        x[j] = random_row (&random, n);
      /* Where exp() overflows and where it vanishes. */
      x[0][0] = -500;
      x[0][n - 1] = 500;
      level->kernels.conv_silu (y, (const float *const *) x, w, stride, taps, n);
      for (size_t c = 0; c < n; c++) {
        double sum = 0, magnitude = 0, expected;

        for (size_t j = 0; j < taps; j++) {
          sum += (double) w[j * stride + c] * x[j][c];
          magnitude += fabs ((double) w[j * stride + c] * x[j][c]);
        }
        expected = sum / (1 + exp (-sum));
        check (level->name, "conv_silu", c, y[c], expected,
               1.1 * magnitude * (double) taps * 0x1p-24 + fabs (expected) * 6e-7 + FLT_MIN);
      }
      for (size_t j = 0; j < taps; j++)
        guarded_free (x[j]);
      guarded_free (w);
      guarded_free (y);
    }
}

/* A head in buffers that end where they must. Strides are wider than what they hold. */
typedef struct {
  size_t n, key_dim, value_dim, qk_stride, v_stride, gate_stride, y_stride;
  float *q, *k, *v, *beta, *decay, *from, *state, *y;
} Head;

static float *
strided (KernelRandom *random, size_t n, size_t stride, size_t width)
{
  return random_row (random, (n - 1) * stride + width);
}

static void
head_init (Head *head, KernelRandom *random)
{
  head->qk_stride = head->key_dim + 3;
  head->v_stride = head->value_dim + 1;
  head->gate_stride = 2;
  head->y_stride = head->value_dim + 5;
  head->q = strided (random, head->n, head->qk_stride, head->key_dim);
  head->k = strided (random, head->n, head->qk_stride, head->key_dim);
  head->v = strided (random, head->n, head->v_stride, head->value_dim);
  head->beta = strided (random, head->n, head->gate_stride, 1);
  head->decay = strided (random, head->n, head->gate_stride, 1);
  head->y = strided (random, head->n, head->y_stride, head->value_dim);
  head->from = random_row (random, head->key_dim * head->value_dim);
  head->state = random_row (random, head->key_dim * head->value_dim);
  /* Keys as they come from their norm, gates within (0, 1). */
  for (size_t t = 0; t < head->n; t++) {
    double sum = 1e-6;

    for (size_t i = 0; i < head->key_dim; i++)
      sum += (double) head->k[t * head->qk_stride + i] * head->k[t * head->qk_stride + i];
    for (size_t i = 0; i < head->key_dim; i++) {
      head->k[t * head->qk_stride + i] /= (float) sqrt (sum);
      head->q[t * head->qk_stride + i] /= (float) head->key_dim;
    }
    head->beta[t * 2] = 1 / (1 + expf (-head->beta[t * 2]));
    head->decay[t * 2] = 1 / (1 + expf (-head->decay[t * 2]));
  }
}

static void
head_clear (Head *head)
{
  float *rows[] = { head->q, head->k, head->v, head->beta, head->decay, head->from, head->state, head->y };

  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    guarded_free (rows[i]);
}

static OxDeltaRule
head_rule (const Head *head, size_t first, size_t n, const float *from)
{
  return (OxDeltaRule) {
    .from = from,
    .state = head->state,
    .q = head->q + first * head->qk_stride,
    .k = head->k + first * head->qk_stride,
    .v = head->v + first * head->v_stride,
    .beta = head->beta + first * head->gate_stride,
    .decay = head->decay + first * head->gate_stride,
    .y = head->y + first * head->y_stride,
    .qk_stride = head->qk_stride,
    .v_stride = head->v_stride,
    .gate_stride = head->gate_stride,
    .y_stride = head->y_stride,
    .n = n,
    .key_dim = head->key_dim,
    .value_dim = head->value_dim,
  };
}

/* Where element (i, j) of the matrix lies. */
static size_t
place (const Head *head, size_t i, size_t j)
{
  size_t first = j / OX_DELTA_STRIP * OX_DELTA_STRIP;

  return head->key_dim * first + i * MIN (head->value_dim - first, OX_DELTA_STRIP) + j - first;
}

/* What recalls, changes and answers are summed from is of size 1; each token adds a few roundings for every row of the matrix. */
static void
check_against_formula (const Head *head, const char *level)
{
  g_autofree double *S = g_new (double, head->key_dim * head->value_dim);
  double bound = (double) (head->n * (head->key_dim + 8)) * 4 * 0x1p-24;

  for (size_t i = 0; i < head->key_dim; i++)
    for (size_t j = 0; j < head->value_dim; j++)
      S[i * head->value_dim + j] = head->from[place (head, i, j)];
  for (size_t t = 0; t < head->n; t++)
    for (size_t j = 0; j < head->value_dim; j++) {
      const float *q = head->q + t * head->qk_stride, *k = head->k + t * head->qk_stride;
      double recalled = 0, change, y = 0;

      for (size_t i = 0; i < head->key_dim; i++)
        recalled += (S[i * head->value_dim + j] *= head->decay[t * 2]) * k[i];
      change = head->beta[t * 2] * (head->v[t * head->v_stride + j] - recalled);
      for (size_t i = 0; i < head->key_dim; i++)
        y += (S[i * head->value_dim + j] += k[i] * change) * q[i];
      check (level, "answer of the delta rule", j, head->y[t * head->y_stride + j], y, bound);
    }
  for (size_t i = 0; i < head->key_dim; i++)
    for (size_t j = 0; j < head->value_dim; j++)
      check (level, "state of the delta rule", i * head->value_dim + j, head->state[place (head, i, j)],
             S[i * head->value_dim + j], bound);
}

static void
test_delta_rule (gconstpointer data)
{
  const KernelLevel *level = data;
  static const size_t key_dims[] = { 1, 2, 3, 7, 16, 33, 128 },
                      value_dims[] = { 1, 5, 16, 31, 32, 33, 40, 57, 64, 128 };
  static const size_t tokens[] = { 1, 2, 9 };
  KernelRandom random = { 2 };

  for (size_t a = 0; a < G_N_ELEMENTS (key_dims); a++)
    for (size_t b = 0; b < G_N_ELEMENTS (value_dims); b++)
      for (size_t c = 0; c < G_N_ELEMENTS (tokens); c++) {
        Head head = { .key_dim = key_dims[a], .value_dim = value_dims[b], .n = tokens[c] };
        gsize state_bytes = head.key_dim * head.value_dim * sizeof (float), y_bytes;
        g_autofree float *from = NULL, *y = NULL, *state = NULL, *gaps = NULL;
        OxDeltaRule rule;

        head_init (&head, &random);
        y_bytes = ((head.n - 1) * head.y_stride + head.value_dim) * sizeof (float);
        from = g_memdup2 (head.from, state_bytes);
        gaps = g_memdup2 (head.y, y_bytes);
        rule = head_rule (&head, 0, head.n, head.from);
        level->kernels.delta_rule (&rule);
        g_assert_cmpmem (head.from, state_bytes, from, state_bytes);
        check_against_formula (&head, level->name);
        for (size_t i = 0; i < y_bytes / sizeof (float); i++)
          if (i % head.y_stride >= head.value_dim)
            g_assert_cmpfloat (head.y[i], ==, gaps[i]);

        /* In place, and one token after the other: the same bits. */
        y = g_memdup2 (head.y, y_bytes);
        state = g_memdup2 (head.state, state_bytes);
        memcpy (head.state, from, state_bytes);
        for (size_t t = 0; t < head.n; t++) {
          rule = head_rule (&head, t, 1, head.state);
          level->kernels.delta_rule (&rule);
        }
        g_assert_cmpmem (head.y, y_bytes, y, y_bytes);
        g_assert_cmpmem (head.state, state_bytes, state, state_bytes);

        /* Strip by strip: the same bits. */
        memcpy (head.state, from, state_bytes);
        memcpy (head.y, gaps, y_bytes);
        for (size_t first = 0; first < head.value_dim; first += OX_DELTA_STRIP) {
          rule = head_rule (&head, 0, head.n, head.state + first * head.key_dim);
          rule.state += first * head.key_dim;
          rule.v += first;
          rule.y += first;
          rule.value_dim = MIN (head.value_dim - first, OX_DELTA_STRIP);
          level->kernels.delta_rule (&rule);
        }
        g_assert_cmpmem (head.y, y_bytes, y, y_bytes);
        g_assert_cmpmem (head.state, state_bytes, state, state_bytes);
        head_clear (&head);
      }
}

int
main (int argc, char **argv)
{
  static const KernelLevelTest tests[] = { { "conv-silu", test_conv_silu }, { "delta-rule", test_delta_rule } };
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  kernel_add_tests ("recurrent", levels, n_levels, tests, G_N_ELEMENTS (tests));
  return g_test_run ();
}
