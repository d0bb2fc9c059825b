/* The operations of the CPU table against plain loops in float64, at every instruction set: elements, experts, a drafter's head.
 * Linear attention has a test of its own.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ops-test.h"

#include <math.h>
#include <string.h>

/* ---- Elements ---- */

static void
test_elements (gconstpointer data)
{
  OxOps *ops = ops_new (GPOINTER_TO_UINT (data), OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);

  for (guint size = 0; size < 2; size++) {
    /* Below and above what is shared out. */
    guint rows = size == 0 ? 3 : 7, cols = size == 0 ? 37 : 5003, wide = cols + 91;
    gsize n = (gsize) rows * cols;
    g_autofree float *a = random_floats (rand, n), *b = random_floats (rand, (gsize) rows * wide), *copy = NULL;
    OxTensor x = tensor_new (ops, rows, cols, a), up = tensor_new (ops, rows, wide, b);
    OxTensor y = tensor_new (ops, rows, cols, NULL), both = tensor_new (ops, rows, cols + wide, NULL);
    float *out = y.data;

    for (gsize i = 0; i < n; i++)
      ((float *) x.data)[i] = a[i] *= 9;
    ops->begin (ops, NULL);
    ops->gated_columns (ops, &y, &x, &up, 50, OX_GATE_SIGMOID);
    for (gsize i = 0; i < n; i++)
      assert_close ("sigmoid, columns", i, out[i], b[i / cols * wide + 50 + i % cols] / (1 + exp (-(double) a[i])),
                    1e-6);
    ops->gated_columns (ops, &y, &x, &up, 91, OX_GATE_SILU);
    for (gsize i = 0; i < n; i++)
      assert_close ("silu, columns", i, out[i], b[i / cols * wide + 91 + i % cols] * a[i] / (1 + exp (-(double) a[i])),
                    1e-5);
    ops->gated (ops, &y, &x, &x, OX_GATE_SIGMOID);
    for (gsize i = 0; i < n; i++)
      assert_close ("sigmoid", i, out[i], a[i] / (1 + exp (-(double) a[i])), 1e-5);
    ops->concat (ops, &both, &x, &up);
    for (guint i = 0; i < rows; i++) {
      const float *row = (const float *) both.data + (gsize) i * both.cols;
      g_assert_cmpmem (row, cols * sizeof (float), a + (gsize) i * cols, cols * sizeof (float));
      g_assert_cmpmem (row + cols, wide * sizeof (float), b + (gsize) i * wide, wide * sizeof (float));
    }
    ops->copy (ops, &y, &x);
    g_assert_cmpmem (out, n * sizeof (float), a, n * sizeof (float));
    ops->scale (ops, &y, 0.75f);
    ops->add (ops, &y, &x);
    for (gsize i = 0; i < n; i++)
      g_assert_cmpfloat (out[i], ==, a[i] * 0.75f + a[i]);
    ops->softcap (ops, &y, 3);
    for (gsize i = 0; i < n; i++)
      assert_close ("softcap", i, out[i], 3 * tanh ((double) (a[i] * 0.75f + a[i]) / 3), 1e-6);
    /* A view changes its rows and no others. */
    copy = g_memdup2 (out, n * sizeof (float));
    {
      OxTensor middle = ox_tensor_view (&y, 1, 1);
      ops->scale (ops, &middle, 2);
    }
    for (gsize i = 0; i < n; i++)
      g_assert_cmpfloat (out[i], ==, i / cols == 1 ? copy[i] * 2 : copy[i]);
    finish (ops);
    ops->tensor_clear (ops, &x);
    ops->tensor_clear (ops, &up);
    ops->tensor_clear (ops, &y);
    ops->tensor_clear (ops, &both);
  }
  ops->free (ops);
}

/* ---- Mixture of experts ---- */

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

typedef struct {
  guint n_experts, top_k, hidden, width, rows;
  gboolean scaled;
  OxGate gate;
} MoeCase;

typedef struct {
  const MoeCase *c;
  Toy toy;
  OxOps *ops;
  OxExperts experts;
  float *gate, *up, *down, *scale; /* of all experts, one after the other */
  float *x, *router;
  double *y; /* expected */
} Moe;

