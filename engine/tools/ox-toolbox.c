/* Functions that a model may call while it answers.
 *
 * What a model writes is foreign input: names and arguments are checked against the declarations before anything runs, and whatever goes
 * wrong is told to the model in words, as {"error": "…"}, so that it can try again.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

#include <stdlib.h>
#include <string.h>

#include "text/ox-utf8.h"
#include "tools/ox-tool-schema.h"
#include "tools/ox-tools-private.h"

/* Characters of a result that a model gets to see: some 4,000 tokens. */
#define MAX_RESULT 16000
/* Of a name that a model made up. */
#define MAX_NAME 64

typedef struct {
  char *declaration_text;
  OxValue *declaration;
  OxToolFlags flags;
  OxToolFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
} Tool;

struct _OxToolbox {
  gatomicrefcount ref_count;
  GArray *tools;
  OxAttachments *attachments; /* borrowed from the tool that reads them, or NULL */
  OxToolPermissionFunc permission;
  gpointer permission_data;
};

static void
tool_clear (gpointer data)
{
  Tool *tool = data;

  g_free (tool->declaration_text);
  ox_value_unref (tool->declaration);
  if (tool->destroy)
    tool->destroy (tool->user_data);
}

OxToolbox *
ox_toolbox_new (void)
{
  OxToolbox *toolbox = g_new0 (OxToolbox, 1);

  g_atomic_ref_count_init (&toolbox->ref_count);
  toolbox->tools = g_array_new (FALSE, TRUE, sizeof (Tool));
  g_array_set_clear_func (toolbox->tools, tool_clear);
  return toolbox;
}

OxToolbox *
ox_toolbox_ref (OxToolbox *toolbox)
{
  g_return_val_if_fail (toolbox != NULL, NULL);
  g_atomic_ref_count_inc (&toolbox->ref_count);
  return toolbox;
}

void
ox_toolbox_unref (OxToolbox *toolbox)
{
  if (!toolbox || !g_atomic_ref_count_dec (&toolbox->ref_count))
    return;
  g_array_unref (toolbox->tools);
  g_free (toolbox);
}

static Tool *
find_tool (OxToolbox *toolbox, const char *name)
{
  for (guint i = 0; i < toolbox->tools->len; i++) {
    Tool *tool = &g_array_index (toolbox->tools, Tool, i);

    if (strcmp (ox_tool_declaration_get_name (tool->declaration), name) == 0)
      return tool;
  }
  return NULL;
}

gboolean
ox_toolbox_add (OxToolbox *toolbox,
                const char *declaration,
                OxToolFlags flags,
                OxToolFunc func,
                gpointer user_data,
                GDestroyNotify destroy,
                GError **error)
{
  g_autoptr (OxValue) value = NULL;
  Tool tool;

  g_return_val_if_fail (toolbox != NULL && declaration != NULL && func != NULL, FALSE);
  value = ox_value_parse (declaration, strlen (declaration), "A tool's declaration", error);
  if (!value || !ox_tool_declaration_check (value, error))
    return FALSE;
  if (find_tool (toolbox, ox_tool_declaration_get_name (value))) {
    g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "There is a tool called “%s” already",
                 ox_tool_declaration_get_name (value));
    return FALSE;
  }
  tool = (Tool) { g_strdup (declaration), g_steal_pointer (&value), flags, func, user_data, destroy };
  g_array_append_val (toolbox->tools, tool);
  return TRUE;
}

void
ox_toolbox_add_builtin (OxToolbox *toolbox)
{
  static const struct {
    const char *declaration;
    OxToolFunc func;
  } builtin[] = {
    { ox_tool_time_declaration, ox_tool_time },
    { ox_tool_calculate_declaration, ox_tool_calculate },
    { ox_tool_units_declaration, ox_tool_units },
  };

  g_return_if_fail (toolbox != NULL);
  /* A tool of the program's own with one of these names stands. */
  for (gsize i = 0; i < G_N_ELEMENTS (builtin); i++)
    ox_toolbox_add (toolbox, builtin[i].declaration, OX_TOOL_PLAIN, builtin[i].func, NULL, NULL, NULL);
}

void
ox_toolbox_add_attachment (OxToolbox *toolbox, const char *name, const char *text)
{
  g_return_if_fail (toolbox != NULL && name != NULL && text != NULL);
  if (!toolbox->attachments) {
    OxAttachments *attachments = ox_attachments_new ();

    if (!ox_toolbox_add (toolbox, ox_tool_attachment_declaration, OX_TOOL_PLAIN, ox_tool_attachment, attachments,
                         ox_attachments_free, NULL)) {
      ox_attachments_free (attachments);
      return;
    }
    toolbox->attachments = attachments;
  }
  ox_attachments_add (toolbox->attachments, name, text);
}

