/* The automaton behind ox-grammar.h: which bytes may follow each other. Where it is, is a stack: the value that is being written, within
 * the array or object around it, and so on; and since a text may be the beginning of several kinds of value, it is in several of
 * them at once. Stacks share their lower parts, and equal ones are one.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "text/ox-json-schema.h"

/* @at, @index and @count mean what the kind of the node makes of them. */
typedef struct {
  guint32 node;
  guint32 at;
  guint32 index;
  guint32 count;
} OxFrame;

/* The stack on which there is nothing: the value is complete. */
#define OX_STACK_EMPTY 0

typedef struct _OxMachine OxMachine;

/* @schema is borrowed. */
OxMachine *ox_machine_new (const OxJsonSchema *schema);
void ox_machine_free (OxMachine *machine);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OxMachine, ox_machine_free)

/* Before the value. */
guint32 ox_machine_start (OxMachine *machine);
/* Adds to @out, if not there behind @from already, each stack that @byte leads to from @stack. */
void ox_machine_advance (OxMachine *machine, guint32 stack, guint8 byte, GArray *out, guint from);
/* Whether the text may end here. */
gboolean ox_machine_is_complete (const OxMachine *machine, guint32 stack);

/* When text of a string that is neither escaped nor in the middle of a character may follow: the node, characters so far, and the stack
 * once it is closed. */
gboolean ox_machine_in_string (
  OxMachine *machine, guint32 stack, const OxSchemaNode **node, guint32 *count, guint32 *closed);
/* The same for a name that "properties" does not have: @letter is where its text is in the trie of those that it has (0: not in it). */
gboolean ox_machine_in_name (OxMachine *machine, guint32 stack, guint32 *letter, guint32 *closed);

/* How many stacks there are; and forgetting all but those that @roots need, which get new numbers. */
gsize ox_machine_get_size (const OxMachine *machine);
void ox_machine_compact (OxMachine *machine, GArray *const *roots, gsize n_roots);
