/* The sampler.
 *
 * The order and the meaning of the steps are transformers' (LogitsProcessor, LogitsWarper), with frequency and presence penalties
 * as OpenAI and vLLM define them. Arithmetic is in double. Only few of the 262,144 logits of a large vocabulary matter, so the
 * steps work on candidates: with top-k these are found by one pass with a heap of k.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-sampler.h"

#include "io/ox-memory.h"
#include "ox-kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes for each id: how often it was seen, its flags, twice a candidate, for growing, an exponent, its part of a group. */
#define MEMORY_PER_ID (5 + 2 * sizeof (OxCandidate) + sizeof (double) + 1)

enum {
  IS_SUPPRESSED = 1,
  IS_PENALISED = 2,
  IS_NOT_ALLOWED = 4,
};

struct _OxSampler {
  double temperature, top_p, min_p;
  double repetition_penalty, frequency_penalty, presence_penalty;
  guint top_k;
  guint vocab_size;
  GArray *suppress;    /* guint32, each once */
  GArray *seen;        /* guint32: ids of prompt and answer, each once */
  guint32 *counts;     /* per id: 0: not seen, else 1 + times generated */
  guint8 *is_adjusted; /* per id: IS_SUPPRESSED, IS_PENALISED, IS_NOT_ALLOWED */
  gboolean is_limited; /* some ids may be IS_NOT_ALLOWED */
  gboolean has_penalties;
  GArray *candidates; /* OxCandidate; p holds the logit at first */
  float *greatest;    /* of each group of logits (OxKernels.group_greatest) */
  double *numbers;    /* exponents, as many as candidates at most; NULL until they are needed */
  guint64 state[4];   /* xoshiro256** */
};

/* Settings are decimal numbers that a person or a file wrote, such as 0.7; a float is only near it. The double that is nearest to
 * the decimal is what the reference computes with. */
static double
decimal (float value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];

  for (int digits = 1; digits <= 9; digits++) {
    g_autofree char *format = g_strdup_printf ("%%.%dg", digits);
    double parsed;

    g_ascii_formatd (buffer, sizeof buffer, format, (double) value);
    parsed = g_ascii_strtod (buffer, NULL);
    if ((float) parsed == value)
      return parsed;
  }
  return (double) value;
}

static guint64
splitmix64 (guint64 *x)
{
  guint64 z = (*x += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ z >> 30) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static guint64
rotate_left (guint64 x, int k)
{
  return x << k | x >> (64 - k);
}

/* xoshiro256** 1.0 by Blackman and Vigna. */
static guint64
next_random (guint64 *s)
{
  guint64 result = rotate_left (s[1] * 5, 7) * 9, t = s[1] << 17;

  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left (s[3], 45);
  return result;
}

static gboolean
check_setting (gboolean is_good, const char *name, double value, const char *range, GError **error)
{
  if (!is_good)
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "Sampling setting %s is %g, %s was expected", name, value, range);
  return is_good;
}

static gboolean
check_sampling (const OxSampling *s, GError **error)
{
  return check_setting (s->temperature >= 0 && isfinite (s->temperature), "temperature", s->temperature, "0 or more",
                        error) &&
         check_setting (s->top_p > 0, "top_p", s->top_p, "more than 0", error) &&
         check_setting (s->min_p >= 0 && s->min_p <= 1, "min_p", s->min_p, "0 to 1", error) &&
         check_setting (s->repetition_penalty > 0 && isfinite (s->repetition_penalty), "repetition_penalty",
                        s->repetition_penalty, "more than 0", error) &&
         check_setting (isfinite (s->frequency_penalty), "frequency_penalty", s->frequency_penalty, "a number",
                        error) &&
         check_setting (isfinite (s->presence_penalty), "presence_penalty", s->presence_penalty, "a number", error);
}

