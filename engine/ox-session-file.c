/* A session's tokens and their state in a file, so that a conversation goes on after a restart without being read anew.
 *
 *   header    fixed size, with a checksum of its own
 *   tokens    uint32 each
 *   layers    recurrent state, or keys and values of the positions held, in pieces
 *   snapshots the newest ones: uint32 place, uint32 0, bytes
 *   checksum  of all behind the header
 *
 * Numbers are in the computer's own order: the file is a cache for this computer, not for exchange. Damage of any one word is found for
 * certain, since each step of the checksum is a bijection.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "io/ox-file.h"
#include "ox-session-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>

#define MAGIC "OXSESSN"
#define VERSION 1
/* About how much is read or written between two looks at the cancellable. */
#define PIECE_BYTES (1u << 20)
#define SAVED_SNAPSHOTS 2
/* Tensors whose content takes part in the model's identity, and bytes of each. */
#define SAMPLED_TENSORS 128
#define SAMPLED_BYTES 64

typedef struct {
  char magic[8];
  guint32 version;
  guint32 n_tokens;
  guint32 ring_low;
  guint32 n_snapshots;
  guint64 file_bytes;
  guint8 identity[32]; /* of the model and of how its state is held */
  guint64 checksum;    /* of all before */
} Header;

G_STATIC_ASSERT (sizeof (Header) == 72);

static guint64
checksum (guint64 hash, gconstpointer bytes, gsize n)
{
  const guint8 *at = bytes;

  hash ^= n;
  while (n > 0) {
    guint64 word = 0;
    gsize len = MIN (n, sizeof word);

    memcpy (&word, at, len);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
    at += len;
    n -= len;
  }
  return hash;
}

/* ---- Which model ---- */

