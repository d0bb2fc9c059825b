/* A piece of work for the engine thread. See ox-job-queue.h.
 *
 * A job runs once. Its class says what to do there (run), how the main thread takes over what it made (drain) and how it ends
 * (done). Cancelling ends a job at once on the main thread, whatever the engine thread is doing: what that still makes is
 * dropped. "finished" is emitted exactly once for each job that was pushed or cancelled, on the main thread, in every order of events.
 *
 * Properties: state. Signals: finished (GError *error): NULL: success; G_IO_ERROR_CANCELLED: stopped.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef enum {
  OX_JOB_NEW,
  OX_JOB_QUEUED,
  OX_JOB_RUNNING,
  OX_JOB_DONE,
} OxJobState;

#define OX_TYPE_JOB_STATE (ox_job_state_get_type ())
GType ox_job_state_get_type (void);

/* The order in which waiting jobs run; first come, first served within each. */
typedef enum {
  OX_JOB_INTERACTIVE,
  OX_JOB_NORMAL,
  OX_JOB_BACKGROUND,
} OxJobPriority;

#define OX_TYPE_JOB (ox_job_get_type ())
G_DECLARE_DERIVABLE_TYPE (OxJob, ox_job, OX, JOB, GObject)

/**
 * OxJobClass:
 * @run: on the engine thread: does the work, obeying @cancellable within 100 ms. May not touch GObject properties; leaves what it
 *   makes behind a mutex and calls ox_job_wake().
 * @drain: on the main thread, at most once in 16 ms, and once more before @done: takes over what @run left
 * @done: on the main thread, once, before the signal finished
 */
struct _OxJobClass {
  GObjectClass parent_class;

  gboolean (*run) (OxJob *self, GCancellable *cancellable, GError **error);
  void (*drain) (OxJob *self);
  void (*done) (OxJob *self, const GError *error);

  gpointer padding[4];
};

OxJobState ox_job_get_state (OxJob *self);
/* The job's own; cancelled by ox_job_cancel(). */
GCancellable *ox_job_get_cancellable (OxJob *self);

/* Ends the job now, as G_IO_ERROR_CANCELLED: when this returns, finished has been emitted. Pushing it later does nothing. On one that
 * is done it does nothing. Main thread. */
void ox_job_cancel (OxJob *self);
/* From run: there is something to drain. Cheap; call it as often as you like. */
void ox_job_wake (OxJob *self);

G_END_DECLS
