// The software NeuronCore: graphs become machine code and C kernels of this host.
#ifndef TN_DRIVER_SIM_H_
#define TN_DRIVER_SIM_H_

#include "tn/driver.h"

extern const tn_driver_t tn_driver_sim;

#endif  // TN_DRIVER_SIM_H_
