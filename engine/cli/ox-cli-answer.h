/* An answer as it comes: shown to a person or written as JSON, and kept so that the conversation can go on.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-cli.h"

typedef struct {
  OxCli *cli;
  GString *text;     /* all of the answer so far */
  GPtrArray *rounds; /* what was said between tool calls, the calls, and what they gave */
  gboolean is_dim;   /* thinking is being shown */
  OxEndReason reason;
  OxStatistics statistics;
} OxCliAnswer;

void ox_cli_answer_init (OxCliAnswer *answer, OxCli *cli);
void ox_cli_answer_clear (OxCliAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (OxCliAnswer, ox_cli_answer_clear)

/* An OxEventFunc; @user_data: OxCliAnswer. */
void ox_cli_answer_on_event (const OxEvent *event, gpointer user_data);
/* Ends the answer's last line, and tells a person at a terminal how fast it was. */
void ox_cli_answer_finish (OxCliAnswer *answer);
/* What the assistant said and did, as messages of @chat. */
gboolean ox_cli_answer_append (const OxCliAnswer *answer, OxChat *chat, GError **error);
