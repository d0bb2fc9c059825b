/* The CPU table's choices: the experts that run for a token, and the clusters of tokens that a drafter scores.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-ops-cpu.h"

#include <math.h>
#include <string.h>

/* Tokens of experts that are computed together: enough to use weights that were read well, few enough that what lies between
 * the layers of the experts stays in a cache. */
#define BATCH_ROWS 256
/* Columns of the result that one thread sums up. */
#define SUM_COLS 256

/* What @score is worth in a choice. */
static inline float
worth (float score)
{
  return isnan (score) ? -INFINITY : score;
}

static int
compare_numbers (const void *a, const void *b)
{
  guint32 x = *(const guint32 *) a, y = *(const guint32 *) b;

  return x < y ? -1 : x > y;
}

void
ox_ops_cpu_choose (const float *scores, guint n, guint k, guint32 *chosen)
{
  guint count = 0;

  /* The best first; a later one goes behind its equals. */
  for (guint i = 0; i < n; i++) {
    float score = worth (scores[i]);
    guint at = count;

    if (count == k && !(score > worth (scores[chosen[k - 1]])))
      continue;
    if (count == k)
      at--;
    else
      count++;
    for (; at > 0 && score > worth (scores[chosen[at - 1]]); at--)
      chosen[at] = chosen[at - 1];
    chosen[at] = i;
  }
  qsort (chosen, k, sizeof *chosen, compare_numbers);
}

/* ---- Mixture of experts ---- */

/* A token at one of its experts. */
typedef struct {
  guint32 row, expert;
  float weight;
} Visit;

typedef struct {
  OxOpsCpu *self;
  const OxExperts *experts;
  const float *x;
  float *y;
  gsize hidden;
  const Visit *visits; /* by expert, then by row */
  /* Of a batch, by visit */
  guint8 *gathered_q8;
  float *gathered;
  float *gate, *up;     /* [BATCH_ROWS, width] */
  guint8 *activated_q8; /* the same rows after the gate, quantised */
  float *down;          /* [BATCH_ROWS, hidden] */
  OxCpuProduct *products;
  guint8 *x_q8;
} MoeWork;

typedef struct {
  const MoeWork *work;
  const Visit *visits;
  gsize n;
} SumWork;

static void
sum_columns (void *data, size_t begin, size_t end, unsigned worker)
{
  SumWork *sum = data;
  const MoeWork *work = sum->work;
  gsize first = begin * SUM_COLS, n = MIN (end * SUM_COLS, work->hidden) - first;

  for (gsize i = 0; i < sum->n && ox_ops_cpu_running (work->self); i++)
    work->self->kernels->add_scaled (work->y + sum->visits[i].row * work->hidden + first,
                                     work->down + i * work->hidden + first, sum->visits[i].weight, n);
}

static gboolean
wants_q8 (const OxMatrix *matrix)
{
  return matrix->packed.kernel->activation == OX_ACTIVATION_Q8;
}

/* The next visits of the same expert as the first of @n. */
static gsize
run_length (const Visit *visits, gsize n)
{
  gsize end = 1;

  while (end < n && visits[end].expert == visits[0].expert)
    end++;
  return end;
}

/* Visits [first, first + n), n ≤ BATCH_ROWS: inputs side by side, three products, the weighted sum. */
static void
run_batch (MoeWork *work, gsize first, gsize n)
{
  const OxExperts *experts = work->experts;
  OxOpsCpu *self = work->self;
  const Visit *visits = work->visits + first;
  gsize hidden = work->hidden, width = experts->width;
  gsize x_q8_row = ox_activation_row_bytes (OX_ACTIVATION_Q8, hidden);
  gsize width_q8_row = ox_activation_row_bytes (OX_ACTIVATION_Q8, width);
  gboolean quantize = FALSE;
  SumWork sum = { work, visits, n };
  guint count = 0;

  for (gsize i = 0, m; i < n; i += m) {
    OxMatrix *pair[2] = { experts->gate[visits[i].expert], experts->up[visits[i].expert] };
    const float *x = work->gathered + i * hidden;
    const guint8 *x_q8 = work->gathered_q8 + i * x_q8_row;

    m = run_length (visits + i, n - i);
    if (m == 1) {
      x = work->x + visits[i].row * hidden;
      x_q8 = work->x_q8 + visits[i].row * x_q8_row;
    } else
      for (gsize j = i; j < i + m; j++) {
        if (!wants_q8 (pair[0]) || !wants_q8 (pair[1]))
          memcpy (work->gathered + j * hidden, work->x + visits[j].row * hidden, hidden * sizeof (float));
        if (wants_q8 (pair[0]) || wants_q8 (pair[1]))
          memcpy (work->gathered_q8 + j * x_q8_row, work->x_q8 + visits[j].row * x_q8_row, x_q8_row);
      }
    for (guint p = 0; p < 2; p++)
      work->products[count++] = (OxCpuProduct) {
        .w = &pair[p]->packed,
        .x = x,
        .quantized = x_q8,
        .m = m,
        .y = (p == 0 ? work->gate : work->up) + i * width,
        .y_stride = width,
      };
    quantize |= wants_q8 (experts->down[visits[i].expert]);
  }
  ox_ops_cpu_products (self, work->products, count);
  if (!ox_ops_cpu_running (self))
    return;

  ox_ops_cpu_gate (self, work->gate, work->gate, work->up, n * width, experts->gate_kind);
  if (quantize)
    ox_ops_cpu_quantize (self, work->gate, n, width, work->activated_q8);
  count = 0;
  for (gsize i = 0, m; i < n; i += m) {
    m = run_length (visits + i, n - i);
    work->products[count++] = (OxCpuProduct) {
      .w = &experts->down[visits[i].expert]->packed,
      .x = work->gate + i * width,
      .quantized = work->activated_q8 + i * width_q8_row,
      .m = m,
      .y = work->down + i * hidden,
      .y_stride = hidden,
    };
  }
  ox_ops_cpu_products (self, work->products, count);
  if (ox_ops_cpu_running (self))
    ox_pool_run (self->pool, sum_columns, &sum, (hidden + SUM_COLS - 1) / SUM_COLS, 1);
}

