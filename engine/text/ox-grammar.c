/* Which tokens a schema allows next.
 *
 * The vocabulary is a tree of bytes. A walk over it advances the automaton and leaves out the branches where it has nowhere to go. Within
 * a string nearly every branch goes on, so there the tokens that stay in the string are known beforehand, and only what comes behind a
 * closing quotation mark is tried. Answers that were found lately are kept, since the same places come again.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-grammar.h"

#include <string.h>

#include "io/ox-quote.h"
#include "text/ox-grammar-machine.h"
#include "text/ox-tokenizer-private.h"

#define MAX_REWIND 64
#define N_CACHED 32
/* More stacks than this, and those that are no longer needed are thrown away. */
#define MAX_STACKS_KEPT (1u << 20)

/* Where the automaton is (GArray of stacks), and what may come there. */
typedef struct {
  GArray *stacks; /* NULL: free */
  guint32 *bits;
  gboolean is_empty;
  guint64 last_use;
} Cached;

struct _OxGrammar {
  OxTokenizer *tokenizer;
  const OxTokenTrie *trie;
  OxJsonSchema *schema;
  OxMachine *machine;
  GArray *now;        /* guint32: stacks */
  GPtrArray *history; /* GArray: those before the last tokens */
  Cached cache[N_CACHED];
  guint64 n_uses;
  GArray *levels;  /* guint32: stacks of a walk, level by level */
  guint32 *starts; /* [depth of the trie + 2]: where each level begins */
};

/* ---- Life ---- */

static GArray *
stacks_new (void)
{
  return g_array_new (FALSE, FALSE, sizeof (guint32));
}

static void
stacks_free (gpointer stacks)
{
  g_array_unref (stacks);
}

static gboolean
check_byte (const OxTokenTrie *trie, guint8 byte, GError **error)
{
  if (!trie->single[byte])
    g_set_error (
      error, OX_ERROR, OX_ERROR_UNSUPPORTED,
      "JSON schema: the model's tokenizer has no token for the byte 0x%02x, so answers cannot be held to a schema",
      byte);
  return trie->single[byte];
}

/* Every text has to be within reach, in steps of single bytes where need be. */
static gboolean
check_bytes (const OxGrammar *grammar, GError **error)
{
  const OxTokenTrie *trie = grammar->trie;

  for (guint byte = 0x20; byte < 0xc0; byte++) {
    if (byte != 0x7f && !check_byte (trie, (guint8) byte, error))
      return FALSE;
  }
  for (guint i = 0; i < grammar->schema->properties->len; i++) {
    const OxSchemaProperty *property = &g_array_index (grammar->schema->properties, OxSchemaProperty, i);

    for (gsize k = 0; k < property->len; k++) {
      if (!check_byte (trie, (guint8) property->text[k], error))
        return FALSE;
    }
  }
  for (guint32 i = 1; i < grammar->schema->letters->len; i++) {
    const OxSchemaLetter *letter = &g_array_index (grammar->schema->letters, OxSchemaLetter, i);

    if (letter->byte != 0 && letter->byte >= 0x20 && !check_byte (trie, letter->byte, error))
      return FALSE;
  }
  return TRUE;
}

OxGrammar *
ox_grammar_new (OxTokenizer *tokenizer, const char *json_schema, GError **error)
{
  const OxTokenTrie *trie = ox_tokenizer_get_trie (tokenizer, error);
  g_autoptr (OxGrammar) grammar = g_new0 (OxGrammar, 1);

  grammar->tokenizer = ox_tokenizer_ref (tokenizer);
  grammar->now = stacks_new ();
  grammar->history = g_ptr_array_new_with_free_func (stacks_free);
  grammar->levels = stacks_new ();
  grammar->trie = trie;
  grammar->schema = trie ? ox_json_schema_parse (json_schema, error) : NULL;
  if (!grammar->schema || !check_bytes (grammar, error))
    return NULL;
  grammar->machine = ox_machine_new (grammar->schema);
  grammar->starts = g_new0 (guint32, trie->max_depth + 2);
  ox_grammar_reset (grammar);
  return g_steal_pointer (&grammar);
}

