#include "checks/report/report.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#include <type_traits>

#include "checks/counting/counting.h"
#include "checks/counting/executed.h"
#include "checks/report/findings.h"
#include "checks/report/recording.h"
#include "checks/report/trace.h"
#include "runtime/clock.h"
#include "runtime/limits.h"
#include "runtime/sampling.h"
#include "sim/architectures.h"

namespace sim::checks {

namespace {

bool launch_failed = false;

// Builds a JSON text by appending.
class Writer {
  public:
    void begin() {
        text_.clear();
        fresh_ = true;
    }
    const char* finish() {
        put(0);
        return text_.begin();
    }
    __attribute__((noinline)) void raw(const char* text) {
        size_t length = strlen(text);
        text_.append(text, length);
    }
    __attribute__((noinline)) void string(const char* text) {
        put('"');
        for (const char* c = text; *c; ++c) {
            auto byte = static_cast<unsigned char>(*c);
            if (byte == '"' || byte == '\\') {
                put('\\');
                put(*c);
            } else if (byte < 0x20) {
                char escaped[8];
                snprintf(escaped, sizeof escaped, "\\u%04x", byte);
                raw(escaped);
            } else {
                put(*c);
            }
        }
        put('"');
    }
    template <typename T>
    void number(T value) {
        char digits[40];
        if constexpr (std::is_floating_point_v<T>)
            snprintf(digits, sizeof digits, "%.10g", value);
        else if constexpr (std::is_signed_v<T>)
            snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
        else
            snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(value));
        raw(digits);
    }

    // Writes one member of an object, with a comma before it unless it is the first.
    __attribute__((noinline)) void key(const char* name) {
        comma();
        string(name);
        raw(":");
        fresh_ = true;
    }
    template <typename T>
    void member(const char* name, T value) {
        key(name);
        number(value);
        fresh_ = false;
    }
    void text(const char* name, const char* value) {
        key(name);
        string(value);
        fresh_ = false;
    }
    void triple(const char* name, const uint3& values) {
        key(name);
        row(values.x, values.y, values.z);
    }
    // Writes an array of numbers as an item of an array, or as the member after key().
    template <typename... T>
    void row(T... values) {
        open('[');
        (item(values), ...);
        close(']');
    }
    // Writes an array as a member: by write(item) for each item, or by write(i) for each i below a number.
    template <typename Items, typename F>
    void list(const char* name, const Items& items, F write) {
        open(name, '[');
        if constexpr (std::is_integral_v<Items>)
            for (Items i = 0; i < items; ++i) write(i);
        else
            for (const auto& item : items) write(item);
        close(']');
    }
    template <typename T>
    void item(T value) {
        comma();
        number(value);
    }
    void entry(const char* value) {
        comma();
        string(value);
    }
    void open(char bracket) {
        comma();
        put(bracket);
        fresh_ = true;
    }
    void open(const char* name, char bracket) {
        key(name);
        put(bracket);
        fresh_ = true;
    }
    void close(char bracket) {
        put(bracket);
        fresh_ = false;
    }

