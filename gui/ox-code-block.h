/* A block of code in an answer: language, Copy, highlighted text.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define OX_TYPE_CODE_BLOCK (ox_code_block_get_type ())
G_DECLARE_FINAL_TYPE (OxCodeBlock, ox_code_block, OX, CODE_BLOCK, GtkWidget)

GtkWidget *ox_code_block_new (void);

void ox_code_block_set_code (OxCodeBlock *self, const char *language, const char *code);

const char *ox_code_block_get_code (OxCodeBlock *self);

G_END_DECLS
