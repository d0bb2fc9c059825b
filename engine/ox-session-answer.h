/* Writing an answer: what its rounds share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-session-private.h"
#include "text/ox-grammar.h"
#include "text/ox-output-parser.h"
#include "text/ox-sampler.h"
#include "text/ox-stop-strings.h"

/* A call that the model has written. */
typedef struct {
  char *name;
  char *arguments;
} OxAnswerCall;

/* One answer: a prompt is read and continued; when that calls tools, the next round reads their results and goes on. */
typedef struct {
  OxSession *session;
  const OxSampling *sampling;
  OxEventFunc on_event;
  gpointer user_data;
  GCancellable *cancellable;
  OxEvent event; /* carries the statistics along */
  gint64 start;
  OxSampler *sampler;
  OxStopStrings *stop;
  OxGrammar *grammar; /* of the JSON schema, or NULL */
  guint32 *allowed;   /* a bit for each token that it allows next */
  guint computed;     /* prompt tokens that were run, of all rounds */
  guint told;         /* rounds whose prompt the sampler knows */

  /* What the model said in this round */
  GString *text;
  GString *reasoning;
  GArray *calls;    /* OxAnswerCall */
  gboolean stopped; /* by a stop string */
} OxAnswer;

/* Checks @sampling. Clear it whatever happened. */
gboolean ox_answer_init (OxAnswer *answer, GError **error);
void ox_answer_clear (OxAnswer *answer);
void ox_answer_emit (OxAnswer *answer, OxEventType type);
/* One round: reads the prompt @ids, and writes until the model or something else ends it: event.reason tells. @format NULL: plain text.
 * @chat: whose tools a call may name; NULL with plain text. */
gboolean ox_answer_run_round (OxAnswer *answer,
                              const GArray *ids,
                              const OxChatFormat *format,
                              gboolean in_thinking,
                              const OxChat *chat,
                              GError **error);
