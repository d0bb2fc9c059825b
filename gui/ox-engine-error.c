/* The engine's errors in the words of the window.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#define G_LOG_DOMAIN "oxinfer"

#include "ox-engine.h"

#include <glib/gi18n.h>

char *
ox_engine_describe_error (const GError *error, const char *model_name)
{
  const char *name = model_name != NULL ? model_name : _ ("The model");

  if (error->domain == OX_ERROR)
    switch ((OxError) error->code) {
    case OX_ERROR_NOT_FOUND:
      return g_strdup_printf (
        _ ("A file of %s is missing. It may have been moved or deleted. Put it back, or choose another model."), name);
    case OX_ERROR_IO:
      return g_strdup_printf (
        _ ("%s could not be read from the disk. Check that the disk is connected, then try again."), name);
    case OX_ERROR_DAMAGED:
      return g_strdup_printf (
        _ ("The file of %s is damaged or incomplete. Download it again, or choose another model."), name);
    case OX_ERROR_UNSUPPORTED:
      return g_strdup_printf (_ ("%s is of a kind that this version of Oxinfer cannot run. Choose another model."),
                              name);
    case OX_ERROR_NO_MEMORY:
      return g_strdup_printf (
        _ ("%s does not fit in the memory that is free now. Close other programs, or choose a smaller model."), name);
    case OX_ERROR_CONTEXT_FULL:
      return g_strdup_printf (_ ("This conversation is longer than %s can read at once. Choose “Leave Out Oldest” "
                                 "below, or start a new chat."),
                              name);
    case OX_ERROR_NUMERIC:
      return g_strdup_printf (
        _ ("%s computed values that make no sense, so the answer was ended. Its file may be damaged: download it "
           "again, or choose another model."),
        name);
    case OX_ERROR_DRAFTER:
      return g_strdup_printf (
        _ (
          "%s is a helper of another model, which it makes faster, and cannot answer by itself. Choose another model."),
        name);
    case OX_ERROR_INVALID:
      break;
    }
  return g_strdup_printf (_ ("%s could not answer. Try again, or choose another model."), name);
}