OxSampler *
ox_sampler_new (const OxSampling *sampling, guint vocab_size, const guint32 *suppress, gsize n_suppress, GError **error)
{
  OxSampler *sampler;
  guint64 seed = sampling->seed;

  if (!check_sampling (sampling, error) || !ox_memory_check ((guint64) vocab_size * MEMORY_PER_ID, "sampling", error))
    return NULL;
  sampler = g_new0 (OxSampler, 1);
  sampler->temperature = decimal (sampling->temperature);
  sampler->top_p = decimal (sampling->top_p);
  sampler->min_p = decimal (sampling->min_p);
  sampler->repetition_penalty = decimal (sampling->repetition_penalty);
  sampler->frequency_penalty = decimal (sampling->frequency_penalty);
  sampler->presence_penalty = decimal (sampling->presence_penalty);
  sampler->has_penalties =
    sampler->repetition_penalty != 1 || sampler->frequency_penalty != 0 || sampler->presence_penalty != 0;
  sampler->top_k = sampling->top_k;
  sampler->vocab_size = vocab_size;
  sampler->suppress = g_array_new (FALSE, FALSE, sizeof (guint32));
  sampler->seen = g_array_new (FALSE, FALSE, sizeof (guint32));
  sampler->candidates = g_array_new (FALSE, FALSE, sizeof (OxCandidate));
  sampler->greatest = g_new (float, vocab_size / OX_GREATEST_GROUP + 1);
  sampler->counts = g_new0 (guint32, MAX (vocab_size, 1));
  sampler->is_adjusted = g_new0 (guint8, MAX (vocab_size, 1));
  for (gsize i = 0; i < n_suppress; i++) {
    if (suppress[i] < vocab_size && !sampler->is_adjusted[suppress[i]]) {
      sampler->is_adjusted[suppress[i]] = IS_SUPPRESSED;
      g_array_append_val (sampler->suppress, suppress[i]);
    }
  }
  if (seed == 0)
    seed = (guint64) g_random_int () << 32 | g_random_int ();
  for (gsize i = 0; i < G_N_ELEMENTS (sampler->state); i++)
    sampler->state[i] = splitmix64 (&seed);
  return sampler;
}

void
ox_sampler_free (OxSampler *sampler)
{
  if (!sampler)
    return;
  g_array_unref (sampler->suppress);
  g_array_unref (sampler->seen);
  g_array_unref (sampler->candidates);
  g_free (sampler->greatest);
  g_free (sampler->numbers);
  g_free (sampler->counts);
  g_free (sampler->is_adjusted);
  g_free (sampler);
}

void
ox_sampler_accept (OxSampler *sampler, guint32 id, gboolean is_generated)
{
  if (id >= sampler->vocab_size)
    return;
  if (sampler->counts[id] == 0) {
    sampler->counts[id] = 1;
    g_array_append_val (sampler->seen, id);
    if (sampler->has_penalties)
      sampler->is_adjusted[id] |= IS_PENALISED;
  }
  if (is_generated && sampler->counts[id] < G_MAXUINT32)
    sampler->counts[id]++;
}

void
ox_sampler_reset (OxSampler *sampler)
{
  for (guint i = 0; i < sampler->seen->len; i++) {
    guint32 id = g_array_index (sampler->seen, guint32, i);

    sampler->counts[id] = 0;
    sampler->is_adjusted[id] &= (guint8) ~IS_PENALISED;
  }
  g_array_set_size (sampler->seen, 0);
}

void
ox_sampler_set_allowed (OxSampler *sampler, const guint32 *bits, guint n_bits)
{
  guint8 *flags = sampler->is_adjusted;

  if (!bits && !sampler->is_limited)
    return;
  n_bits = bits ? MIN (n_bits, sampler->vocab_size) : sampler->vocab_size;
  for (guint id = 0; id < n_bits; id++) {
    gboolean allowed = !bits || bits[id / 32] >> id % 32 & 1;

    flags[id] = (guint8) ((flags[id] & ~IS_NOT_ALLOWED) | (allowed ? 0 : IS_NOT_ALLOWED));
  }
  for (guint id = n_bits; id < sampler->vocab_size; id++)
    flags[id] |= IS_NOT_ALLOWED;
  sampler->is_limited = bits != NULL;
}

/* ---- Candidates ---- */

static double
penalised (const OxSampler *sampler, guint32 id, double logit)
{
  guint32 generated = sampler->counts[id] - 1;

  logit = logit > 0 ? logit / sampler->repetition_penalty : logit * sampler->repetition_penalty;
  if (generated > 0)
    logit -= sampler->frequency_penalty * generated + sampler->presence_penalty;
  return logit;
}

