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
  float *y;
  gsize hidden;
  const Visit *visits;     /* by expert, then by row */
  guint forms, down_forms; /* that the experts' matrices read, a bit each */
  OxCpuInput input;        /* of all rows */
  /* Of a batch, by visit */
  OxCpuInput gathered;
  float *gate, *up;        /* [BATCH_ROWS, width] */
  guint8 *activated_coded; /* the same rows after the gate, in other forms */
  float *down;             /* [BATCH_ROWS, hidden] */
  OxCpuProduct *products;
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

/* The next visits of the same expert as the first of @n. */
static gsize
run_length (const Visit *visits, gsize n)
{
  gsize end = 1;

  while (end < n && visits[end].expert == visits[0].expert)
    end++;
  return end;
}

/* Puts the rows of @n visits, from visit @at of the batch on, side by side in every form. */
static void
gather (const MoeWork *work, gsize at, const Visit *visits, gsize n)
{
  for (OxActivation form = 0; form < OX_N_ACTIVATIONS; form++) {
    gsize bytes = ox_activation_row_bytes (form, work->hidden);

    for (gsize i = 0; i < n && (work->forms >> form & 1); i++)
      memcpy ((guint8 *) work->gathered.rows[form] + (at + i) * bytes, work->input.rows[form] + visits[i].row * bytes,
              bytes);
  }
}

/* Visits [first, first + n), n ≤ BATCH_ROWS: inputs side by side, three products, the weighted sum. */
static void
run_batch (MoeWork *work, gsize first, gsize n)
{
  const OxExperts *experts = work->experts;
  OxOpsCpu *self = work->self;
  const Visit *visits = work->visits + first;
  gsize hidden = work->hidden, width = experts->width;
  SumWork sum = { work, visits, n };
  OxCpuInput activated;
  guint count = 0;

  for (gsize i = 0, m; i < n; i += m) {
    OxMatrix *pair[2] = { experts->gate[visits[i].expert], experts->up[visits[i].expert] };

    m = run_length (visits + i, n - i);
    if (m > 1)
      gather (work, i, visits + i, m);
    for (guint p = 0; p < 2; p++)
      work->products[count++] = (OxCpuProduct) {
        .w = &pair[p]->packed,
        .x = m > 1 ? ox_cpu_input (&work->gathered, pair[p], i) : ox_cpu_input (&work->input, pair[p], visits[i].row),
        .m = m,
        .y = (p == 0 ? work->gate : work->up) + i * width,
        .y_stride = width,
      };
  }
  ox_ops_cpu_products (self, work->products, count);
  if (!ox_ops_cpu_running (self))
    return;

  ox_ops_cpu_gate (self, work->gate, work->gate, work->up, n * width, experts->gate_kind);
  activated = ox_ops_cpu_code (self, work->down_forms, work->gate, n, width, work->activated_coded);
  count = 0;
  for (gsize i = 0, m; i < n; i += m) {
    OxMatrix *down = experts->down[visits[i].expert];

    m = run_length (visits + i, n - i);
    work->products[count++] = (OxCpuProduct) {
      .w = &down->packed,
      .x = ox_cpu_input (&activated, down, i),
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
  MoeWork work = { .self = self, .experts = experts, .y = ox_cpu_rows (y), .hidden = x->cols };
  gsize n_visits = (gsize) x->rows * experts->top_k, rows = MIN (n_visits, BATCH_ROWS), width = experts->width;
  gsize bytes = 0;
  Visit *visits = NULL, *unordered = NULL;
  guint32 *begin = NULL, *chosen = NULL;
  guint8 *coded = NULL;
  float *p = NULL;

  if (!ox_ops_cpu_enter (self, OX_PROFILE_MATMUL) || n_visits == 0)
    return;
  for (guint e = 0; e < experts->n_experts; e++) {
    work.forms |= ox_cpu_form (experts->gate[e]) | ox_cpu_form (experts->up[e]);
    work.down_forms |= ox_cpu_form (experts->down[e]);
  }

  /* First for its size, then for its places. */
  for (guint pass = 0; pass < 2; pass++) {
    guint8 *memory = pass == 0 ? NULL : self->moe_scratch;

    bytes = 0;
    visits = take (memory, &bytes, n_visits * sizeof *visits);
    unordered = take (memory, &bytes, n_visits * sizeof *unordered);
    begin = take (memory, &bytes, ((gsize) experts->n_experts + 1) * sizeof *begin);
    chosen = take (memory, &bytes, experts->top_k * sizeof *chosen);
    p = take (memory, &bytes, experts->n_experts * sizeof *p);
    coded = take (memory, &bytes, ox_ops_cpu_coded_bytes (work.forms, x->rows, work.hidden));
    for (OxActivation form = 0; form < OX_N_ACTIVATIONS; form++)
      if (work.forms >> form & 1)
        work.gathered.rows[form] = take (memory, &bytes, rows * ox_activation_row_bytes (form, work.hidden));
    work.gate = take (memory, &bytes, rows * width * sizeof (float));
    work.up = take (memory, &bytes, rows * width * sizeof (float));
    work.activated_coded = take (memory, &bytes, ox_ops_cpu_coded_bytes (work.down_forms, rows, width));
    work.down = take (memory, &bytes, rows * work.hidden * sizeof (float));
    work.products = take (memory, &bytes, 2 * rows * sizeof *work.products);
    if (pass == 0 && !ox_ops_cpu_reserve (self, (void **) &self->moe_scratch, &self->moe_bytes, bytes))
      return;
  }
  work.visits = visits;
  choose_experts (self, router, experts, visits, unordered, begin, p, chosen);
  work.input = ox_ops_cpu_code (self, work.forms, ox_cpu_rows (x), x->rows, work.hidden, coded);
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
  gsize bytes = 0;
  HeadWork work = { .self = self, .w = w };
  guint32 *chosen = NULL, *steps = NULL;
  guint8 *coded = NULL;

  if (!ox_ops_cpu_enter (self, OX_PROFILE_MATMUL))
    return;
  for (guint pass = 0; pass < 2; pass++) {
    guint8 *memory = pass == 0 ? NULL : self->centroid_scratch;

    bytes = 0;
    chosen = take (memory, &bytes, top_k * sizeof *chosen);
    steps = take (memory, &bytes, n_steps * sizeof *steps);
    coded = take (memory, &bytes, ox_ops_cpu_coded_bytes (ox_cpu_form (head), 1, x->cols));
    work.logits = take (memory, &bytes, w->rows * sizeof (float));
    if (pass == 0 && !ox_ops_cpu_reserve (self, (void **) &self->centroid_scratch, &self->centroid_bytes, bytes))
      return;
  }
  work.steps = steps;
  for (guint row = 0; row < x->rows && ox_ops_cpu_running (self); row++) {
    OxCpuInput input;
    float *out = ox_cpu_rows (y) + (gsize) row * y->cols, least = INFINITY;
    gsize n = 0, next = 0;

    ox_ops_cpu_choose (ox_cpu_rows (centroids) + (gsize) row * centroids->cols, centroids->cols, top_k, chosen);
    /* The kernel's steps need not end where a cluster does; two clusters may share one. */
    for (guint i = 0; i < top_k; i++)
      for (gsize s = MAX (next, chosen[i] * size / step); s * step < (chosen[i] + 1) * size; s++) {
        steps[n++] = (guint32) s;
        next = s + 1;
      }
    input = ox_ops_cpu_code (self, ox_cpu_form (head), ox_cpu_rows (x) + (gsize) row * x->cols, 1, x->cols, coded);
    work.x = ox_cpu_input (&input, head, 0);
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
