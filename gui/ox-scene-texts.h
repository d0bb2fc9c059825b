/* What the invented library of the scenes holds.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * OxSceneChat:
 * @title: of the conversation
 * @days: how long ago it was
 * @pinned: whether it stands at the top
 * @messages: texts of the person and of the model in turns, NULL-terminated
 */
typedef struct {
  const char *title;
  int days;
  gboolean pinned;
  const char *messages[6];
} OxSceneChat;

const OxSceneChat *ox_scene_get_chats (guint *n);

extern const char *const ox_scene_streaming_question;
extern const char *const ox_scene_streaming_answer;
extern const char *const ox_scene_long_question;
extern const char *const ox_scene_thinking;

G_END_DECLS
