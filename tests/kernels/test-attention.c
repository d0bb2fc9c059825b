/* Attention: every instruction set and every format of keys and values against a plain softmax in float64, with grouped heads, windows,
 * soft caps, spans of keys and a ring that wraps; the same bits however queries and blocks of keys are cut up; how exact weights are, and
 * what becomes of huge scores; and how keys and values are stored.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <math.h>
#include <string.h>

typedef struct {
  size_t m, n_heads, n_kv_heads, head_dim, capacity, position, window;
  float softcap;
  size_t together; /* so many queries see all keys up to the last of them; 0: causal */
} AttentionCase;

static const AttentionCase cases[] = {
  { 1, 1, 1, 64, 1, 0, 0 },         /* one key */
  { 1, 4, 1, 256, 256, 255, 0 },    /* Gemma 3's heads, one full block of keys */
  { 1, 9, 3, 64, 300, 256, 0 },     /* SmolLM2's heads, a block and one key */
  { 5, 4, 2, 32, 40, 0, 0 },        /* a prompt from its beginning */
  { 3, 2, 2, 80, 200, 150, 0 },     /* a head that is no whole number of vectors */
  { 4, 3, 1, 12, 90, 70, 0 },       /* nor of short ones */
  { 3, 2, 1, 2, 40, 30, 0 },        /* the smallest */
  { 3, 5, 1, 7, 40, 30, 9 },        /* an odd one */
  { 2, 2, 1, 64, 130, 1000, 100 },  /* a window inside a ring that has wrapped */
  { 7, 4, 1, 64, 20, 33, 5 },       /* a window shorter than the chunk */
  { 2, 8, 8, 128, 600, 511, 512 },  /* a window that has just filled */
  { 2, 2, 1, 512, 32, 8, 1 },       /* each sees only itself */
  { 13, 16, 1, 32, 600, 250, 0 },   /* sixteen heads a key head, into the next block */
  { 50, 1, 1, 64, 700, 500, 0 },    /* no grouped heads, more queries than an item has */
  { 9, 8, 1, 256, 800, 1500, 512 }, /* Gemma 4 E2B's heads, wrapped in the middle of a block */
  { 3, 10, 2, 64, 1100, 1040, 0 },  /* five blocks */
  { 20, 2, 2, 40, 77, 57, 0 },      /* heads of Stable Diffusion */
  { 3, 2, 1, 160, 300, 255, 0 },
  { 4, 4, 2, 72, 520, 511, 0 }, /* of a vision tower */
  { 2, 3, 1, 96, 300, 290, 40 },
  { 6, 6, 1, 64, 300, 250, 0, 1.5f },             /* a cap that bends most scores */
  { 5, 8, 1, 256, 600, 515, 300, 50 },            /* Gemma 2's, with a window */
  { 40, 4, 1, 64, 400, 240, 0, 0, 16 },           /* pictures whose tokens see each other */
  { 50, 2, 1, 32, 300, 500, 64, 30, 13 },         /* with a window, a cap, in a ring that has wrapped */
  { 33, 2, 2, 48, 33, 0, 0, 0, 33 },              /* all see all */
  { 300, 1, 1, 16, 300, 0, 0, 0, 300 },           /* over two blocks */
  { 7, 2, 1, 30, 40, 20, 3, 0, 7 },               /* a window that is shorter than what is seen together */
  { 14, 3, 1, 128, 1100, 1040 - 6, 513, 2.5f, 7 } /* blocks of keys that only some queries see */
};

static const uint32_t types[] = { OX_TYPE_F32, OX_TYPE_F16, OX_TYPE_BF16, OX_TYPE_Q8_0 };

/* A case made ready to run: buffers with guards, keys and values stored. */
typedef struct {
  OxKvRing kv;
  OxAttention args;
  OxKeySpan *spans;
  float *q, *out;
  float *scratch, *state, *part;
  size_t q_floats;
} Setup;

/* Whether this level rounds queries and weights when it may. */
static gboolean
rounds (const KernelLevel *level, uint32_t type)
{
  return type == OX_TYPE_BF16 && level->kernels.attention->fast_type == OX_TYPE_BF16;
}

