/* Units of measurement, with exact factors.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#pragma once

#include "tools/ox-exact.h"

/* What units are made of. Angles count, so that degrees and radians are told apart. */
typedef enum {
  OX_DIMENSION_LENGTH,
  OX_DIMENSION_MASS,
  OX_DIMENSION_TIME,
  OX_DIMENSION_TEMPERATURE,
  OX_DIMENSION_CURRENT,
  OX_DIMENSION_DATA,
  OX_DIMENSION_ANGLE,
  OX_N_DIMENSIONS,
} OxDimension;

typedef enum {
  OX_UNIT_PREFIXES = 1 << 0,        /* kilo, milli, … */
  OX_UNIT_BINARY_PREFIXES = 1 << 1, /* kibi, mebi, …; then also K for kilo */
  OX_UNIT_FUEL = 1 << 2,            /* distance for fuel and fuel for distance are turned into each other */
  OX_UNIT_IRRATIONAL = 1 << 3,      /* the factor is 1 / (2 pi) */
} OxUnitFlags;

/* @symbols, @names: between bars, the first is how it is written; symbols take short prefixes, names long ones. @factor: base units in
 * one, as a decimal number or a fraction; @offset: what is added in base units. Base units: m, kg, s, K, A, bit, turn. */
typedef struct {
  const char *symbols;
  const char *names;
  const char *factor;
  const char *offset;
  gint8 dimensions[OX_N_DIMENSIONS];
  OxUnitFlags flags;
} OxUnit;

typedef struct {
  const char *symbol;
  const char *name;
  int base; /* 10 or 2 */
  int exponent;
} OxUnitPrefix;

extern const OxUnit ox_units[];
extern const gsize ox_n_units;
extern const OxUnitPrefix ox_unit_prefixes[];
extern const gsize ox_n_unit_prefixes;

#define OX_MAX_UNIT_TERMS 6

typedef struct {
  const OxUnit *unit;
  const OxUnitPrefix *prefix; /* or NULL */
  int exponent;
} OxUnitTerm;

/* A product of units; of none: a plain number. */
typedef struct {
  OxUnitTerm terms[OX_MAX_UNIT_TERMS];
  guint n_terms;
} OxUnitProduct;

/* The unit called by @len bytes of @name: "km", "kilometres", "nautical mile". Another case is taken when that is clear. */
gboolean ox_unit_find (const char *name, gsize len, OxUnitTerm *term);
/* As many bytes of @text as are a product of units: "km/h", "kg m^2", "square feet", "L/100 km"; 0 for none. */
gsize ox_unit_product_parse (const char *text, OxUnitProduct *product);
/* Up to three names that are spelt like this one: "metre, meter"; or NULL. */
char *ox_unit_suggest (const char *name, gsize len);

void ox_unit_product_get_dimensions (const OxUnitProduct *product, int dimensions[OX_N_DIMENSIONS]);
gboolean ox_unit_product_is_alike (const OxUnitProduct *a, const OxUnitProduct *b);
/* Base units in one. */
const OxNumber *ox_unit_product_get_factor (OxCalculation *calculation, const OxUnitProduct *product);
/* The unit's own offset, when it is one alone, like °C; else NULL. */
const char *ox_unit_product_get_offset (const OxUnitProduct *product);
gboolean ox_unit_product_is_fuel (const OxUnitProduct *product);
/* Multiplies @product by @other to the power of @sign (1 or -1). Units of one kind become one. FALSE when there are too many. */
gboolean ox_unit_product_multiply (OxUnitProduct *product, const OxUnitProduct *other, int sign);
/* What is left when all dimensions are gone is no unit. TRUE when it was emptied. */
gboolean ox_unit_product_reduce (OxUnitProduct *product);
/* "km/h" */
char *ox_unit_product_to_text (const OxUnitProduct *product);
