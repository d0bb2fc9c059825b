/* Where conversations are kept: one SQLite file, on a thread of its own. Main thread only, and nothing here blocks.
 *
 * Calls are carried out in the order in which they were made, those before ox_store_open_finish() too; results come to the main
 * loop. Every writing call may be made without a callback: what fails is told by the signal write-failed in any case, and
 * nothing is lost in memory. Writes are upserts of whole rows, so that trying again, or writing later states only, heals.
 *
 * Properties: state, notice (a lasting sentence for a banner, or NULL).
 * Signals: notice (const char *sentence): something to show once: a damaged library was put aside, a newer one is read only.
 *          write-failed (const char *sentence): something could not be saved; at most once a second.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-store-record.h"
#include <gio/gio.h>

G_BEGIN_DECLS

#define OX_STORE_ERROR (ox_store_error_quark ())
GQuark ox_store_error_quark (void);

/**
 * OxStoreError:
 * @OX_STORE_ERROR_OPEN: the file cannot be opened or made
 * @OX_STORE_ERROR_FULL: no space on the disk
 * @OX_STORE_ERROR_READ_ONLY: not writable, or made by a newer version
 * @OX_STORE_ERROR_DAMAGED: SQLite found damage
 * @OX_STORE_ERROR_FAILED: anything else
 * @OX_STORE_ERROR_CLOSED: the store is closed
 */
typedef enum {
  OX_STORE_ERROR_OPEN,
  OX_STORE_ERROR_FULL,
  OX_STORE_ERROR_READ_ONLY,
  OX_STORE_ERROR_DAMAGED,
  OX_STORE_ERROR_FAILED,
  OX_STORE_ERROR_CLOSED,
} OxStoreError;

typedef enum {
  OX_STORE_NEW,
  OX_STORE_OPEN,
  OX_STORE_READ_ONLY,
  OX_STORE_FAILED,
  OX_STORE_CLOSED,
} OxStoreState;

#define OX_TYPE_STORE_STATE (ox_store_state_get_type ())
GType ox_store_state_get_type (void);

#define OX_TYPE_STORE (ox_store_get_type ())
G_DECLARE_FINAL_TYPE (OxStore, ox_store, OX, STORE, GObject)

/* @path: NULL for $XDG_DATA_HOME/oxinfer/library.db. Nothing is touched before ox_store_open(). */
OxStore *ox_store_new (const char *path);
const char *ox_store_get_path (OxStore *self);
OxStoreState ox_store_get_state (OxStore *self);
const char *ox_store_get_notice (OxStore *self);

/* Opens or makes the file, brings it up to date, puts a damaged one aside, ends answers that were cut off, and erases what was
 * deleted in earlier runs. When it fails, the app can go on: every writing call fails then. */
void ox_store_open (OxStore *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean ox_store_open_finish (OxStore *self, GAsyncResult *result, GError **error);

/* Carries out all that was asked for, closes the file and waits for that, at most @timeout microseconds (-1: as long as it
 * takes). FALSE when time ran out. For the end of the app and of tests. */
gboolean ox_store_close (OxStore *self, gint64 timeout);

/* GPtrArray of OxConversationRecord, the newest first; deleted ones are not in it. */
void ox_store_list_conversations (OxStore *self,
                                  GCancellable *cancellable,
                                  GAsyncReadyCallback callback,
                                  gpointer user_data);
/* GPtrArray of OxMessageRecord, oldest first. */
void ox_store_list_messages (OxStore *self,
                             const char *conversation_id,
                             GCancellable *cancellable,
                             GAsyncReadyCallback callback,
                             gpointer user_data);
/* GPtrArray of OxSearchHit, at most @limit, the newest conversations first, at most one for a conversation. */
void ox_store_search (OxStore *self,
                      const char *text,
                      guint limit,
                      GCancellable *cancellable,
                      GAsyncReadyCallback callback,
                      gpointer user_data);
/* For the three above. Free with g_ptr_array_unref(). */
GPtrArray *ox_store_list_finish (OxStore *self, GAsyncResult *result, GError **error);

/* Saves a conversation and @messages (GPtrArray of OxMessageRecord, taken over) in one transaction, which is on the disk when
 * the callback comes: a power cut does not undo it. */
void ox_store_add_messages (OxStore *self,
                            const OxConversationRecord *conversation,
                            GPtrArray *messages,
                            GAsyncReadyCallback callback,
                            gpointer user_data);
/* Saves one message as it is (@message is taken over). A crash of the app does not undo it, a power cut may. */
void ox_store_save_message (OxStore *self, OxMessageRecord *message, GAsyncReadyCallback callback, gpointer user_data);
/* Saves all of a conversation but its messages. */
void ox_store_save_conversation (OxStore *self,
                                 const OxConversationRecord *conversation,
                                 GAsyncReadyCallback callback,
                                 gpointer user_data);
/* Marks or unmarks as deleted. */
void ox_store_set_deleted (
  OxStore *self, const char *conversation_id, gboolean deleted, GAsyncReadyCallback callback, gpointer user_data);
/* Erases for good, in the full-text index too. */
void ox_store_purge (OxStore *self, const char *conversation_id, GAsyncReadyCallback callback, gpointer user_data);
/* Erases messages; @ids is NULL-terminated. */
void ox_store_remove_messages (OxStore *self, const char *const *ids, GAsyncReadyCallback callback, gpointer user_data);
/* For all writing calls. */
gboolean ox_store_write_finish (OxStore *self, GAsyncResult *result, GError **error);

G_END_DECLS