static void add_text (GChecksum *sum, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
add_text (GChecksum *sum, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_checksum_update (sum, (const guchar *) text, (gssize) strlen (text) + 1);
}

/* Sizes and formats of everything, names and sizes of all tensors, and the content of some. */
static gboolean
make_identity (OxSession *session, guint8 identity[32], GCancellable *cancellable, GError **error)
{
  OxModel *model = session->model;
  const OxConfig *config = model->config;
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  guint n = ox_weights_get_n_tensors (model->weights);
  guint step = n / SAMPLED_TENSORS + 1;
  gsize len = 32;

  add_text (sum, "%s %d %u %u %u", config->architecture, (int) config->family, config->hidden_size,
            config->num_hidden_layers, config->vocab_size);
  add_text (sum, "%d %d %d", (int) session->state->options.kv_type, (int) model->ops_options.precision,
            (int) model->ops_options.quantize);
  for (guint i = 0; i < config->num_hidden_layers; i++)
    add_text (sum, "%d %u %u %u", (int) config->layer_kinds[i], ox_config_kv_heads (config, i),
              ox_config_head_dim (config, i), ox_config_kv_layer (config, i));
  for (guint i = 0; i < n; i++) {
    const OxTensorInfo *tensor = ox_weights_get_tensor (model->weights, i);
    guint8 bytes[SAMPLED_BYTES];
    gsize n_bytes = (gsize) MIN (tensor->n_bytes, SAMPLED_BYTES);

    add_text (sum, "%s %u %" G_GUINT64_FORMAT, tensor->name, tensor->type, tensor->n_bytes);
    if (i % step != 0)
      continue;
    if (g_cancellable_set_error_if_cancelled (cancellable, error) ||
        !ox_file_read (tensor->file, tensor->offset + (tensor->n_bytes - n_bytes) / 2, bytes, n_bytes, error))
      return FALSE;
    g_checksum_update (sum, bytes, (gssize) n_bytes);
  }
  g_checksum_get_digest (sum, identity, &len);
  return TRUE;
}

/* ---- Bytes in and out ---- */

/* Either direction, so that a file is written and read by the same walk over the state. */
typedef struct {
  OxSession *session;
  const char *path; /* for messages */
  int fd;           /* to write to */
  OxFile *file;     /* to read from, or NULL */
  guint64 offset;
  guint64 hash;
  guint8 *piece; /* room for the largest piece */
  GCancellable *cancellable;
} Transfer;

static void
set_damaged (const char *path, const char *what, GError **error)
{
  g_autofree char *shown = g_filename_display_name (path);

  g_set_error (error, OX_ERROR, OX_ERROR_DAMAGED, "%s: the saved conversation is damaged: %s", shown, what);
}

static void
set_io_error (const char *path, const char *what, int code, GError **error)
{
  g_autofree char *shown = g_filename_display_name (path);

  g_set_error (error, OX_ERROR, OX_ERROR_IO, "%s: %s: %s", shown, what, g_strerror (code));
}

/* @bytes to the file, or from it. */
static gboolean
transfer (Transfer *self, gpointer bytes, gsize n, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  if (self->file != NULL) {
    if (n > ox_file_get_size (self->file) - self->offset) {
      set_damaged (self->path, "it ends too early", error);
      return FALSE;
    }
    if (!ox_file_read (self->file, self->offset, bytes, n, error))
      return FALSE;
  } else {
    for (gsize done = 0; done < n;) {
      gssize written = write (self->fd, (const guint8 *) bytes + done, n - done);

      if (written < 0 && errno == EINTR)
        continue;
      if (written < 0) {
        set_io_error (self->path, "The conversation could not be saved", errno, error);
        return FALSE;
      }
      done += (gsize) written;
    }
  }
  self->offset += n;
  self->hash = checksum (self->hash, bytes, n);
  return TRUE;
}

static gboolean
transfer_in_pieces (Transfer *self, guint8 *bytes, gsize n, GError **error)
{
  for (gsize done = 0; done < n; done += PIECE_BYTES)
    if (!transfer (self, bytes + done, MIN (n - done, PIECE_BYTES), error))
      return FALSE;
  return TRUE;
}

/* ---- The state ---- */

/* Positions of @layer that go into one piece. */
static guint
piece_positions (OxSession *session, guint layer)
{
  const OxConfig *config = session->model->config;
  gsize one = ox_kv_bytes (ox_config_kv_heads (config, layer), ox_config_head_dim (config, layer),
                           session->state->options.kv_type, 1);

  return (guint) MAX (PIECE_BYTES / MAX (one, 1), 1);
}

static gsize
largest_piece (OxSession *session)
{
  const OxConfig *config = session->model->config;
  OxDeltaShape shape = ox_config_delta_shape (config);
  gsize largest = 1;

  for (guint i = 0; i < config->num_hidden_layers; i++)
    if (session->state->recurrent[i] != NULL)
      largest = MAX (largest, ox_recurrent_bytes (&shape));
    else if (session->state->kv[i] != NULL)
      largest = MAX (largest, ox_kv_bytes (ox_config_kv_heads (config, i), ox_config_head_dim (config, i),
                                           session->state->options.kv_type, piece_positions (session, i)));
  return largest;
}

/* Keys and values of positions from @begin on, a whole number of pieces but for the last. */
static gboolean
transfer_kv (Transfer *self, guint layer, guint begin, guint end, GError **error)
{
  OxState *state = self->session->state;
  const OxConfig *config = state->config;
  guint most = piece_positions (self->session, layer);

  for (guint at = begin; at < end;) {
    guint n = MIN (end - at, most);
    gsize bytes =
      ox_kv_bytes (ox_config_kv_heads (config, layer), ox_config_head_dim (config, layer), state->options.kv_type, n);

    if (self->file == NULL)
      state->ops->kv_save (state->ops, state->kv[layer], at, n, self->piece);
    if (!transfer (self, self->piece, bytes, error))
      return FALSE;
    if (self->file != NULL)
      state->ops->kv_restore (state->ops, state->kv[layer], at, n, self->piece);
    at += n;
  }
  return TRUE;
}

static gboolean
transfer_recurrent (Transfer *self, guint layer, GError **error)
{
  OxState *state = self->session->state;
  OxDeltaShape shape = ox_config_delta_shape (state->config);

  if (self->file == NULL)
    state->ops->recurrent_save (state->ops, state->recurrent[layer], self->piece);
  if (!transfer_in_pieces (self, self->piece, ox_recurrent_bytes (&shape), error))
    return FALSE;
  if (self->file != NULL)
    state->ops->recurrent_restore (state->ops, state->recurrent[layer], self->piece);
  return TRUE;
}

static gboolean
transfer_layers (Transfer *self, const Header *header, GError **error)
{
  OxState *state = self->session->state;

  for (guint i = 0; i < state->config->num_hidden_layers; i++) {
    gboolean sliding = ox_config_is_sliding (state->config, i);

    if (state->recurrent[i] != NULL && !transfer_recurrent (self, i, error))
      return FALSE;
    if (state->kv[i] != NULL && !transfer_kv (self, i, sliding ? header->ring_low : 0, header->n_tokens, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Writing ---- */

static gboolean
write_snapshots (Transfer *self, guint n, GError **error)
{
  OxSnapshots *snapshots = self->session->snapshots;
  guint all = ox_snapshots_get_length (snapshots);

  for (guint i = all - n; i < all; i++) {
    const guint8 *bytes;
    gsize n_bytes;
    guint32 place[2] = { ox_snapshots_get (snapshots, i, &bytes, &n_bytes), 0 };

    if (!transfer (self, place, sizeof place, error) || !transfer_in_pieces (self, (guint8 *) bytes, n_bytes, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
write_all (Transfer *self, GError **error)
{
  OxSession *session = self->session;
  Header header = {
    .magic = MAGIC,
    .version = VERSION,
    .n_tokens = session->tokens->len,
    .ring_low = session->ring_low,
    .n_snapshots = MIN (ox_snapshots_get_length (session->snapshots), SAVED_SNAPSHOTS),
  };
  guint64 hash;

  if (!make_identity (session, header.identity, self->cancellable, error) ||
      !transfer (self, &header, sizeof header, error))
    return FALSE;
  self->hash = 0;
  if (!transfer_in_pieces (self, (guint8 *) session->tokens->data, (gsize) header.n_tokens * sizeof (guint32), error) ||
      !transfer_layers (self, &header, error) || !write_snapshots (self, header.n_snapshots, error))
    return FALSE;
  hash = self->hash;
  if (!transfer (self, &hash, sizeof hash, error))
    return FALSE;

  /* The header comes last: without it nothing is valid. */
  header.file_bytes = self->offset;
  header.checksum = checksum (0, &header, G_STRUCT_OFFSET (Header, checksum));
  if (lseek (self->fd, 0, SEEK_SET) < 0) {
    set_io_error (self->path, "The conversation could not be saved", errno, error);
    return FALSE;
  }
  return transfer (self, &header, sizeof header, error);
}

gboolean
ox_session_save (OxSession *session, const char *path, GCancellable *cancellable, GError **error)
{
  g_autofree char *temporary = g_strconcat (path, ".XXXXXX", NULL);
  g_autofree guint8 *piece = g_try_malloc (largest_piece (session));
  Transfer self = { .session = session, .path = path, .piece = piece, .cancellable = cancellable };
  gboolean ok;

  if (piece == NULL) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to save the conversation");
    return FALSE;
  }
  self.fd = g_mkstemp (temporary);
  if (self.fd < 0) {
    set_io_error (path, "The conversation could not be saved", errno, error);
    return FALSE;
  }
  ox_profile_start (&session->ops->profile, OX_PROFILE_IO);
  ok = write_all (&self, error);
  if (ok && fsync (self.fd) != 0) {
    set_io_error (path, "The conversation could not be saved", errno, error);
    ok = FALSE;
  }
  close (self.fd);
  if (ok && g_rename (temporary, path) != 0) {
    set_io_error (path, "The conversation could not be saved", errno, error);
    ok = FALSE;
  }
  ox_profile_stop (&session->ops->profile);
  if (!ok)
    g_unlink (temporary);
  return ok;
}

/* ---- Reading ---- */

static gboolean
check_header (Transfer *self, const Header *header, GError **error)
{
  OxSession *session = self->session;
  guint context_length = session->state->options.context_length;
  g_autofree char *shown = g_filename_display_name (self->path);
  guint8 identity[32];

  if (memcmp (header->magic, MAGIC, sizeof header->magic) != 0 ||
      checksum (0, header, G_STRUCT_OFFSET (Header, checksum)) != header->checksum) {
    set_damaged (self->path, "its header is not that of one", error);
    return FALSE;
  }
  if (header->version != VERSION) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: the conversation was saved in version %u of the format, and this is version %d", shown,
                 header->version, VERSION);
    return FALSE;
  }
  if (!make_identity (session, identity, self->cancellable, error))
    return FALSE;
  if (memcmp (header->identity, identity, sizeof identity) != 0) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: the conversation was saved with another model, or with other settings of it", shown);
    return FALSE;
  }
  if (header->n_tokens > context_length) {
    g_set_error (error, OX_ERROR, OX_ERROR_UNSUPPORTED,
                 "%s: the saved conversation has %u tokens, and this session can hold %u", shown, header->n_tokens,
                 context_length);
    return FALSE;
  }
  if (header->file_bytes != ox_file_get_size (self->file) || header->ring_low > header->n_tokens ||
      header->n_snapshots > SAVED_SNAPSHOTS) {
    set_damaged (self->path, "its size is not what the header says", error);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_snapshots (Transfer *self, const Header *header, GError **error)
{
  OxSession *session = self->session;
  guint32 last = 0;

  for (guint i = 0; i < header->n_snapshots; i++) {
    guint32 place[2];
    guint8 *bytes;

    if (!transfer (self, place, sizeof place, error))
      return FALSE;
    if (place[0] <= last || place[0] > header->n_tokens) {
      set_damaged (self->path, "a snapshot is out of place", error);
      return FALSE;
    }
    last = place[0];
    bytes = ox_snapshots_add (session->snapshots, last);
    if (bytes != NULL) {
      if (!transfer_in_pieces (self, bytes, ox_snapshot_bytes (session->state, last), error))
        return FALSE;
      continue;
    }
    /* No room to keep it. */
    for (gsize rest = ox_snapshot_bytes (session->state, last); rest > 0;) {
      guint8 unused[4096];
      gsize n = MIN (rest, sizeof unused);

      if (!transfer (self, unused, n, error))
        return FALSE;
      rest -= n;
    }
  }
  return TRUE;
}

static gboolean
read_all (Transfer *self, GError **error)
{
  OxSession *session = self->session;
  Header header;
  guint64 hash, saved_hash;

  if (!transfer (self, &header, sizeof header, error) || !check_header (self, &header, error))
    return FALSE;
  self->hash = 0;
  g_array_set_size (session->tokens, header.n_tokens);
  if (!transfer_in_pieces (self, (guint8 *) session->tokens->data, (gsize) header.n_tokens * sizeof (guint32), error))
    return FALSE;
  for (guint i = 0; i < header.n_tokens; i++)
    if (g_array_index (session->tokens, guint32, i) >= session->model->config->vocab_size) {
      set_damaged (self->path, "a token is outside of the vocabulary", error);
      return FALSE;
    }
  if (!transfer_layers (self, &header, error) || !read_snapshots (self, &header, error))
    return FALSE;
  hash = self->hash;
  if (!transfer (self, &saved_hash, sizeof saved_hash, error))
    return FALSE;
  if (hash != saved_hash || self->offset != header.file_bytes) {
    set_damaged (self->path, "its checksum is wrong", error);
    return FALSE;
  }
  ox_session_set_ring_low (session, header.ring_low);
  return TRUE;
}

gboolean
ox_session_restore (OxSession *session, const char *path, GCancellable *cancellable, GError **error)
{
  g_autofree guint8 *piece = g_try_malloc (largest_piece (session));
  g_autoptr (OxFile) file = NULL;
  Transfer self = { .session = session, .path = path, .fd = -1, .piece = piece, .cancellable = cancellable };
  gboolean ok;

  ox_session_reset (session);
  if (piece == NULL) {
    g_set_error_literal (error, OX_ERROR, OX_ERROR_NO_MEMORY, "Not enough memory to read the saved conversation");
    return FALSE;
  }
  file = ox_file_open (path, error);
  if (file == NULL)
    return FALSE;
  self.file = file;
  ox_profile_start (&session->ops->profile, OX_PROFILE_IO);
  ok = read_all (&self, error);
  ox_profile_stop (&session->ops->profile);
  if (!ok)
    ox_session_reset (session);
  return ok;
}
