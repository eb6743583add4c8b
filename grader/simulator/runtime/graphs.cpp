#include "graphs.h"

namespace sim {

void OperationList::add(const Operation& operation) {
    LaunchBody& body = operations_.push(operation).body;
    if (operation.kind == OperationKind::kernel) body.context = body.clone(body.context);
}

void OperationList::copy(const OperationList& other) {
    if (this == &other) return;
    clear();
    for (const Operation& operation : other) add(operation);
}

void OperationList::take(OperationList& other) {
    clear();
    operations_.append(other.begin(), other.operations_.size());
    other.operations_.clear();
}

void OperationList::clear() {
    for (const Operation& operation : operations_)
        if (operation.kind == OperationKind::kernel) operation.body.destroy(operation.body.context);
    operations_.clear();
}

bool NodeSet::has(const CUgraphNode_st* node) const {
    for (const CUgraphNode_st* one : *this)
        if (one == node) return true;
    return false;
}

bool NodeSet::remove(const CUgraphNode_st* node) {
    for (size_t i = 0; i < size(); ++i) {
        if ((*this)[i] != node) continue;
        Growable::remove(i);
        return true;
    }
    return false;
}

namespace graphs {

namespace {

CUgraph_st* published = nullptr;
uint64_t nodes_made = 0;
thread_local Collector* collector = nullptr;

// Numbers the nodes, so that a table can hold data about each node at its position.
void number(const CUgraph_st& graph) {
    size_t position = 0;
    for (CUgraphNode_st* node = graph.first; node; node = node->next) node->position = position++;
}

size_t steps_of(const CUgraph_st& graph) {
    size_t steps = 0;
    for (CUgraphNode_st* node = graph.first; node; node = node->next) steps += node->child ? steps_of(*node->child) : 1;
    return steps;
}

class Scheduler {
  public:
    Scheduler(Schedule& schedule, size_t most) : schedule_(schedule), last_(new uint32_t[most + 1]()) {
        schedule.steps = new Step[most];
    }
    ~Scheduler() { delete[] last_; }

    // Appends the graph's nodes to the schedule, ordered after `known`. Afterwards `known` includes them. Returns false
    // if the dependencies have a cycle.
    bool add(const CUgraph_st& graph, Clock& known) {
        number(graph);
        auto* done = new Clock[graph.count];
        auto* placed = new bool[graph.count]();
        size_t left = graph.count;
        for (bool progress = true; progress;) {
            progress = false;
            for (CUgraphNode_st* node = graph.first; node; node = node->next) {
                if (placed[node->position] || !ready(*node, placed)) continue;
                Clock& after = done[node->position];
                after = known;
                for (const CUgraphNode_st* before : node->before) after.join(done[before->position]);
                if (!node->child)
                    place(node, after);
                else
                    circle_ = !add(*node->child, after) || circle_;
                placed[node->position] = progress = true;
                --left;
            }
        }
        for (size_t i = 0; i < graph.count; ++i) known.join(done[i]);
        delete[] done;
        delete[] placed;
        return left == 0 && !circle_;
    }

  private:
    static bool ready(const CUgraphNode_st& node, const bool* placed) {
        for (const CUgraphNode_st* before : node.before)
            if (!placed[before->position]) return false;
        return true;
    }

    // Places the node in a slot whose last node it depends on, else in a new slot.
    void place(CUgraphNode_st* node, Clock& known) {
        uint32_t slot = 0;
        while (slot < schedule_.slots && known.at(slot) != last_[slot]) ++slot;
        if (slot == schedule_.slots) ++schedule_.slots;
        Step& step = schedule_.steps[schedule_.count++];
        step.node = node;
        step.slot = slot;
        step.number = ++last_[slot];
        step.known = known;
        known.raise(slot, step.number);
    }

