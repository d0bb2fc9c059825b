/* Drafters: small networks that guess the next tokens of a large one from its last hidden state.
 *
 * A drafter is loaded beside a network, and has for each session a state that follows the session's. What it guesses changes how soon an
 * answer comes and never what it says.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "models/ox-network.h"

typedef struct _OxDrafterClass OxDrafterClass;

/* The beginning of every drafter. */
typedef struct {
  const OxDrafterClass *drafter_class;
  OxHandles handles;
  OxNetwork *target;
} OxDrafter;

/* The beginning of a drafter's state in a session. */
typedef struct {
  OxDrafter *drafter;
  OxState *target; /* of the session */
  float *logits;   /* [vocab], of the last drafted token */
  OxTensor
    hidden; /* [1, hidden of the network]: the network's row before the newest token, then the draft's own from step to step */
} OxDraftState;

struct _OxDrafterClass {
  void (*free) (OxDrafter *drafter);
  OxDraftState *(*state_new) (OxDrafter *drafter, OxState *target, GError **error);
  void (*state_free) (OxDraftState *state);
  /* The network has run tokens @ids at @position …, and the first @n rows of its working tensor h are their rows after the final norm. */
  gboolean (*observe) (
    OxDraftState *state, const guint32 *ids, guint n, guint position, GCancellable *cancellable, GError **error);
  /* The conversation was cut back: what was seen last is not what comes before the next token. */
  void (*forget) (OxDraftState *state);
  /* Guesses at most @n tokens after @newest, which comes at @position and has not been run yet. Returns how many, fewer when the
   * drafter knows nothing yet; 0 with @error set on failure. */
  guint (*draft) (OxDraftState *state,
                  guint32 newest,
                  guint position,
                  guint n,
                  guint32 *ids,
                  GCancellable *cancellable,
                  GError **error);
};

/* Gemma 4's assistant, from files of its own. @loader: with the drafter's weights and configuration. NULL with an error when it was not
 * made for @target; with @target NULL, to plan, that is not asked. */
OxDrafter *ox_gemma4_drafter_load (OxLoader *loader, OxNetwork *target, GError **error);
/* The MTP layer in Qwen 3.5's own files; NULL without an error when they have none. */
OxDrafter *ox_qwen35_mtp_load (OxLoader *loader, OxNetwork *target, GError **error);
/* @ops: those it was loaded with. */
void ox_drafter_free (OxDrafter *drafter, OxOps *ops);
