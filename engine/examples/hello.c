/* The smallest useful program: asks a model one question and prints the answer as it comes.
 *
 *   hello MODEL.gguf "What is the capital of France?"
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>

#include "oxinfer.h"

static void
on_event (const OxEvent *event, gpointer user_data)
{
  if (event->type == OX_EVENT_TEXT) {
    fputs (event->text, stdout);
    fflush (stdout);
  } else if (event->type == OX_EVENT_END) {
    printf ("\n[%u tokens, %.1f a second]\n", event->statistics.answer_tokens,
            ox_statistics_get_decode_rate (&event->statistics));
  }
}

int
main (int argc, char **argv)
{
  g_autoptr (OxModel) model = NULL;
  g_autoptr (OxSession) session = NULL;
  g_autoptr (OxChat) chat = ox_chat_new ();
  g_autoptr (GError) error = NULL;

  if (argc != 3) {
    fprintf (stderr, "Usage: %s MODEL QUESTION\n", argv[0]);
    return 2;
  }
  ox_chat_append (chat, OX_ROLE_USER, argv[2]);

  model = ox_model_load (argv[1], NULL, NULL, NULL, NULL, &error);
  if (model != NULL)
    session = ox_session_new (model, &error);
  if (session == NULL || !ox_session_generate (session, chat, NULL, on_event, NULL, NULL, &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  return 0;
}
