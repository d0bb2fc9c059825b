/* The chat formats of Qwen 3.5, 3.6 and 3.8: ChatML with thoughts that are opened by the prompt, calls as tags, pictures.
 *
 * They differ in who thinks by default (not the small ones of 3.5), in whether earlier thoughts are shown again (3.8: always,
 * 3.6: when asked), in how values that are no texts are printed, and in 3.8's sentence on how hard to think.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"

static const char tools_head[] = "# Tools\n\nYou have access to the following functions:\n\n<tools>";
static const char tools_tail[] =
  "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
  "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
  "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
  "</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n"
  "- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within "
  "<tool_call></tool_call> XML tags\n"
  "- Required parameters MUST be specified\n"
  "- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT "
  "after\n"
  "- If there is no function call available, answer the question like normal with your current knowledge and do not "
  "tell the user about function calls\n</IMPORTANT>";

/* ---- Content ---- */

typedef struct {
  guint pictures, videos;
} Counts;

/* Trimmed; NULL when refused. @counts NULL: pictures are not allowed. */
static OxRichText *
read_content (const OxRenderer *renderer, const OxMessage *message, Counts *counts, GError **error)
{
  g_autoptr (OxRichText) rich = ox_rich_text_new ();

  if (message->content == OX_CONTENT_OTHER) {
    ox_render_refuse (error, "A message's content is neither a text nor a list of parts");
    return NULL;
  }
  if (message->content != OX_CONTENT_PARTS)
    g_string_append (rich->text, message->text);
  for (guint i = 0; message->content == OX_CONTENT_PARTS && i < message->parts->len; i++) {
    const OxPart *part = &g_array_index (message->parts, OxPart, i);

    if (part->kind == OX_PART_TEXT) {
      g_string_append (rich->text, part->text);
    } else if (part->kind != OX_PART_IMAGE && part->kind != OX_PART_VIDEO) {
      ox_render_refuse (error, "This model takes texts, pictures and videos only");
      return NULL;
    } else if (!counts) {
      ox_render_refuse (error, "The system message cannot have pictures or videos in this model's chat format");
      return NULL;
    } else {
      gboolean is_picture = part->kind == OX_PART_IMAGE;
      guint number = is_picture ? ++counts->pictures : ++counts->videos;

      if (renderer->chat->add_vision_id) {
        g_autofree char *name = g_strdup_printf ("%s %u: ", is_picture ? "Picture" : "Video", number);

        ox_rich_text_add_mark (rich, name);
      }
      ox_rich_text_add_mark (rich, is_picture ? "<|vision_start|><|image_pad|><|vision_end|>"
                                              : "<|vision_start|><|video_pad|><|vision_end|>");
    }
  }
  return g_steal_pointer (&rich);
}

static void
render_trimmed (OxRenderer *renderer, const OxRichText *rich)
{
  gsize begin = 0, end = rich->text->len;

  ox_python_trim (rich->text->str, &begin, &end);
  ox_render_rich (renderer, rich, begin, end);
}

/* ---- The system turn ---- */

/* 3.8's sentence, "" for none; NULL when refused. */
static const char *
reasoning_instructions (const OxRenderer *renderer, GError **error)
{
  const char *effort = renderer->chat->reasoning_effort ? renderer->chat->reasoning_effort : "xhigh";

  if (renderer->format->variant != OX_QWEN38 || renderer->chat->thinking == OX_THINKING_OFF)
    return "";
  if (strcmp (effort, "xhigh") == 0)
    return "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, "
           "consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer.";
  if (strcmp (effort, "low") == 0)
    return "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion "
           "without unnecessary elaboration.";
  if (strcmp (effort, "medium") == 0)
    return "";
  g_set_error (error, OX_ERROR, OX_ERROR_INVALID,
               "This model knows the reasoning efforts “low”, “medium” and “xhigh”, not “%s”", effort);
  return NULL;
}