static void
clear_cache (OxGrammar *grammar)
{
  for (gsize i = 0; i < N_CACHED; i++) {
    g_clear_pointer (&grammar->cache[i].stacks, g_array_unref);
    g_clear_pointer (&grammar->cache[i].bits, g_free);
  }
}

void
ox_grammar_free (OxGrammar *grammar)
{
  if (!grammar)
    return;
  clear_cache (grammar);
  g_array_unref (grammar->now);
  g_ptr_array_unref (grammar->history);
  g_array_unref (grammar->levels);
  g_free (grammar->starts);
  ox_machine_free (grammar->machine);
  ox_json_schema_free (grammar->schema);
  ox_tokenizer_unref (grammar->tokenizer);
  g_free (grammar);
}

void
ox_grammar_reset (OxGrammar *grammar)
{
  guint32 start = ox_machine_start (grammar->machine);

  g_array_set_size (grammar->now, 0);
  g_array_append_val (grammar->now, start);
  g_ptr_array_set_size (grammar->history, 0);
}

/* ---- Walks ---- */

/* Appends to grammar->levels, behind @to, where @byte leads from the stacks in [@from, @to). TRUE: somewhere. */
static gboolean
advance (OxGrammar *grammar, guint from, guint to, guint8 byte)
{
  for (guint i = from; i < to; i++)
    ox_machine_advance (grammar->machine, g_array_index (grammar->levels, guint32, i), byte, grammar->levels, to);
  return grammar->levels->len > to;
}

/* Whether @n bytes may follow @stack. */
static gboolean
may_follow (OxGrammar *grammar, guint32 stack, const char *bytes, gsize n)
{
  guint from = 0, to;

  g_array_set_size (grammar->levels, 0);
  g_array_append_val (grammar->levels, stack);
  for (gsize i = 0; i < n; i++) {
    to = grammar->levels->len;
    if (!advance (grammar, from, to, (guint8) bytes[i]))
      return FALSE;
    from = to;
  }
  return TRUE;
}

static void
set_bit (guint32 *bits, guint32 id)
{
  bits[id / 32] |= 1u << id % 32;
}

/* The tokens whose bytes may follow one of @stacks. */
static void
walk (OxGrammar *grammar, const GArray *stacks, guint32 *bits)
{
  const OxTokenTrie *trie = grammar->trie;
  GArray *levels = grammar->levels;

  g_array_set_size (levels, 0);
  g_array_append_vals (levels, stacks->data, stacks->len);
  grammar->starts[0] = 0;
  grammar->starts[1] = levels->len;
  for (gsize i = 0; i < trie->n_nodes;) {
    const OxTrieNode *node = trie->nodes + i;
    guint depth = node->depth;

    g_array_set_size (levels, grammar->starts[depth]);
    if (!advance (grammar, grammar->starts[depth - 1], grammar->starts[depth], node->byte)) {
      i = node->skip;
      continue;
    }
    grammar->starts[depth + 1] = levels->len;
    for (guint32 id = node->token; id != OX_NO_TOKEN; id = trie->same[id])
      set_bit (bits, id);
    i++;
  }
}

/* ---- Within strings ---- */

static void
set_inside (const OxTokenTrie *trie, guint32 most, guint32 *bits)
{
  for (guint32 word = 0; word <= trie->n_tokens / 32; word++) {
    guint32 left = trie->inside[word];

    if (most >= G_MAXUINT16) {
      bits[word] |= left;
      continue;
    }
    for (; left != 0; left &= left - 1) {
      guint32 id = word * 32 + (guint32) __builtin_ctz (left);

      if (trie->chars[id] <= most)
        set_bit (bits, id);
    }
  }
}

