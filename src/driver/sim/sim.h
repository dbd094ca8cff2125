// The software NeuronCore: graphs become machine code and C kernels of this host.
#ifndef TN_DRIVER_SIM_H_
#define TN_DRIVER_SIM_H_

#include "compile/plan.h"
#include "tn/driver.h"

extern const tn_driver_t tn_driver_sim;
// What it can run as one step.
extern const tn_plan_target_t tn_sim_target;

#endif  // TN_DRIVER_SIM_H_