static OxMatrix **
moe_matrices (Moe *moe, const char *kind)
{
  OxMatrix **matrices = g_new (OxMatrix *, moe->c->n_experts);

  for (guint e = 0; e < moe->c->n_experts; e++) {
    g_autofree char *name = g_strdup_printf ("%s%u", kind, e);
    matrices[e] = toy_matrix (&moe->toy, moe->ops, name);
  }
  return matrices;
}

static double
activate (double g, OxGate gate)
{
  if (gate == OX_GATE_GELU_TANH)
    return 0.5 * g * (1 + tanh (sqrt (2 / G_PI) * (g + 0.044715 * g * g * g)));
  return gate == OX_GATE_SILU ? g * sigmoid (g) : sigmoid (g);
}

/* Expert @e's answer to @x, times @weight, added to @y. */
static void
expect_expert (Moe *moe, guint e, const float *x, double weight, double *y)
{
  const MoeCase *c = moe->c;
  gsize at = (gsize) e * c->width * c->hidden;
  g_autofree double *h = g_new (double, c->width);

  for (guint i = 0; i < c->width; i++) {
    double gate = 0, up = 0;
    for (guint d = 0; d < c->hidden; d++) {
      gate += (double) moe->gate[at + i * c->hidden + d] * x[d];
      up += (double) moe->up[at + i * c->hidden + d] * x[d];
    }
    h[i] = activate (gate, c->gate) * up;
  }
  for (guint d = 0; d < c->hidden; d++)
    for (guint i = 0; i < c->width; i++)
      y[d] += weight * moe->down[at + d * c->width + i] * h[i];
}

static void
moe_expect (Moe *moe)
{
  const MoeCase *c = moe->c;
  g_autofree double *p = g_new (double, c->n_experts);
  g_autofree gboolean *taken = g_new (gboolean, c->n_experts);

  for (guint t = 0; t < c->rows; t++) {
    const float *router = moe->router + (gsize) t * c->n_experts;
    double all = 0, total = 0;

    for (guint e = 0; e < c->n_experts; e++) {
      all += p[e] = exp ((double) router[e]);
      taken[e] = FALSE;
    }
    for (guint k = 0; k < c->top_k; k++) {
      guint best = c->n_experts;
      for (guint e = 0; e < c->n_experts; e++)
        if (!taken[e] && (best == c->n_experts || router[e] > router[best]))
          best = e;
      taken[best] = TRUE;
      total += p[best] / all;
    }
    for (guint e = 0; e < c->n_experts; e++)
      if (taken[e])
        expect_expert (moe, e, moe->x + (gsize) t * c->hidden,
                       p[e] / all / total * (c->scaled ? (double) moe->scale[e] : 1), moe->y + (gsize) t * c->hidden);
  }
}

static void
moe_init (Moe *moe, const MoeCase *c, guint level, OxPrecision precision, OxQuantize quantize)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (c->n_experts);
  gsize size = (gsize) c->width * c->hidden;

  moe->c = c;
  moe->ops = ops_new (level, precision, quantize);
  moe->gate = random_floats (rand, c->n_experts * size);
  moe->up = random_floats (rand, c->n_experts * size);
  moe->down = random_floats (rand, c->n_experts * size);
  moe->scale = random_floats (rand, c->n_experts);
  moe->x = random_floats (rand, (gsize) c->rows * c->hidden);
  moe->router = random_floats (rand, (gsize) c->rows * c->n_experts);
  moe->y = g_new0 (double, (gsize) c->rows * c->hidden);
  /* The last expert is never chosen, and answers nothing but NaN. */
  for (gsize i = 0; i < size; i++)
    moe->gate[(c->n_experts - 1) * size + i] = moe->up[(c->n_experts - 1) * size + i] = NAN;
  for (guint t = 0; t < c->rows; t++) {
    float *router = moe->router + (gsize) t * c->n_experts;

    for (guint e = 0; e < c->n_experts; e++)
      /* Every third row has many equal scores. */
      router[e] = t % 3 == 1 ? roundf (router[e] * 1.5f) : router[e] * 4;
    router[c->n_experts - 1] = -30;
  }
  for (gsize i = 0; i < c->n_experts * size; i++) {
    moe->gate[i] /= sqrtf ((float) c->hidden) / 3;
    moe->up[i] /= sqrtf ((float) c->hidden) / 3;
    moe->down[i] /= sqrtf ((float) c->width);
  }

  toy_init (&moe->toy);
  for (guint e = 0; e < c->n_experts; e++) {
    g_autofree char *gate = g_strdup_printf ("gate%u", e), *up = g_strdup_printf ("up%u", e);
    g_autofree char *down = g_strdup_printf ("down%u", e);

    toy_add (&moe->toy, gate, c->width, c->hidden, moe->gate + e * size);
    toy_add (&moe->toy, up, c->width, c->hidden, moe->up + e * size);
    toy_add (&moe->toy, down, c->hidden, c->width, moe->down + e * size);
  }
  toy_add (&moe->toy, "scale", 0, c->n_experts, moe->scale);
  toy_open (&moe->toy);
  moe->experts = (OxExperts) {
    .n_experts = c->n_experts,
    .top_k = c->top_k,
    .gate = moe_matrices (moe, "gate"),
    .up = moe_matrices (moe, "up"),
    .down = moe_matrices (moe, "down"),
    .scale = c->scaled ? toy_vector (&moe->toy, moe->ops, "scale") : NULL,
    .gate_kind = c->gate,
    .width = c->width,
  };
  moe_expect (moe);
}