/* What is behind the quotation mark of closing tokens is often the same. */
typedef struct {
  guint8 *known; /* [rests]: 0: not tried, 1: it may follow, 2: it may not */
  guint32 closed;
} Rests;

static gboolean
rest_may_follow (OxGrammar *grammar, Rests *rests, guint32 index)
{
  if (rests->known[index] == 0) {
    const OxRest *rest = &g_array_index (grammar->trie->rests, OxRest, index);

    rests->known[index] = may_follow (grammar, rests->closed, rest->bytes, rest->n) ? 1 : 2;
  }
  return rests->known[index] == 1;
}

static void
string_tokens (OxGrammar *grammar, const OxSchemaNode *node, guint32 count, guint32 closed, guint32 *bits)
{
  const OxTokenTrie *trie = grammar->trie;
  guint32 most = node->max == OX_SCHEMA_NONE ? OX_SCHEMA_NONE : node->max - count;
  guint32 least = count < node->min ? node->min - count : 0;
  g_autofree guint8 *known = g_new0 (guint8, MAX (trie->rests->len, 1));
  Rests rests = { known, closed };

  set_inside (trie, most, bits);
  for (guint i = 0; i < trie->closing->len; i++) {
    const OxClosingToken *closing = &g_array_index (trie->closing, OxClosingToken, i);

    if (closing->n_chars >= least && closing->n_chars <= most && rest_may_follow (grammar, &rests, closing->rest))
      set_bit (bits, closing->token);
  }
}

/* Whether @n bytes from @letter on spell a name that properties have. */
static gboolean
is_taken (const OxGrammar *grammar, guint32 letter, const char *bytes, gsize n)
{
  for (gsize i = 0; i < n && letter != 0; i++)
    letter = ox_json_schema_next_letter (grammar->schema, letter, (guint8) bytes[i]);
  return letter != 0 && g_array_index (grammar->schema->letters, OxSchemaLetter, letter).is_end;
}

static void
name_tokens (OxGrammar *grammar, guint32 letter, guint32 closed, guint32 *bits)
{
  const OxTokenTrie *trie = grammar->trie;
  g_autofree guint8 *known = g_new0 (guint8, MAX (trie->rests->len, 1));
  Rests rests = { known, closed };

  for (guint32 word = 0; word <= trie->n_tokens / 32; word++)
    bits[word] |= trie->inside_no_escape[word];
  for (guint i = 0; i < trie->closing->len; i++) {
    const OxClosingToken *closing = &g_array_index (trie->closing, OxClosingToken, i);

    if (!closing->has_escape &&
        !is_taken (grammar, letter, ox_vocab_bytes (trie->vocab, closing->token), closing->n_bytes) &&
        rest_may_follow (grammar, &rests, closing->rest))
      set_bit (bits, closing->token);
  }
}

/* ---- Masks ---- */

static void
find_tokens (OxGrammar *grammar, guint32 *bits)
{
  g_autoptr (GArray) others = stacks_new ();

  for (guint i = 0; i < grammar->now->len; i++) {
    guint32 stack = g_array_index (grammar->now, guint32, i), count, closed;
    const OxSchemaNode *node;

    if (ox_machine_in_string (grammar->machine, stack, &node, &count, &closed))
      string_tokens (grammar, node, count, closed, bits);
    else if (ox_machine_in_name (grammar->machine, stack, &count, &closed))
      name_tokens (grammar, count, closed, bits);
    else
      g_array_append_val (others, stack);
  }
  if (others->len > 0)
    walk (grammar, others, bits);
}

static gboolean
same_stacks (const GArray *a, const GArray *b)
{
  return a->len == b->len && memcmp (a->data, b->data, a->len * sizeof (guint32)) == 0;
}

