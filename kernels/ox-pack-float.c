/* Packing of weight matrices into float panels (ox-panel.h).
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "ox-internal.h"

#include <string.h>

bool
ox_float_panel_packed_bytes (uint32_t type, size_t rows, size_t cols, size_t *bytes)
{
  size_t panels = rows / OX_PANEL_ROWS + (rows % OX_PANEL_ROWS != 0);

  if (type != OX_TYPE_F32 && type != OX_TYPE_F16 && type != OX_TYPE_BF16)
    return false;
  /* Room to spare, so that no sum inside a panel can overflow either. */
  if (cols > SIZE_MAX / 256)
    return false;
  return !__builtin_mul_overflow (panels, ox_float_panel_bytes (type, cols), bytes);
}

void
ox_float_panel_pack (OxPackedMatrix *w, const void *src, size_t row_begin, size_t row_end)
{
  const size_t element = w->type == OX_TYPE_F32 ? 4 : 2, row_bytes = w->cols * element;
  size_t bytes = ox_float_panel_bytes (w->type, w->cols);

  for (size_t r = row_begin; r < row_end; r += OX_PANEL_ROWS) {
    uint8_t *panel = (uint8_t *) w->data + r / OX_PANEL_ROWS * bytes;
    size_t n = row_end - r < OX_PANEL_ROWS ? row_end - r : OX_PANEL_ROWS;

    if (n < OX_PANEL_ROWS)
      memset (panel, 0, bytes);
    else if (w->type == OX_TYPE_BF16)
      memset (panel + w->cols / 2 * 64, 0, bytes - w->cols / 2 * 64);
    for (size_t lane = 0; lane < n; lane++) {
      const uint8_t *row = (const uint8_t *) src + (r - row_begin + lane) * row_bytes;
      uint8_t *dst = panel + lane * element;

      switch (w->type) {
      case OX_TYPE_F32:
        for (size_t c = 0; c < w->cols; c++)
          memcpy (dst + c * 64, row + c * 4, 4);
        break;
      case OX_TYPE_F16:
        for (size_t c = 0; c < w->cols; c++)
          memcpy (dst + c * 32, row + c * 2, 2);
        break;
      default:
        dst = panel + lane * 4;
        for (size_t c = 0; c < w->cols / 2; c++)
          memcpy (dst + c * 64, row + c * 4, 4);
        if (w->cols % 2 != 0)
          memcpy (dst + w->cols / 2 * 64, row + row_bytes - 2, 2);
      }
    }
  }
}