/* Looks at all logits once; later steps look only into groups whose greatest logit is large enough. */
static gboolean
survey (OxSampler *sampler, const float *logits, GError **error)
{
  guint bad = 0;

  if (ox_kernels ()->group_greatest (logits, sampler->vocab_size, sampler->greatest))
    return TRUE;
  for (guint i = 0; i < sampler->vocab_size; i++)
    bad += !(logits[i] < INFINITY);
  g_set_error (error, OX_ERROR, OX_ERROR_NUMERIC,
               "%u of %u logits are NaN or infinite: the weights are damaged, or too large to compute with", bad,
               sampler->vocab_size);
  return FALSE;
}

/* Group @group: ids [*begin, return value). */
static guint32
group_ids (const OxSampler *sampler, guint group, guint32 *begin)
{
  *begin = group * OX_GREATEST_GROUP;
  return MIN (*begin + OX_GREATEST_GROUP, sampler->vocab_size);
}

static guint
n_groups (const OxSampler *sampler)
{
  return (sampler->vocab_size + OX_GREATEST_GROUP - 1) / OX_GREATEST_GROUP;
}

/* The penalised ids that are not suppressed, with their new logits. */
static void
add_penalised (OxSampler *sampler, const float *logits)
{
  if (!sampler->has_penalties)
    return;
  for (guint i = 0; i < sampler->seen->len; i++) {
    guint32 id = g_array_index (sampler->seen, guint32, i);
    OxCandidate candidate = { id, penalised (sampler, id, logits[id]) };

    if (!(sampler->is_adjusted[id] & (IS_SUPPRESSED | IS_NOT_ALLOWED)) && candidate.p > -INFINITY)
      g_array_append_val (sampler->candidates, candidate);
  }
}

/* Min-heap of the k largest logits so far; floor: what a logit has to exceed to get in. */
typedef struct {
  double *values;
  guint n, k;
  double floor;
} Largest;

static void
largest_add (Largest *largest, double value)
{
  double *v = largest->values;
  guint i, child;

  if (!(value > largest->floor))
    return;
  if (largest->n < largest->k) {
    for (i = largest->n++; i > 0 && v[(i - 1) / 2] > value; i = (i - 1) / 2)
      v[i] = v[(i - 1) / 2];
    v[i] = value;
  } else {
    for (i = 0; (child = 2 * i + 1) < largest->n; i = child) {
      if (child + 1 < largest->n && v[child + 1] < v[child])
        child++;
      if (v[child] >= value)
        break;
      v[i] = v[child];
    }
    v[i] = value;
  }
  if (largest->n == largest->k)
    largest->floor = v[0];
}

/* The k-th largest logit, or -inf when there are fewer. */
static double
find_floor (OxSampler *sampler, const float *logits)
{
  g_autofree double *values = g_new (double, sampler->top_k);
  Largest largest = { values, 0, sampler->top_k, -INFINITY };

  for (guint i = 0; i < sampler->candidates->len; i++)
    largest_add (&largest, g_array_index (sampler->candidates, OxCandidate, i).p);
  for (guint group = 0; group < n_groups (sampler); group++) {
    guint32 id, end = group_ids (sampler, group, &id);

    for (; id < end && sampler->greatest[group] > largest.floor; id++)
      if (logits[id] > largest.floor && !sampler->is_adjusted[id])
        largest_add (&largest, logits[id]);
  }
  return largest.floor;
}

/* Fills the candidates with what top-k leaves; p holds logits. */
static void
collect (OxSampler *sampler, const float *logits)
{
  GArray *candidates = sampler->candidates;
  OxCandidate *c;
  double floor = -INFINITY;
  guint kept = 0;

  g_array_set_size (candidates, 0);
  add_penalised (sampler, logits);
  if (sampler->top_k > 0 && sampler->top_k < sampler->vocab_size)
    floor = find_floor (sampler, logits);
  for (guint i = 0; i < candidates->len; i++) {
    OxCandidate candidate = g_array_index (candidates, OxCandidate, i);

    if (candidate.p >= floor)
      g_array_index (candidates, OxCandidate, kept++) = candidate;
  }
  g_array_set_size (candidates, kept + sampler->vocab_size);
  c = (OxCandidate *) (gpointer) candidates->data;
  for (guint group = 0; group < n_groups (sampler); group++) {
    guint32 id, end = group_ids (sampler, group, &id);

    for (; id < end && sampler->greatest[group] >= floor; id++)
      if (logits[id] >= floor && logits[id] > -INFINITY && !sampler->is_adjusted[id])
        c[kept++] = (OxCandidate) { id, logits[id] };
  }
  g_array_set_size (candidates, kept);
}

