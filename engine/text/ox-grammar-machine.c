/* The automaton.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "text/ox-grammar-machine.h"

#include <string.h>

#include "text/ox-token-trie.h"

/* Arrays and objects within each other, unless the schema requires more. */
#define MAX_DEPTH 64
/* Kinds of value that a text may be the beginning of; more are left out, which leaves less choice but never none. */
#define MAX_STACKS 512
/* Spaces behind a line break. */
#define MAX_INDENT 40
#define MAX_DIGITS 15
#define MAX_EXPONENT_DIGITS 2

#define NO_INDEX G_MAXUINT32

/* frame.at of arrays and objects: one of these, and above it where in white space or in a name one is. */
enum {
  AT_FIRST, /* behind the bracket */
  AT_NEXT,  /* behind a comma */
  AT_KEY,   /* in the name of property @index, behind @count bytes */
  AT_NAME,  /* in another name; @count: the letter in the trie */
  AT_COLON, /* behind a name */
  AT_VALUE, /* behind the colon */
  AT_AFTER, /* behind a value; @index: the property that may be next, @count: items so far */
};
#define AT(stage, state) ((guint32) (stage) | (guint32) (state) << 8)

/* frame.at of numbers. */
enum {
  NUMBER_MINUS,
  NUMBER_ZERO,
  NUMBER_WHOLE,
  NUMBER_POINT,
  NUMBER_FRACTION,
  NUMBER_E,
  NUMBER_E_SIGN,
  NUMBER_EXPONENT,
};

typedef struct {
  OxFrame frame;
  guint32 parent;
  guint32 depth; /* arrays and objects, this one included */
} Stack;

struct _OxMachine {
  const OxJsonSchema *schema;
  GArray *stacks; /* Stack; a parent comes before its children */
  guint32 *slots; /* hash of stacks; 0: free */
  gsize mask;
  guint32 max_depth;
};

static const OxSchemaNode *
node_at (const OxMachine *machine, guint32 node)
{
  return &g_array_index (machine->schema->nodes, OxSchemaNode, node);
}

static const OxSchemaProperty *
property_at (const OxMachine *machine, const OxSchemaNode *node, guint32 index)
{
  return &g_array_index (machine->schema->properties, OxSchemaProperty, node->first + index);
}

/* ---- Stacks ---- */

static gsize
hash_stack (const OxFrame *frame, guint32 parent)
{
  guint64 h = ((guint64) frame->node << 32 | parent) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  h ^= ((guint64) frame->at << 32 | frame->count) * G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
  h ^= frame->index * G_GUINT64_CONSTANT (0xc4ceb9fe1a85ec53);
  return (gsize) (h ^ h >> 29);
}

static guint32 *
find_slot (const OxMachine *machine, const OxFrame *frame, guint32 parent)
{
  gsize slot = hash_stack (frame, parent) & machine->mask;

  for (; machine->slots[slot] != 0; slot = (slot + 1) & machine->mask) {
    const Stack *stack = &g_array_index (machine->stacks, Stack, machine->slots[slot]);

    if (stack->parent == parent && memcmp (&stack->frame, frame, sizeof *frame) == 0)
      break;
  }
  return machine->slots + slot;
}

static void
rehash (OxMachine *machine, gsize capacity)
{
  g_free (machine->slots);
  machine->slots = g_new0 (guint32, capacity);
  machine->mask = capacity - 1;
  for (guint32 i = 1; i < machine->stacks->len; i++) {
    const Stack *stack = &g_array_index (machine->stacks, Stack, i);

    *find_slot (machine, &stack->frame, stack->parent) = i;
  }
}

static guint32
push (OxMachine *machine, guint32 parent, OxFrame frame)
{
  guint32 *slot = find_slot (machine, &frame, parent);
  OxSchemaKind kind = node_at (machine, frame.node)->kind;
  Stack stack = { frame, parent, g_array_index (machine->stacks, Stack, parent).depth };

  if (*slot != 0)
    return *slot;
  if (kind == OX_SCHEMA_OBJECT || kind == OX_SCHEMA_ARRAY)
    stack.depth++;
  *slot = machine->stacks->len;
  g_array_append_val (machine->stacks, stack);
  if (machine->stacks->len * 2 > machine->mask)
    rehash (machine, (machine->mask + 1) * 2);
  return machine->stacks->len - 1;
}

