/* What all drafters share.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "models/ox-drafter.h"

void
ox_drafter_free (OxDrafter *drafter, OxOps *ops)
{
  if (drafter == NULL)
    return;
  ox_handles_clear (&drafter->handles, ops);
  drafter->drafter_class->free (drafter);
}
