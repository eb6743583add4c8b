// Checks that are completed only after an access: whether an unordered write changed the value, and whether the array
// with an out-of-bounds index is a local array. Also reports accesses past a local variable that is not an array.
#include "checks/core/access.h"
#include "checks/report/findings.h"
#include "checks/core/hook_names.h"
#include "checks/synchronization/races.h"
#include "checks/report/recording.h"
#include "sim/error_codes.h"
#include "sim/shared.h"

namespace sim::checks {

namespace {

// The layout of the first argument of the handlers of -fsanitize=bounds and -fsanitize=object-size.
struct SourceLocation {
    const char* file;
    uint32_t line;
    uint32_t column;
};
struct TypeDescriptor {
    uint16_t kind;  // 0: integer
    uint16_t info;  // for an integer: bit 0 signed, then log2 of its bits
    char name[1];
};
struct OutOfBoundsData {
    SourceLocation location;
    TypeDescriptor* array;
    TypeDescriptor* index;
};
struct TypeMismatchData {
    SourceLocation location;
    TypeDescriptor* type;
    uint8_t align_log2;
    uint8_t kind;  // 1: a store
};

long long index_value(const TypeDescriptor& type, uintptr_t value) {
    unsigned bits_log2 = type.info >> 1;
    if (bits_log2 > 6) return *reinterpret_cast<long long*>(value);
    if (!(type.info & 1)) return static_cast<long long>(value);
    unsigned unused = 64 - (1u << bits_log2);
    return static_cast<long long>(static_cast<uint64_t>(value) << unused) >> unused;
}

// Returns whether the type is an array of at most one element, as `'float [1]'`. Such an array at the end of a structure
// may stand for as many elements as its memory has.
bool may_be_longer(const char* type) {
    const char* bracket = strchr(type, '[');
    return bracket && (bracket[1] == '0' || bracket[1] == '1') && bracket[2] == ']';
}

bool same_value_races = false;

constexpr size_t widest_piece = 16, max_pieces = size_t(1) << 16;

// Returns whether the access is the next piece of the pending write. The hook for a structure or for memcpy reports
// several pieces before the data is moved. A loop that writes an array piece by piece looks like such a copy, so the
// number of pieces is limited.
bool goes_on(const ThreadExtras& extras, uintptr_t address, const void* code) {
    return code == extras.piece_code && address - extras.piece - 1 < widest_piece && extras.writes->size() < max_pieces;
}

// Reports the write as a race if it changed the value. Returns true if this cannot be decided yet. For the copy of a
// structure, the hooks for the write and the read both run before the data is moved, so the write may not have happened
// at the next access.
bool settle_write(ThreadState& thread, PendingWrite& write, bool final) {
    if (!same_value_races && memcmp(write.before, write.address, write.bytes) == 0)
        return !final && ++write.attempts < 2;
    report_race(thread, write.code_address, write.access, static_cast<uint32_t>(write.bytes),
                reinterpret_cast<uintptr_t>(write.address), write.region, write.other, write.other_site,
                write.other_access);
    return false;
}

void settle_writes(ThreadState& thread, bool final) {
    Growable<PendingWrite>& writes = *thread.extras->writes;
    writes.keep([&](PendingWrite& write) { return settle_write(thread, write, final); });
    if (writes.empty()) forget_writes(*thread.extras);
}

// Reports the pending out-of-bounds index. For an array in shared or global memory, the access follows directly and is
// checked by its address. Without such an access the array is local. The launch then ends, because the access would
// overwrite the thread's own stack.
void settle_index(ThreadState& thread, uintptr_t address, const void* code) {
    report_index(thread);
    ptrdiff_t after = static_cast<const char*>(code) - static_cast<const char*>(thread.extras->index.code_address);
    bool followed = code && after > 0 && after < 512;
    const void* data = reinterpret_cast<const void*>(address);
    if (!followed || !(in_shared(*thread.block, address) || is_global(data))) kill_launch(cudaErrorIllegalAddress);
}

}  // namespace

void before_access(ThreadState& thread, uintptr_t address, unsigned size_log2, Access access, const void* code) {
    if (thread.recorded) record_access(thread, address, size_log2, access, code);
    settle(thread, address, code);
}

void settle(ThreadState& thread, uintptr_t address, const void* code) {
    thread.pending = thread.recorded;
    if (!thread.extras) return;
    ThreadExtras& extras = *thread.extras;
    if (extras.writes) {
        if (!goes_on(extras, address, code)) settle_writes(thread, code == nullptr);
        extras.piece_code = code;
        extras.piece = address;
        thread.pending = extras.writes || thread.recorded;
    }
    if (extras.has_index) {
        extras.has_index = false;
        settle_index(thread, address, code);
    }
}

void note_write(ThreadState& thread, const AccessSite& site, uintptr_t address, size_t bytes, Epoch other,
                uint16_t other_site, Access other_access) {
    ThreadExtras& extras = extras_of(thread);
    if (!extras.writes) extras.writes = new Growable<PendingWrite>();
    const void* data = reinterpret_cast<const void*>(address);
    // A wide write covers several cells and calls this function for each, but is one pending write.
    if (extras.writes->empty() || extras.writes->back().address != data) extras.writes->push({});
    PendingWrite& write = extras.writes->back();
    write = {data, bytes, 0, {}, site.address, other, other_site, site.access, other_access, site.region};
    memcpy(write.before, data, write.bytes);
    extras.piece_code = site.address;
    extras.piece = address;
    thread.pending = true;
}

void report_same_value(bool reports) { same_value_races = reports; }

void forget_writes(ThreadExtras& extras) {
    delete extras.writes;
    extras.writes = nullptr;
}

void report_index(ThreadState& thread) {
    const PendingIndex& index = thread.extras->index;
    Finding finding = finding_at(FindingKind::index_out_of_bounds, thread, index.code_address);
    const char* type = index.type;
    size_t length = strlen(type);
    if (length > 1 && type[0] == '\'') {  // compilers put the type's name in quotes
        ++type;
        length -= 2;
    }
    finding.payload = ArrayIndex{index.index, {type, length}};
    add_finding(finding);
}

void index_out_of_bounds(void* data, uintptr_t index, const void* code) {
    if (!current_thread || !current_thread->checks) return;
    ThreadState& thread = *state_of(*current_thread);
    ThreadExtras& extras = extras_of(thread);
    auto& what = *static_cast<OutOfBoundsData*>(data);
    if (extras.has_index || may_be_longer(what.array->name)) return;
    extras.index = {code, index_value(*what.index, index), what.array->name};
    extras.has_index = true;
    thread.pending = true;
}

void past_object(void* data, uintptr_t address, const void* code) {
    if (!current_thread || !current_thread->checks) return;
    ThreadState& thread = *state_of(*current_thread);
    settle(thread, 0, nullptr);
    // Other accesses are checked by their addresses.
    if (!is_local(thread, address) && !is_table(thread, address)) return;
    auto& what = *static_cast<TypeMismatchData*>(data);
    Finding finding = finding_at(FindingKind::out_of_bounds, thread, code);
    finding.set_access(what.kind == 1 ? Access::write : Access::read, 0, &unknown_local, 0);
    finding.payload = Address{address};
    add_finding(finding);
    kill_launch(cudaErrorIllegalAddress);  // the access would overwrite the thread's own stack
}

}  // namespace sim::checks

HOOK(void, __ubsan_handle_type_mismatch_v1)(void* data, uintptr_t address) {
    sim::checks::past_object(data, address, __builtin_return_address(0));
}
HOOK(void, __ubsan_handle_out_of_bounds)(void* data, uintptr_t index) {
    sim::checks::index_out_of_bounds(data, index, __builtin_return_address(0));
}
HOOK(void, __ubsan_handle_out_of_bounds_abort)(void* data, uintptr_t index) {
    sim::checks::index_out_of_bounds(data, index, __builtin_return_address(0));
}
