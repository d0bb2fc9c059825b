/* Facts of formats and processor: sizes, levels, cores and cgroup limits.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel-test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <sched.h>
#include <unistd.h>

#include "ox-blocks.h"
#include "ox-internal.h"

static void
test_types (void)
{
  uint64_t bytes;

  for (size_t t = 0; t < kernel_n_types; t++) {
    const OxTypeInfo *info = ox_type_info (kernel_types[t]);
    g_assert_cmpuint (info->type, ==, kernel_types[t]);
    g_assert_true (ox_type_row_bytes (info->type, 512, &bytes));
    g_assert_cmpuint (bytes, ==, 512 / info->block_elements * info->block_bytes);
    if (info->block_elements > 1)
      g_assert_false (ox_type_row_bytes (info->type, 513, &bytes));
  }
  g_assert_cmpstr (ox_type_info (OX_TYPE_Q4_K)->name, ==, "Q4_K");
  g_assert_null (ox_type_info (4));
  g_assert_null (ox_type_info (UINT32_MAX));
  g_assert_false (ox_type_row_bytes (4, 32, &bytes));
  g_assert_false (ox_type_row_bytes (OX_TYPE_F32, UINT64_MAX / 2, &bytes));
  g_assert_true (ox_type_row_bytes (OX_TYPE_F32, 0, &bytes));
}

/* Every half float there and back; and rounding between neighbours, ties to even. */
static void
test_half_floats (void)
{
  for (uint32_t h = 0; h < 0x10000; h++) {
    float f = ox_f16_to_f32 ((uint16_t) h);
    if (isnan (f))
      g_assert_true (isnan (ox_f16_to_f32 (ox_f32_to_f16 (f))));
    else
      g_assert_cmphex (ox_f32_to_f16 (f), ==, h);
    if (h < 0x7bff) {
      float next = ox_f16_to_f32 ((uint16_t) (h + 1)), middle = (f + next) / 2;
      g_assert_cmphex (ox_f32_to_f16 (middle), ==, h + (h & 1));
      g_assert_cmphex (ox_f32_to_f16 (nextafterf (middle, next)), ==, h + 1);
      g_assert_cmphex (ox_f32_to_f16 (nextafterf (middle, f)), ==, h);
    }
  }
  g_assert_cmphex (ox_f32_to_f16 (65519.99f), ==, 0x7bff);
  g_assert_cmphex (ox_f32_to_f16 (65520), ==, 0x7c00);
  g_assert_cmphex (ox_f32_to_f16 (-1e30f), ==, 0xfc00);
}

static void
test_levels (void)
{
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  for (size_t l = 0; l < n_levels; l++) {
    const OxKernels *k = &levels[l].kernels;
    g_assert_cmpstr (ox_cpu_level_name (k->flags), ==, levels[l].name);
    g_test_message ("%s", levels[l].name);
    g_assert_nonnull (k->dequantize);
    g_assert_nonnull (k->quantize_q8);
    g_assert_nonnull (k->rms_norm);
    g_assert_nonnull (k->rope);
    g_assert_nonnull (k->silu_mul);
    g_assert_nonnull (k->gelu_tanh_mul);
    g_assert_nonnull (k->add);
    g_assert_nonnull (k->scale);
    g_assert_nonnull (k->dot);
    g_assert_nonnull (k->argmax);
    g_assert_nonnull (k->attention);
    for (size_t t = 0; t < kernel_n_types; t++) {
      g_assert_nonnull (ox_linear_kernel (k, kernel_types[t], OX_PRECISION_EXACT, 1, 256));
      g_assert_nonnull (ox_linear_kernel (k, kernel_types[t], OX_PRECISION_FAST, 1, 256));
    }
  }
  g_assert_cmpstr (ox_cpu_name (), !=, "");
}

/* OXINFER_CPU is read once, so each value needs a process of its own. */
static void
test_environment (void)
{
  size_t n_levels;
  const KernelLevel *levels = kernel_levels (&n_levels);

  if (g_test_subprocess ()) {
    g_print ("level %s.", ox_cpu_level_name (ox_kernels ()->flags));
    return;
  }
  if (g_getenv ("OX_TEST_EMULATED") != NULL) {
    g_test_skip ("an emulated program cannot start itself");
    return;
  }
  for (size_t l = 0; l < n_levels; l++) {
    g_autofree char *pattern = g_strdup_printf ("*level %s.*", levels[l].name);
    g_setenv ("OXINFER_CPU", levels[l].name, TRUE);
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    g_test_trap_assert_stdout (pattern);
  }
  g_unsetenv ("OXINFER_CPU");
}

static void
write_file (const char *root, const char *path, const char *contents)
{
  g_autofree char *file = g_build_filename (root, path, NULL), *folder = g_path_get_dirname (file);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_file_set_contents (file, contents, -1, &error);
  g_assert_no_error (error);
}

static unsigned
quota (const char *root, const char *proc_contents)
{
  g_autofree char *proc = g_build_filename (root, "cgroup", NULL);

  write_file (root, "cgroup", proc_contents);
  return ox_cpu_quota (proc, root);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  const char *name;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL) {
    g_autofree char *child = g_build_filename (path, name, NULL);
    remove_tree (child);
  }
  g_remove (path);
}

