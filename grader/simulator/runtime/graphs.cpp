#include "graphs.h"

namespace sim {

void OperationList::add(const Operation& operation) {
    auto* entry = new Entry{operation, nullptr};
    LaunchBody& body = entry->operation.body;
    if (operation.kind == OperationKind::kernel) body.context = body.clone(body.context);
    (last_ ? last_->next : first_) = entry;
    last_ = entry;
}

void OperationList::copy(const OperationList& other) {
    if (this == &other) return;
    clear();
    for (const Entry* entry = other.first_; entry; entry = entry->next) add(entry->operation);
}

void OperationList::take(OperationList& other) {
    clear();
    first_ = other.first_;
    last_ = other.last_;
    other.first_ = other.last_ = nullptr;
}

void OperationList::clear() {
    while (first_) {
        Entry* next = first_->next;
        const LaunchBody& body = first_->operation.body;
        if (first_->operation.kind == OperationKind::kernel) body.destroy(body.context);
        delete first_;
        first_ = next;
    }
    last_ = nullptr;
}

bool NodeSet::has(const CUgraphNode_st* node) const {
    for (size_t i = 0; i < size_; ++i)
        if (nodes_[i] == node) return true;
    return false;
}

void NodeSet::add(CUgraphNode_st* node) {
    if (size_ == room_) {
        room_ = room_ ? 2 * room_ : 4;
        auto** grown = static_cast<CUgraphNode_st**>(realloc(nodes_, room_ * sizeof *nodes_));
        if (!grown) abort();
        nodes_ = grown;
    }
    nodes_[size_++] = node;
}

bool NodeSet::remove(const CUgraphNode_st* node) {
    size_t kept = 0;
    for (size_t i = 0; i < size_; ++i)
        if (nodes_[i] != node) nodes_[kept++] = nodes_[i];
    bool found = kept < size_;
    size_ = kept;
    return found;
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
                for (size_t i = 0; i < node->before.size(); ++i) after.join(done[node->before[i]->position]);
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
        for (size_t i = 0; i < node.before.size(); ++i)
            if (!placed[node.before[i]->position]) return false;
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
        for (size_t i = 0; i < node->before.size(); ++i)
            copies[node->position]->before.add(copies[node->before[i]->position]);
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

void withdraw(CUgraph_st* graph) {
    CUgraph_st** link = &published;
    while (*link && *link != graph) link = &(*link)->next;
    if (*link) *link = graph->next;
}

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
