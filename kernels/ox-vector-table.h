/* What an instruction set has from the shared templates, put into its table. Included after ox-vector-template.h, ox-recurrent-template.h
 * and ox-exp-double.h.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

static void
init_from_templates (OxKernels *table)
{
  table->rms_norm = rms_norm;
  table->rope = rope;
  table->silu_mul = silu_mul;
  table->gelu_tanh_mul = gelu_tanh_mul;
  table->sigmoid_mul = sigmoid_mul;
  table->softcap = softcap;
  table->softmax = softmax;
  table->add = add;
  table->add_scaled = add_scaled;
  table->scale = scale;
  table->dot = dot;
  table->argmax = argmax;
  table->group_greatest = group_greatest;
  table->exp_double = exp_double;
  table->conv_silu = conv_silu;
  table->delta_rule = delta_rule;
}
