// Graphs: nodes, what each of them comes after, and the order in which they run.
#pragma once

#include "clock.h"
#include "cuda_runtime_api.h"
#include "operation.h"

namespace sim {

// What a node asks of the device: nothing, one operation, or several that are one to whoever made the node.
class OperationList {
  public:
    OperationList() = default;
    OperationList(const OperationList&) = delete;
    OperationList& operator=(const OperationList&) = delete;
    ~OperationList() { clear(); }

    struct Entry {
        Operation operation;
        Entry* next;
    };
    const Entry* first() const { return first_; }
    void add(const Operation& operation);  // with a copy of the kernel's arguments
    void copy(const OperationList& other);
    void take(OperationList& other);

  private:
    void clear();
    Entry* first_ = nullptr;
    Entry* last_ = nullptr;
};

// Nodes in the order in which they were added.
class NodeSet {
  public:
    NodeSet() = default;
    NodeSet(const NodeSet&) = delete;
    NodeSet& operator=(const NodeSet&) = delete;
    ~NodeSet() { free(nodes_); }

    size_t size() const { return size_; }
    CUgraphNode_st* operator[](size_t i) const { return nodes_[i]; }
    bool has(const CUgraphNode_st* node) const;
    void add(CUgraphNode_st* node);
    bool remove(const CUgraphNode_st* node);

  private:
    CUgraphNode_st** nodes_ = nullptr;
    size_t size_ = 0, room_ = 0;
};

}  // namespace sim

struct CUgraphNode_st {
    CUgraph_st* graph;
    CUgraphNode_st* next = nullptr;
    CUgraphNode_st* previous = nullptr;
    cudaGraphNodeType type;
    uint64_t number;        // of all nodes that were ever made
    uint64_t original = 0;  // the one that this is a copy of
    unsigned stream = sim::in_graph;
    sim::OperationList work;
    CUgraph_st* child = nullptr;
    sim::NodeSet before;  // what it comes after
    // While a stream is captured: its lane there, its place in that, and all that it comes after.
    uint32_t slot = 0, place = 0;
    sim::Clock known;
    size_t position = 0;  // for whoever goes over the graph
};

struct CUgraph_st {
    CUgraphNode_st* first = nullptr;  // in the order in which they were made
    CUgraphNode_st* last = nullptr;
    size_t count = 0;
    CUgraph_st* next = nullptr;  // of those that have a handle
    bool embedded = false;       // a child node owns it
};

namespace sim {

// When a node runs: each slot is a lane of which every node comes after the one before it.
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

// Those that have a handle: a graph that is there, or null.
void publish(CUgraph_st* graph);
void withdraw(CUgraph_st* graph);
CUgraph_st* find(cudaGraph_t handle);
CUgraphNode_st* find(cudaGraphNode_t handle);

// An order that the dependencies allow, nodes of child graphs included. False where they go in a circle.
bool make_schedule(const CUgraph_st& graph, Schedule* schedule);
// Whether two graphs have the same nodes in the same places; otherwise `differing` is the first of `other` that
// is not, or null where their numbers differ.
bool same_shape(const CUgraph_st& graph, const CUgraph_st& other, CUgraphNode_st** differing, bool* type_differs);
// Of two graphs of the same shape: what the nodes of `other` ask for, for those of `graph`.
void take_work(CUgraph_st& graph, const CUgraph_st& other);

// While there is one, what this thread submits is no work of a stream: it is collected for a node.
class Collector {
  public:
    Collector();
    ~Collector();
    Collector(const Collector&) = delete;
    Collector& operator=(const Collector&) = delete;
    OperationList collected;
};
// The list of this thread's collector, or null.
OperationList* collecting();

}  // namespace graphs

}  // namespace sim