static void
add (GArray *out, guint from, guint32 stack)
{
  for (guint i = from; i < out->len; i++) {
    if (g_array_index (out, guint32, i) == stack)
      return;
  }
  if (out->len - from < MAX_STACKS)
    g_array_append_val (out, stack);
}

OxMachine *
ox_machine_new (const OxJsonSchema *schema)
{
  OxMachine *machine = g_new0 (OxMachine, 1);

  machine->schema = schema;
  machine->stacks = g_array_new (FALSE, TRUE, sizeof (Stack));
  g_array_set_size (machine->stacks, 1); /* the empty one */
  machine->max_depth = MAX (MAX_DEPTH, node_at (machine, schema->root)->height);
  rehash (machine, 1024);
  return machine;
}

void
ox_machine_free (OxMachine *machine)
{
  if (!machine)
    return;
  g_array_unref (machine->stacks);
  g_free (machine->slots);
  g_free (machine);
}

guint32
ox_machine_start (OxMachine *machine)
{
  return push (machine, OX_STACK_EMPTY, (OxFrame) { .node = machine->schema->root });
}

gsize
ox_machine_get_size (const OxMachine *machine)
{
  return machine->stacks->len;
}

void
ox_machine_compact (OxMachine *machine, GArray *const *roots, gsize n_roots)
{
  g_autofree guint32 *new_ids = g_new0 (guint32, machine->stacks->len);
  guint32 n = 1;

  for (gsize r = 0; r < n_roots; r++) {
    for (guint i = 0; i < roots[r]->len; i++)
      new_ids[g_array_index (roots[r], guint32, i)] = 1;
  }
  for (guint32 i = machine->stacks->len; i-- > 1;) {
    if (new_ids[i] != 0)
      new_ids[g_array_index (machine->stacks, Stack, i).parent] = 1;
  }
  new_ids[OX_STACK_EMPTY] = OX_STACK_EMPTY;
  for (guint32 i = 1; i < machine->stacks->len; i++) {
    Stack stack = g_array_index (machine->stacks, Stack, i);

    if (new_ids[i] == 0)
      continue;
    stack.parent = new_ids[stack.parent];
    g_array_index (machine->stacks, Stack, n) = stack;
    new_ids[i] = n++;
  }
  g_array_set_size (machine->stacks, n);
  for (gsize r = 0; r < n_roots; r++) {
    for (guint i = 0; i < roots[r]->len; i++)
      g_array_index (roots[r], guint32, i) = new_ids[g_array_index (roots[r], guint32, i)];
  }
  rehash (machine, machine->mask + 1);
}

/* ---- Values ---- */

/* Where a byte is taken: the stack and what is known of it, and where the results go. */
typedef struct {
  OxMachine *machine;
  OxFrame frame;
  const OxSchemaNode *node;
  guint32 parent, depth;
  guint8 byte;
  GArray *out;
  guint from;
} Step;

/* The frame becomes @frame. */
static void
go (Step *step, guint32 at, guint32 index, guint32 count)
{
  add (step->out, step->from, push (step->machine, step->parent, (OxFrame) { step->frame.node, at, index, count }));
}

static gboolean
fits (const Step *step, guint32 node)
{
  guint32 height = node_at (step->machine, node)->height;

  return height != OX_SCHEMA_NONE && height <= step->machine->max_depth - MIN (step->depth, step->machine->max_depth);
}

