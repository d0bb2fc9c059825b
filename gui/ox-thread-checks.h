/* Which thread is this? Everything with listeners in the window is for the main thread alone; everything that computes or
 * waits is not. These checks stand at the top of functions, so that a mistake shows at once and not once a month.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <glib.h>
#include <unistd.h>

G_BEGIN_DECLS

/* Linux gives a process's first thread the id of the process; that holds in a forked child as well. */
static inline gboolean
ox_is_main_thread (void)
{
  return gettid () == getpid ();
}

#define OX_ASSERT_MAIN_THREAD() g_assert (ox_is_main_thread ())
/* For code of the engine thread and of other workers. */
#define OX_ASSERT_ENGINE_THREAD() g_assert (!ox_is_main_thread ())

G_END_DECLS