static void
moe_clear (Moe *moe)
{
  OxOps *ops = moe->ops;

  for (guint e = 0; e < moe->c->n_experts; e++) {
    ops->matrix_free (ops, moe->experts.gate[e]);
    ops->matrix_free (ops, moe->experts.up[e]);
    ops->matrix_free (ops, moe->experts.down[e]);
  }
  ops->vector_free (ops, moe->experts.scale);
  g_free (moe->experts.gate);
  g_free (moe->experts.up);
  g_free (moe->experts.down);
  ops->free (ops);
  toy_clear (&moe->toy);
  g_free (moe->gate);
  g_free (moe->up);
  g_free (moe->down);
  g_free (moe->scale);
  g_free (moe->x);
  g_free (moe->router);
  g_free (moe->y);
}

static void
moe_run (Moe *moe, guint way, float *y)
{
  const MoeCase *c = moe->c;
  OxOps *ops = moe->ops;
  OxTensor x = tensor_new (ops, c->rows, c->hidden, moe->x), out = tensor_new (ops, c->rows, c->hidden, NULL);
  OxTensor router = tensor_new (ops, c->rows, c->n_experts, moe->router);

  ops->begin (ops, NULL);
  for (guint call = 0, done = 0; done < c->rows; call++) {
    guint n = next_cut (way, call, c->rows - done);
    OxTensor x_part = ox_tensor_view (&x, done, n), out_part = ox_tensor_view (&out, done, n);
    OxTensor router_part = ox_tensor_view (&router, done, n);

    ops->moe (ops, &out_part, &x_part, &router_part, &moe->experts);
    done += n;
  }
  ops->read (ops, &out, y);
  finish (ops);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &out);
  ops->tensor_clear (ops, &router);
}

static const MoeCase moe_cases[] = {
  { 7, 3, 64, 32, 29, TRUE, OX_GATE_GELU_TANH },
  { 5, 1, 37, 19, 8, FALSE, OX_GATE_SILU },
  { 9, 8, 300, 64, 1, TRUE, OX_GATE_GELU_TANH },
  { 4, 3, 64, 96, 230, FALSE, OX_GATE_SILU }, /* more than a batch */
};

