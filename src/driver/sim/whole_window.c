// Adapters of the window kernels.
#include "driver/sim/whole.h"

const tn_whole_adapter_t tn_whole_window[] = {
    {TN_OP_COUNT, NULL, NULL, NULL, false, NULL},
};