  private:
    // put() and comma() are not inlined, because their many calls would increase this file's compile time.
    __attribute__((noinline)) void put(char c) { text_.push(c); }
    __attribute__((noinline)) void comma() {
        if (!fresh_) put(',');
        fresh_ = false;
    }
    Growable<char> text_;
    bool fresh_ = true;
};

Writer out;
int kind_of(const PlaceCount&) { return 0; }
int kind_of(const SiteCounters& counted) {
    return static_cast<int>(counted.space) << 16 | static_cast<int>(counted.access) << 8 | counted.size;
}

// The number of each site in the report. Sites are numbered when they first appear in it, so that the numbers do not
// depend on the workers.
uint16_t number_of[65536];
Growable<uint16_t> used_sites;

uint64_t use_site(uint16_t id) {
    if (id && !number_of[id]) {
        used_sites.push(id);
        number_of[id] = static_cast<uint16_t>(used_sites.size());
    }
    return number_of[id];
}

uint64_t use_site(const void* address) { return use_site(address ? site_id(address) : uint16_t(0)); }

// Calls visit(item) for each item, in the order of the items' code addresses.
template <typename T, typename F>
void each_in_order(const Growable<T>& items, F visit) {
    Growable<const T*> ordered;
    for (const T& item : items) ordered.push(&item);
    auto compare = [](const void* a, const void* b) {
        const T &one = **static_cast<const T* const*>(a), &other = **static_cast<const T* const*>(b);
        auto place = reinterpret_cast<uintptr_t>(site_address(one.site));
        auto other_place = reinterpret_cast<uintptr_t>(site_address(other.site));
        if (place != other_place) return place < other_place ? -1 : 1;
        return kind_of(one) - kind_of(other);
    };
    qsort(ordered.begin(), ordered.size(), sizeof(const T*), compare);
    for (const T* item : ordered) visit(*item);
}

// The names in the order of the enumerations.
constexpr const char* check_names[] = {"memcheck", "initcheck", "racecheck", "synccheck", "fault"};
constexpr const char* access_names[] = {"read",       "write",       "volatile read", "volatile write", "atomic",
                                        "async read", "async write", "operand read",  "allocation",     "free"};
constexpr const char* space_names[] = {"shared", "global", "constant", "distributed"};
constexpr const char* region_names[] = {
    "tensor", "cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "cudaMallocHost", "the device's heap",
    "host",   "__device__", "__constant__",    "__shared__",        "dynamic shared", "local",
};

const char* name_of(Check check) { return check_names[static_cast<unsigned>(check)]; }
const char* name_of(Space space) { return space_names[static_cast<unsigned>(space)]; }
const char* name_of(RegionKind kind) { return region_names[static_cast<unsigned>(kind)]; }
const char* name_of(Access access) {
    if (access == Access::operand_read && compute_capability() == 100) return "tensor operand read";
    return access_names[static_cast<unsigned>(access)];
}

void write_side(const Side& side) {
    out.member("site", use_site(side.address));
    out.text("access", name_of(static_cast<Access>(side.access)));
    if (side.fallback) out.member("fallback", use_site(side.fallback));
    if (side.line) out.member("line", side.line);
    if (side.in_stream && side.stream != in_graph) out.member("stream", side.stream);
    if (side.call || side.in_stream) out.text("work", side.call ? side.call : kernel(side.kernel).name);
    if (!side.has_thread) return;
    uint3 block, thread;
    if (side.block_known) {
        out.triple("block", side.block);
        out.triple("thread", side.index);
    } else if (name_thread(side.serial, side.thread, &block, &thread)) {
        out.triple("block", block);
        out.triple("thread", thread);
    }
}

void write_place(const Place& place) {
    out.open("memory", '{');
    out.text("kind", name_of(place.kind));
    out.text("name", place.name);
    out.text("dtype", place.dtype);
    out.list("shape", place.ndim, [&](int i) { out.item(place.shape[i]); });
    out.member("id", place.id);
    out.member("bytes", place.bytes);
    out.member("element_bytes", place.element_bytes);
    out.member("offset", place.offset);
    out.close('}');
}

// Writes the fields of a payload as members of an object.
struct PayloadWriter {
    void operator()(const char* name, uint64_t value) { out.member(name, value); }
    void operator()(const char* name, int64_t value) { out.member(name, value); }
    void operator()(const char* name, const char* text) { out.text(name, text); }
    void operator()(const char* name, const ElementNumbers& elements) {
        out.list(name, elements.count, [&](unsigned i) { out.item(elements.numbers[i]); });
    }
    void operator()(const char* name, const Waits& waits) {
        out.list(name, waits.count, [&](unsigned i) { write(waits.places[i]); });
    }

