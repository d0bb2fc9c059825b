/* Which network runs which family.
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
  case OX_FAMILY_QWEN35:
  case OX_FAMILY_GEMMA4_ASSISTANT: /* no network of its own: see ox-drafter.h */
  case OX_FAMILY_LLAMA:
  default:
    return &ox_llama_class;
  }
}