static gboolean
render_system (OxRenderer *renderer, GError **error)
{
  const OxMessage *first = renderer->n_messages > 0 ? ox_render_message (renderer, 0) : NULL;
  const char *instructions = reasoning_instructions (renderer, error);
  const GPtrArray *tools = renderer->chat->tools;
  g_autoptr (OxRichText) system = NULL;
  gboolean has_text = FALSE;

  if (!instructions)
    return FALSE;
  if (first && strcmp (first->role_name, "system") == 0) {
    gsize begin = 0, end;

    if (!(system = read_content (renderer, first, NULL, error)))
      return FALSE;
    end = system->text->len;
    ox_python_trim (system->text->str, &begin, &end);
    has_text = begin < end;
  }
  /* Before 3.8 an empty system message makes an empty turn. */
  if (tools->len == 0 && *instructions == '\0' && (!system || (!has_text && renderer->format->variant == OX_QWEN38)))
    return TRUE;
  ox_render_control (renderer, "<|im_start|>system\n");
  ox_render_control (renderer, instructions);
  if (tools->len > 0) {
    ox_render_control (renderer, *instructions ? "\n\n" : "");
    ox_render_control (renderer, tools_head);
    for (guint i = 0; i < tools->len; i++) {
      g_autoptr (GString) json = g_string_new (NULL);

      ox_value_append_json (json, ox_value_get_root (g_ptr_array_index (tools, i)));
      ox_render_control (renderer, "\n");
      ox_render_text (renderer, json->str, json->len);
    }
    ox_render_control (renderer, tools_tail);
  }
  if (has_text) {
    ox_render_control (renderer, tools->len > 0 || *instructions ? "\n\n" : "");
    render_trimmed (renderer, system);
  }
  ox_render_control (renderer, "<|im_end|>\n");
  return TRUE;
}

/* ---- Answers ---- */

static void
render_calls (OxRenderer *renderer, const OxMessage *message, gboolean has_content)
{
  for (guint i = 0; message->tool_calls && i < message->tool_calls->len; i++) {
    const OxToolCall *call = &g_array_index (message->tool_calls, OxToolCall, i);
    yyjson_val *key, *val;
    gsize k, max;

    ox_render_control (renderer, i > 0 ? "\n" : has_content ? "\n\n" : "");
    ox_render_control (renderer, "<tool_call>\n<function=");
    ox_render_string (renderer, call->name);
    ox_render_control (renderer, ">\n");
    ox_json_foreach_member (ox_value_get_root (call->arguments), k, max, key, val) {
      gboolean as_python = renderer->format->variant <= OX_QWEN35_NOTHINK && !yyjson_is_ctn (val);
      g_autoptr (GString) text = g_string_new (NULL);

      if (yyjson_is_str (val) || as_python)
        ox_value_append_python (text, val);
      else
        ox_value_append_json (text, val);
      ox_render_control (renderer, "<parameter=");
      ox_render_text (renderer, yyjson_get_str (key), yyjson_get_len (key));
      ox_render_control (renderer, ">\n");
      ox_render_text (renderer, text->str, text->len);
      ox_render_control (renderer, "\n</parameter>\n");
    }
    ox_render_control (renderer, "</function>\n</tool_call>");
  }
}

/* Thoughts written into the text, up to its last "</think>"; *at is moved behind them. NULL: there are none. */
static char *
take_thoughts (const OxRichText *rich, gsize *at)
{
  static const char open[] = "<think>", close[] = "</think>";
  const char *text = rich->text->str + *at, *first = strstr (text, close), *last;
  g_autofree char *thoughts = NULL;
  char *begin, *mark;

  if (!first)
    return NULL;
  thoughts = g_strndup (text, (gsize) (first - text));
  for (begin = thoughts; (mark = strstr (begin, open)); begin = mark + strlen (open))
    ;
  for (last = first; (first = strstr (last + strlen (close), close)); last = first)
    ;
  last += strlen (close);
  last += strspn (last, "\n");
  *at = (gsize) (last - rich->text->str);
  return g_strdup (begin);
}

