/* Copies of recurrent states and of rings.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-snapshot.h"

typedef struct {
  guint position;
  gsize n_bytes;
  guint8 *bytes; /* layer by layer: a recurrent state, or keys and values of the window before the position */
} Snapshot;

struct _OxSnapshots {
  OxState *state;
  GArray *all; /* Snapshot, by position */
  guint64 max_bytes, bytes;
};

static void
snapshot_clear (gpointer data)
{
  g_free (((Snapshot *) data)->bytes);
}

OxSnapshots *
ox_snapshots_new (OxState *state, guint64 max_bytes)
{
  OxSnapshots *snapshots = g_new0 (OxSnapshots, 1);

  snapshots->state = state;
  snapshots->max_bytes = max_bytes;
  snapshots->all = g_array_new (FALSE, FALSE, sizeof (Snapshot));
  g_array_set_clear_func (snapshots->all, snapshot_clear);
  return snapshots;
}

void
ox_snapshots_free (OxSnapshots *snapshots)
{
  if (snapshots == NULL)
    return;
  g_array_unref (snapshots->all);
  g_free (snapshots);
}

/* ---- One ---- */

/* Whether @layer keeps keys and values in a ring that forgets. */
static gboolean
has_ring (const OxState *state, guint layer)
{
  return state->kv[layer] != NULL && ox_config_is_sliding (state->config, layer) &&
         ox_state_get_slack (state->config, &state->options) != G_MAXUINT;
}

static guint
window_before (const OxState *state, guint position)
{
  return MIN (position, state->config->sliding_window);
}

static gsize
layer_bytes (const OxState *state, guint layer, guint position)
{
  const OxConfig *config = state->config;

  if (state->recurrent[layer] != NULL) {
    OxDeltaShape shape = ox_config_delta_shape (config);

    return ox_recurrent_bytes (&shape);
  }
  if (has_ring (state, layer))
    return ox_kv_bytes (ox_config_kv_heads (config, layer), ox_config_head_dim (config, layer), state->options.kv_type,
                        window_before (state, position));
  return 0;
}

gsize
ox_snapshot_bytes (const OxState *state, guint position)
{
  gsize bytes = 0;

  for (guint i = 0; i < state->config->num_hidden_layers; i++)
    bytes += layer_bytes (state, i, position);
  return bytes;
}

static void
copy_out (OxState *state, const Snapshot *snapshot)
{
  guint n = window_before (state, snapshot->position);
  guint8 *bytes = snapshot->bytes;

  for (guint i = 0; i < state->config->num_hidden_layers; i++) {
    if (state->recurrent[i] != NULL)
      state->ops->recurrent_save (state->ops, state->recurrent[i], bytes);
    else if (has_ring (state, i))
      state->ops->kv_save (state->ops, state->kv[i], snapshot->position - n, n, bytes);
    bytes += layer_bytes (state, i, snapshot->position);
  }
}

static void
copy_in (OxState *state, const Snapshot *snapshot)
{
  guint n = window_before (state, snapshot->position);
  const guint8 *bytes = snapshot->bytes;

  for (guint i = 0; i < state->config->num_hidden_layers; i++) {
    if (state->recurrent[i] != NULL)
      state->ops->recurrent_restore (state->ops, state->recurrent[i], bytes);
    else if (has_ring (state, i))
      state->ops->kv_restore (state->ops, state->kv[i], snapshot->position - n, n, bytes);
    bytes += layer_bytes (state, i, snapshot->position);
  }
}

/* ---- All of them ---- */

static Snapshot *
get (const OxSnapshots *snapshots, guint index)
{
  return &g_array_index (snapshots->all, Snapshot, index);
}

static void
drop (OxSnapshots *snapshots, guint index)
{
  snapshots->bytes -= get (snapshots, index)->n_bytes;
  g_array_remove_index (snapshots->all, index);
}

