/* Linear attention over the vectors of ox-simd-*.h: a row of a causal convolution, and the gated delta rule. Everything is static; see
 * ox-vector-template.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-exp.h"
#include "ox-kernels.h"

static inline VF
silu (VF x)
{
  return vf_div (x, vf_add (vf_set1 (1), vf_exp (vf_sub (vf_set1 (0), x))));
}

static void
conv_silu (float *y, const float *const *x, const float *w, size_t w_stride, size_t taps, size_t n)
{
  size_t c = 0;

  for (; c + VF_LANES <= n; c += VF_LANES) {
    VF sum = vf_set1 (0);

    for (size_t j = 0; j < taps; j++)
      sum = vf_fma (vf_load (w + j * w_stride + c), vf_load (x[j] + c), sum);
    vf_store (y + c, silu (sum));
  }
  if (c < n) {
    VF sum = vf_set1 (0);

    for (size_t j = 0; j < taps; j++)
      sum = vf_fma (vf_load_n (w + j * w_stride + c, n - c), vf_load_n (x[j] + c, n - c), sum);
    vf_store_n (y + c, silu (sum), n - c);
  }
}

/* ---- The gated delta rule: see OxDeltaRule --------------------------------------------------------------------------- */

#define STRIP_VECTORS (OX_DELTA_STRIP / VF_LANES)
/* Sums that run side by side, so that none waits for its own last addition. */
#define RECALL_ROWS (8 / STRIP_VECTORS)
#define ANSWER_ROWS (STRIP_VECTORS > 2 ? 1 : 2)

/* One token, a whole strip. Its matrix is read twice: for what the key recalls, and to change it while the query reads it. */
static inline void
delta_token (const float *from,
             float *state,
             const float *q,
             const float *k,
             const float *v,
             float beta,
             float decay,
             float *y,
             size_t key_dim)
{
  VF recalled[RECALL_ROWS][STRIP_VECTORS], change[STRIP_VECTORS], answer[ANSWER_ROWS][STRIP_VECTORS];
  VF keep = vf_set1 (decay);
  size_t i = 0;

  for (size_t r = 0; r < RECALL_ROWS; r++)
    for (size_t j = 0; j < STRIP_VECTORS; j++)
      recalled[r][j] = vf_set1 (0);
  for (; i + RECALL_ROWS <= key_dim; i += RECALL_ROWS)
    for (size_t r = 0; r < RECALL_ROWS; r++)
      for (size_t j = 0; j < STRIP_VECTORS; j++)
        recalled[r][j] =
          vf_fma (vf_set1 (k[i + r]), vf_load (from + (i + r) * OX_DELTA_STRIP + j * VF_LANES), recalled[r][j]);
  for (; i < key_dim; i++)
    for (size_t j = 0; j < STRIP_VECTORS; j++)
      recalled[0][j] = vf_fma (vf_set1 (k[i]), vf_load (from + i * OX_DELTA_STRIP + j * VF_LANES), recalled[0][j]);

  for (size_t j = 0; j < STRIP_VECTORS; j++) {
    for (size_t r = 1; r < RECALL_ROWS; r++)
      recalled[0][j] = vf_add (recalled[0][j], recalled[r][j]);
    change[j] = vf_mul (vf_set1 (beta), vf_sub (vf_load (v + j * VF_LANES), vf_mul (keep, recalled[0][j])));
    for (size_t r = 0; r < ANSWER_ROWS; r++)
      answer[r][j] = vf_set1 (0);
  }
  for (i = 0; i + ANSWER_ROWS <= key_dim; i += ANSWER_ROWS)
    for (size_t r = 0; r < ANSWER_ROWS; r++)
      for (size_t j = 0; j < STRIP_VECTORS; j++) {
        size_t at = (i + r) * OX_DELTA_STRIP + j * VF_LANES;
        VF s = vf_fma (vf_set1 (k[i + r]), change[j], vf_mul (keep, vf_load (from + at)));

        vf_store (state + at, s);
        answer[r][j] = vf_fma (vf_set1 (q[i + r]), s, answer[r][j]);
      }
  for (; i < key_dim; i++)
    for (size_t j = 0; j < STRIP_VECTORS; j++) {
      size_t at = i * OX_DELTA_STRIP + j * VF_LANES;
      VF s = vf_fma (vf_set1 (k[i]), change[j], vf_mul (keep, vf_load (from + at)));

      vf_store (state + at, s);
      answer[0][j] = vf_fma (vf_set1 (q[i]), s, answer[0][j]);
    }
  for (size_t j = 0; j < STRIP_VECTORS; j++) {
    for (size_t r = 1; r < ANSWER_ROWS; r++)
      answer[0][j] = vf_add (answer[0][j], answer[r][j]);
    vf_store (y + j * VF_LANES, answer[0][j]);
  }
}

/* The same for @n ≤ VF_LANES columns of a strip that is @width wide. */
static void
delta_token_n (const float *from,
               float *state,
               const float *q,
               const float *k,
               const float *v,
               float beta,
               float decay,
               float *y,
               size_t key_dim,
               size_t width,
               size_t n)
{
  VF keep = vf_set1 (decay), recalled = vf_set1 (0), answer = recalled, change;

  for (size_t i = 0; i < key_dim; i++)
    recalled = vf_fma (vf_set1 (k[i]), vf_load_n (from + i * width, n), recalled);
  change = vf_mul (vf_set1 (beta), vf_sub (vf_load_n (v, n), vf_mul (keep, recalled)));
  for (size_t i = 0; i < key_dim; i++) {
    VF s = vf_fma (vf_set1 (k[i]), change, vf_mul (keep, vf_load_n (from + i * width, n)));

    vf_store_n (state + i * width, s, n);
    answer = vf_fma (vf_set1 (q[i]), s, answer);
  }
  vf_store_n (y, answer, n);
}

static void
delta_rule (const OxDeltaRule *d)
{
  for (size_t first = 0; first < d->value_dim; first += OX_DELTA_STRIP) {
    size_t width = d->value_dim - first < OX_DELTA_STRIP ? d->value_dim - first : OX_DELTA_STRIP;
    const float *from = d->from + first * d->key_dim;
    float *state = d->state + first * d->key_dim;

    /* All tokens on one strip, as it stays in the cache. */
    for (size_t t = 0; t < d->n; t++, from = state) {
      const float *q = d->q + t * d->qk_stride, *k = d->k + t * d->qk_stride, *v = d->v + t * d->v_stride + first;
      float beta = d->beta[t * d->gate_stride], decay = d->decay[t * d->gate_stride];
      float *y = d->y + t * d->y_stride + first;

      if (width == OX_DELTA_STRIP)
        delta_token (from, state, q, k, v, beta, decay, y, d->key_dim);
      else
        for (size_t c = 0; c < width; c += VF_LANES)
          delta_token_n (from + c, state + c, q, k, v + c, beta, decay, y + c, d->key_dim, width,
                         width - c < VF_LANES ? width - c : VF_LANES);
    }
  }
}
