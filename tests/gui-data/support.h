/* What the tests of the app's data have in common: waiting on the main loop, and an engine that does as it is told.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine-backend.h"
#include "ox-store.h"

G_BEGIN_DECLS

/* Runs the main loop until @condition holds; fails the test after 20 seconds. */
#define run_until(condition)                                                                                           \
  G_STMT_START                                                                                                         \
  {                                                                                                                    \
    gint64 deadline_ = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;                                                  \
    while (!(condition)) {                                                                                             \
      if (g_get_monotonic_time () > deadline_)                                                                         \
        g_error ("%s:%d: never came true: %s", __FILE__, __LINE__, #condition);                                        \
      iterate ();                                                                                                      \
    }                                                                                                                  \
  }                                                                                                                    \
  G_STMT_END

/* One turn of the main loop, at most 10 ms. */
void iterate (void);
void run_for (guint milliseconds);
/* Until nothing is pending. */
void settle (void);

/* A GAsyncReadyCallback for a GAsyncResult * at @user_data. */
void keep_result (GObject *source, GAsyncResult *result, gpointer user_data);

/* ---- Store ---- */

char *make_temporary_folder (void);
void remove_folder (const char *path);

/* Opens a store at @path and waits. The error, if any, is dropped: look at the state. */
OxStore *open_store (const char *path);
void close_store (OxStore *store);
GPtrArray *list_conversations (OxStore *store);
GPtrArray *list_messages (OxStore *store, const char *conversation_id);
GPtrArray *search (OxStore *store, const char *text);
/* FALSE and @error when it could not be written. @text NULL: an answer being written. */
gboolean add_message (
  OxStore *store, const char *conversation_id, const char *message_id, const char *text, GError **error);
/* SQL on the file from outside, as damage and other versions would. */
void run_sql (const char *path, const char *sql);
int query_int (const char *path, const char *sql);
gboolean wait_for_write (OxStore *store, GAsyncResult **result, GError **error);

/* ---- Engine ---- */

typedef enum {
  STAGE_NONE,
  STAGE_LOAD,
  STAGE_SESSION,
  STAGE_PREFILL,
  STAGE_THINK,
  STAGE_DECODE,
} Stage;

/**
 * FakeScript: what the fake engine does
 * @endless: stays in this stage until it is cancelled
 * @deaf: and does not listen to that for so many milliseconds
 * @fail: fails in this stage, with @fail_code of OX_ERROR
 * @n_pieces: of text, "word0 " "word1 " …
 * @piece_delay: microseconds before each
 * @n_thoughts: pieces of thinking before the text, "thought0 " …, each after @piece_delay
 * @calls: names of tools to be called, each in a round of its own with {"expression": "37*12"}; the text comes after them
 * @malformed: a call that cannot be read comes first
 * @dropped: messages left out
 * @capabilities: of models beyond chat
 * @bad_drafter: models do not load with one
 * @measured: tokens of any chat, of which a session told to drop leaves out those over the context
 */
typedef struct {
  Stage endless;
  guint deaf;
  Stage fail;
  OxError fail_code;
  guint n_pieces;
  guint piece_delay;
  OxEndReason end_reason;
  gboolean no_sampling;
  guint n_thoughts;
  const char *const *calls;
  gboolean malformed;
  guint dropped;
  OxCapabilities capabilities;
  guint measured;
  gboolean bad_drafter;
} FakeScript;

/* Puts everything back and sets the script. */
void fake_engine_set_script (const FakeScript *script);
/* Models are files; what they hold says what they are: "ok", "ok BYTES" of weights, "base", "damaged", "unsupported",
 * "drafter", which can be loaded along with another model only. */
const OxEngineBackend *fake_engine_get_backend (void);

/* What the fake was asked for, since the script was set. */
Stage fake_engine_get_stage (void);
guint fake_engine_count_loads (void);
guint fake_engine_count_sessions (void);
guint fake_engine_count_generates (void);
guint fake_engine_count_plans (void);
guint fake_engine_count_measures (void);
/* The drafter of the last load, "" for none. */
char *fake_engine_dup_drafter (void);
OxModelOptions fake_engine_get_options (void);
/* What a model was told last. */
gboolean fake_engine_get_power_saving (void);
/* Of the last answer: tools in the session, policy and speculation. */
guint fake_engine_get_n_tools (void);
OxContextPolicy fake_engine_get_policy (void);
OxSpeculation fake_engine_get_speculation (void);
/* "role: text" lines of the last chat, and the last sampling. */
char *fake_engine_dup_chat (void);
OxSampling fake_engine_get_sampling (void);
/* Models and sessions that were not freed. */
int fake_engine_count_alive (void);

G_END_DECLS
