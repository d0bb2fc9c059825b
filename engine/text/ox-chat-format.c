/* Chat formats: ChatML (SmolLM2, Qwen 2.5), Qwen 3's ChatML with thinking, Gemma 3.
 *
 * The formats are written down here and not run from the models' jinja templates: a template is a program from a file. It only
 * tells which format a model wants, and for ChatML the system text that stands in when a conversation has none.
 *
 * A model is a base model (no format) when it has no template, unless its GGUF names it as made for conversation ("-it",
 * "instruct", "chat") and it has the control tokens of a format: Gemma 3 270M's base file has "<start_of_turn>" in its vocabulary
 * like the tuned one, so tokens alone say nothing.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-chat-format.h"

#include <string.h>

#include "text/ox-tokenizer-private.h"
#include "text/ox-unicode.h"
#include "text/ox-utf8.h"

typedef struct {
  const OxChat *chat;
  OxTokenizer *tokenizer; /* may be NULL */
  gboolean add_generation_prompt;
  gboolean continue_last;
  OxPrompt *prompt;
} Renderer;

struct _OxChatFormat {
  const char *name;
  gboolean (*render) (Renderer *renderer, GError **error);
  const char *stop_tokens[4];
};

/* ---- Prompts ---- */

static void
piece_clear (gpointer piece)
{
  g_free (((OxPromptPiece *) piece)->text);
}

static OxPrompt *
prompt_new (void)
{
  OxPrompt *prompt = g_new0 (OxPrompt, 1);

  prompt->pieces = g_array_new (FALSE, TRUE, sizeof (OxPromptPiece));
  g_array_set_clear_func (prompt->pieces, piece_clear);
  return prompt;
}

void
ox_prompt_free (OxPrompt *prompt)
{
  if (!prompt)
    return;
  g_array_unref (prompt->pieces);
  g_free (prompt);
}

char *
ox_prompt_to_text (const OxPrompt *prompt)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < prompt->pieces->len; i++)
    g_string_append (text, g_array_index (prompt->pieces, OxPromptPiece, i).text);
  return g_string_free (text, FALSE);
}

/* The whole prompt is encoded as one text, as the reference does: what a piece begins with may join the end of the one before.
 * Only control tokens are kept to their pieces. */
gboolean
ox_prompt_encode (
  const OxPrompt *prompt, OxTokenizer *tokenizer, GArray *ids, GCancellable *cancellable, GError **error)
{
  g_autofree char *text = ox_prompt_to_text (prompt);
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (OxTextRange));
  gint64 bos = ox_tokenizer_get_bos (tokenizer);
  guint begin = ids->len;
  gsize at = 0;

  for (guint i = 0; i < prompt->pieces->len; i++) {
    const OxPromptPiece *piece = &g_array_index (prompt->pieces, OxPromptPiece, i);
    OxTextRange range = { at, at + strlen (piece->text) };

    at = range.end;
    if (piece->is_control)
      g_array_append_val (ranges, range);
  }
  if (!ox_tokenizer_encode_ranges (tokenizer, text, at, (const OxTextRange *) (gpointer) ranges->data, ranges->len, ids,
                                   cancellable, error))
    return FALSE;
  if (ox_tokenizer_get_add_bos (tokenizer) &&
      (ids->len == begin || g_array_index (ids, guint32, begin) != (guint32) bos)) {
    guint32 id = (guint32) bos;

    g_array_insert_val (ids, begin, id);
  }
  return TRUE;
}

static void
append (Renderer *renderer, gboolean is_control, const char *text, gsize len)
{
  OxPromptPiece piece = { g_strndup (text, len), is_control };

  g_array_append_val (renderer->prompt->pieces, piece);
}

/* Template text. Neighbours make one piece, so that no control token is cut in two. */
static void
append_control (Renderer *renderer, const char *text)
{
  GArray *pieces = renderer->prompt->pieces;
  OxPromptPiece *last = pieces->len > 0 ? &g_array_index (pieces, OxPromptPiece, pieces->len - 1) : NULL;

  if (last && last->is_control) {
    char *joined = g_strconcat (last->text, text, NULL);

    g_free (last->text);
    last->text = joined;
  } else {
    append (renderer, TRUE, text, strlen (text));
  }
}