static void
setup (
  Setup *s, const KernelLevel *level, const AttentionCase *c, uint32_t type, KernelInput input, KernelRandom *random)
{
  size_t end = c->position + c->m, group = c->n_heads / c->n_kv_heads, rows = MAX (c->m * group, OX_ATTENTION_ROWS);
  size_t begin = c->window != 0 && c->position + 1 > c->window ? c->position + 1 - c->window : 0;
  g_autofree float *k = g_new (float, c->head_dim), *v = g_new (float, c->head_dim);

  g_assert_true (ox_kv_ring_init (&s->kv, type, c->n_kv_heads, c->head_dim, c->capacity));
  g_assert_cmpuint (end - begin, <=, s->kv.capacity);
  s->kv.k = guarded_new (s->kv.k_bytes, 4);
  s->kv.v = guarded_new (s->kv.v_bytes, 4);
  /* What has never been written must not count. */
  memset (s->kv.k, 0x41, s->kv.k_bytes);
  memset (s->kv.v, 0x41, s->kv.v_bytes);
  s->q_floats = c->m * c->n_heads * c->head_dim;
  s->q = guarded_new (s->q_floats * sizeof (float), sizeof (float));
  s->out = guarded_new (s->q_floats * sizeof (float), sizeof (float));
  s->args = (OxAttention) {
    .kv = &s->kv,
    .q = s->q,
    .out = s->out,
    .m = c->m,
    .n_heads = c->n_heads,
    .position = c->position,
    .window = c->window,
    .scale = 1 / sqrtf ((float) c->head_dim),
    .softcap = c->softcap,
  };
  s->spans = g_new (OxKeySpan, c->m);
  for (size_t i = 0; i < c->m && c->together > 0; i++) {
    size_t last = MIN ((i / c->together + 1) * c->together, c->m), here = c->position + i + 1;

    s->spans[i] = (OxKeySpan) { c->window != 0 && here > c->window ? here - c->window : 0, c->position + last };
    s->args.visible = s->spans;
    s->args.visible_step = 1;
  }
  /* One span may stand for all. */
  if (c->together >= c->m && c->window == 0)
    s->args.visible_step = 0;
  s->scratch = guarded_new (ox_attention_scratch_floats (&s->args, rows) * sizeof (float), 64);
  s->state = guarded_new (ox_attention_state_floats (&s->args, rows) * sizeof (float), 64);
  s->part = guarded_new (ox_attention_state_floats (&s->args, rows) * sizeof (float), 64);

  for (size_t p = begin; p < end; p++)
    for (size_t h = 0; h < c->n_kv_heads; h++) {
      kernel_fill_floats (random, input, k, c->head_dim);
      kernel_fill_floats (random, input, v, c->head_dim);
      ox_kv_ring_store (&s->kv, level->kernels.attention, h, p, k, v);
    }
  kernel_fill_floats (random, input, s->q, s->q_floats);
  /* Large scores: their exponentials overflow unless the maximum is taken off first. */
  if (input == INPUT_EXTREME)
    for (size_t i = 0; i < s->q_floats; i++)
      s->q[i] *= 60;
  memset (s->out, 0x7f, s->q_floats * sizeof (float));
}

static void
clear (Setup *s)
{
  guarded_free (s->kv.k);
  guarded_free (s->kv.v);
  g_free (s->spans);
  guarded_free (s->q);
  guarded_free (s->out);
  guarded_free (s->scratch);
  guarded_free (s->state);
  guarded_free (s->part);
}

/* How the work is cut up. */
typedef struct {
  size_t queries; /* of an item */
  size_t blocks;  /* of a call */
  gboolean parts; /* each block into a state of its own, merged afterwards */
} Cut;

static void
run (Setup *s, const KernelLevel *level, const Cut *cut)
{
  const OxAttentionKernel *kernel = level->kernels.attention;
  const OxAttention *a = &s->args;

  for (size_t begin = 0; begin < a->m; begin += cut->queries)
    for (size_t head = s->kv.n_heads; head-- > 0;) {
      OxAttentionRows rows = { head, begin, MIN (begin + cut->queries, a->m) };
      size_t n = ox_attention_n_rows (a, &rows), block, end;

      ox_attention_clear (a, n, s->state);
      ox_attention_blocks (a, &rows, &block, &end);
      for (; block < end; block += cut->blocks) {
        size_t next = MIN (block + cut->blocks, end);

        if (!cut->parts) {
          kernel->add_blocks (a, &rows, block, next, s->state, s->scratch);
          continue;
        }
        ox_attention_clear (a, n, s->part);
        kernel->add_blocks (a, &rows, block, next, s->part, s->scratch);
        kernel->merge (a, n, 0, n / 2, s->state, s->part);
        kernel->merge (a, n, n / 2, n, s->state, s->part);
      }
      kernel->finish (a, &rows, s->state);
    }
}

