// Lookup in the instantiated graphs that host_graphs.cpp stores.
#pragma once

#include "graphs.h"

namespace sim::executables {

constexpr const char* no_graph = "invalid graph: it was never created or captured, or was destroyed";
constexpr const char* no_executable = "invalid executable graph: it was never instantiated, or was destroyed";

bool find(cudaGraphExec_t handle);
// Returns the executable's copy of a node of its original graph, or null.
CUgraphNode_st* copy_of(cudaGraphExec_t executable, const CUgraphNode_st& node);

}  // namespace sim::executables
