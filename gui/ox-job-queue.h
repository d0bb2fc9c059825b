/* One worker thread, and the jobs that wait for it.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "ox-job.h"

G_BEGIN_DECLS

#define OX_TYPE_JOB_QUEUE (ox_job_queue_get_type ())
G_DECLARE_FINAL_TYPE (OxJobQueue, ox_job_queue, OX, JOB_QUEUE, GObject)

/* The thread starts with the first job, a little nicer than the window's, and so do threads that it makes. */
OxJobQueue *ox_job_queue_new (const char *thread_name);

/* Takes a reference until the job is done. Main thread. */
void ox_job_queue_push (OxJobQueue *self, OxJob *job, OxJobPriority priority);
/* Jobs that wait or run. */
guint ox_job_queue_get_length (OxJobQueue *self);

/* Cancels all jobs, so that each is finished when this returns, and waits for the thread, at most @timeout microseconds. FALSE when
 * the thread did not come back in time; it is left alone then, and the process can end. */
gboolean ox_job_queue_shutdown (OxJobQueue *self, gint64 timeout);

G_END_DECLS