/* A value of @node, which is no union, begins with the byte; @parent is what it stands on. */
static void
begin_member (Step *step, guint32 node, guint32 parent)
{
  const OxSchemaNode *self = node_at (step->machine, node);
  guint8 byte = step->byte;
  OxFrame frame = { .node = node };
  guint32 letter;

  if (!fits (step, node))
    return;
  switch (self->kind) {
  case OX_SCHEMA_STRING:
    if (byte != '"')
      return;
    frame.at = OX_STRING_PLAIN;
    break;
  case OX_SCHEMA_NUMBER:
  case OX_SCHEMA_INTEGER:
    if (byte != '-' && !g_ascii_isdigit (byte))
      return;
    frame.at = byte == '-' ? NUMBER_MINUS : byte == '0' ? NUMBER_ZERO : NUMBER_WHOLE;
    frame.count = 1;
    break;
  case OX_SCHEMA_LITERALS:
    letter = ox_json_schema_next_letter (step->machine->schema, self->trie, byte);
    if (letter == 0)
      return;
    if (g_array_index (step->machine->schema->letters, OxSchemaLetter, letter).child == 0) {
      add (step->out, step->from, parent);
      return;
    }
    frame.at = letter;
    break;
  case OX_SCHEMA_OBJECT:
  case OX_SCHEMA_ARRAY:
    if (byte != (self->kind == OX_SCHEMA_OBJECT ? '{' : '['))
      return;
    frame.at = AT_FIRST;
    break;
  case OX_SCHEMA_NOTHING:
  case OX_SCHEMA_UNION:
    return;
  }
  add (step->out, step->from, push (step->machine, parent, frame));
}

static void
begin_value (Step *step, guint32 node, guint32 parent)
{
  const OxSchemaNode *self = node_at (step->machine, node);

  if (self->kind != OX_SCHEMA_UNION) {
    begin_member (step, node, parent);
    return;
  }
  for (guint32 i = 0; i < self->n; i++)
    begin_member (step, g_array_index (step->machine->schema->members, guint32, self->first + i), parent);
}

static void
step_string (Step *step)
{
  OxStringState state = ox_string_step (step->frame.at, step->byte);
  guint32 count = step->frame.count;

  if (state == OX_STRING_WRONG)
    return;
  if (state == OX_STRING_END) {
    if (count >= step->node->min)
      add (step->out, step->from, step->parent);
    return;
  }
  if (step->frame.at == OX_STRING_PLAIN) {
    if (count == step->node->max)
      return;
    /* Without a limit only whether there are enough counts. */
    count = step->node->max == OX_SCHEMA_NONE ? MIN (count + 1, step->node->min) : count + 1;
  }
  go (step, state, 0, count);
}

/* Whether a number may end in this state. */
static gboolean
is_number (guint32 at)
{
  return at == NUMBER_ZERO || at == NUMBER_WHOLE || at == NUMBER_FRACTION || at == NUMBER_EXPONENT;
}

static void
step_number (Step *step)
{
  guint32 at = step->frame.at, count = step->frame.count;
  guint8 byte = step->byte;
  gboolean is_digit = g_ascii_isdigit (byte), whole = step->node->kind == OX_SCHEMA_INTEGER;

  switch (at) {
  case NUMBER_MINUS:
    if (is_digit)
      go (step, byte == '0' ? NUMBER_ZERO : NUMBER_WHOLE, 0, 1);
    return;
  case NUMBER_WHOLE:
  case NUMBER_FRACTION:
    if (is_digit && count < MAX_DIGITS)
      go (step, at, 0, count + 1);
    break;
  case NUMBER_POINT:
    if (is_digit)
      go (step, NUMBER_FRACTION, 0, 1);
    return;
  case NUMBER_E:
    if (byte == '+' || byte == '-')
      go (step, NUMBER_E_SIGN, 0, 0);
    G_GNUC_FALLTHROUGH;
  case NUMBER_E_SIGN:
    if (is_digit)
      go (step, NUMBER_EXPONENT, 0, 1);
    return;
  case NUMBER_EXPONENT:
    if (is_digit && count < MAX_EXPONENT_DIGITS)
      go (step, at, 0, count + 1);
    return;
  default:
    break;
  }
  if (byte == '.' && at != NUMBER_FRACTION && !whole)
    go (step, NUMBER_POINT, 0, 0);
  if ((byte == 'e' || byte == 'E') && !whole)
    go (step, NUMBER_E, 0, 0);
}

static void
step_literal (Step *step)
{
  const GArray *letters = step->machine->schema->letters;
  guint32 letter = ox_json_schema_next_letter (step->machine->schema, step->frame.at, step->byte);

  if (letter == 0)
    return;
  if (g_array_index (letters, OxSchemaLetter, letter).child == 0)
    add (step->out, step->from, step->parent);
  else
    go (step, letter, 0, 0);
}

/* ---- White space ----
 *
 * Behind a value it may come before a closing bracket, but not before a comma. */