static void
append_text (Renderer *renderer, const char *text, gsize len)
{
  if (len > 0)
    append (renderer, FALSE, text, len);
}

static gboolean
is_last (const Renderer *renderer, guint index)
{
  return index + 1 == ox_chat_get_length (renderer->chat);
}

/* Whether the message stays open, for the answer to go on. */
static gboolean
stays_open (const Renderer *renderer, guint index)
{
  return renderer->continue_last && is_last (renderer, index) &&
         ox_chat_get_role (renderer->chat, index) == OX_ROLE_ASSISTANT;
}

static gboolean
wants_generation_prompt (const Renderer *renderer)
{
  return renderer->add_generation_prompt && !stays_open (renderer, ox_chat_get_length (renderer->chat) - 1);
}

/* ---- ChatML ---- */

static const char *const role_names[] = {
  [OX_ROLE_SYSTEM] = "system", [OX_ROLE_USER] = "user", [OX_ROLE_ASSISTANT] = "assistant"
};

static void
begin_chatml (Renderer *renderer, OxRole role)
{
  g_autofree char *head = g_strconcat ("<|im_start|>", role_names[role], "\n", NULL);

  append_control (renderer, head);
}

/* A line break in a template's string: the character, or its escape. */
static gsize
line_break (const char *text)
{
  return *text == '\n' ? 1 : g_str_has_prefix (text, "\\n") ? 2 : 0;
}

/* The system text that a ChatML template has for conversations without one: a whole system turn in one of its strings. */
static char *
default_system (const char *template)
{
  static const char head[] = "<|im_start|>system";

  while (template && (template = strstr (template, head))) {
    const char *text, *end;
    gsize skip;

    template += strlen (head);
    skip = line_break (template);
    text = template + skip;
    end = skip > 0 ? strstr (text, "<|im_end|>") : NULL;
    /* A quotation mark or brace: the string ended before, and something computed follows. */
    if (end && end > text && strcspn (text, "'\"{}<") == (gsize) (end - text)) {
      GString *plain = g_string_new_len (text, end - text);

      g_string_replace (plain, "\\n", "\n", 0);
      return g_string_free (plain, FALSE);
    }
  }
  return NULL;
}

static gboolean
render_chatml (Renderer *renderer, GError **error)
{
  const OxChat *chat = renderer->chat;

  if (ox_chat_get_role (chat, 0) != OX_ROLE_SYSTEM && renderer->tokenizer) {
    g_autofree char *system = default_system (ox_tokenizer_get_chat_template (renderer->tokenizer));

    if (system) {
      begin_chatml (renderer, OX_ROLE_SYSTEM);
      append_text (renderer, system, strlen (system));
      append_control (renderer, "<|im_end|>\n");
    }
  }
  for (guint i = 0; i < ox_chat_get_length (chat); i++) {
    const char *text = ox_chat_get_text (chat, i);

    begin_chatml (renderer, ox_chat_get_role (chat, i));
    append_text (renderer, text, strlen (text));
    if (!stays_open (renderer, i))
      append_control (renderer, "<|im_end|>\n");
  }
  if (wants_generation_prompt (renderer))
    begin_chatml (renderer, OX_ROLE_ASSISTANT);
  return TRUE;
}

/* ---- Qwen 3 ---- */

/* Index of the last question: tool results come as messages of the user and do not count. */
static guint
last_query (const OxChat *chat)
{
  for (guint i = ox_chat_get_length (chat); i-- > 0;) {
    const char *text = ox_chat_get_text (chat, i);

    if (ox_chat_get_role (chat, i) == OX_ROLE_USER &&
        !(g_str_has_prefix (text, "<tool_response>") && g_str_has_suffix (text, "</tool_response>")))
      return i;
  }
  return ox_chat_get_length (chat) - 1;
}

