/* The engine's error domain.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "oxinfer.h"

G_DEFINE_QUARK (ox-error-quark, ox_error)