  private:
    static void write(const Waiting& waiting) {
        out.open('{');
        out.member("threads", waiting.threads);
        out.member("first", waiting.first);
        out.text("operation", waiting.operation.chars);
        out.member("site", use_site(waiting.address));
        out.member("line", waiting.line);
        if (waiting.mbarrier.known) {
            out.open("mbarrier", '{');
            out.member("phase", waiting.mbarrier.phase);
            out.member("missing_arrivals", waiting.mbarrier.missing_arrivals);
            out.member("expected_arrivals", waiting.mbarrier.expected_arrivals);
            out.member("missing_bytes", waiting.mbarrier.missing_bytes);
            out.close('}');
        }
        out.close('}');
    }
};

void write_payload(const Payload& payload) {
    if (std::holds_alternative<NoPayload>(payload)) return;
    out.open("payload", '{');
    visit_payload(payload, [](const auto& fields) { fields.each(PayloadWriter{}); });
    out.close('}');
}

void write_finding(const Finding& finding) {
    out.open('{');
    out.text("check", name_of(check_of(finding.kind)));
    out.text("kind", name_of(finding.kind));
    if (finding.kernel != ~0u) out.text("kernel", kernel(finding.kernel).name);
    out.member("count", finding.count);
    out.member("bytes", finding.bytes);
    write_payload(finding.payload);
    write_side(finding.side);
    if (finding.other.address || finding.other.has_thread || finding.other.in_stream) {
        out.open("other", '{');
        write_side(finding.other);
        out.close('}');
    }
    if (finding.place.known) write_place(finding.place);
    out.close('}');
}

void write_counters(const SiteCounters& counted) {
    const Counters& c = counted.counters;
    out.open('{');
    out.member("site", use_site(counted.site));
    out.text("space", name_of(counted.space));
    out.text("access", name_of(counted.access));
    out.member("size", counted.size);
#define SITE_COUNTER(type, name, combine, text) out.member(#name, uint64_t(c.name));
#include "checks/counting/counters.def"
    out.close('}');
}

void write_places(const char* name, const Growable<PlaceCount>& counts) {
    out.open(name, '[');
    each_in_order(counts, [](const PlaceCount& counted) { out.row(use_site(counted.site), counted.count); });
    out.close(']');
}

void write_kernel(const KernelRecord& record) {
    out.open('{');
    out.text("name", record.name);
    out.member("launches", record.launches);
    out.triple("grid", record.grid);
    out.triple("block", record.block);
    out.member("dynamic_shared_bytes", record.dynamic_shared_bytes);
    out.member("static_shared_bytes", record.static_shared_bytes);
    out.member("blocks", record.blocks);
    out.member("threads", record.threads);
#define KERNEL_COUNTER(name, value, text) out.member(#name, uint64_t(value));
#include "checks/counting/counters.def"
    out.list("tensor_operations", record.tensor_operations, [](uint64_t operations) { out.item(operations); });
    out.open("sites", '[');
    each_in_order(*record.sites, write_counters);
    out.close(']');
    write_places("barrier_sites", *record.barrier_sites);
    write_places("tensor_sites", *record.tensor_sites);
    write_places("operand_sites", *record.operand_sites);
    out.close('}');
}

void write_trace(const TracedRequest& traced) {
    out.open('{');
    out.member("site", use_site(traced.site));
    out.text("access", name_of(traced.access));
    out.text("space", name_of(traced.space));
    out.member("size", traced.size);
    uint3 block, thread;
    if (name_thread(traced.serial, 0, &block, &thread)) out.triple("block", block);
    out.member("warp", traced.warp);
    out.member("number", traced.number);
    out.text("name", traced.name);
    out.text("kernel", kernel(traced.kernel).name);
    auto is_active = [&](unsigned lane) { return traced.lanes >> lane & 1; };
    out.list("lanes", lanes_per_warp, [&](unsigned lane) {
        if (is_active(lane)) out.item(lane);
    });
    out.list("offsets", lanes_per_warp, [&](unsigned lane) {
        if (is_active(lane)) out.item(traced.offset[lane]);
    });
    out.close('}');
}

// Each event is a row of numbers, because there may be many.
void write_recording() {
    if (!recording.done) return;
    out.open("recording", '{');
    out.text("kernel", kernel(recording.kernel).name);
    out.member("launch", recording.launch);
    out.triple("grid", recording.grid);
    out.triple("block", recording.block);
    out.triple("index", recording.index);
    out.member("threads", recording.threads);
    out.member("shared_bytes", recording.shared_bytes);
    out.member("cut", recording.cut);
    out.list("names", recording.names, [](const RecordedName& name) { out.entry(name.text); });
    out.list("memories", recording.memories, [](const RecordedMemory& memory) {
        out.open('{');
        out.text("space", name_of(memory.space));
        out.text("name", memory.name);
        out.text("dtype", memory.dtype);
        out.member("element_bytes", memory.element_bytes);
        out.member("start", memory.start);
        out.member("bytes", memory.bytes);
        out.close('}');
    });
    out.list("events", recording.events, [](const Recorded& event) {
        out.row(event.kind, event.thread, use_site(event.site), event.memory, event.offset, event.bytes, event.mask,
                event.has_value, event.value[0], event.value[1]);
    });
    out.close('}');
}

// Sites are written as offsets in their libraries, as symbolizers expect.
void write_executed() {
    if (executed_code().empty()) return;
    out.list("executed", executed_code(), [](const ExecutedCode& code) {
        Dl_info info = {};
        if (!dladdr(const_cast<void*>(code.address), &info)) return;
        auto offset = static_cast<const char*>(code.address) - static_cast<const char*>(info.dli_fbase);
        out.row(offset, code.kernel, code.executions, code.warp_executions, code.lanes);
    });
}

void write_sites() {
    Growable<const char*> modules;
    bool asked = false;
    out.list("sites", used_sites, [&](uint16_t id) {
        Dl_info info = {};
        const void* address = site_address(id);
        if (!dladdr(address, &info) || !info.dli_fname) return;
        asked = asked || limits::has_asked(info.dli_fbase);
        size_t module = 0;
        while (module < modules.size() && strcmp(modules[module], info.dli_fname) != 0) ++module;
        if (module == modules.size()) modules.push(info.dli_fname);
        out.row(use_site(id), module, static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase));
    });
    out.member("sms_were_asked", asked);
    out.list("modules", modules, [](const char* module) { out.entry(module); });
}

