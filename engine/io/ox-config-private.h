/* What the two readers of configurations share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "io/ox-config.h"
#include "io/ox-json.h"

/* Bounds of what a configuration may say, well above every model in use. They keep products of two of them within 64 bits. */
#define OX_CONFIG_MAX_LAYERS 1024
#define OX_CONFIG_MAX_WIDTH (1u << 20) /* hidden_size, intermediate_size */
#define OX_CONFIG_MAX_HEADS 4096
#define OX_CONFIG_MAX_HEAD_DIM 4096
#define OX_CONFIG_MAX_VOCAB (1u << 24)
#define OX_CONFIG_MAX_POSITIONS (1u << 30)

OxConfig *ox_config_new (void);
void ox_config_add_eos (OxConfig *config, guint32 id);

/* Sets OX_ERROR_UNSUPPORTED for a kind of model that is not known. */
void ox_config_set_unknown_kind (GError **error, const char *file_name, const char *kind);

/* Checks between fields; @heads, @kv_heads and @head_dim are the file's names of them. */
gboolean ox_config_check_heads (const OxConfig *config,
                                const char *file_name,
                                const char *heads,
                                const char *kv_heads,
                                const char *head_dim,
                                GError **error);
/* Whether ids lie in the vocabulary; @field names the place. */
gboolean ox_config_check_id (
  const OxConfig *config, guint64 id, const char *file_name, const char *field, GError **error);

/* From a parsed document. */
OxConfig *ox_config_from_json (OxJson *json, const char *file_name, GError **error);
gboolean ox_config_add_generation (OxConfig *config, OxJson *json, const char *file_name, GError **error);
