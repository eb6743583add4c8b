#include "checks/core/region.h"

#include <sys/mman.h>

#include "checks/core/containers.h"
#include "checks/synchronization/reader_set.h"

namespace sim::checks {

namespace {

Growable<Region*> allocations;  // sorted by base; freed ones stay until their memory is reused
Growable<Region*> variables;    // __device__ and __constant__ variables, added at their first access
Region* last_found = nullptr;
SpinLock lock;
uint32_t region_count = 0;
bool cells_refused = false;

// Returns the index of the first allocation whose base is above the address.
size_t upper_bound(uintptr_t address) {
    return partition_point(allocations.size(), [=](size_t i) { return allocations[i]->base <= address; });
}

// Copies a text, truncated to size - 1 characters. `to` must be zero bytes before.
void copy_text(char* to, size_t size, const char* from) { strncpy(to, from ? from : "", size - 1); }

unsigned bytes_of_dtype(const char* dtype) {
    struct {
        const char* name;
        unsigned bytes;
    } known[] = {{"float32", 4}, {"f32", 4},      {"float16", 2}, {"f16", 2}, {"bfloat16", 2}, {"bf16", 2},
                 {"float64", 8}, {"f64", 8},      {"int32", 4},   {"i32", 4}, {"uint32", 4},   {"u32", 4},
                 {"int64", 8},   {"i64", 8},      {"uint64", 8},  {"u64", 8}, {"int16", 2},    {"i16", 2},
                 {"uint16", 2},  {"u16", 2},      {"int8", 1},    {"i8", 1},  {"uint8", 1},    {"u8", 1},
                 {"bool", 1},    {"complex64", 8}};
    for (auto& one : known)
        if (!strcmp(one.name, dtype)) return one.bytes;
    return 0;
}

Region* new_region() {
    Region* region = zeros<Region>();
    region->id = new_region_id();
    return region;
}

void delete_region(Region* region) {
    if (last_found == region) last_found = nullptr;
    unmap_cells(region->cells, region->cell_count());
    free(region);
}

Region* variable_region(const GlobalVariable& variable) {
    uintptr_t base = reinterpret_cast<uintptr_t>(variable.base);
    for (size_t i = 0; i < variables.size(); ++i) {
        Region* known = variables[i];
        if (known->base != base) continue;
        if (known->bytes == variable.bytes && !strcmp(known->name, variable.name)) return known;
        delete_region(known);  // the library that contained this variable was unloaded
        variables.remove_unordered(i);
        break;
    }
    Region* region = new_region();
    region->base = base;
    region->bytes = variable.bytes;
    // the id does not depend on the order in which blocks access the variables
    region->id = static_cast<uint32_t>(mix(base) >> 34) | 1u << 30;
    region->space = variable.constant ? Space::constant : Space::global;
    region->kind = variable.constant ? RegionKind::constant_variable : RegionKind::device_variable;
    region->read_only = variable.constant;
    region->initialized = true;
    region->shift = 2;
    copy_text(region->name, sizeof region->name, variable.name);
    variables.push(region);
    return region;
}

}  // namespace

uint32_t new_region_id() { return __atomic_add_fetch(&region_count, 1, __ATOMIC_RELAXED); }

namespace {

constexpr size_t huge_page = size_t(2) << 20;

// A large array of cells uses whole huge pages where the system supports them. Otherwise page faults would dominate the
// checks of a kernel that passes once over its tensors.
size_t bytes_to_map(size_t count) {
    size_t bytes = count * sizeof(ShadowCell) + 1;
    return bytes < huge_page ? bytes : (bytes + huge_page - 1) & ~(huge_page - 1);
}

}  // namespace

ShadowCell* map_cells(size_t count) {
    size_t bytes = bytes_to_map(count), slack = bytes < huge_page ? 0 : huge_page;
    void* memory =
        mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        cells_refused = true;
        return nullptr;
    }
    if (!slack) return static_cast<ShadowCell*>(memory);
    char* first = static_cast<char*>(memory);
    size_t head = -reinterpret_cast<uintptr_t>(first) & (huge_page - 1);
    if (head) munmap(first, head);
    if (head < slack) munmap(first + head + bytes, slack - head);
    madvise(first + head, bytes, MADV_HUGEPAGE);
    return reinterpret_cast<ShadowCell*>(first + head);
}

bool cells_were_refused() { return cells_refused; }

void unmap_cells(ShadowCell* cells, size_t count) {
    if (cells) munmap(cells, bytes_to_map(count));
}

// Splits each cell into 1 << by cells. Begins with the last one, so that `from` may equal `to`.
static void split_cells(ShadowCell* to, const ShadowCell* from, size_t count, unsigned by) {
    unsigned copies = 1u << by;
    for (size_t i = count; i-- > 0;) {
        ShadowCell cell = from[i];
        const ReaderSet* members = members_of(from[i]);
        for (unsigned c = 0; c < copies; ++c) {
            ShadowCell& piece = to[(i << by) + c];
            piece = cell;
            if (members) copy_members(*members, piece);
        }
    }
}