/* Chooses the experts of every row, and puts the visits in order. @visits, @unordered: [rows · top_k]; @begin: [n_experts + 1]. */
static void
choose_experts (OxOpsCpu *self,
                const OxTensor *router,
                const OxExperts *experts,
                Visit *visits,
                Visit *unordered,
                guint32 *begin,
                float *p,
                guint32 *chosen)
{
  gsize n = 0;

  memset (begin, 0, ((gsize) experts->n_experts + 1) * sizeof *begin);
  for (guint row = 0; row < router->rows; row++) {
    float total = 0;

    self->kernels->softmax (p, ox_cpu_rows (router) + (gsize) row * router->cols, experts->n_experts);
    ox_ops_cpu_choose (p, experts->n_experts, experts->top_k, chosen);
    for (guint i = 0; i < experts->top_k; i++)
      total += p[chosen[i]];
    for (guint i = 0; i < experts->top_k; i++) {
      guint32 expert = chosen[i];
      float scale = experts->scale != NULL ? experts->scale->data[expert] : 1;

      unordered[n++] = (Visit) { row, expert, p[expert] / total * scale };
      begin[expert + 1]++;
    }
  }
  for (guint e = 0; e < experts->n_experts; e++)
    begin[e + 1] += begin[e];
  for (gsize i = 0; i < n; i++)
    visits[begin[unordered[i].expert]++] = unordered[i];
}

/* Takes @bytes of the working memory at *@at, in whole cache lines. */
static gpointer
take (guint8 *memory, gsize *at, gsize bytes)
{
  gpointer taken = memory != NULL ? memory + *at : NULL;

  *at += (bytes + 63) & ~(gsize) 63;
  return taken;
}

static void
cpu_moe (OxOps *ops, OxTensor *y, const OxTensor *x, const OxTensor *router, const OxExperts *experts)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  MoeWork work = { .self = self, .experts = experts, .x = ox_cpu_rows (x), .y = ox_cpu_rows (y), .hidden = x->cols };
  gsize n_visits = (gsize) x->rows * experts->top_k, rows = MIN (n_visits, BATCH_ROWS), width = experts->width;
  gsize hidden_q8 = 0, width_q8 = 0, bytes = 0;
  gboolean quantize = FALSE;
  Visit *visits = NULL, *unordered = NULL;
  guint32 *begin = NULL, *chosen = NULL;
  float *p = NULL;

  if (!ox_ops_cpu_running (self) || n_visits == 0)
    return;
  for (guint e = 0; e < experts->n_experts; e++)
    quantize |= wants_q8 (experts->gate[e]) || wants_q8 (experts->up[e]);
  if (quantize)
    hidden_q8 = ox_activation_row_bytes (OX_ACTIVATION_Q8, work.hidden);
  width_q8 = ox_activation_row_bytes (OX_ACTIVATION_Q8, width);

  /* First for its size, then for its places. */
  for (guint pass = 0; pass < 2; pass++) {
    guint8 *memory = pass == 0 ? NULL : self->moe_scratch;

    bytes = 0;
    visits = take (memory, &bytes, n_visits * sizeof *visits);
    unordered = take (memory, &bytes, n_visits * sizeof *unordered);
    begin = take (memory, &bytes, ((gsize) experts->n_experts + 1) * sizeof *begin);
    chosen = take (memory, &bytes, experts->top_k * sizeof *chosen);
    p = take (memory, &bytes, experts->n_experts * sizeof *p);
    work.x_q8 = take (memory, &bytes, x->rows * hidden_q8);
    work.gathered_q8 = take (memory, &bytes, rows * hidden_q8);
    work.gathered = take (memory, &bytes, rows * work.hidden * sizeof (float));
    work.gate = take (memory, &bytes, rows * width * sizeof (float));
    work.up = take (memory, &bytes, rows * width * sizeof (float));
    work.activated_q8 = take (memory, &bytes, rows * width_q8);
    work.down = take (memory, &bytes, rows * work.hidden * sizeof (float));
    work.products = take (memory, &bytes, 2 * rows * sizeof *work.products);
    if (pass == 0 && !ox_ops_cpu_reserve (self, (void **) &self->moe_scratch, &self->moe_bytes, bytes))
      return;
  }
  work.visits = visits;
  choose_experts (self, router, experts, visits, unordered, begin, p, chosen);
  if (quantize)
    ox_ops_cpu_quantize (self, work.x, x->rows, work.hidden, work.x_q8);
  memset (work.y, 0, x->rows * work.hidden * sizeof (float));
  for (gsize first = 0; first < n_visits && ox_ops_cpu_running (self); first += BATCH_ROWS)
    run_batch (&work, first, MIN (n_visits - first, BATCH_ROWS));
}