/* The state of white space behind one more byte of it; 0: the byte is none that may come. */
static guint32
step_space (guint32 state, guint8 byte, gboolean may_break)
{
  enum { NOTHING, SPACE, BREAK }; /* and one more for each space behind the break */

  if (byte == ' ')
    return state == NOTHING ? SPACE : state >= BREAK && state < BREAK + MAX_INDENT ? state + 1 : 0;
  return byte == '\n' && state == NOTHING && may_break ? BREAK : 0;
}

/* TRUE: the byte was white space that may come here. */
static gboolean
take_space (Step *step, gboolean may_break)
{
  guint32 state = step_space (step->frame.at >> 8, step->byte, may_break);

  if (state == 0)
    return FALSE;
  go (step, AT (step->frame.at & 0xff, state), step->frame.index, step->frame.count);
  return TRUE;
}

/* ---- Arrays ---- */

static void
step_array (Step *step)
{
  const OxSchemaNode *node = step->node;
  guint32 stage = step->frame.at & 0xff, count = step->frame.count, next;

  if ((stage != AT_AFTER || count >= node->min) && take_space (step, TRUE))
    return;
  if (stage != AT_NEXT && step->byte == ']') {
    if (count >= node->min)
      add (step->out, step->from, step->parent);
    return;
  }
  if (stage == AT_AFTER) {
    if (step->frame.at == AT_AFTER && step->byte == ',' && count < node->max && fits (step, node->child))
      go (step, AT_NEXT, 0, count);
    return;
  }
  if (count == node->max)
    return;
  next = node->max == OX_SCHEMA_NONE ? MIN (count + 1, node->min) : count + 1;
  begin_value (step, node->child,
               push (step->machine, step->parent, (OxFrame) { step->frame.node, AT_AFTER, 0, next }));
}

/* ---- Objects ---- */

static gboolean
can_close (const Step *step, guint32 index)
{
  for (guint32 i = index; i < step->node->n; i++) {
    if (property_at (step->machine, step->node, i)->required)
      return FALSE;
  }
  return TRUE;
}

/* The names that may come from property @index on; or, without @offer, whether there are any. */
static gboolean
offer_names (Step *step, guint32 index, gboolean offer)
{
  gboolean found = FALSE;

  for (guint32 i = index; i < step->node->n; i++) {
    const OxSchemaProperty *property = property_at (step->machine, step->node, i);

    if (fits (step, property->node)) {
      found = TRUE;
      if (!offer)
        return TRUE;
      go (step, AT_KEY, i, 0);
    }
    if (property->required)
      return found;
  }
  if (step->node->child == OX_SCHEMA_NONE || !fits (step, step->node->child))
    return found;
  if (offer)
    go (step, AT (AT_NAME, OX_STRING_PLAIN), NO_INDEX, step->node->trie);
  return TRUE;
}

/* A name that "properties" does not have, written without escapes: so it is known letter by letter whether it is one of them. */
static void
step_name (Step *step)
{
  OxStringState before = step->frame.at >> 8, state = ox_string_step (before, step->byte);
  guint32 letter = step->frame.count;

  if (state == OX_STRING_WRONG || state == OX_STRING_ESCAPE)
    return;
  if (state == OX_STRING_END) {
    if (letter == 0 || !g_array_index (step->machine->schema->letters, OxSchemaLetter, letter).is_end)
      go (step, AT_COLON, NO_INDEX, 0);
    return;
  }
  if (letter != 0)
    letter = ox_json_schema_next_letter (step->machine->schema, letter, step->byte);
  go (step, AT (AT_NAME, state), NO_INDEX, letter);
}

static void
step_member (Step *step)
{
  guint32 index = step->frame.index, after = index == NO_INDEX ? step->node->n : index + 1;
  guint32 child = index == NO_INDEX ? step->node->child : property_at (step->machine, step->node, index)->node;

  begin_value (step, child, push (step->machine, step->parent, (OxFrame) { step->frame.node, AT_AFTER, after, 0 }));
}

