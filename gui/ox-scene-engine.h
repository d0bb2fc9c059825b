/* A scripted engine in place of the real one, for prepared scenes and for tests of the window.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-engine-backend.h"

G_BEGIN_DECLS

/**
 * OxSceneScript:
 * @OX_SCENE_ANSWER: answers in a few pieces and ends
 * @OX_SCENE_LOADING: stays in the middle of loading the model
 * @OX_SCENE_READING: stays in the middle of reading the conversation
 * @OX_SCENE_WRITING: stays in the middle of the answer
 * @OX_SCENE_FAILING: fails for want of memory
 * @OX_SCENE_THINKING: stays in the middle of a thought
 * @OX_SCENE_TOOLS: thinks, calls tools, and stays in the middle of the answer
 * @OX_SCENE_FULL: as OX_SCENE_ANSWER, and every conversation is longer than the context
 */
typedef enum {
  OX_SCENE_ANSWER,
  OX_SCENE_LOADING,
  OX_SCENE_READING,
  OX_SCENE_WRITING,
  OX_SCENE_FAILING,
  OX_SCENE_THINKING,
  OX_SCENE_TOOLS,
  OX_SCENE_FULL,
} OxSceneScript;

const OxEngineBackend *ox_scene_engine_get_backend (void);

void ox_scene_engine_set_script (OxSceneScript script, const char *answer);

G_END_DECLS
