#ifndef TN_DRIVER_SIM_LAUNCH_H_
#define TN_DRIVER_SIM_LAUNCH_H_

#include "driver/sim/program.h"

tn_status_t tn_sim_launch(const tn_program_t* program, const tn_launch_t* launch);

#endif  // TN_DRIVER_SIM_LAUNCH_H_
