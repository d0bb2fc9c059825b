/* Which chat format a model wants: by its template's features, else by its control tokens, its family and its size.
 *
 * A model is a base model (no format) when it has no template, unless its GGUF names it as made for conversation ("-it",
 * "instruct", "chat"): Gemma 3 270M's base file has "<start_of_turn>" in its vocabulary like the tuned one, so tokens alone say
 * nothing.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <string.h>

#include "text/ox-chat-render.h"
#include "text/ox-tokenizer-private.h"

/* What tells one template from another: the first row wins whose strings are all there (but @without). They are parts of the
 * templates' source, in which a line break within a string is a backslash and an n. */
static const struct {
  const char *with[2];
  const char *without;
  const char *format;
} marks[] = {
  /* Only the large models' prompt has a thought that is closed at once. */
  { { "<|turn>", "<|channel>thought\\n<channel|>" }, NULL, "gemma4-large" },
  { { "<|turn>", NULL }, NULL, "gemma4-small" },
  { { "<start_of_turn>", NULL }, NULL, "gemma3" },
  { { "<|im_start|>", "Reasoning effort is set to" }, NULL, "qwen3.8" },
  { { "<function=", "preserve_thinking" }, NULL, "qwen3.6" },
  /* 3.5: what has to be said so that the default is left. */
  { { "<function=", "enable_thinking is true" }, NULL, "qwen3.5-nothink" },
  { { "<function=", "enable_thinking is false" }, NULL, "qwen3.5-think" },
  { { "<|im_start|>assistant\\n<think>\\n'", NULL }, "<function=", "qwen3-think" },
  { { "<|im_start|>", "</think>" }, "<function=", "qwen3" },
  { { "<|im_start|>", NULL }, "<function=", "chatml" },
  { { "<|start_header_id|>", "<|eot_id|>" }, NULL, "llama3" },
};

static const OxChatFormat *
by_template (const char *template)
{
  for (gsize i = 0; i < G_N_ELEMENTS (marks); i++) {
    if (strstr (template, marks[i].with[0]) && (!marks[i].with[1] || strstr (template, marks[i].with[1])) &&
        (!marks[i].without || !strstr (template, marks[i].without)))
      return ox_chat_format_find (marks[i].format);
  }
  return NULL;
}

static gboolean
has_tokens (OxTokenizer *tokenizer, const char *begin, const char *end)
{
  return ox_tokenizer_find (tokenizer, begin) >= 0 && ox_tokenizer_find (tokenizer, end) >= 0;
}

/* Qwen 3.5, 3.6 and 3.8 have the same configuration: only the name tells. Up to 2B, 3.5 does not think by default. */
static const char *
qwen35_variant (const OxConfig *config)
{
  if (config->name && strstr (config->name, "3.8"))
    return "qwen3.8";
  if (config->name && strstr (config->name, "3.6"))
    return "qwen3.6";
  return config->hidden_size <= 2048 ? "qwen3.5-nothink" : "qwen3.5-think";
}

/* Never NULL. */
static const char *
by_tokens (OxTokenizer *tokenizer, const OxConfig *config)
{
  if (has_tokens (tokenizer, "<|im_start|>", "<|im_end|>")) {
    if (config && config->family == OX_FAMILY_QWEN35)
      return qwen35_variant (config);
    return config && g_strcmp0 (config->architecture, "qwen3") == 0 ? "qwen3" : "chatml";
  }
  /* E2B and E4B are the ones with embeddings per layer. */
  if (has_tokens (tokenizer, "<|turn>", "<turn|>"))
    return config && config->hidden_size_per_layer_input > 0 ? "gemma4-small" : "gemma4-large";
  if (has_tokens (tokenizer, "<start_of_turn>", "<end_of_turn>"))
    return "gemma3";
  if (has_tokens (tokenizer, "<|start_header_id|>", "<|eot_id|>"))
    return "llama3";
  return "plain";
}

const OxChatFormat *
ox_chat_format_detect (OxTokenizer *tokenizer, const OxConfig *config, char **note)
{
  const char *template = ox_tokenizer_get_chat_template (tokenizer);
  const OxChatFormat *format = template ? by_template (template) : NULL;

  if (note)
    *note = NULL;
  if (format || (!template && !tokenizer->is_instruct))
    return format;
  format = ox_chat_format_find (by_tokens (tokenizer, config));
  if (note && (template || format->render == ox_render_plain))
    *note = g_strdup_printf (
      "This model's chat template is %s; conversations are written in the format “%s” instead, which may "
      "make its answers worse.",
      template ? "not known to this version" : "missing", format->name);
  return format;
}

OxCapabilities
ox_chat_format_get_capabilities (const OxChatFormat *format, OxTokenizer *tokenizer)
{
  const char *template = ox_tokenizer_get_chat_template (tokenizer);
  OxCapabilities capabilities = OX_CAPABILITY_CHAT | format->capabilities;

  /* Models that were made for less say so in their template. */
  if (template && by_template (template) == format) {
    if (!strstr (template, "think") && !strstr (template, "thought"))
      capabilities &= ~OX_CAPABILITY_THINK;
    if (!strstr (template, "tools"))
      capabilities &= ~OX_CAPABILITY_TOOLS;
  }
  return capabilities;
}