static void
render_answer (OxRenderer *renderer, guint index, const OxRichText *rich, gboolean is_current)
{
  const OxMessage *message = ox_render_message (renderer, index);
  gboolean stays_open = ox_render_stays_open (renderer, index);
  OxThinking preserve = renderer->chat->preserve_thinking;
  int variant = renderer->format->variant;
  g_autofree char *taken = NULL;
  const char *reasoning = message->reasoning;
  gsize begin = 0, end = rich->text->len, n_reasoning, at = 0;

  ox_python_trim (rich->text->str, &begin, &end);
  if (!reasoning && variant != OX_QWEN38)
    reasoning = taken = take_thoughts (rich, &begin);
  begin = MIN (begin, end);
  reasoning = reasoning ? reasoning : "";
  n_reasoning = strlen (reasoning);
  ox_python_trim (reasoning, &at, &n_reasoning);
  ox_render_control (renderer, "<|im_start|>assistant\n");
  if (is_current || (variant == OX_QWEN36 && preserve == OX_THINKING_ON) ||
      (variant == OX_QWEN38 && preserve != OX_THINKING_OFF)) {
    ox_render_control (renderer, "<think>\n");
    ox_render_text (renderer, reasoning + at, n_reasoning - at);
    if (stays_open && at < n_reasoning && begin == end && !message->tool_calls) {
      renderer->prompt->in_thinking = TRUE;
      return;
    }
    ox_render_control (renderer, "\n</think>\n\n");
  }
  ox_render_rich (renderer, rich, begin, end);
  render_calls (renderer, message, begin < end);
  if (!stays_open)
    ox_render_control (renderer, "<|im_end|>\n");
}

/* ---- The conversation ---- */

/* Index of the last question: results of tools that come as messages of the user do not count. -1: there is none. */
static int
last_query (const OxRenderer *renderer)
{
  for (guint i = renderer->n_messages; i-- > 0;) {
    const OxMessage *message = ox_render_message (renderer, i);
    gsize begin = 0, end = strlen (message->text);

    if (strcmp (message->role_name, "user") != 0)
      continue;
    ox_python_trim (message->text, &begin, &end);
    if (!(g_str_has_prefix (message->text + begin, "<tool_response>") && end - begin >= 16 &&
          memcmp (message->text + end - 16, "</tool_response>", 16) == 0))
      return (int) i;
  }
  return -1;
}

static gboolean
is_result (const OxRenderer *renderer, guint index)
{
  return index < renderer->n_messages && ox_render_message (renderer, index)->role == OX_ROLE_TOOL;
}

gboolean
ox_render_qwen35 (OxRenderer *renderer, GError **error)
{
  int query = last_query (renderer), variant = renderer->format->variant;
  OxThinking thinking = renderer->chat->thinking;
  Counts counts = { 0, 0 };

  if (query < 0)
    return ox_render_refuse (error, "This model's chat format needs a question of the user");
  if (!render_system (renderer, error))
    return FALSE;
  for (guint i = 0; i < renderer->n_messages; i++) {
    const OxMessage *message = ox_render_message (renderer, i);
    g_autoptr (OxRichText) content = read_content (renderer, message, &counts, error);

    if (!content)
      return FALSE;
    if (strcmp (message->role_name, "system") == 0) {
      if (i > 0)
        return ox_render_refuse (error, "The system message has to be the first in this model's chat format");
    } else if (strcmp (message->role_name, "user") == 0) {
      ox_render_control (renderer, "<|im_start|>user\n");
      render_trimmed (renderer, content);
      ox_render_control (renderer, "<|im_end|>\n");
    } else if (message->role == OX_ROLE_ASSISTANT) {
      render_answer (renderer, i, content, (int) i > query);
    } else if (message->role == OX_ROLE_TOOL) {
      if (i > 0 && !is_result (renderer, i - 1))
        ox_render_control (renderer, "<|im_start|>user");
      ox_render_control (renderer, "\n<tool_response>\n");
      render_trimmed (renderer, content);
      ox_render_control (renderer, "\n</tool_response>");
      if (!is_result (renderer, i + 1))
        ox_render_control (renderer, "<|im_end|>\n");
    } else {
      g_set_error (error, OX_ERROR, OX_ERROR_INVALID, "This model's chat format has no role “%s”", message->role_name);
      return FALSE;
    }
  }
  if (ox_render_wants_answer (renderer)) {
    gboolean thinks = variant == OX_QWEN35_NOTHINK ? thinking == OX_THINKING_ON : thinking != OX_THINKING_OFF;

    ox_render_control (renderer,
                       thinks ? "<|im_start|>assistant\n<think>\n" : "<|im_start|>assistant\n<think>\n\n</think>\n\n");
    renderer->prompt->in_thinking = thinks;
  }
  return TRUE;
}
