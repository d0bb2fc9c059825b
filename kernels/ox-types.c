/* Facts of the weight formats.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-kernels.h"

static const OxTypeInfo infos[] = {
  { OX_TYPE_F32, "F32", 1, 4 },         { OX_TYPE_F16, "F16", 1, 2 },           { OX_TYPE_Q4_0, "Q4_0", 32, 18 },
  { OX_TYPE_Q4_1, "Q4_1", 32, 20 },     { OX_TYPE_Q5_0, "Q5_0", 32, 22 },       { OX_TYPE_Q5_1, "Q5_1", 32, 24 },
  { OX_TYPE_Q8_0, "Q8_0", 32, 34 },     { OX_TYPE_Q2_K, "Q2_K", 256, 84 },      { OX_TYPE_Q3_K, "Q3_K", 256, 110 },
  { OX_TYPE_Q4_K, "Q4_K", 256, 144 },   { OX_TYPE_Q5_K, "Q5_K", 256, 176 },     { OX_TYPE_Q6_K, "Q6_K", 256, 210 },
  { OX_TYPE_IQ4_NL, "IQ4_NL", 32, 18 }, { OX_TYPE_IQ4_XS, "IQ4_XS", 256, 136 }, { OX_TYPE_BF16, "BF16", 1, 2 },
};

const OxTypeInfo *
ox_type_info (uint32_t type)
{
  for (size_t i = 0; i < sizeof infos / sizeof infos[0]; i++)
    if (infos[i].type == type)
      return &infos[i];
  return NULL;
}

bool
ox_type_row_bytes (uint32_t type, uint64_t n, uint64_t *bytes)
{
  const OxTypeInfo *info = ox_type_info (type);

  if (info == NULL || n % info->block_elements != 0)
    return false;
  return !__builtin_mul_overflow (n / info->block_elements, (uint64_t) info->block_bytes, bytes);
}