/* Keys and values of a head as floats: [end][head_dim], those before @begin not set. */
static void
read_rows (const Setup *s, size_t head, size_t begin, size_t end, float *k, float *v)
{
  g_autofree uint8_t *k_row = g_malloc (s->kv.row_bytes), *v_row = g_malloc (s->kv.row_bytes);
  size_t n_levels, dim = s->kv.head_dim;
  const OxKernels *c = &kernel_levels (&n_levels)[0].kernels;

  for (size_t p = begin; p < end; p++) {
    ox_kv_ring_get (&s->kv, head, p, k_row, v_row);
    c->dequantize (s->kv.type, k_row, k + p * dim, dim);
    c->dequantize (s->kv.type, v_row, v + p * dim, dim);
  }
}

static float
to_bf16 (float x)
{
  union {
    float f;
    uint32_t u;
  } bits = { x };

  bits.u = (bits.u + 0x7fff + (bits.u >> 16 & 1)) & 0xffff0000;
  return bits.f;
}

/* Softmax in float64. A score errs by dim·ε·Σ|q·k|·scale, and by some ε of the cap; an exponential turns that into a relative error of
 * its weight (twice, as the largest score is off as well); the running sums add one ε a key. Where queries and weights are rounded,
 * the queries here are, too, and a weight may be off by half a unit of its 8 bits. */
static void
expect (const Setup *s,
        gboolean rounded,
        size_t query,
        size_t head,
        const float *k,
        const float *v,
        double *out,
        double *bound)
{
  const OxAttention *a = &s->args;
  size_t dim = s->kv.head_dim;
  OxKeySpan keys = ox_attention_visible (a, query);
  const float *given = a->q + (query * a->n_heads + head) * dim;
  g_autofree double *scores = g_new (double, keys.end - keys.begin), *q = g_new (double, dim);
  double largest = -INFINITY, total = 0, score_error = 0;

  for (size_t i = 0; i < dim; i++)
    q[i] = rounded ? to_bf16 (given[i] * (a->scale * 1.44269504f)) / 1.44269504088896341 : (double) given[i] * a->scale;
  for (size_t p = keys.begin; p < keys.end; p++) {
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < dim; i++) {
      sum += q[i] * k[p * dim + i];
      magnitude += fabs (q[i] * k[p * dim + i]);
    }
    scores[p - keys.begin] = a->softcap != 0 ? a->softcap * tanh (sum / a->softcap) : sum;
    score_error = fmax (score_error, ((double) dim + 4) * 0x1p-24 * magnitude + 8 * 0x1p-24 * a->softcap);
    largest = fmax (largest, scores[p - keys.begin]);
  }
  for (size_t p = keys.begin; p < keys.end; p++) {
    scores[p - keys.begin] = exp (scores[p - keys.begin] - largest);
    total += scores[p - keys.begin];
  }
  for (size_t i = 0; i < dim; i++) {
    double sum = 0, magnitude = 0;
    for (size_t p = keys.begin; p < keys.end; p++) {
      double t = scores[p - keys.begin] / total * v[p * dim + i];
      sum += t;
      magnitude += fabs (t);
    }
    out[i] = sum;
    /* Weights below 2^-126 of the greatest may vanish: nothing beside 1e-30. */
    bound[i] = magnitude * (4 * score_error + (2.0 * (double) (keys.end - keys.begin) + 20) * 0x1p-24) + 1e-30;
    if (rounded)
      bound[i] += (magnitude + fabs (sum)) * 0x1p-8 * (1 + 4 * score_error);
  }
}