// --- findings that are known only at the end ---

// Reports elements of an output tensor that no kernel wrote.
void find_unwritten(Region& region) {
    if (!region.expected || region.initialized || region.freed || launch_failed) return;
    size_t element = region.element_bytes ? region.element_bytes : size_t(1) << region.shift;
    size_t count = region.bytes / element;
    UnwrittenElements unwritten = {};
    ElementNumbers& first = unwritten.first;
    for (size_t i = 0; i < count; ++i) {
        if (region.cells) {
            const ShadowCell& cell = region.cells[i * element >> region.shift];
            if (cell.write != never) continue;
        }
        ++unwritten.missing;
        if (first.count < sizeof first.numbers / sizeof *first.numbers) first.numbers[first.count++] = i;
    }
    if (!unwritten.missing) return;
    Finding finding = new_finding(FindingKind::output_not_written);
    finding.payload = unwritten;
    finding.place = place_of(&region, region.base + first.numbers[0] * element);
    add_finding(finding);
}

void find_leak(Region& region) {
    bool device = region.kind == RegionKind::device_allocation || region.kind == RegionKind::async_allocation ||
                  region.kind == RegionKind::device_heap;
    if (!device || region.freed) return;
    Finding finding = new_finding(FindingKind::leak);
    finding.payload = LeakedBytes{region.bytes};
    finding.side.address = region.allocated_at;
    finding.place = place_of(&region, region.base);
    finding.place.id = 0;  // leaks from one allocation site are counted together
    add_finding(finding);
}

}  // namespace

const char* write_report() {
    memset(number_of, 0, sizeof number_of);
    used_sites.clear();
    size_t found = finding_count();
    each_allocation(
        [](Region& region, void*) {
            find_unwritten(region);
            find_leak(region);
        },
        nullptr);
    if (cells_were_refused()) {
        add_finding(new_finding(FindingKind::out_of_memory));
    }
    out.begin();
    out.open('{');
    out.member("version", 1);
    out.list("findings", finding_count(), [](size_t i) { write_finding(finding(i)); });
    out.member("dropped_findings", dropped_findings());
    if (sampling::is_on()) {
        const sampling::Totals& totals = sampling::totals;
        out.open("sample", '{');
        out.member("launches", totals.launches);
        out.member("checked_launches", totals.checked_launches);
        out.member("blocks", totals.blocks);
        out.member("checked_blocks", totals.checked_blocks);
        out.member("seed", totals.seed);
        out.close('}');
    }
    out.list("kernels", kernel_count(), [](size_t i) { write_kernel(kernel(static_cast<unsigned>(i))); });
    RunCounters run = run_counters;
    run.scratch_bytes = scratch_bytes();
#define RUN_COUNTER(name, text) out.member(#name, run.name);
#include "checks/counting/counters.def"
    out.list("traces", traces, write_trace);
    write_recording();
    write_executed();
    write_sites();
    out.close('}');
    truncate_findings(found);
    return out.finish();
}

void forget_report() { launch_failed = false; }

void note_failed_launch() { launch_failed = true; }

}  // namespace sim::checks
