/* How fast convolutions are beside what the machine can do, for the shapes of Stable Diffusion's networks at 512 × 512: GFLOPS (a
 * multiplication and an addition are two), and the fraction of the peak of float32 arithmetic, or of bf16's where the kernel
 * multiplies pairs, measured between the runs. With one thread its own time counts: what other programs take of the processor
 * does not.
 *
 *     bench-conv [THREADS [LEVEL|all [SHAPE|all [TYPE [SECONDS]]]]]      SHAPE: part of a name
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ox-conv.h"
#include "ox-image.h"
#include "ox-peak.h"

static const struct {
  const char *name;
  OxConvShape shape;
  size_t size, stride;
  bool silu, resize;
} shapes[] = {
  { "unet 320x64x64 3x3", { 320, 320, 3, 3 }, 64, 1, true },
  { "unet 640x32x32 3x3", { 640, 640, 3, 3 }, 32, 1, true },
  { "unet 1280x16x16 3x3", { 1280, 1280, 3, 3 }, 16, 1, true },
  { "unet 1280x8x8 3x3", { 1280, 1280, 3, 3 }, 8, 1, true },
  { "unet 2560-1280x16x16 3x3", { 2560, 1280, 3, 3 }, 16, 1, true },
  { "unet 320x64x64 3x3 s2", { 320, 320, 3, 3 }, 64, 2 },
  { "unet 640x32x32 3x3 up", { 640, 640, 3, 3 }, 32, 1, false, true },
  { "unet conv-in 4-320", { 4, 320, 3, 3 }, 64, 1 },
  { "unet conv-out 320-4", { 320, 4, 3, 3 }, 64, 1, true },
  { "unet 320x64x64 1x1", { 320, 320, 1, 1 }, 64, 1 },
  { "unet 640x32x32 1x1", { 640, 640, 1, 1 }, 32, 1 },
  { "unet 1920-640x32x32 1x1", { 1920, 640, 1, 1 }, 32, 1 },
  { "unet 1280x16x16 1x1", { 1280, 1280, 1, 1 }, 16, 1 },
  { "vae 512x64x64 3x3", { 512, 512, 3, 3 }, 64, 1, true },
  { "vae 512x128x128 3x3", { 512, 512, 3, 3 }, 128, 1, true },
  { "vae 256x256x256 3x3", { 256, 256, 3, 3 }, 256, 1, true },
  { "vae 128x512x512 3x3", { 128, 128, 3, 3 }, 512, 1, true },
  { "vae conv-out 128-3x512", { 128, 3, 3, 3 }, 512, 1, true },
  { "taesd 64x512x512 3x3", { 64, 64, 3, 3 }, 512, 1 },
  { "siglip 3-1152 14x14", { 3, 1152, 14, 14 }, 896, 14 },
  { "audio 128-32 3x3 s2", { 128, 32, 3, 3 }, 64, 2 },
};

typedef struct {
  const OxConv *conv;
  uint8_t *scratch;
  size_t each;
  OxPackedConv *w;
  const void *weights;
} Job;

static void
run_items (void *data, size_t begin, size_t end, unsigned worker)
{
  Job *job = data;

  for (size_t i = begin; i < end; i++)
    job->conv->w->kernel->run (job->conv, i, job->scratch + worker * job->each);
}

static double
clock_seconds (OxPool *pool)
{
  struct timespec t;

  clock_gettime (ox_pool_threads (pool) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* Operations a second of the best loop for what the kernel multiplies. */
static double
measure_peak (OxPool *pool, uint32_t flags, bool pairs)
{
  double best = 0;

  if (ox_pool_threads (pool) > 1)
    return ox_peak_best (pairs ? OX_PEAK_BF16 : OX_PEAK_F32, flags, ox_pool_threads (pool), 0.01, 1, NULL);
  for (size_t i = 0; ox_peak (i) != NULL; i++) {
    const OxPeak *peak = ox_peak (i);
    uint64_t rounds = 1000000000 / peak->operations;
    double begin;

    if (peak->kind != (pairs ? OX_PEAK_BF16 : OX_PEAK_F32) || !ox_peak_runs (peak, flags))
      continue;
    begin = clock_seconds (pool);
    peak->run (rounds);
    best = MAX (best, (double) rounds * peak->operations / (clock_seconds (pool) - begin));
  }
  return best;
}