static void
check_case (const KernelLevel *level,
            const AttentionCase *c,
            uint32_t type,
            gboolean fast,
            KernelInput input,
            KernelRandom *random)
{
  static const Cut whole = { OX_ATTENTION_ROWS, 1000, FALSE };
  size_t end = c->position + c->m, group = c->n_heads / c->n_kv_heads, first;
  g_autofree double *expected = g_new (double, c->head_dim), *bound = g_new (double, c->head_dim);
  g_autofree float *k = g_new (float, end * c->head_dim), *v = g_new (float, end * c->head_dim);
  Setup s;

  setup (&s, level, c, type, input, random);
  s.args.fast = fast;
  run (&s, level, &whole);
  first = c->window != 0 && c->position + 1 > c->window ? c->position + 1 - c->window : 0;
  for (size_t head = 0; head < c->n_heads; head++) {
    read_rows (&s, head / group, first, end, k, v);
    for (size_t query = 0; query < c->m; query++) {
      const float *got = s.out + (query * c->n_heads + head) * c->head_dim;
      expect (&s, fast && rounds (level, type), query, head, k, v, expected, bound);
      for (size_t i = 0; i < c->head_dim; i++)
        if (!(fabs (got[i] - expected[i]) <= bound[i]))
          g_error ("%s%s, case %zu, %s, %s input, query %zu, head %zu: element %zu is %.9g, expected %.9g ± %.3g",
                   level->name, fast ? ", fast" : "", (size_t) (c - cases), ox_type_info (type)->name,
                   kernel_input_names[input], query, head, i, got[i], expected[i], bound[i]);
    }
  }
  clear (&s);
}

static gboolean
suits (const AttentionCase *c, uint32_t type)
{
  return type != OX_TYPE_Q8_0 || c->head_dim % 32 == 0;
}

static void
test_values (gconstpointer data)
{
  KernelRandom random = { 11 };

  for (size_t c = 0; c < G_N_ELEMENTS (cases); c++)
    for (size_t t = 0; t < G_N_ELEMENTS (types); t++) {
      if (!suits (&cases[c], types[t]) || (kernel_quick () && (c + t) % 3 != 0))
        continue;
      check_case (data, &cases[c], types[t], FALSE, INPUT_NORMAL, &random);
      check_case (data, &cases[c], types[t], FALSE, INPUT_ZERO, &random);
      check_case (data, &cases[c], types[t], FALSE, INPUT_SUBNORMAL, &random);
      check_case (data, &cases[c], types[t], FALSE, INPUT_EXTREME, &random);
      /* The other types are as exact as before. */
      check_case (data, &cases[c], types[t], TRUE, INPUT_NORMAL, &random);
      if (rounds (data, types[t])) {
        check_case (data, &cases[c], types[t], TRUE, INPUT_ZERO, &random);
        check_case (data, &cases[c], types[t], TRUE, INPUT_EXTREME, &random);
      }
    }
}

/* The same bits, however the queries come in and whoever computes which keys. */
static void
check_cuts (const KernelLevel *level, const AttentionCase *c, uint32_t type, gboolean fast, KernelRandom *random)
{
  static const Cut cuts[] = { { 1, 1, FALSE }, { 1, 1000, FALSE }, { 3, 2, FALSE }, { 1, 1, TRUE }, { 5, 1, TRUE } };
  g_autofree float *once = NULL;
  size_t row = c->n_heads * c->head_dim;
  Setup s;

  setup (&s, level, c, type, INPUT_NORMAL, random);
  s.args.fast = fast;
  run (&s, level, &(Cut) { MAX (OX_ATTENTION_ROWS / (c->n_heads / c->n_kv_heads), 1), 1000, FALSE });
  once = g_memdup2 (s.out, s.q_floats * sizeof (float));
  for (size_t i = 0; i < G_N_ELEMENTS (cuts); i++) {
    memset (s.out, 0x7f, s.q_floats * sizeof (float));
    run (&s, level, &cuts[i]);
    if (memcmp (once, s.out, s.q_floats * sizeof (float)) != 0)
      g_error ("%s, case %zu, %s: cut %zu gives other bits", level->name, (size_t) (c - cases),
               ox_type_info (type)->name, i);
  }
  /* Calls of their own, as decoding makes them. */
  memset (s.out, 0x7f, s.q_floats * sizeof (float));
  for (size_t i = 0; i < c->m; i++) {
    s.args.q = s.q + i * row;
    s.args.out = s.out + i * row;
    s.args.m = 1;
    s.args.position = c->position + i;
    s.args.visible = c->together > 0 ? s.spans + i : NULL;
    run (&s, level, &(Cut) { 1, 1, i % 2 == 0 });
  }
  if (memcmp (once, s.out, s.q_floats * sizeof (float)) != 0)
    g_error ("%s, case %zu, %s: single queries give other bits", level->name, (size_t) (c - cases),
             ox_type_info (type)->name);
  clear (&s);
}