static void
test_cgroup_limits (void)
{
  g_autofree char *root = g_dir_make_tmp ("oxinfer-cgroup-XXXXXX", NULL);

  g_assert_nonnull (root);
  g_assert_cmpuint (ox_cpu_quota ("/nonexistent", root), ==, 0);
  g_assert_cmpuint (quota (root, "0::/a/b\n"), ==, 0);
  write_file (root, "a/b/cpu.max", "max 100000\n");
  g_assert_cmpuint (quota (root, "0::/a/b\n"), ==, 0);
  write_file (root, "a/b/cpu.max", "150000 100000\n");
  g_assert_cmpuint (quota (root, "0::/a/b\n"), ==, 2);
  /* A group above is stricter. */
  write_file (root, "a/cpu.max", "100000 100000\n");
  g_assert_cmpuint (quota (root, "0::/a/b\n"), ==, 1);
  write_file (root, "a/cpu.max", "400000 100000\n");
  g_assert_cmpuint (quota (root, "0::/a/b\n"), ==, 2);
  /* In a container the group's own path is hidden, its root is what we see. */
  write_file (root, "cpu.max", "300000 100000\n");
  g_assert_cmpuint (quota (root, "0::/hidden/path\n"), ==, 3);
  g_assert_cmpuint (quota (root, "0::/\n"), ==, 3);
  write_file (root, "cpu.max", "nonsense\n");
  g_assert_cmpuint (quota (root, "0::/\n"), ==, 0);
  write_file (root, "cpu.max", "-5 0\n");
  g_assert_cmpuint (quota (root, "0::/\n"), ==, 0);
  write_file (root, "cpu.max", "9000000000000000000 1\n");
  g_assert_cmpuint (quota (root, "0::/\n"), ==, 65536);
  write_file (root, "cpu.max", "max 100000\n");

  /* Version 1. */
  write_file (root, "cpu/c/cpu.cfs_quota_us", "250000\n");
  write_file (root, "cpu/c/cpu.cfs_period_us", "100000\n");
  g_assert_cmpuint (quota (root, "5:memory:/x\n4:cpu,cpuacct:/c\n1:name=systemd:/c\n"), ==, 3);
  g_assert_cmpuint (quota (root, "4:cpuset:/c\n"), ==, 0);
  write_file (root, "cpu/c/cpu.cfs_quota_us", "-1\n");
  g_assert_cmpuint (quota (root, "4:cpu,cpuacct:/c\n"), ==, 0);
  g_assert_cmpuint (quota (root, "garbage\n\n4\n4:\n"), ==, 0);
  remove_tree (root);
}

/* Three cores with hyper-threads, written both ways, one without, and one that says nothing. */
static void
test_siblings (void)
{
  static const char *const siblings[] = { "0,4\n", "1,5\n", "2-3\n", "2-3\n", "0,4\n", "1,5\n", "6\n" };
  static const struct {
    unsigned mask, cores;
  } cases[] = { { 0xff, 5 }, { 0x01, 1 }, { 0x10, 1 }, { 0x11, 1 }, { 0x12, 2 },
                { 0x0c, 1 }, { 0x08, 1 }, { 0x3f, 3 }, { 0x80, 1 } };
  g_autofree char *root = g_dir_make_tmp ("oxinfer-cpu-XXXXXX", NULL);

  for (size_t cpu = 0; cpu < G_N_ELEMENTS (siblings); cpu++) {
    g_autofree char *path = g_strdup_printf ("cpu%zu/topology/thread_siblings_list", cpu);
    write_file (root, path, siblings[cpu]);
  }
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    cpu_set_t mask;

    CPU_ZERO (&mask);
    for (unsigned cpu = 0; cpu < 8; cpu++)
      if (cases[i].mask >> cpu & 1)
        CPU_SET (cpu, &mask);
    g_assert_cmpuint (ox_cpu_count_mask (root, &mask, sizeof mask), ==, cases[i].cores);
  }
  remove_tree (root);
}

static void
test_allowed_cores (void)
{
  cpu_set_t before, one;
  unsigned cores = ox_cpu_allowed_cores ();
  OxCoreCount count = { 0 };

  g_assert_cmpuint (cores, >=, 1);
  g_assert_cmpuint (cores, <=, (unsigned) sysconf (_SC_NPROCESSORS_ONLN));
  ox_cpu_count_cores (&count);
  g_assert_cmpuint (count.cores, ==, cores);
  g_assert_cmpuint (count.cpus, >=, cores);
  g_assert_cmpint (sched_getaffinity (0, sizeof before, &before), ==, 0);
  CPU_ZERO (&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT (&one) == 0; cpu++)
    if (CPU_ISSET (cpu, &before))
      CPU_SET (cpu, &one);
  g_assert_cmpint (sched_setaffinity (0, sizeof one, &one), ==, 0);
  g_assert_cmpuint (ox_cpu_allowed_cores (), ==, 1);
  ox_cpu_count_cores (&count);
  g_assert_cmpuint (count.cores, ==, 1);
  g_assert_cmpuint (count.cpus, ==, 1);
  g_assert_cmpint (sched_setaffinity (0, sizeof before, &before), ==, 0);
  g_assert_cmpuint (ox_cpu_allowed_cores (), ==, cores);
  ox_cpu_count_cores (&count);
  g_assert_cmpuint (count.cores, ==, cores);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cpu/types", test_types);
  g_test_add_func ("/cpu/half-floats", test_half_floats);
  g_test_add_func ("/cpu/levels", test_levels);
  g_test_add_func ("/cpu/environment", test_environment);
  g_test_add_func ("/cpu/cgroup-limits", test_cgroup_limits);
  g_test_add_func ("/cpu/siblings", test_siblings);
  g_test_add_func ("/cpu/allowed-cores", test_allowed_cores);
  return g_test_run ();
}