void
ox_toolbox_set_permission (OxToolbox *toolbox, OxToolPermissionFunc func, gpointer user_data)
{
  g_return_if_fail (toolbox != NULL);
  toolbox->permission = func;
  toolbox->permission_data = user_data;
}

guint
ox_toolbox_get_length (OxToolbox *toolbox)
{
  g_return_val_if_fail (toolbox != NULL, 0);
  return toolbox->tools->len;
}

const char *
ox_toolbox_get_name (OxToolbox *toolbox, guint index)
{
  g_return_val_if_fail (toolbox != NULL && index < toolbox->tools->len, NULL);
  return ox_tool_declaration_get_name (g_array_index (toolbox->tools, Tool, index).declaration);
}

const char *
ox_toolbox_get_declaration (OxToolbox *toolbox, guint index)
{
  g_return_val_if_fail (toolbox != NULL && index < toolbox->tools->len, NULL);
  return g_array_index (toolbox->tools, Tool, index).declaration_text;
}

/* ---- Calls ---- */

/* Valid UTF-8, and not longer than @max characters; says how much was left out. Takes @text. */
static char *
limit_text (char *text, glong max)
{
  GString *repaired = ox_utf8_repair (text, strlen (text));
  glong length;
  char *end, *limited;

  if (repaired) {
    g_free (text);
    text = g_string_free (repaired, FALSE);
  }
  length = g_utf8_strlen (text, -1);
  if (length <= max)
    return text;
  end = g_utf8_offset_to_pointer (text, max);
  limited = g_strdup_printf ("%.*s\n[%ld of %ld characters were left out here]", (int) (end - text), text, length - max,
                             length);
  g_free (text);
  return limited;
}

/* {"error": @message} */
static char *
tell_error (const char *message)
{
  g_autofree char *text = limit_text (g_strdup (message), MAX_RESULT);
  yyjson_mut_doc *doc = yyjson_mut_doc_new (NULL);
  yyjson_mut_val *root = yyjson_mut_obj (doc);
  char *json, *copy;

  yyjson_mut_doc_set_root (doc, root);
  yyjson_mut_obj_add_str (doc, root, "error", text);
  json = yyjson_mut_write (doc, YYJSON_WRITE_NOFLAG, NULL);
  copy = g_strdup (json ? json : "{\"error\":\"no memory\"}");
  free (json);
  yyjson_mut_doc_free (doc);
  return copy;
}

static char *
tell_unknown (OxToolbox *toolbox, const char *name)
{
  g_autofree char *shown = g_utf8_make_valid (name, -1);
  g_autoptr (GString) message = g_string_new (NULL);

  if (g_utf8_strlen (shown, -1) > MAX_NAME)
    *g_utf8_offset_to_pointer (shown, MAX_NAME) = '\0';
  g_string_append_printf (message, "there is no tool “%s”.", shown);
  for (guint i = 0; i < toolbox->tools->len; i++)
    g_string_append_printf (message, "%s%s", i == 0 ? " There is: " : ", ", ox_toolbox_get_name (toolbox, i));
  return tell_error (message->str);
}

static gboolean
is_allowed (OxToolbox *toolbox, const Tool *tool, const char *arguments, GCancellable *cancellable)
{
  if ((tool->flags & OX_TOOL_HAS_EFFECTS) == 0)
    return TRUE;
  return toolbox->permission && toolbox->permission (ox_tool_declaration_get_name (tool->declaration), arguments,
                                                     toolbox->permission_data, cancellable);
}

char *
ox_toolbox_call (OxToolbox *toolbox,
                 const char *name,
                 const char *arguments,
                 gboolean *failed,
                 GCancellable *cancellable,
                 GError **error)
{
  g_autoptr (GError) local_error = NULL;
  g_autofree char *checked = NULL;
  const Tool *tool;
  char *result;

  g_return_val_if_fail (toolbox != NULL && name != NULL, NULL);
  if (failed)
    *failed = TRUE;
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  tool = find_tool (toolbox, name);
  if (!tool)
    return tell_unknown (toolbox, name);
  checked = ox_tool_arguments_check (tool->declaration, arguments, &local_error);
  if (!checked)
    return tell_error (local_error->message);
  if (!is_allowed (toolbox, tool, checked, cancellable)) {
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    return tell_error ("the user does not allow this call");
  }
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  result = tool->func (checked, tool->user_data, cancellable, &local_error);
  /* A tool that did not look has finished; its result is not wanted any more. */
  if (g_cancellable_is_cancelled (cancellable)) {
    g_free (result);
    g_cancellable_set_error_if_cancelled (cancellable, error);
    return NULL;
  }
  if (!result)
    return tell_error (local_error ? local_error->message : "the tool gave no result");
  if (failed)
    *failed = FALSE;
  return limit_text (result, MAX_RESULT);
}