static void
test_cuts (gconstpointer data)
{
  const KernelLevel *level = data;
  KernelRandom random = { 12 };

  for (size_t c = 0; c < G_N_ELEMENTS (cases); c++)
    for (size_t t = 0; t < G_N_ELEMENTS (types); t++) {
      if (!suits (&cases[c], types[t]) || (kernel_quick () && (c + t) % 3 != 0))
        continue;
      check_cuts (level, &cases[c], types[t], FALSE, &random);
      if (rounds (level, types[t]))
        check_cuts (level, &cases[c], types[t], TRUE, &random);
    }
}

/* One query and @n keys of which key j has the score scores[j], and a value of ones in element j % 16 alone: the result is the weights,
 * summed over every sixteenth key. */
static void
weigh (const KernelLevel *level, const float *scores, size_t n, float out[16])
{
  static const AttentionCase shape = { 1, 1, 1, 16, 1024, 0, 0 };
  KernelRandom random = { 14 };
  float q[16] = { 1 };
  Setup s;

  setup (&s, level, &shape, OX_TYPE_F32, INPUT_ZERO, &random);
  for (size_t j = 0; j < n; j++) {
    float k[16] = { scores[j] }, v[16] = { 0 };
    v[j % 16] = 1;
    ox_kv_ring_store (&s.kv, level->kernels.attention, 0, j, k, v);
  }
  memcpy (s.q, q, sizeof q);
  s.args.scale = 1;
  s.args.position = n - 1;
  run (&s, level, &(Cut) { 1, 1000, FALSE });
  memcpy (out, s.out, 16 * sizeof (float));
  clear (&s);
}

/* The weight of a key beside that of another is exp() of the difference of their scores. Relative to that, 2e-7 are exp()'s own, the scaled
 * score is off by two roundings and the quotient by two. */
static void
test_weights (gconstpointer data)
{
  const KernelLevel *level = data;

  for (unsigned i = 0; i < 4000; i++) {
    float x = (float) i * 0.02f, out[16], scores[2] = { 0, -x };
    double expected = exp (-(double) x), error;

    weigh (level, scores, 2, out);
    error = fabs ((double) out[1] / out[0] / expected - 1);
    if (!(error <= 2e-7 + (2 * x + 2) * 0x1p-24))
      g_error ("%s: exp(-%g) is off by %.3g of it", level->name, x, error);
  }
}

/* Scores of ±10000: what is below the greatest weighs nothing, equals weigh the same, nothing overflows. */
static void
test_huge_scores (gconstpointer data)
{
  const KernelLevel *level = data;
  float scores[700], out[16];

  for (size_t j = 0; j < 700; j++)
    scores[j] = j == 37 || j == 600 ? 10000 : j % 3 == 0 ? -10000 : 0;
  weigh (level, scores, 700, out);
  for (size_t i = 0; i < 16; i++)
    g_assert_cmpfloat (out[i], ==, i == 37 % 16 || i == 600 % 16 ? 0.5f : 0);
  for (size_t j = 0; j < 700; j++)
    scores[j] = -10000;
  weigh (level, scores, 640, out);
  for (size_t i = 0; i < 16; i++)
    g_assert_cmpfloat (fabsf (out[i] - 1.0f / 16), <=, 640 * 0x1p-28f);
}