/* The entry for where the automaton is now, filled. */
static const Cached *
look_up (OxGrammar *grammar)
{
  gsize n_words = grammar->trie->n_tokens / 32 + 1;
  Cached *entry = grammar->cache;
  guint32 any = 0;

  grammar->n_uses++;
  for (gsize i = 0; i < N_CACHED; i++) {
    Cached *other = grammar->cache + i;

    if (other->stacks && same_stacks (other->stacks, grammar->now)) {
      other->last_use = grammar->n_uses;
      return other;
    }
    if (!other->stacks || (entry->stacks && other->last_use < entry->last_use))
      entry = other;
  }
  g_clear_pointer (&entry->stacks, g_array_unref);
  entry->stacks = g_array_copy (grammar->now);
  if (!entry->bits)
    entry->bits = g_new (guint32, n_words);
  memset (entry->bits, 0, n_words * sizeof *entry->bits);
  find_tokens (grammar, entry->bits);
  for (gsize i = 0; i < n_words; i++)
    any |= entry->bits[i];
  entry->is_empty = any == 0;
  entry->last_use = grammar->n_uses;
  return entry;
}

gboolean
ox_grammar_mask (OxGrammar *grammar, guint32 *bits)
{
  const Cached *entry = look_up (grammar);

  memcpy (bits, entry->bits, (grammar->trie->n_tokens + 31) / 32 * sizeof *bits);
  return !entry->is_empty;
}

/* ---- Steps ---- */

static void
forget_stacks (OxGrammar *grammar)
{
  g_autofree GArray **roots = g_new (GArray *, grammar->history->len + 1);

  for (guint i = 0; i < grammar->history->len; i++)
    roots[i] = g_ptr_array_index (grammar->history, i);
  roots[grammar->history->len] = grammar->now;
  clear_cache (grammar);
  ox_machine_compact (grammar->machine, roots, grammar->history->len + 1);
}

gboolean
ox_grammar_accept (OxGrammar *grammar, guint32 id)
{
  const OxVocab *vocab = grammar->trie->vocab;
  GArray *levels = grammar->levels;
  const char *bytes;
  guint from = 0, to;

  if (!ox_vocab_has (vocab, id) || vocab->tokens[id].flags & (OX_TOKEN_CONTROL | OX_TOKEN_HIDDEN) ||
      vocab->tokens[id].n_bytes == 0)
    return FALSE;
  bytes = ox_vocab_bytes (vocab, id);
  g_array_set_size (levels, 0);
  g_array_append_vals (levels, grammar->now->data, grammar->now->len);
  for (guint32 i = 0; i < vocab->tokens[id].n_bytes; i++) {
    to = levels->len;
    if (!advance (grammar, from, to, (guint8) bytes[i]))
      return FALSE;
    from = to;
  }
  if (grammar->history->len == MAX_REWIND)
    g_ptr_array_remove_index (grammar->history, 0);
  g_ptr_array_add (grammar->history, grammar->now);
  grammar->now = stacks_new ();
  g_array_append_vals (grammar->now, &g_array_index (levels, guint32, from), levels->len - from);
  if (ox_machine_get_size (grammar->machine) > MAX_STACKS_KEPT)
    forget_stacks (grammar);
  return TRUE;
}

gboolean
ox_grammar_rewind (OxGrammar *grammar, guint n)
{
  if (n > grammar->history->len)
    return FALSE;
  if (n > 0) {
    GArray *then = g_array_ref (g_ptr_array_index (grammar->history, grammar->history->len - n));

    g_ptr_array_set_size (grammar->history, (int) (grammar->history->len - n));
    g_array_unref (grammar->now);
    grammar->now = then;
  }
  return TRUE;
}

gboolean
ox_grammar_is_complete (OxGrammar *grammar)
{
  for (guint i = 0; i < grammar->now->len; i++) {
    if (ox_machine_is_complete (grammar->machine, g_array_index (grammar->now, guint32, i)))
      return TRUE;
  }
  return FALSE;
}
