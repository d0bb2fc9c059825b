/* What of a conversation's state cannot be cut back, kept as it was at some places of the conversation.
 *
 * Keys and values of full layers can be cut back anywhere. Recurrent states only go forward, and the ring of a sliding layer forgets what
 * lies further back than its slack: these are copied at the ends of turns, so that an edited or repeated turn starts from there.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-network.h"

typedef struct _OxSnapshots OxSnapshots;

/* At most @max_bytes are held, and never more than a quarter of the memory that is free. */
OxSnapshots *ox_snapshots_new (OxState *state, guint64 max_bytes);
void ox_snapshots_free (OxSnapshots *snapshots);
void ox_snapshots_set_limit (OxSnapshots *snapshots, guint64 max_bytes);

/* Bytes of one after @position tokens. */
gsize ox_snapshot_bytes (const OxState *state, guint position);

/* Copies the state as it is after the first @position tokens: recurrent states are there, and rings hold the window before. Others that
 * are least useful go when there is no room: those that save the fewest tokens, far from the end. FALSE when it cannot be kept. */
gboolean ox_snapshots_take (OxSnapshots *snapshots, guint position);
/* The place of the last one at or before @length; 0: there is none. */
guint ox_snapshots_find (const OxSnapshots *snapshots, guint length);
/* Puts that one back, and returns its place. 0: there is none, and recurrent states begin anew. */
guint ox_snapshots_restore (OxSnapshots *snapshots, guint length);
/* Those after @length are of a conversation that went on otherwise. */
void ox_snapshots_forget_after (OxSnapshots *snapshots, guint length);

guint ox_snapshots_get_length (const OxSnapshots *snapshots);
guint64 ox_snapshots_get_bytes (const OxSnapshots *snapshots);
/* For a file: the place and the bytes of one, in order of place; and one from there, whose size is ox_snapshot_bytes(). */
guint ox_snapshots_get (const OxSnapshots *snapshots, guint index, const guint8 **bytes, gsize *n_bytes);
/* Makes one with bytes that the caller fills in; NULL when there is no room. Places have to come in order. */
guint8 *ox_snapshots_add (OxSnapshots *snapshots, guint position);