Region& add_allocation(const events::Allocation& allocation) {
    Locked locked(lock);
    uintptr_t base = reinterpret_cast<uintptr_t>(allocation.base);
    size_t place = upper_bound(base);
    if (place > 0 && allocations[place - 1]->base + allocations[place - 1]->bytes > base) --place;
    while (place < allocations.size() && allocations[place]->base < base + allocation.bytes) {
        delete_region(allocations[place]);
        allocations.remove(place);
    }
    Region* region = new_region();
    region->base = base;
    region->bytes = allocation.bytes;
    region->space = Space::global;
    region->kind = static_cast<RegionKind>(allocation.kind);
    // Host code writes to managed and pinned memory without a call of the runtime.
    region->initialized = region->kind == RegionKind::managed || region->kind == RegionKind::pinned_host;
    region->ndim = allocation.ndim < 8 ? allocation.ndim : 8;
    for (int i = 0; i < region->ndim; ++i) region->shape[i] = allocation.shape[i];
    copy_text(region->name, sizeof region->name, allocation.name);
    copy_text(region->dtype, sizeof region->dtype, allocation.dtype);
    region->element_bytes = bytes_of_dtype(region->dtype);
    region->shift = region->element_bytes == 1 ? 0 : region->element_bytes == 2 ? 1 : 2;
    region->allocated_at = allocation.address;
    allocations.insert(place, region);
    return *region;
}

Region* release_allocation(uintptr_t base, const void* address) {
    Locked locked(lock);
    size_t place = upper_bound(base);
    if (place == 0 || allocations[place - 1]->base != base) return nullptr;
    Region* region = allocations[place - 1];
    if (region->freed) return nullptr;
    region->freed = true;
    region->freed_at = address;
    if (last_found == region) last_found = nullptr;
    unmap_cells(region->cells, region->cell_count());
    region->cells = nullptr;
    return region;
}

void mark_written(uintptr_t address, size_t bytes) {
    Region* region = find_region(address);
    if (!region || bytes == 0 || region->initialized) return;
    if (address == region->base && bytes >= region->bytes) {
        region->initialized = true;
        return;
    }
    uintptr_t end = address + bytes - region->base;
    unsigned cell_bytes = 1u << region->shift;
    // The range begins or ends inside a cell. Use smaller cells. Otherwise, the write to a part of a cell would mark
    // the whole cell as written.
    if ((address - region->base) % cell_bytes != 0 || (end % cell_bytes != 0 && end < region->bytes))
        refine(*region, 0);
    track(*region);
    each_cell(region, address, bytes, [](ShadowCell& cell) {
        if (cell.write == never) cell.write = written_before;
    });
}

void assume_written() {
    Locked locked(lock);
    for (Region* region : allocations) region->initialized = true;
}

void mark_read_only(uintptr_t base) {
    Region* region = find_region(base);
    if (!region || region->base != base) return;
    region->read_only = true;
    unmap_cells(region->cells, region->cell_count());
    region->cells = nullptr;
}

void mark_expected(uintptr_t base) {
    Region* region = find_region(base);
    if (region && region->base == base) region->expected = true;
}

void forget_regions() {
    Locked locked(lock);
    for (Region* region : allocations) delete_region(region);
    for (Region* region : variables) delete_region(region);
    allocations.clear();
    variables.clear();
    cells_refused = false;
    region_count = 0;
}

void age_regions() {
    auto age = [](Region* region) {
        region->allocated_serial = 0;
        if (!region->cells) return;
        for (size_t i = 0; i < region->cell_count(); ++i) {
            ShadowCell& cell = region->cells[i];
            if (cell.write != never) cell.write = written_before;
            cell.reads = never;
        }
    };
    for (Region* region : allocations) age(region);
    for (Region* region : variables) age(region);
}

Region* find_region(uintptr_t address) {
    Locked locked(lock);
    if (last_found && address - last_found->base < last_found->bytes) return last_found;
    size_t place = upper_bound(address);
    if (place > 0) {
        Region* region = allocations[place - 1];
        if (!region->freed && address - region->base < region->bytes) return last_found = region;
    }
    GlobalVariable variable;
    if (find_global(reinterpret_cast<const void*>(address), &variable)) return variable_region(variable);
    return nullptr;
}

Region* nearest_region(uintptr_t address) {
    Locked locked(lock);
    size_t place = upper_bound(address);
    Region* before = place > 0 ? allocations[place - 1] : nullptr;
    Region* after = place < allocations.size() ? allocations[place] : nullptr;
    if (!before || !after) return before ? before : after;
    if (address - before->base < before->bytes) return before;  // freed
    uintptr_t past = address - (before->base + before->bytes);
    return past <= after->base - address ? before : after;
}

void each_allocation(void (*visit)(Region&, void*), void* context) {
    for (size_t i = 0; i < allocations.size(); ++i) visit(*allocations[i], context);
}

void each_variable(void (*visit)(Region&, void*), void* context) {
    for (Region* region : variables)
        if (region->kind == RegionKind::device_variable) visit(*region, context);
}

void track(Region& region) {
    if (!region.cells && !region.freed && region.space != Space::shared) region.cells = map_cells(region.cell_count());
}

void refine(Region& region, unsigned shift) {
    if (shift >= region.shift) return;
    if (region.space == Space::shared) {  // room for one cell per byte is reserved, so split in place
        if (region.cells) split_cells(region.cells, region.cells, region.cell_count(), region.shift - shift);
        region.shift = static_cast<uint8_t>(shift);
        return;
    }
    ShadowCell* old = region.cells;
    size_t old_count = region.cell_count();
    unsigned by = region.shift - shift;
    region.shift = static_cast<uint8_t>(shift);
    if (!old) return;
    region.cells = map_cells(old_count << by);
    if (!region.cells) {
        unmap_cells(old, old_count);
        return;
    }
    split_cells(region.cells, old, old_count, by);
    unmap_cells(old, old_count);
}

}  // namespace sim::checks