/* Rounded to nearest; the same bytes on every instruction set; what a type cannot hold becomes the greatest it can. */
static void
test_store (gconstpointer data)
{
  enum { N = 96 };
  const KernelLevel *level = data;
  size_t n_levels;
  const OxKernels *c = &kernel_levels (&n_levels)[0].kernels;
  KernelRandom random = { 13 };

  for (size_t t = 0; t < G_N_ELEMENTS (types); t++)
    for (KernelInput input = 0; input < N_INPUTS; input++) {
      uint64_t bytes = 0;
      float x[N], back[N];
      g_autofree uint8_t *expected = NULL;
      uint8_t *row;

      g_assert_true (ox_type_row_bytes (types[t], N, &bytes));
      expected = g_malloc (bytes);
      row = guarded_new (bytes, 2);
      kernel_fill_floats (&random, input, x, N);
      c->attention->store_row (types[t], x, expected, N);
      level->kernels.attention->store_row (types[t], x, row, N);
      g_assert_cmpmem (expected, bytes, row, bytes);
      c->dequantize (types[t], row, back, N);
      for (size_t i = 0; i < N; i++) {
        double error = fabs ((double) back[i] - x[i]), largest = 0, allowed;

        for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++)
          largest = fmax (largest, fabsf (x[j]));
        switch (types[t]) {
        case OX_TYPE_F32:
          allowed = 0;
          break;
        case OX_TYPE_F16:
          allowed = fabsf (x[i]) * 0x1p-11 + 0x1p-25;
          break;
        case OX_TYPE_BF16:
          allowed = fabsf (x[i]) * 0x1p-8;
          break;
        default: /* half a step, and what the scale is off by as a half float */
          allowed = largest / 254 * 1.001 + largest * 0x1p-11 + 127 * 0x1p-25;
        }
        if (input == INPUT_HUGE && types[t] == OX_TYPE_F16)
          g_assert_cmpfloat (back[i], ==, copysignf (65504, x[i]));
        else if (input == INPUT_HUGE && types[t] == OX_TYPE_Q8_0)
          g_assert_true (isfinite (back[i]));
        else
          g_assert_cmpfloat (error, <=, allowed);
      }
      guarded_free (row);
    }
}

/* A row comes back as it was put, and nothing else changes. */
static void
test_ring (void)
{
  for (size_t t = 0; t < G_N_ELEMENTS (types); t++) {
    OxKvRing kv;
    uint8_t row[2][4 * 64], got[2][4 * 64];

    g_assert_true (ox_kv_ring_init (&kv, types[t], 2, 64, 50));
    g_assert_cmpuint (kv.capacity, ==, 64);
    kv.k = guarded_new (kv.k_bytes, 4);
    kv.v = guarded_new (kv.v_bytes, 4);
    for (unsigned pass = 0; pass < 2; pass++)
      for (size_t p = 100; p < 164; p++)
        for (size_t h = 0; h < 2; h++) {
          memset (row[0], (int) (p * 2 + h), kv.row_bytes);
          memset (row[1], (int) (p * 3 + h), kv.row_bytes);
          if (pass == 0)
            ox_kv_ring_put (&kv, h, p, row[0], row[1]);
          ox_kv_ring_get (&kv, h, p, got[0], got[1]);
          g_assert_cmpmem (got[0], kv.row_bytes, row[0], kv.row_bytes);
          g_assert_cmpmem (got[1], kv.row_bytes, row[1], kv.row_bytes);
        }
    guarded_free (kv.k);
    guarded_free (kv.v);
  }
}

static void
test_refused (void)
{
  OxKvRing kv;

  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_Q4_0, 1, 64, 10));
  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_Q8_0, 1, 80, 10));
  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_F32, 1, 64, SIZE_MAX));
  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_F32, SIZE_MAX / 4, 64, 16));
  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_F32, 1, SIZE_MAX, 16));
  g_assert_false (ox_kv_ring_init (&kv, OX_TYPE_F32, SIZE_MAX / (4 * 64 * 16), 64, 16));
}

int
main (int argc, char **argv)
{
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  g_test_init (&argc, &argv, NULL);
  for (size_t l = 0; l < n_levels; l++) {
    g_autofree char *values = g_strdup_printf ("/attention/values/%s", levels[l].name);
    g_autofree char *cuts = g_strdup_printf ("/attention/cuts/%s", levels[l].name);
    g_autofree char *weights = g_strdup_printf ("/attention/weights/%s", levels[l].name);
    g_autofree char *huge = g_strdup_printf ("/attention/huge-scores/%s", levels[l].name);
    g_autofree char *store = g_strdup_printf ("/attention/store/%s", levels[l].name);
    g_test_add_data_func (values, &levels[l], test_values);
    g_test_add_data_func (cuts, &levels[l], test_cuts);
    g_test_add_data_func (weights, &levels[l], test_weights);
    g_test_add_data_func (huge, &levels[l], test_huge_scores);
    g_test_add_data_func (store, &levels[l], test_store);
  }
  g_test_add_func ("/attention/ring", test_ring);
  g_test_add_func ("/attention/refused", test_refused);
  return g_test_run ();
}