    Schedule& schedule_;
    uint32_t* last_;       // last node of each slot
    bool circle_ = false;  // a child graph has a cycle
};

}  // namespace

CUgraph_st* create() { return new CUgraph_st(); }

CUgraphNode_st* add(CUgraph_st& graph, cudaGraphNodeType type) {
    auto* node = new CUgraphNode_st();
    node->graph = &graph;
    node->type = type;
    node->number = ++nodes_made;
    node->previous = graph.last;
    (graph.last ? graph.last->next : graph.first) = node;
    graph.last = node;
    ++graph.count;
    return node;
}

CUgraph_st* clone(const CUgraph_st& graph) {
    CUgraph_st* made = create();
    number(graph);
    auto** copies = new CUgraphNode_st*[graph.count];
    for (CUgraphNode_st* node = graph.first; node; node = node->next) {
        CUgraphNode_st* copy = copies[node->position] = add(*made, node->type);
        copy->original = node->number;
        copy->stream = node->stream;
        copy->work.copy(node->work);
        if (!node->child) continue;
        copy->child = clone(*node->child);
        copy->child->embedded = true;
    }
    for (CUgraphNode_st* node = graph.first; node; node = node->next)
        for (const CUgraphNode_st* before : node->before) copies[node->position]->before.push(copies[before->position]);
    delete[] copies;
    return made;
}

void remove(CUgraphNode_st* node) {
    CUgraph_st& graph = *node->graph;
    for (CUgraphNode_st* other = graph.first; other; other = other->next) other->before.remove(node);
    (node->previous ? node->previous->next : graph.first) = node->next;
    (node->next ? node->next->previous : graph.last) = node->previous;
    --graph.count;
    if (node->child) {
        withdraw(node->child);
        destroy(node->child);
    }
    delete node;
}

void destroy(CUgraph_st* graph) {
    while (graph->last) remove(graph->last);
    delete graph;
}

void publish(CUgraph_st* graph) {
    graph->next = published;
    published = graph;
    for (CUgraphNode_st* node = graph->first; node; node = node->next)
        if (node->child) publish(node->child);
}

void withdraw(CUgraph_st* graph) { take_out(published, graph); }

CUgraph_st* find(cudaGraph_t handle) {
    CUgraph_st* graph = published;
    while (graph && graph != handle) graph = graph->next;
    return graph;
}

CUgraphNode_st* find(cudaGraphNode_t handle) {
    for (CUgraph_st* graph = published; graph; graph = graph->next)
        for (CUgraphNode_st* node = graph->first; node; node = node->next)
            if (node == handle) return node;
    return nullptr;
}

bool make_schedule(const CUgraph_st& graph, Schedule* schedule) {
    Clock known;
    return Scheduler(*schedule, steps_of(graph)).add(graph, known);
}

bool same_shape(const CUgraph_st& graph, const CUgraph_st& other, CUgraphNode_st** differing, bool* type_differs) {
    number(graph);
    number(other);
    *type_differs = false;
    *differing = nullptr;
    if (graph.count != other.count) return false;
    const CUgraphNode_st* own = graph.first;
    for (CUgraphNode_st* node = other.first; node; node = node->next, own = own->next) {
        *differing = node;
        if (own->before.size() != node->before.size()) return false;
        for (size_t i = 0; i < node->before.size(); ++i)
            if (own->before[i]->position != node->before[i]->position) return false;
        *type_differs = own->type != node->type;
        if (*type_differs) return false;
        if (node->child && !same_shape(*own->child, *node->child, differing, type_differs)) return false;
    }
    *differing = nullptr;
    return true;
}

void take_work(CUgraph_st& graph, const CUgraph_st& other) {
    CUgraphNode_st* own = graph.first;
    for (const CUgraphNode_st* node = other.first; node; node = node->next, own = own->next) {
        own->work.copy(node->work);
        if (node->child) take_work(*own->child, *node->child);
    }
}

Collector::Collector() { collector = this; }
Collector::~Collector() { collector = nullptr; }

OperationList* collecting() { return collector ? &collector->collected : nullptr; }

}  // namespace graphs

}  // namespace sim