/* The largest logit, the lowest id among equals. FALSE: there is none. */
static gboolean
find_greedy (OxSampler *sampler, const float *logits, guint32 *best_id)
{
  double best = -INFINITY;
  guint32 id = 0;
  gboolean found = FALSE;

  for (guint group = 0; group < n_groups (sampler); group++) {
    guint32 i, end = group_ids (sampler, group, &i);

    for (; i < end && sampler->greatest[group] > best; i++)
      if (logits[i] > best && !sampler->is_adjusted[i]) {
        best = logits[i];
        id = i;
        found = TRUE;
      }
  }
  g_array_set_size (sampler->candidates, 0);
  add_penalised (sampler, logits);
  for (guint i = 0; i < sampler->candidates->len; i++) {
    const OxCandidate *candidate = &g_array_index (sampler->candidates, OxCandidate, i);

    if (candidate->p > best || (found && candidate->p == best && candidate->id < id)) {
      best = candidate->p;
      id = candidate->id;
      found = TRUE;
    }
  }
  *best_id = id;
  return found;
}

/* ---- From logits to probabilities ---- */

static double
largest_p (const GArray *candidates)
{
  double most = -INFINITY;

  for (guint i = 0; i < candidates->len; i++)
    most = MAX (most, g_array_index (candidates, OxCandidate, i).p);
  return most;
}

