// CUDA graphs: nodes, their dependencies, and the order in which they run.
#pragma once

#include "clock.h"
#include "cuda_runtime_api.h"
#include "growable.h"
#include "operation.h"

namespace sim {

// The operations of a node: none, one, or several that one API call created.
class OperationList {
  public:
    OperationList() = default;
    ~OperationList() { clear(); }

    const Operation* begin() const { return operations_.begin(); }
    const Operation* end() const { return operations_.end(); }
    void add(const Operation& operation);  // copies the kernel's arguments
    void copy(const OperationList& other);
    void take(OperationList& other);

  private:
    void clear();
    Growable<Operation> operations_;
};

// Nodes in insertion order.
struct NodeSet : Growable<CUgraphNode_st*> {
    bool has(const CUgraphNode_st* node) const;
    bool remove(const CUgraphNode_st* node);
};

}  // namespace sim

struct CUgraphNode_st {
    CUgraph_st* graph;
    CUgraphNode_st* next = nullptr;
    CUgraphNode_st* previous = nullptr;
    cudaGraphNodeType type;
    uint64_t number;        // number among all nodes ever created
    uint64_t original = 0;  // the node that this one is a copy of
    unsigned stream = sim::in_graph;
    sim::OperationList work;
    CUgraph_st* child = nullptr;
    sim::NodeSet before;  // the nodes that it depends on
    // For a node from a captured stream: the stream's slot in the capture, the node's position in that slot, and the
    // nodes that it is ordered after.
    uint32_t slot = 0, place = 0;
    sim::Clock known;
    size_t position = 0;  // scratch space for traversals
};

struct CUgraph_st {
    CUgraphNode_st* first = nullptr;  // first node in creation order
    CUgraphNode_st* last = nullptr;
    size_t count = 0;
    CUgraph_st* next = nullptr;  // next graph that has a handle
    bool embedded = false;       // a child graph node of another graph owns this graph
};

namespace sim {

// A node in a schedule. The nodes of a graph are distributed to slots. In one slot, each node is ordered after the
// previous one. At a launch, each slot is assigned to a lane (clock.h).
struct Step {
    CUgraphNode_st* node;
    uint32_t slot;
    uint32_t number;
    Clock known;
};

struct Schedule {
    Step* steps = nullptr;
    size_t count = 0;
    uint32_t slots = 1;
    ~Schedule() { delete[] steps; }
};

namespace graphs {

CUgraph_st* create();
CUgraph_st* clone(const CUgraph_st& graph);
void destroy(CUgraph_st* graph);
CUgraphNode_st* add(CUgraph_st& graph, cudaGraphNodeType type);
void remove(CUgraphNode_st* node);

// Graphs that have a handle; find returns an existing graph or null.
void publish(CUgraph_st* graph);
void withdraw(CUgraph_st* graph);
CUgraph_st* find(cudaGraph_t handle);
CUgraphNode_st* find(cudaGraphNode_t handle);

// Creates a topological order, including the nodes of child graphs. Returns false if the dependencies have a cycle.
bool make_schedule(const CUgraph_st& graph, Schedule* schedule);
// Returns whether two graphs have the same nodes with the same dependencies. If not, *differing is the first node of
// `other` that differs, or null if the numbers of nodes differ.
bool same_shape(const CUgraph_st& graph, const CUgraph_st& other, CUgraphNode_st** differing, bool* type_differs);
// Copies the operations of the nodes of `other` to the nodes of `graph`, which has the same shape.
void take_work(CUgraph_st& graph, const CUgraph_st& other);

// While a collector exists, the operations that this thread submits are collected for a node instead of going to a
// stream.
class Collector {
  public:
    Collector();
    ~Collector();
    Collector(const Collector&) = delete;
    Collector& operator=(const Collector&) = delete;
    OperationList collected;
};
// Returns the list of this thread's collector, or null.
OperationList* collecting();

}  // namespace graphs

}  // namespace sim