/* ---- The head of a drafter ---- */

typedef struct {
  OxOpsCpu *self;
  const OxPackedMatrix *w;
  const void *x;
  float *logits;
  const guint32 *steps;
} HeadWork;

static void
head_steps (void *data, size_t begin, size_t end, unsigned worker)
{
  HeadWork *work = data;
  gsize step = work->w->kernel->row_step;

  for (gsize i = begin; i < end && ox_ops_cpu_running (work->self); i++)
    work->w->kernel->matvec (work->w, work->x, work->logits, work->steps[i] * step,
                             MIN ((work->steps[i] + 1) * step, work->w->rows));
}

static void
cpu_centroid_logits (OxOps *ops,
                     OxTensor *y,
                     const OxTensor *x,
                     const OxTensor *centroids,
                     guint top_k,
                     OxMatrix *head,
                     const guint32 *ordering)
{
  OxOpsCpu *self = (OxOpsCpu *) ops;
  const OxPackedMatrix *w = &head->packed;
  gsize step = w->kernel->row_step, n_steps = (w->rows + step - 1) / step, size = w->rows / centroids->cols;
  gsize q8_bytes = wants_q8 (head) ? ox_activation_row_bytes (OX_ACTIVATION_Q8, x->cols) : 0, bytes = 0;
  HeadWork work = { .self = self, .w = w };
  guint32 *chosen = NULL, *steps = NULL;
  guint8 *q8 = NULL;

  if (!ox_ops_cpu_running (self))
    return;
  for (guint pass = 0; pass < 2; pass++) {
    guint8 *memory = pass == 0 ? NULL : self->centroid_scratch;

    bytes = 0;
    chosen = take (memory, &bytes, top_k * sizeof *chosen);
    steps = take (memory, &bytes, n_steps * sizeof *steps);
    q8 = take (memory, &bytes, q8_bytes);
    work.logits = take (memory, &bytes, w->rows * sizeof (float));
    if (pass == 0 && !ox_ops_cpu_reserve (self, (void **) &self->centroid_scratch, &self->centroid_bytes, bytes))
      return;
  }
  work.steps = steps;
  for (guint row = 0; row < x->rows && ox_ops_cpu_running (self); row++) {
    const float *in = ox_cpu_rows (x) + (gsize) row * x->cols;
    float *out = ox_cpu_rows (y) + (gsize) row * y->cols, least = INFINITY;
    gsize n = 0, next = 0;

    ox_ops_cpu_choose (ox_cpu_rows (centroids) + (gsize) row * centroids->cols, centroids->cols, top_k, chosen);
    /* The kernel's steps need not end where a cluster does; two clusters may share one. */
    for (guint i = 0; i < top_k; i++)
      for (gsize s = MAX (next, chosen[i] * size / step); s * step < (chosen[i] + 1) * size; s++) {
        steps[n++] = (guint32) s;
        next = s + 1;
      }
    work.x = in;
    if (q8_bytes > 0) {
      self->kernels->quantize_q8 (in, q8, x->cols);
      work.x = q8;
    }
    ox_pool_run (self->pool, head_steps, &work, n, MAX (n / (ox_pool_threads (self->pool) * 8u), 1));
    if (!ox_ops_cpu_running (self))
      return;

    for (guint i = 0; i < top_k; i++)
      for (gsize j = 0; j < size; j++)
        least = MIN (least, work.logits[chosen[i] * size + j]);
    for (guint i = 0; i < y->cols; i++)
      out[i] = least - 1;
    for (guint i = 0; i < top_k; i++)
      for (gsize j = chosen[i] * size; j < (chosen[i] + 1) * size; j++)
        out[ordering[j]] = work.logits[j];
  }
}

void
ox_ops_cpu_init_moe (OxOpsCpu *self)
{
  self->base.moe = cpu_moe;
  self->base.centroid_logits = cpu_centroid_logits;
}
