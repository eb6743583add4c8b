// Instantiated graphs, as host_graphs.cpp stores them.
#pragma once

#include "graphs.h"

namespace sim::executables {

constexpr const char* no_graph = "no such graph: it was never made or captured, or has been destroyed";
constexpr const char* no_executable = "no such executable graph: it was never instantiated, or has been destroyed";

bool find(cudaGraphExec_t handle);
// Returns the executable's copy of a node of its original graph, or null.
CUgraphNode_st* copy_of(cudaGraphExec_t executable, const CUgraphNode_st& node);

}  // namespace sim::executables
