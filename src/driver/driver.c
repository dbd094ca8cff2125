// The registry of drivers.
#include "tn/driver.h"

#include <string.h>

#include "base/options.h"
#include "driver/null/null.h"
#include "driver/sim/sim.h"

tn_status_t tn_driver_find(const char* name, const tn_driver_t** out_driver) {
  static const tn_driver_t* const k_drivers[] = {&tn_driver_sim, &tn_driver_null};
  *out_driver = NULL;
  if (!name) name = tn_option_string(TN_OPTION_DRIVER);
  if (!name || !*name) name = "sim";
  for (size_t i = 0; i < sizeof(k_drivers) / sizeof(k_drivers[0]); ++i)
    if (strcmp(k_drivers[i]->name, name) == 0) *out_driver = k_drivers[i];
  if (*out_driver) return TN_OK;
  return TN_ERROR(TN_NOT_FOUND, "driver '%s' does not exist; there are: sim, null", name);
}