static void
strip_newlines (const char **text, gsize *len)
{
  while (*len > 0 && **text == '\n') {
    (*text)++;
    (*len)--;
  }
  while (*len > 0 && (*text)[*len - 1] == '\n')
    (*len)--;
}

/* Reasoning of earlier turns is left out; that of the turn at work is kept in its block. */
static void
append_qwen3_answer (Renderer *renderer, guint index, gboolean is_current)
{
  static const char open[] = "<think>", close[] = "</think>";
  const char *text = ox_chat_get_text (renderer->chat, index), *content = text, *reasoning = text, *mark;
  gsize n_reasoning = 0;

  mark = strstr (text, close);
  if (mark) {
    n_reasoning = (gsize) (mark - text);
    while ((mark = g_strstr_len (reasoning, (gssize) n_reasoning, open))) {
      n_reasoning -= (gsize) (mark - reasoning) + strlen (open);
      reasoning = mark + strlen (open);
    }
    strip_newlines (&reasoning, &n_reasoning);
    for (mark = strstr (text, close); mark; mark = strstr (content, close))
      content = mark + strlen (close);
    content += strspn (content, "\n");
  }
  if (is_current && (is_last (renderer, index) || n_reasoning > 0)) {
    append_control (renderer, "<think>\n");
    append_text (renderer, reasoning, n_reasoning);
    append_control (renderer, "\n</think>\n\n");
    content += strspn (content, "\n");
  }
  append_text (renderer, content, strlen (content));
}

static gboolean
render_qwen3 (Renderer *renderer, GError **error)
{
  const OxChat *chat = renderer->chat;
  guint query = last_query (chat);

  for (guint i = 0; i < ox_chat_get_length (chat); i++) {
    OxRole role = ox_chat_get_role (chat, i);
    const char *text = ox_chat_get_text (chat, i);

    begin_chatml (renderer, role);
    if (role == OX_ROLE_ASSISTANT)
      append_qwen3_answer (renderer, i, i > query);
    else
      append_text (renderer, text, strlen (text));
    if (!stays_open (renderer, i))
      append_control (renderer, "<|im_end|>\n");
  }
  if (wants_generation_prompt (renderer))
    begin_chatml (renderer, OX_ROLE_ASSISTANT);
  return TRUE;
}

/* ---- Gemma 3 ---- */

/* White space as jinja's trim (Python's str.strip) has it: U+001C to U+001F too. */
static gboolean
is_python_space (gunichar c)
{
  return ox_unicode_is_space (c) || (c >= 0x1c && c <= 0x1f);
}

static void
append_trimmed (Renderer *renderer, const char *text)
{
  const char *end = text + strlen (text);

  while (text < end && is_python_space (ox_utf8_get (text)))
    text = g_utf8_next_char (text);
  while (end > text && is_python_space (ox_utf8_get (g_utf8_prev_char (end))))
    end = g_utf8_prev_char (end);
  append_text (renderer, text, (gsize) (end - text));
}