static void
step_object (Step *step)
{
  guint32 index = step->frame.index, count = step->frame.count;
  const OxSchemaProperty *property;

  switch (step->frame.at & 0xff) {
  case AT_KEY:
    property = property_at (step->machine, step->node, index);
    if ((guint8) property->text[count] == step->byte)
      go (step, count + 1 == property->len ? AT_COLON : AT_KEY, index, count + 1 == property->len ? 0 : count + 1);
    return;
  case AT_NAME:
    step_name (step);
    return;
  case AT_COLON:
    if (step->byte == ':')
      go (step, AT_VALUE, index, 0);
    return;
  case AT_VALUE:
    if (!take_space (step, FALSE))
      step_member (step);
    return;
  case AT_NEXT:
    if (!take_space (step, TRUE) && step->byte == '"')
      offer_names (step, index, TRUE);
    return;
  default:
    break;
  }
  if (((step->frame.at & 0xff) != AT_AFTER || can_close (step, index)) && take_space (step, TRUE))
    return;
  if (step->byte == '}' && can_close (step, index))
    add (step->out, step->from, step->parent);
  else if (step->byte == '"' && (step->frame.at & 0xff) == AT_FIRST)
    offer_names (step, index, TRUE);
  else if (step->byte == ',' && step->frame.at == AT_AFTER && offer_names (step, index, FALSE))
    go (step, AT_NEXT, index, 0);
}

/* ---- One byte ---- */

/* Whether the value on top may end without another byte. */
static gboolean
may_end (const OxMachine *machine, const Stack *stack)
{
  const OxSchemaNode *node = node_at (machine, stack->frame.node);

  if (node->kind == OX_SCHEMA_NUMBER || node->kind == OX_SCHEMA_INTEGER)
    return is_number (stack->frame.at);
  return node->kind == OX_SCHEMA_LITERALS &&
         g_array_index (machine->schema->letters, OxSchemaLetter, stack->frame.at).is_end;
}

void
ox_machine_advance (OxMachine *machine, guint32 stack, guint8 byte, GArray *out, guint from)
{
  while (stack != OX_STACK_EMPTY) {
    const Stack top = g_array_index (machine->stacks, Stack, stack);
    const OxSchemaNode *node = node_at (machine, top.frame.node);
    Step step = { machine, top.frame, node, top.parent, top.depth, byte, out, from };

    switch (node->kind) {
    case OX_SCHEMA_STRING:
      step_string (&step);
      return;
    case OX_SCHEMA_NUMBER:
    case OX_SCHEMA_INTEGER:
      step_number (&step);
      break;
    case OX_SCHEMA_LITERALS:
      step_literal (&step);
      break;
    case OX_SCHEMA_OBJECT:
      step_object (&step);
      return;
    case OX_SCHEMA_ARRAY:
      step_array (&step);
      return;
    case OX_SCHEMA_UNION: /* the start */
      begin_value (&step, top.frame.node, OX_STACK_EMPTY);
      return;
    case OX_SCHEMA_NOTHING:
      return;
    }
    if (!may_end (machine, &top))
      return;
    stack = top.parent;
  }
}

gboolean
ox_machine_is_complete (const OxMachine *machine, guint32 stack)
{
  const Stack *top = &g_array_index (machine->stacks, Stack, stack);

  return stack == OX_STACK_EMPTY || (top->parent == OX_STACK_EMPTY && may_end (machine, top));
}

gboolean
ox_machine_in_string (OxMachine *machine, guint32 stack, const OxSchemaNode **node, guint32 *count, guint32 *closed)
{
  const Stack *top = &g_array_index (machine->stacks, Stack, stack);

  *node = node_at (machine, top->frame.node);
  *count = top->frame.count;
  *closed = top->parent;
  return stack != OX_STACK_EMPTY && (*node)->kind == OX_SCHEMA_STRING && top->frame.at == OX_STRING_PLAIN;
}

gboolean
ox_machine_in_name (OxMachine *machine, guint32 stack, guint32 *letter, guint32 *closed)
{
  const Stack top = g_array_index (machine->stacks, Stack, stack);

  if (stack == OX_STACK_EMPTY || node_at (machine, top.frame.node)->kind != OX_SCHEMA_OBJECT ||
      top.frame.at != AT (AT_NAME, OX_STRING_PLAIN))
    return FALSE;
  *letter = top.frame.count;
  *closed = push (machine, top.parent, (OxFrame) { top.frame.node, AT_COLON, NO_INDEX, 0 });
  return TRUE;
}
