/* Which network runs which family; loading and freeing one.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-network.h"

const OxNetworkClass *
ox_network_class (OxFamily family)
{
  switch (family) {
  case OX_FAMILY_GEMMA3:
    return &ox_gemma3_class;
  case OX_FAMILY_GEMMA4:
  case OX_FAMILY_GEMMA4_ASSISTANT: /* no network by itself: ox_network_load() refuses it */
    return &ox_gemma4_class;
  case OX_FAMILY_QWEN35:
    return &ox_qwen35_class;
  case OX_FAMILY_LLAMA:
  default:
    return &ox_llama_class;
  }
}

void
ox_loader_begin (OxLoader *loader)
{
  loader->error = NULL;
  loader->handles = (OxHandles) { g_ptr_array_new (), g_ptr_array_new (), g_ptr_array_new () };
}

gboolean
ox_loader_end (OxLoader *loader, OxHandles *handles, GError **error)
{
  *handles = loader->handles;
  if (loader->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&loader->error));
  return FALSE;
}

void
ox_handles_clear (OxHandles *handles, OxOps *ops)
{
  for (guint i = 0; i < handles->matrices->len; i++)
    ops->matrix_free (ops, g_ptr_array_index (handles->matrices, i));
  for (guint i = 0; i < handles->vectors->len; i++)
    ops->vector_free (ops, g_ptr_array_index (handles->vectors, i));
  for (guint i = 0; i < handles->embeddings->len; i++)
    ops->embedding_free (ops, g_ptr_array_index (handles->embeddings, i));
  g_ptr_array_unref (handles->matrices);
  g_ptr_array_unref (handles->vectors);
  g_ptr_array_unref (handles->embeddings);
}

OxNetwork *
ox_network_load (OxLoader *loader, GError **error)
{
  const OxNetworkClass *network_class = ox_network_class (loader->config->family);
  OxNetwork *network;

  if (loader->config->family == OX_FAMILY_GEMMA4_ASSISTANT) {
    g_set_error_literal (
      error, OX_ERROR, OX_ERROR_DRAFTER,
      "This is a drafter: it makes the Gemma 4 that it was made for answer sooner, and cannot answer by itself");
    return NULL;
  }
  ox_loader_begin (loader);
  network = network_class->load (loader);
  network->network_class = network_class;
  if (ox_loader_end (loader, &network->handles, error))
    return network;
  ox_network_free (network, loader->ops);
  return NULL;
}

void
ox_network_free (OxNetwork *network, OxOps *ops)
{
  if (network == NULL)
    return;
  ox_handles_clear (&network->handles, ops);
  network->network_class->free (network);
}
