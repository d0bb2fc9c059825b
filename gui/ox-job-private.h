/* Between a job and its queue.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-job-queue.h"

G_BEGIN_DECLS

/* ---- ox-job.c, main thread ---- */

void ox_job_set_queued (OxJob *self, OxJobQueue *queue);
/* The engine thread has taken it. */
void ox_job_set_running (OxJob *self);
/* The one place where a job ends; does nothing on one that is done. */
void ox_job_finish (OxJob *self, const GError *error);

/* ---- ox-job.c, engine thread ---- */

gboolean ox_job_run (OxJob *self, GError **error);

/* ---- ox-job-queue.c, main thread ---- */

/* @job is done: takes it out if it still waits. */
void ox_job_queue_remove (OxJobQueue *self, OxJob *job);

G_END_DECLS
