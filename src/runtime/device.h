// What the files of this room share about devices.
#ifndef TN_RUNTIME_DEVICE_H_
#define TN_RUNTIME_DEVICE_H_

#include "tn/device.h"

// Largest core number + 1: per-device tables are arrays of this size.
enum { TN_DEVICE_LIMIT = 128 };

// Error of a device number outside 0..count-1.
tn_status_t tn_device_range_error(int device);

#endif  // TN_RUNTIME_DEVICE_H_