static gboolean
render_gemma3 (Renderer *renderer, GError **error)
{
  static const char *const names[] = {
    [OX_ROLE_SYSTEM] = "system", [OX_ROLE_USER] = "user", [OX_ROLE_ASSISTANT] = "model"
  };
  const OxChat *chat = renderer->chat;
  guint first = ox_chat_get_role (chat, 0) == OX_ROLE_SYSTEM ? 1 : 0;
  gint64 bos = renderer->tokenizer ? ox_tokenizer_get_bos (renderer->tokenizer) : -1;

  append_control (renderer, bos >= 0 ? ox_tokenizer_get_token (renderer->tokenizer, (guint32) bos) : "<bos>");
  for (guint i = first; i < ox_chat_get_length (chat); i++) {
    OxRole role = ox_chat_get_role (chat, i);
    g_autofree char *head = g_strconcat ("<start_of_turn>", names[role], "\n", NULL);

    if ((role == OX_ROLE_USER) != ((i - first) % 2 == 0)) {
      g_set_error (
        error, OX_ERROR, OX_ERROR_INVALID,
        "Messages of the user and of the assistant have to alternate in this model's chat format, beginning with the "
        "user's: message %u is out of turn",
        i + 1);
      return FALSE;
    }
    append_control (renderer, head);
    /* The format has no system turn: such text stands before the first message, untrimmed. */
    if (i == first && first == 1) {
      const char *system = ox_chat_get_text (chat, 0);

      append_text (renderer, system, strlen (system));
      append_control (renderer, "\n\n");
    }
    append_trimmed (renderer, ox_chat_get_text (chat, i));
    if (!stays_open (renderer, i))
      append_control (renderer, "<end_of_turn>\n");
  }
  if (wants_generation_prompt (renderer))
    append_control (renderer, "<start_of_turn>model\n");
  return TRUE;
}

/* ---- The table ---- */

static const OxChatFormat formats[] = {
  { "chatml", render_chatml, { "<|im_end|>", "<|endoftext|>" } },
  { "qwen3", render_qwen3, { "<|im_end|>", "<|endoftext|>" } },
  { "gemma3", render_gemma3, { "<end_of_turn>", "<eos>" } },
};

const OxChatFormat *
ox_chat_format_find (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (formats); i++) {
    if (g_strcmp0 (name, formats[i].name) == 0)
      return formats + i;
  }
  return NULL;
}

const char *
ox_chat_format_get_name (const OxChatFormat *format)
{
  return format->name;
}

const OxChatFormat *
ox_chat_format_detect (OxTokenizer *tokenizer, const char *architecture)
{
  const char *template = ox_tokenizer_get_chat_template (tokenizer);

  if (template) {
    if (strstr (template, "<start_of_turn>"))
      return ox_chat_format_find ("gemma3");
    if (!strstr (template, "<|im_start|>"))
      return NULL;
    /* Qwen 3.5 and later write tool calls as <function=…> and think by other rules. */
    if (strstr (template, "<function="))
      return NULL;
    return ox_chat_format_find (strstr (template, "</think>") ? "qwen3" : "chatml");
  }
  if (!tokenizer->is_instruct)
    return NULL;
  if (ox_tokenizer_find (tokenizer, "<|im_start|>") >= 0 && ox_tokenizer_find (tokenizer, "<|im_end|>") >= 0)
    return ox_chat_format_find (g_strcmp0 (architecture, "qwen3") == 0 ? "qwen3" : "chatml");
  if (ox_tokenizer_find (tokenizer, "<start_of_turn>") >= 0)
    return ox_chat_format_find ("gemma3");
  return NULL;
}

OxPrompt *
ox_chat_format_render (const OxChatFormat *format,
                       const OxChat *chat,
                       OxTokenizer *tokenizer,
                       gboolean add_generation_prompt,
                       gboolean continue_last,
                       GError **error)
{
  g_autoptr (OxPrompt) prompt = prompt_new ();
  Renderer renderer = { chat, tokenizer, add_generation_prompt, continue_last, prompt };

  if (ox_chat_get_length (chat) == 0) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_INVALID, "The conversation is empty: there is nothing to answer");
    return NULL;
  }
  return format->render (&renderer, error) ? g_steal_pointer (&prompt) : NULL;
}

void
ox_chat_format_add_stop_ids (const OxChatFormat *format, OxTokenizer *tokenizer, GArray *ids)
{
  for (gsize i = 0; i < G_N_ELEMENTS (format->stop_tokens) && format->stop_tokens[i]; i++) {
    gint64 found = ox_tokenizer_find (tokenizer, format->stop_tokens[i]);
    guint32 id = (guint32) found;
    gboolean is_new = found >= 0;

    for (guint k = 0; k < ids->len && is_new; k++)
      is_new = g_array_index (ids, guint32, k) != id;
    if (is_new)
      g_array_append_val (ids, id);
  }
}
