// The driver that accepts every graph and computes nothing: the template for a new driver, and a test double.
#ifndef TN_DRIVER_NULL_H_
#define TN_DRIVER_NULL_H_

#include "tn/driver.h"

extern const tn_driver_t tn_driver_null;

#endif  // TN_DRIVER_NULL_H_