static void
test_moe (gconstpointer data)
{
  for (guint i = 0; i < G_N_ELEMENTS (moe_cases); i++) {
    const MoeCase *c = &moe_cases[i];
    gsize n = (gsize) c->rows * c->hidden;
    g_autofree float *whole = g_new (float, n), *y = g_new (float, n);
    Moe moe;

    moe_init (&moe, c, GPOINTER_TO_UINT (data), OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
    moe_run (&moe, 0, whole);
    for (gsize j = 0; j < n; j++)
      assert_close ("moe", j, whole[j], moe.y[j], TOLERANCE);
    for (guint way = 1; way < N_WAYS; way++) {
      moe_run (&moe, way, y);
      g_assert_cmpmem (y, n * sizeof (float), whole, n * sizeof (float));
    }
    moe_clear (&moe);
  }
}

/* With everything rounded to 8 bits: near enough, and still the same however it is cut. */
static void
test_moe_quantized (gconstpointer data)
{
  const MoeCase *c = &moe_cases[0];
  gsize n = (gsize) c->rows * c->hidden;
  g_autofree float *whole = g_new (float, n), *y = g_new (float, n);
  Moe moe;

  moe_init (&moe, c, GPOINTER_TO_UINT (data), OX_PRECISION_FAST, OX_QUANTIZE_Q8);
  moe_run (&moe, 0, whole);
  for (gsize j = 0; j < n; j++)
    assert_close ("moe", j, whole[j], moe.y[j], 0.05);
  for (guint way = 1; way < N_WAYS; way++) {
    moe_run (&moe, way, y);
    g_assert_cmpmem (y, n * sizeof (float), whole, n * sizeof (float));
  }
  moe_clear (&moe);
}

static void
test_moe_nan (void)
{
  const MoeCase *c = &moe_cases[0];
  g_autofree float *y = g_new (float, c->rows * c->hidden);
  Moe moe;

  moe_init (&moe, c, 0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  for (guint e = 0; e < c->n_experts; e++)
    moe.router[2 * c->n_experts + e] = NAN;
  moe.router[4 * c->n_experts + 1] = NAN;
  moe_run (&moe, 0, y);
  for (guint t = 0; t < c->rows; t++)
    for (guint d = 0; d < c->hidden; d++)
      g_assert_cmpint (isnan (y[t * c->hidden + d]) != 0, ==, t == 2 || t == 4);
  moe_clear (&moe);
}

/* ---- The head of a drafter ---- */

static void
test_centroids (gconstpointer data)
{
  /* Clusters that end where the kernels' steps do, and such that do not. */
  static const guint sizes[] = { 64, 7, 1 };

  for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
    for (guint fast = 0; fast < 2; fast++) {
      OxOps *ops = ops_new (GPOINTER_TO_UINT (data), fast ? OX_PRECISION_FAST : OX_PRECISION_EXACT,
                            fast ? OX_QUANTIZE_Q8 : OX_QUANTIZE_NONE);
      guint n = 21, top_k = 5, size = sizes[s], vocab = n * size, hidden = 64, rows = 3;
      double tolerance = fast ? 0.1 : TOLERANCE;
      g_autoptr (GRand) rand = g_rand_new_with_seed (s);
      g_autofree float *w = random_floats (rand, (gsize) vocab * hidden), *in = random_floats (rand, rows * hidden);
      g_autofree float *scores = random_floats (rand, rows * n), *y = g_new (float, rows *vocab);
      g_autofree float *single = g_new (float, vocab);
      g_autofree guint32 *ordering = g_new (guint32, vocab);
      OxTensor x, centroids, out;
      OxMatrix *head;
      Toy toy;

      for (guint i = 0; i < vocab; i++)
        ordering[i] = i;
      for (guint i = vocab - 1; i > 0; i--) {
        guint j = (guint) g_rand_int_range (rand, 0, (gint32) i + 1);
        guint32 t = ordering[i];
        ordering[i] = ordering[j];
        ordering[j] = t;
      }
      /* Row 1: the first two of the best, and of the many that are equal the first three. */
      for (guint i = 0; i < n; i++)
        scores[n + i] = i == 9 || i == 20 ? 2 : i < 3 ? -1 : 1;
      toy_init (&toy);
      toy_add (&toy, "head", vocab, hidden, w);
      toy_open (&toy);
      head = toy_matrix (&toy, ops, "head");
      x = tensor_new (ops, rows, hidden, in);
      centroids = tensor_new (ops, rows, n, scores);
      out = tensor_new (ops, rows, vocab, NULL);
      ops->begin (ops, NULL);
      ops->centroid_logits (ops, &out, &x, &centroids, top_k, head, ordering);
      ops->read (ops, &out, y);
      finish (ops);

      for (guint t = 0; t < rows; t++) {
        double least = INFINITY;
        guint chosen = 0;

        for (guint pass = 0; pass < 2; pass++)
          for (guint c = 0; c < n; c++) {
            guint better = 0;
            for (guint o = 0; o < n; o++)
              better += scores[t * n + o] > scores[t * n + c] || (scores[t * n + o] == scores[t * n + c] && o < c);
            chosen += pass == 0 && better < top_k;
            for (guint i = c * size; i < (c + 1) * size; i++) {
              double logit = 0;
              for (guint d = 0; d < hidden; d++)
                logit += (double) w[i * hidden + d] * in[t * hidden + d];
              if (better >= top_k)
                logit = least - 1;
              else if (pass == 0)
                least = MIN (least, logit);
              if (pass == 1)
                assert_close ("centroid_logits", i, y[t * vocab + ordering[i]], logit, tolerance);
            }
          }
        g_assert_cmpuint (chosen, ==, top_k);
      }
      /* A row alone. */
      for (guint t = 0; t < rows; t++) {
        OxTensor x_row = ox_tensor_view (&x, t, 1), c_row = ox_tensor_view (&centroids, t, 1);
        OxTensor out_row = ox_tensor_view (&out, 0, 1);
        ops->begin (ops, NULL);
        ops->centroid_logits (ops, &out_row, &x_row, &c_row, top_k, head, ordering);
        ops->read (ops, &out_row, single);
        finish (ops);
        g_assert_cmpmem (single, vocab * sizeof (float), y + t * vocab, vocab * sizeof (float));
      }
      ops->tensor_clear (ops, &x);
      ops->tensor_clear (ops, &centroids);
      ops->tensor_clear (ops, &out);
      ops->matrix_free (ops, head);
      ops->free (ops);
      toy_clear (&toy);
    }
}

/* ---- Cancelling ---- */

static void
test_cancel (void)
{
  Moe moe;
  OxTensor x, y, b;

  moe_init (&moe, &moe_cases[3], 0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  moe.ops->free (moe.ops);
  moe.ops = cancel_ops_new ();
  x = tensor_new (moe.ops, moe.c->rows, moe.c->hidden, moe.x);
  y = tensor_new (moe.ops, moe.c->rows, moe.c->hidden, NULL);
  b = tensor_new (moe.ops, moe.c->rows, moe.c->n_experts, moe.router);
  cancel_begin (moe.ops);
  moe.ops->moe (moe.ops, &y, &x, &b, &moe.experts);
  cancel_end (moe.ops, moe.c->rows * moe.c->top_k);
  moe.ops->tensor_clear (moe.ops, &x);
  moe.ops->tensor_clear (moe.ops, &y);
  moe.ops->tensor_clear (moe.ops, &b);
  moe_clear (&moe);
}

/* Nothing is done, and nothing is touched, once a computation has been stopped. */
static void
test_stopped (void)
{
  OxOps *ops = ops_new (0, OX_PRECISION_EXACT, OX_QUANTIZE_NONE);
  g_autoptr (GCancellable) stopped = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  OxTensor x = tensor_new (ops, 2, 3, NULL), y = tensor_new (ops, 2, 3, NULL), both = tensor_new (ops, 2, 6, NULL);

  for (guint i = 0; i < 6; i++) {
    ((float *) x.data)[i] = 1;
    ((float *) y.data)[i] = 5;
  }
  g_cancellable_cancel (stopped);
  ops->begin (ops, stopped);
  ops->copy (ops, &y, &x);
  ops->scale (ops, &y, 3);
  ops->softcap (ops, &y, 1);
  ops->gated (ops, &y, &x, &x, OX_GATE_SIGMOID);
  ops->gated_columns (ops, &y, &x, &x, 0, OX_GATE_SIGMOID);
  ops->concat (ops, &both, &x, &x);
  g_assert_false (ops->finish (ops, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  for (guint i = 0; i < 6; i++)
    g_assert_cmpfloat (((float *) y.data)[i], ==, 5);
  for (guint i = 0; i < 12; i++)
    g_assert_cmpfloat (((float *) both.data)[i], ==, 0);
  ops->tensor_clear (ops, &x);
  ops->tensor_clear (ops, &y);
  ops->tensor_clear (ops, &both);
  ops->free (ops);
}

int
main (int argc, char **argv)
{
  static const OpsTest tests[] = {
    { "elements", test_elements },
    { "moe", test_moe },
    { "moe-quantized", test_moe_quantized },
    { "centroids", test_centroids },
  };

  g_test_init (&argc, &argv, NULL);
  ops_test_begin ();
  ops_test_add (tests, G_N_ELEMENTS (tests));
  g_test_add_func ("/ops-cpu/moe-nan", test_moe_nan);
  g_test_add_func ("/ops-cpu/cancel-moe", test_cancel);
  g_test_add_func ("/ops-cpu/stopped", test_stopped);
  return ops_test_run ();
}
