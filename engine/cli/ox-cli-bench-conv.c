/* Convolutions at each level: the 3×3 of the widest pictures in Stable Diffusion's network, with group norm and SiLU on their way in.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-cli-bench-place.h"

#include <stdlib.h>
#include <string.h>

#include "ox-conv.h"

#define SIDE 64
#define CHANNELS 320
#define TAPS 3

static const struct {
  const char *name;
  OxType type;
  OxPeakKind kind;
  gboolean quick;
} formats[] = {
  { "conv3x3/f32", OX_TYPE_F32, OX_PEAK_F32, TRUE },
  { "conv3x3/bf16", OX_TYPE_BF16, OX_PEAK_BF16, TRUE },
  { "conv3x3/f16", OX_TYPE_F16, OX_PEAK_BF16, FALSE },
};

typedef struct {
  OxPool *pool;
  OxPackedConv w;
  OxConv conv;
  guint8 *scratch;
  gsize scratch_stride;
  gpointer source;
} Convolution;

static void
run_items (void *data, size_t begin, size_t end, unsigned worker)
{
  Convolution *c = data;

  for (size_t item = begin; item < end; item++)
    c->w.kernel->run (&c->conv, item, c->scratch + worker * c->scratch_stride);
}

static void
run_convolution (gpointer data)
{
  Convolution *c = data;

  ox_pool_run (c->pool, run_items, c, c->conv.n_items, 1);
}

static void
run_pack (void *data, size_t begin, size_t end, unsigned worker)
{
  Convolution *c = data;
  uint64_t filter = 0;

  ox_type_row_bytes (c->w.type, CHANNELS * TAPS * TAPS, &filter);
  c->w.kernel->pack (&c->w, (const guint8 *) c->source + begin * filter, begin, end);
}

/* Small numbers of both signs, whatever the format. */
static gpointer
make_weights (OxType type)
{
  const gsize n = (gsize) CHANNELS * CHANNELS * TAPS * TAPS;
  float *floats = g_new (float, n);

  for (gsize i = 0; i < n; i++) {
    guint32 random = (guint32) i * 2654435761u;

    if (type == OX_TYPE_F32)
      floats[i] = (float) (gint32) random * 0x1p-36f;
    else
      ((guint16 *) (gpointer) floats)[i] =
        (guint16) ((type == OX_TYPE_F16 ? 0x2000 : 0x3c00) | (random >> 16 & 0x83ff));
  }
  return floats;
}

static gsize
whole_lines (gsize bytes)
{
  return (bytes + 63) & ~(gsize) 63;
}

static gboolean
bench_format (OxBenchPlace *place, gsize format, GError **error)
{
  const double operations = 2.0 * SIDE * SIDE * CHANNELS * CHANNELS * TAPS * TAPS;
  OxBenchWork work = { 0 };
  g_autofree float *x = g_new (float, (gsize) SIDE *SIDE *CHANNELS);
  g_autofree float *y = g_new (float, (gsize) SIDE *SIDE *CHANNELS);
  g_autofree float *scale = g_new (float, CHANNELS);
  g_autofree float *shift = g_new0 (float, CHANNELS);
  g_autofree gpointer source = make_weights (formats[format].type);
  Convolution c = { .pool = place->pool, .source = source };
  OxTensor picture = { .data = x, .rows = SIDE * SIDE, .cols = CHANNELS };
  size_t bytes = 0;
  gboolean ok;

  work.operations[formats[format].kind] = 1e9;
  ox_bench_fill (&picture);
  for (guint i = 0; i < CHANNELS; i++)
    scale[i] = 1;
  c.w = (OxPackedConv) { .type = formats[format].type, .shape = { CHANNELS, CHANNELS, TAPS, TAPS } };
  c.w.kernel = ox_conv_kernel (&place->kernels, c.w.type, OX_PRECISION_FAST);
  c.conv = (OxConv) { .w = &c.w,
                      .x = x,
                      .x_stride = CHANNELS,
                      .images = 1,
                      .height = SIDE,
                      .width = SIDE,
                      .norm_scale = scale,
                      .norm_shift = shift,
                      .silu = true,
                      .pad_top = 1,
                      .pad_left = 1,
                      .pad_bottom = 1,
                      .pad_right = 1,
                      .stride = 1,
                      .y = y,
                      .y_stride = CHANNELS };
  ok = c.w.kernel->packed_bytes (&c.w.shape, &bytes) && ox_conv_plan (&c.conv, place->threads);
  if (ok) {
    c.scratch_stride = whole_lines (c.conv.scratch_bytes);
    c.w.data = aligned_alloc (64, whole_lines (bytes));
    c.scratch = aligned_alloc (64, c.scratch_stride * place->threads);
    ok = c.w.data != NULL && c.scratch != NULL;
  }
  if (ok) {
    ox_pool_run (place->pool, run_pack, &c, CHANNELS, c.w.kernel->panel_channels);
    ox_bench_place_add (
      place, formats[format].name, "GOPS",
      operations / ox_bench_place_best_of (place, run_convolution, &c, 1u << formats[format].kind) * 1e-9, &work);
  } else {
    g_set_error (error, OX_ERROR, OX_ERROR_NO_MEMORY, "there is not enough memory for a convolution");
  }
  free (c.w.data);
  free (c.scratch);
  return ok;
}

gboolean
ox_bench_convolutions (OxBenchPlace *place, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (formats) && ox_bench_goes_on (place->bench); i++)
    if ((!place->brief || formats[i].quick) && ox_bench_wants (place->bench, formats[i].name) &&
        !bench_format (place, i, error))
      return FALSE;
  return TRUE;
}