/* Logits become exp (logit / temperature - largest). Returns their sum: eight sums, so that one need not wait for the other. */
static double
exponentiate (OxSampler *sampler)
{
  OxCandidate *c = (OxCandidate *) (gpointer) sampler->candidates->data;
  double temperature = sampler->temperature, most = largest_p (sampler->candidates), scaled = most / temperature;
  double sums[8] = { 0 }, *x;
  guint n = sampler->candidates->len;

  if (sampler->numbers == NULL)
    sampler->numbers = g_new (double, sampler->vocab_size);
  x = sampler->numbers;
  /* A tiny temperature takes the quotient out of range; the difference first does not. */
  if (isfinite (scaled))
    for (guint i = 0; i < n; i++)
      x[i] = c[i].p / temperature - scaled;
  else
    for (guint i = 0; i < n; i++)
      x[i] = (c[i].p - most) / temperature;
  ox_kernels ()->exp_double (x, n);
  for (guint i = 0; i < n; i++) {
    c[i].p = x[i];
    sums[i % 8] += x[i];
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* Whether @a comes before @b: by probability, then by id. */
static inline gboolean
is_before (const OxCandidate *a, const OxCandidate *b)
{
  return a->p > b->p || (a->p == b->p && a->id < b->id);
}

static void
sift_down (OxCandidate *heap, guint n, guint i)
{
  OxCandidate moved = heap[i];
  guint child;

  for (; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && is_before (heap + child + 1, heap + child))
      child++;
    if (!is_before (heap + child, &moved))
      break;
    heap[i] = heap[child];
  }
  heap[i] = moved;
}

/* Candidates by the size of p, 8 bins for each halving; p is at most 1, and the last bin is for all that is tiny. */
#define N_BINS 512

static guint
bin_of (double p)
{
  guint64 one = G_GUINT64_CONSTANT (0x3ff0000000000000), bits;

  memcpy (&bits, &p, sizeof bits);
  return (guint) MIN ((one - bits) >> 49, N_BINS - 1);
}

/* Drops bins that lie wholly behind the first candidates which together reach top_p; of a large vocabulary nearly all. */
static void
drop_tail (OxSampler *sampler, double sum)
{
  OxCandidate *c = (OxCandidate *) (gpointer) sampler->candidates->data;
  double mass[N_BINS] = { 0 }, before = 0;
  guint n = sampler->candidates->len, kept = 0, last = 0;

  for (guint i = 0; i < n; i++)
    mass[bin_of (c[i].p)] += c[i].p;
  /* The margin is far above the rounding of these sums, which differ from those that decide in their order. */
  for (; last < N_BINS - 1; last++) {
    before += mass[last] / sum;
    if (before > sampler->top_p + 1e-9)
      break;
  }
  for (guint i = 0; i < n; i++) {
    if (bin_of (c[i].p) <= last)
      c[kept++] = c[i];
  }
  g_array_set_size (sampler->candidates, kept);
}

/* Leaves the first candidates whose probabilities reach top_p. They come out of a heap, since sorting all would take long. */
static void
keep_top_p (OxSampler *sampler, double sum)
{
  OxCandidate *c = (OxCandidate *) (gpointer) sampler->candidates->data;
  guint n, left;
  double before = 0;

  drop_tail (sampler, sum);
  n = left = sampler->candidates->len;

  for (guint i = n / 2; i-- > 0;)
    sift_down (c, n, i);
  while (left > 0 && (left == n || before < sampler->top_p)) {
    OxCandidate top = c[0];

    before += top.p / sum;
    c[0] = c[--left];
    if (left > 0)
      sift_down (c, left, 0);
    c[left] = top;
  }
  /* The best now stand at the end, the very best last. */
  for (guint i = 0; i < (n - left) / 2; i++) {
    OxCandidate swapped = c[left + i];

    c[left + i] = c[n - 1 - i];
    c[n - 1 - i] = swapped;
  }
  memmove (c, c + left, (n - left) * sizeof *c);
  g_array_set_size (sampler->candidates, n - left);
}

/* Leaves what is at least @least, and something above 0; the probabilities then sum to 1. */
static void
keep_and_normalise (GArray *candidates, double least)
{
  OxCandidate *c = (OxCandidate *) (gpointer) candidates->data;
  guint kept = 0;
  double sum = 0;

  for (guint i = 0; i < candidates->len; i++) {
    if (c[i].p >= least && c[i].p > 0) {
      sum += c[i].p;
      c[kept++] = c[i];
    }
  }
  for (guint i = 0; i < kept; i++)
    c[i].p /= sum;
  g_array_set_size (candidates, kept);
}

/* Fills the candidates with the distribution to draw from. */
static gboolean
distribute (OxSampler *sampler, const float *logits, GError **error)
{
  gboolean found = TRUE;

  if (!survey (sampler, logits, error))
    return FALSE;
  if (sampler->temperature == 0) {
    OxCandidate only = { 0, 1 };

    found = find_greedy (sampler, logits, &only.id);
    g_array_set_size (sampler->candidates, 0);
    g_array_append_val (sampler->candidates, only);
  } else {
    collect (sampler, logits);
    found = sampler->candidates->len > 0;
  }
  if (!found) {
    g_set_error (error, OX_ERROR, OX_ERROR_NUMERIC, "None of the %u logits%s is finite", sampler->vocab_size,
                 sampler->is_limited ? " that are allowed here" : "");
    return FALSE;
  }
  if (sampler->temperature > 0) {
    double sum = exponentiate (sampler);

    if (sampler->top_p < 1)
      keep_top_p (sampler, sum);
    keep_and_normalise (sampler->candidates, sampler->min_p * largest_p (sampler->candidates));
  }
  return TRUE;
}

GArray *
ox_sampler_distribution (OxSampler *sampler, const float *logits, GError **error)
{
  return distribute (sampler, logits, error) ? g_array_copy (sampler->candidates) : NULL;
}

gboolean
ox_sampler_sample (OxSampler *sampler, const float *logits, guint32 *id, GError **error)
{
  const OxCandidate *c;
  double u, sum = 0;

  if (!distribute (sampler, logits, error))
    return FALSE;
  c = (const OxCandidate *) (gconstpointer) sampler->candidates->data;
  *id = c[sampler->candidates->len - 1].id;
  if (sampler->temperature == 0)
    return TRUE;
  u = (double) (next_random (sampler->state) >> 11) * 0x1p-53;
  for (guint i = 0; i < sampler->candidates->len; i++) {
    sum += c[i].p;
    if (u < sum) {
      *id = c[i].id;
      break;
    }
  }
  return TRUE;
}