static void
bench (OxPool *pool, const KernelLevel *level, size_t s, uint32_t type, double seconds)
{
  const OxConvShape *shape = &shapes[s].shape;
  OxPackedConv w = { ox_conv_kernel (&level->kernels, type, OX_PRECISION_FAST), type, *shape };
  size_t taps = shape->kernel_height * shape->kernel_width, n_weights = shape->in_channels * shape->out_channels * taps;
  size_t size = shapes[s].size, out, bytes = 0, threads = ox_pool_threads (pool);
  bool pairs = w.kernel->step_channels == 2;
  KernelRandom random = { 1 };
  void *weights = g_malloc (n_weights * 4);
  g_autofree float *x = g_new (float, size *size * shape->in_channels), *scale = g_new (float, shape->in_channels);
  g_autofree float *y = NULL;
  OxConv conv = {
    .w = &w, .x = x, .x_stride = shape->in_channels, .images = 1, .height = size, .width = size, .bias = NULL
  };
  double peak = 0, best = 1e9, packing, spent = 0, operations;
  Job job;

  conv.stride = shapes[s].stride;
  conv.silu = shapes[s].silu;
  conv.norm_scale = conv.norm_shift = shapes[s].silu ? scale : NULL;
  conv.resized_height = conv.resized_width = shapes[s].resize ? size * 2 : 0;
  conv.pad_top = conv.pad_left = conv.pad_bottom = conv.pad_right = taps == 9;
  conv.y_stride = shape->out_channels;
  kernel_fill_floats (&random, INPUT_NORMAL, scale, shape->in_channels);
  for (size_t i = 0; i < size * size * shape->in_channels; i += shape->in_channels)
    kernel_fill_floats (&random, INPUT_NORMAL, x + i, MIN (shape->in_channels, 4));
  for (size_t i = 0; i < size * size * shape->in_channels; i++)
    x[i] = i % shape->in_channels >= 4 ? x[i - 4] + 0.1f : x[i];
  kernel_fill_weights (&random, type, INPUT_NORMAL, weights, MIN (n_weights, 4096));
  for (size_t i = 4096; i < n_weights; i += 4096)
    memcpy ((char *) weights + i * (type == OX_TYPE_F32 ? 4 : 2), weights,
            MIN (n_weights - i, 4096) * (type == OX_TYPE_F32 ? 4 : 2));
  w.kernel->packed_bytes (shape, &bytes);
  w.data = aligned_alloc (64, (bytes + 63) / 64 * 64);
  packing = clock_seconds (pool);
  w.kernel->pack (&w, weights, 0, shape->out_channels);
  packing = clock_seconds (pool) - packing;
  g_free (weights);
  if (!ox_conv_plan (&conv, (unsigned) threads))
    g_error ("no plan");
  out = conv.out_height * conv.out_width;
  conv.y = y = g_new0 (float, out * shape->out_channels);
  job = (Job) { .conv = &conv, .each = (conv.scratch_bytes + 63) / 64 * 64 };
  job.scratch = aligned_alloc (64, job.each * threads);

  while (spent < seconds) {
    double begin = clock_seconds (pool), took;

    ox_pool_run (pool, run_items, &job, conv.n_items, 1);
    took = clock_seconds (pool) - begin;
    best = MIN (best, took);
    spent += took;
    peak = MAX (peak, measure_peak (pool, level->mask, pairs));
  }
  operations = 2.0 * (double) out * (double) n_weights;
  printf ("%-10s %-24s %-5s %-22s %8.2f ms %7.1f GFLOPS %5.1f %% of %6.1f   %4zu items of %3zu x %3zu x %4zu, %5.2f ms "
          "each, %4zu KiB; pack %.2f GB/s\n",
          level->name, shapes[s].name, ox_type_info (type)->name, w.kernel->name, best * 1e3, operations / best * 1e-9,
          operations / best / peak * 100, peak * 1e-9, conv.n_items, conv.tile_height, conv.tile_width,
          MIN (conv.item_panels * w.kernel->panel_channels, shape->out_channels),
          best * 1e3 * (double) threads / (double) conv.n_items, conv.scratch_bytes >> 10,
          (double) n_weights * (type == OX_TYPE_F32 ? 4 : 2) / packing * 1e-9);
  fflush (stdout);
  free (w.data);
  free (job.scratch);
}

int
main (int argc, char **argv)
{
  static const uint32_t types[] = { OX_TYPE_F32, OX_TYPE_F16, OX_TYPE_BF16 };
  OxPool *pool = ox_pool_new (argc > 1 ? (unsigned) atoi (argv[1]) : 1);
  const char *level = argc > 2 ? argv[2] : "all", *shape = argc > 3 ? argv[3] : "all",
             *type = argc > 4 ? argv[4] : "all";
  double seconds = argc > 5 ? atof (argv[5]) : 0.3;
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  printf ("%s, %u threads\n", ox_cpu_name (), ox_pool_threads (pool));
  for (size_t l = 0; l < n_levels; l++)
    for (size_t s = 0; s < G_N_ELEMENTS (shapes); s++)
      for (size_t t = 0; t < G_N_ELEMENTS (types); t++)
        if ((strcmp (level, "all") == 0 || strcmp (level, levels[l].name) == 0) &&
            (strcmp (shape, "all") == 0 || strstr (shapes[s].name, shape) != NULL) &&
            (strcmp (type, "all") == 0 || g_ascii_strcasecmp (type, ox_type_info (types[t])->name) == 0))
          bench (pool, &levels[l], s, types[t], seconds);
  ox_pool_free (pool);
  return 0;
}