/* The one that is missed least: it saves few tokens, or it lies far from @position, where people go back to seldom. */
static guint
least_useful (const OxSnapshots *snapshots, guint position)
{
  guint least = 0;
  double least_use = G_MAXDOUBLE;

  for (guint i = 0; i < snapshots->all->len; i++) {
    guint before = i > 0 ? get (snapshots, i - 1)->position : 0;
    guint at = get (snapshots, i)->position;
    double use = (double) (at - before) / (ABS ((double) position - at) + 256);

    if (use < least_use) {
      least_use = use;
      least = i;
    }
  }
  return least;
}

static gboolean
make_room (OxSnapshots *snapshots, gsize needed, guint position)
{
  guint64 total, available;

  ox_platform_get_memory (&total, &available);
  while (snapshots->bytes + needed > MIN (snapshots->max_bytes, snapshots->bytes + available / 4)) {
    if (snapshots->all->len == 0)
      return FALSE;
    available += get (snapshots, least_useful (snapshots, position))->n_bytes;
    drop (snapshots, least_useful (snapshots, position));
  }
  return TRUE;
}

void
ox_snapshots_set_limit (OxSnapshots *snapshots, guint64 max_bytes)
{
  snapshots->max_bytes = max_bytes;
  while (snapshots->bytes > max_bytes)
    drop (snapshots, least_useful (snapshots, get (snapshots, snapshots->all->len - 1)->position));
}

/* Index of the first one after @length. */
static guint
first_after (const OxSnapshots *snapshots, guint length)
{
  guint i = snapshots->all->len;

  while (i > 0 && get (snapshots, i - 1)->position > length)
    i--;
  return i;
}

static Snapshot *
insert (OxSnapshots *snapshots, guint position)
{
  Snapshot snapshot = { position, ox_snapshot_bytes (snapshots->state, position), NULL };
  guint index;

  if (!make_room (snapshots, snapshot.n_bytes, position))
    return NULL;
  snapshot.bytes = g_try_malloc (snapshot.n_bytes);
  if (snapshot.bytes == NULL)
    return NULL;
  index = first_after (snapshots, position);
  g_array_insert_val (snapshots->all, index, snapshot);
  snapshots->bytes += snapshot.n_bytes;
  return get (snapshots, index);
}

gboolean
ox_snapshots_take (OxSnapshots *snapshots, guint position)
{
  Snapshot *snapshot;

  if (position == 0 || ox_snapshots_find (snapshots, position) == position)
    return TRUE;
  snapshot = insert (snapshots, position);
  if (snapshot == NULL)
    return FALSE;
  copy_out (snapshots->state, snapshot);
  return TRUE;
}

guint
ox_snapshots_find (const OxSnapshots *snapshots, guint length)
{
  guint i = first_after (snapshots, length);

  return i > 0 ? get (snapshots, i - 1)->position : 0;
}

guint
ox_snapshots_restore (OxSnapshots *snapshots, guint length)
{
  guint i = first_after (snapshots, length);

  if (i == 0) {
    ox_state_reset (snapshots->state);
    return 0;
  }
  copy_in (snapshots->state, get (snapshots, i - 1));
  return get (snapshots, i - 1)->position;
}

void
ox_snapshots_forget_after (OxSnapshots *snapshots, guint length)
{
  guint kept = first_after (snapshots, length);

  while (snapshots->all->len > kept)
    drop (snapshots, snapshots->all->len - 1);
}

guint
ox_snapshots_get_length (const OxSnapshots *snapshots)
{
  return snapshots->all->len;
}

guint64
ox_snapshots_get_bytes (const OxSnapshots *snapshots)
{
  return snapshots->bytes;
}

guint
ox_snapshots_get (const OxSnapshots *snapshots, guint index, const guint8 **bytes, gsize *n_bytes)
{
  *bytes = get (snapshots, index)->bytes;
  *n_bytes = get (snapshots, index)->n_bytes;
  return get (snapshots, index)->position;
}

guint8 *
ox_snapshots_add (OxSnapshots *snapshots, guint position)
{
  Snapshot *snapshot = insert (snapshots, position);

  return snapshot != NULL ? snapshot->bytes : NULL;
}
