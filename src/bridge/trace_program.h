// What a trace keeps per set of concrete arguments.
#pragma once

#include "trace.h"

namespace tn::bridge {

// Of the first tensor on neuron, else the current one.
int device_of(const std::vector<TraceItem>& inputs);

struct TraceParamPlan {
  enum Kind : uint8_t { Tensor, HostTensor, Int, Random, GeneratorState } kind;
  int32_t index;  // input; Int: expression; Random: which random call
};

struct TraceResultPlan {
  enum Kind : uint8_t { None, Fresh, View, Int, GeneratorState } kind = None;
  ResultPlan
      plan;  // Fresh; GeneratorState: |index| is the random call, -1: the state after the launch
  int32_t index = 0;
  int64_t constant = 0;
  bool is_dynamic = false;  // Int: evaluate |index| at every run
};

struct Trace::Program {
  const tn_driver_t* driver = nullptr;
  tn_program_t* program = nullptr;
  std::string reason;  // why there is no program
  int refused = -1;    // the call it is due to, if it is one
  int device = 0;
  std::vector<TraceParamPlan> params;
  std::vector<TraceResultPlan> results;
  std::vector<int> written;  // parameters, in order of the graph's last results
  std::vector<uint64_t> random_counts;
  std::vector<OpAccount*> accounts;
  ~Program() {
    if (program) driver->destroy(program);
  }
};

}  // namespace tn::bridge
