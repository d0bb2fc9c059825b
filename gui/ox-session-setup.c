/* See ox-session-setup.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-session-setup.h"

#include "ox-thread-checks.h"

/* Rounds of calls in a row; a model that asks for more goes round in circles. */
#define MAX_TOOL_ROUNDS 8

gboolean
ox_session_setup (OxEngine *engine, gpointer model, gpointer session, GVariant *settings, OxChat *chat)
{
  const OxEngineBackend *backend = ox_engine_get_backend (engine);
  OxCapabilities capabilities = backend->get_plan (model)->capabilities;
  gboolean can_call = (capabilities & OX_CAPABILITY_TOOLS) != 0;
  g_autoptr (OxToolbox) toolbox = ox_engine_ref_toolbox (engine);
  gboolean use_tools = TRUE;
  gboolean drop_oldest = FALSE;
  gboolean think;

  OX_ASSERT_ENGINE_THREAD ();
  g_variant_lookup (settings, "tools", "b", &use_tools);
  g_variant_lookup (settings, "drop-oldest", "b", &drop_oldest);
  if (!use_tools || !can_call)
    g_clear_pointer (&toolbox, ox_toolbox_unref);
  if (session != NULL) {
    backend->session_set_toolbox (session, toolbox, MAX_TOOL_ROUNDS);
    backend->session_set_context_policy (session, drop_oldest ? OX_CONTEXT_DROP_OLDEST : OX_CONTEXT_STOP);
    backend->session_set_speculation (session, ox_engine_get_speculation (engine));
  } else {
    /* Declarations of a toolbox have been checked. */
    for (guint i = 0; toolbox != NULL && i < ox_toolbox_get_length (toolbox); i++)
      ox_chat_add_tool (chat, ox_toolbox_get_declaration (toolbox, i), NULL);
  }
  if ((capabilities & OX_CAPABILITY_THINK) != 0 && g_variant_lookup (settings, "thinking", "b", &think))
    ox_chat_set_thinking (chat, think ? OX_THINKING_ON : OX_THINKING_OFF);
  return can_call;
}
