/* Whether AMX does what ox-amx-emulated.h says it does. What the kernels promise, the same bits as without AMX, rests on it; a hypervisor or
 * an emulator may have its own idea. A product of one tile each is computed both ways.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#if defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AMX_BF16__) && defined(__AVX512F__)

#include "ox-amx.h"

#include "ox-amx-emulated.h"

/* Not all rows and columns, so that sizes are heeded. */
#define ROWS 13
#define COLUMNS 15
#define STEPS 14

static const OxTileConfig config = {
  .palette = 1,
  .row_bytes = { COLUMNS * 4, STEPS * 4, COLUMNS * 4 },
  .rows = { ROWS, ROWS, STEPS },
};

typedef struct {
  OxTile a, b, expected, found;
} Check;

/* The next of a sequence that is the same everywhere (Marsaglia 2003, xorshift). */
static uint32_t
next_number (uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* Rows and columns that the product has; the rest of the memory stays as it was. */
static bool
same_tile (const OxTile *a, const OxTile *b)
{
  return memcmp (a, b, sizeof *a) == 0;
}

bool
ox_amx_int8_works (void)
{
  uint32_t state = 20261130;
  Check check;

  for (size_t i = 0; i < sizeof check / 4; i++) {
    uint32_t number = next_number (&state);
    memcpy ((uint8_t *) &check + i * 4, &number, 4);
  }
  check.found = check.expected;
  ox_emulated_dot_s8 (&check.expected, &check.a, &check.b, ROWS, COLUMNS, STEPS);

  OX_TILE_CONFIGURE (&config);
  OX_TILE_LOAD (0, &check.found, 64);
  OX_TILE_LOAD (1, &check.a, 64);
  OX_TILE_LOAD (2, &check.b, 64);
  OX_TILE_DOT_S8 (0, 1, 2);
  OX_TILE_STORE (0, &check.found, 64);
  OX_TILE_RELEASE ();
  return same_tile (&check.expected, &check.found);
}

bool
ox_amx_bf16_works (void)
{
  uint32_t state = 20261130;
  Check check;

  /* Numbers of either sign and magnitudes from 2^-8 to 2^7: sums that cancel, and roundings that tell the order of the additions. */
  for (size_t i = 0; i < sizeof check / 2; i++) {
    uint32_t number = next_number (&state);
    uint16_t half = (uint16_t) ((number >> 16 & 0x807f) | (119 + (number >> 8 & 15)) << 7);
    memcpy ((uint8_t *) &check + i * 2, &half, 2);
  }
  check.found = check.expected;
  ox_emulated_dot_bf16 (&check.expected, &check.a, &check.b, ROWS, COLUMNS, STEPS);

  OX_TILE_CONFIGURE (&config);
  OX_TILE_LOAD (0, &check.found, 64);
  OX_TILE_LOAD (1, &check.a, 64);
  OX_TILE_LOAD (2, &check.b, 64);
  OX_TILE_DOT_BF16 (0, 1, 2);
  OX_TILE_STORE (0, &check.found, 64);
  OX_TILE_RELEASE ();
  return same_tile (&check.expected, &check.found);
}

#else

bool
ox_amx_int8_works (void)
{
  return false;
}

bool
ox_amx_bf16_works (void)
{
  return false;
}

#endif
