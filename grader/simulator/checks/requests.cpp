#include "checks/requests.h"

#include <sys/mman.h>

namespace sim::checks {

unsigned trace_limit = 0;
Growable<TracedRequest> traces;

// A small set of numbers, emptied by raising its round.
class NumberSet {
  public:
    void clear() { ++round_; }
    bool add(uint32_t number) {
        unsigned i = (number * 0x9E3779B1u) >> 25;
        while (slots_[i].round == round_) {
            if (slots_[i].number == number) return false;
            i = (i + 1) & 127;
        }
        slots_[i] = {round_, number};
        return true;
    }

  private:
    struct Slot {
        uint64_t round;
        uint32_t number;
    };
    Slot slots_[128];  // zero bytes at first
    uint64_t round_;
};

// What a worker needs to count: one bit for each 32-byte sector of the arena, for reads and for writes, and a set.
struct RequestScratch {
    uint64_t* bits[2];
    size_t words;
    size_t first[2], last[2];  // range of words with bits
    NumberSet seen;
};

namespace {

constexpr unsigned sector_shift = 5;
constexpr unsigned banks = 32;

RequestLog* take_log(WorkerState& worker) {
    RequestLog* log = worker.free_logs;
    if (log) {
        worker.free_logs = log->next;
    } else {
        log = static_cast<RequestLog*>(calloc(1, sizeof(RequestLog)));
        if (!log) abort();
    }
    log->lanes = 0;
    return log;
}

// Whether no lane of the warp can run now, so that none will add to its log before the others have.
bool settled(const Warp& warp) { return !(warp.ready | warp.unstarted | warp.spinning | warp.paused); }

void save_count(AccessSite& site) {
    if (!site.owner) return;
    unsigned lane = site.owner->lane;
    site.log->count[lane] = static_cast<uint16_t>(site.next - site.log->entry[lane]);
    site.owner = nullptr;
}

// --- sectors ---

inline void touch_range(RequestScratch& touched, bool write, size_t first, size_t last) {
    uint64_t* bits = touched.bits[write];
    if ((last >> 6) >= touched.words || !bits) return;
    if (touched.first[write] > first >> 6) touched.first[write] = first >> 6;
    if (touched.last[write] < last >> 6) touched.last[write] = last >> 6;
    size_t word = first >> 6;
    uint64_t head = ~uint64_t(0) << (first & 63);
    uint64_t tail = ~uint64_t(0) >> (63 - (last & 63));
    if (word == last >> 6) {
        bits[word] |= head & tail;
        return;
    }
    bits[word++] |= head;
    while (word < last >> 6) bits[word++] = ~uint64_t(0);
    bits[word] |= tail;
}

// --- one request ---

struct Request {
    unsigned count;      // active lanes
    unsigned lane[32];   // which
    uint32_t entry[32];  // their entries, in lane order
    bool even;           // entries grow by `step` from lane to lane
    int32_t step;
};

// Passes over the banks for some lanes of a request: as many as the busiest bank has distinct words.
unsigned passes(NumberSet& seen, const Request& request, unsigned size_log2, unsigned first, unsigned last,
                unsigned* words) {
    uint8_t load[banks] = {};
    unsigned most = 0;
    seen.clear();
    unsigned words_each = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
    for (unsigned i = first; i < last; ++i) {
        uint32_t word = size_log2 > 2 ? request.entry[i] << (size_log2 - 2) : request.entry[i] >> (2 - size_log2);
        for (unsigned w = 0; w < words_each; ++w) {
            if (!seen.add(word + w)) continue;
            ++*words;
            unsigned bank = (word + w) % banks;
            if (++load[bank] > most) most = load[bank];
        }
    }
    return most;
}

// Two halves of a request are served in one pass when each active lane reads the same as its neighbour at this
// distance, or that one is not active.
bool neighbours_agree(const Request& request, unsigned first, unsigned last, unsigned distance) {
    uint32_t value[32];
    unsigned active = 0;
    for (unsigned i = first; i < last; ++i) {
        active |= 1u << request.lane[i];
        value[request.lane[i]] = request.entry[i];
    }
    for (unsigned i = first; i < last; ++i) {
        unsigned other = request.lane[i] ^ distance;
        if (active >> other & 1 && value[other] != request.entry[i]) return false;
    }
    return true;
}

bool may_merge(const Request& request, unsigned first, unsigned last) {
    return neighbours_agree(request, first, last, 1) || neighbours_agree(request, first, last, 2);
}

// Splits [first, last) at the first lane that is not below `lane`.
unsigned split_at(const Request& request, unsigned first, unsigned last, unsigned lane) {
    while (first < last && request.lane[first] < lane) ++first;
    return first;
}

// 8-byte accesses are served by half warps, 16-byte accesses by quarter warps.
unsigned shared_wavefronts(NumberSet& seen, const Request& request, unsigned size_log2, unsigned* words) {
    unsigned count = request.count;
    if (size_log2 < 3) return passes(seen, request, size_log2, 0, count, words);
    if (size_log2 == 3) {
        if (may_merge(request, 0, count)) return passes(seen, request, 3, 0, count, words);
        unsigned middle = split_at(request, 0, count, 16);
        return passes(seen, request, 3, 0, middle, words) + passes(seen, request, 3, middle, count, words);
    }
    unsigned sum = 0;
    for (unsigned half = 0, first = 0; half < 2; ++half) {
        unsigned last = split_at(request, first, count, 16 * half + 16);
        if (first < last && may_merge(request, first, last)) {
            sum += passes(seen, request, 4, first, last, words);
        } else {
            unsigned middle = split_at(request, first, last, 16 * half + 8);
            sum += passes(seen, request, 4, first, middle, words) + passes(seen, request, 4, middle, last, words);
        }
        first = last;
    }
    return sum;
}

class Analysis {
  public:
    Analysis(AccessSite& site, RequestScratch& touched)
        : site_(site), counters_(site.counters), touched_(touched), seen_(touched.seen) {
        ArenaRange arena = arena_range();
        arena_ = site.origin == reinterpret_cast<uintptr_t>(arena.base);
    }

    // Whether an even request can be counted from its first entry and its step.
    bool has_formula(unsigned lanes, int32_t step) const {
        if (site_.space != Space::shared || step == 0 || site_.size_log2 == 2) return true;
        return step == 1 && (site_.size_log2 < 2 || lanes == lanes_per_warp);
    }

    void count(const Request& request) {
        counters_.accesses += request.count;
        ++counters_.requests;
        if (site_.space == Space::shared)
            count_shared(request);
        else if (site_.space == Space::global)
            count_global(request);
        else
            counters_.bytes += uint64_t(distinct(request)) << site_.size_log2;
    }

  private:
    unsigned distinct(const Request& request) {
        if (request.even) return request.step == 0 ? 1 : request.count;
        unsigned count = 0;
        seen_.clear();
        for (unsigned i = 0; i < request.count; ++i) count += seen_.add(request.entry[i]);
        return count;
    }

    void count_shared(const Request& request) {
        unsigned words = 0, wavefronts;
        unsigned size_log2 = site_.size_log2;
        if (request.even && request.step == 0) {
            wavefronts = 1;
            words = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
            counters_.bytes += 1u << size_log2;
        } else if (request.even && size_log2 == 2) {
            // Lanes at one distance d hit 32 / gcd(d, 32) banks in turn.
            unsigned step = static_cast<unsigned>(request.step < 0 ? -request.step : request.step);
            unsigned used = step & 31 ? banks >> __builtin_ctz(step & 31) : 1;
            wavefronts = (request.count + used - 1) / used;
            words = request.count;
            counters_.bytes += 4u * words;
        } else if (request.even && has_formula(request.count, request.step)) {
            // Side by side: 8-byte accesses in two halves, 16-byte accesses in four quarters.
            wavefronts = size_log2 > 2 ? 1u << (size_log2 - 2) : 1;
            uint64_t first = uint64_t(request.entry[0]) << size_log2, bytes = uint64_t(request.count) << size_log2;
            words = static_cast<unsigned>(((first + bytes - 1) >> 2) - (first >> 2) + 1);
            counters_.bytes += bytes;
        } else {
            wavefronts = shared_wavefronts(seen_, request, size_log2, &words);
            counters_.bytes += uint64_t(distinct(request)) << size_log2;
        }
        unsigned ideal = (words + banks - 1) / banks;
        if (ideal > wavefronts) ideal = wavefronts;
        counters_.wavefronts += wavefronts;
        counters_.ideal_wavefronts += ideal;
        unsigned ways = (wavefronts + ideal - 1) / ideal;
        if (ways > counters_.worst_ways) counters_.worst_ways = ways;
    }

    void count_global(const Request& request) {
        unsigned size_log2 = site_.size_log2;
        unsigned to_sector = sector_shift - size_log2;
        unsigned sectors = 0;
        bool write = is_write(site_.access) || site_.access == Access::atomic;
        if (request.even) {
            uint32_t a = request.entry[0], b = a + static_cast<uint32_t>(request.step) * (request.count - 1);
            uint32_t low = (a < b ? a : b) >> to_sector, high = (a < b ? b : a) >> to_sector;
            unsigned step = static_cast<unsigned>(request.step < 0 ? -request.step : request.step);
            if (step << size_log2 <= 32) {
                sectors = high - low + 1;
                if (arena_) touch_range(touched_, write, low, high);
            } else {
                sectors = request.count;
                if (arena_)
                    for (unsigned i = 0; i < request.count; ++i)
                        touch(write, (a + static_cast<uint32_t>(request.step) * i) >> to_sector);
            }
        } else {
            seen_.clear();
            uint32_t last = ~0u;
            for (unsigned i = 0; i < request.count; ++i) {
                uint32_t sector = request.entry[i] >> to_sector;
                if (sector == last || !seen_.add(last = sector)) continue;
                ++sectors;
                if (arena_) touch(write, sector);
            }
        }
        unsigned ideal = ((request.count << size_log2) + 31) >> sector_shift;
        counters_.sectors += sectors;
        counters_.ideal_sectors += ideal < sectors ? ideal : sectors;
        counters_.bytes += uint64_t(distinct(request)) << size_log2;
    }

    void touch(bool write, uint32_t sector) { touch_range(touched_, write, sector, sector); }

    AccessSite& site_;
    Counters& counters_;
    RequestScratch& touched_;
    NumberSet& seen_;
    bool arena_;
};

// Keeps the first requests of each warp of the launch's first block.
void record(AccessSite& site, const RequestLog& log, const Request& request) {
    unsigned warp = log.warp->warp->index;
    TracedRequest kept = {};
    kept.site = site.id;
    kept.size = static_cast<uint8_t>(1u << site.size_log2);
    kept.access = site.access;
    kept.space = site.space;
    kept.kernel = the_launch.kernel;
    kept.serial = log.warp->block->first_serial;
    kept.warp = warp;
    kept.number = site.traced[warp]++;
    // Offsets in shared memory count from the block's first byte, so that they tell the bank.
    uintptr_t base = site.region && site.space != Space::shared ? site.region->base : site.origin;
    if (site.region) memcpy(kept.name, site.region->name, sizeof kept.name);
    for (unsigned i = 0; i < request.count; ++i) {
        kept.lanes |= 1u << request.lane[i];
        uintptr_t address = site.origin + (uintptr_t(request.entry[i]) << site.size_log2);
        kept.offset[request.lane[i]] = static_cast<int64_t>(address - base);
    }
    static SpinLock lock;
    Locked locked(lock);
    traces.push(kept);
}

// The entries of the lanes that have some.
struct Rows {
    const uint32_t* entries[lanes_per_warp];
    unsigned lane[lanes_per_warp];
    unsigned length[lanes_per_warp];
    unsigned count;
    unsigned shortest, longest;
};

Rows rows_of(const RequestLog& log) {
    Rows rows;
    rows.count = rows.longest = 0;
    rows.shortest = log_entries;
    for (unsigned rest = log.lanes; rest; rest &= rest - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
        unsigned length = log.count[lane];
        if (!length) continue;
        rows.entries[rows.count] = log.entry[lane];
        rows.lane[rows.count] = lane;
        rows.length[rows.count++] = length;
        if (length > rows.longest) rows.longest = length;
        if (length < rows.shortest) rows.shortest = length;
    }
    return rows;
}

// Which of the requests 0 .. length - 1 have entries that grow evenly from lane to lane. Rows are compared three by
// three so that the compiler can do several requests at once.
void find_even(const Rows& rows, unsigned length, uint8_t* even) {
    for (unsigned k = 0; k < length; ++k) even[k] = 1;
    for (unsigned i = 2; i < rows.count; ++i) {
        const uint32_t *a = rows.entries[i - 2], *b = rows.entries[i - 1], *c = rows.entries[i];
        for (unsigned k = 0; k < length; ++k) even[k] &= static_cast<uint8_t>(b[k] - a[k] == c[k] - b[k]);
    }
}

void gather(const Rows& rows, unsigned k, Request& request) {
    request.count = 0;
    for (unsigned i = 0; i < rows.count; ++i) {
        if (k >= rows.length[i]) continue;
        request.lane[request.count] = rows.lane[i];
        request.entry[request.count++] = rows.entries[i][k];
    }
}

// The common case of a kernel without loops: every lane of a full warp has come here once.
bool is_single(const RequestLog& log) {
    constexpr uint64_t four_ones = 0x0001000100010001u;
    if (log.lanes != ~0u) return false;
    uint64_t differences = 0, counts[lanes_per_warp / 4];
    memcpy(counts, log.count, sizeof counts);
    for (uint64_t four : counts) differences |= four ^ four_ones;
    return differences == 0;
}

bool is_even(const RequestLog& log) {
    uint32_t step = log.entry[1][0] - log.entry[0][0], differences = 0;
    for (unsigned lane = 1; lane < lanes_per_warp; ++lane)
        differences |= (log.entry[lane][0] - log.entry[lane - 1][0]) ^ step;
    return differences == 0;
}

void count_log(AccessSite& site, RequestLog& log) {
    Analysis analysis(site, *log.warp->block->worker->scratch);
    Request request;
    bool traced = site.traced[log.warp->warp->index] < trace_limit && log.warp->block->block->linear == 0;
    if (!traced && is_single(log) && is_even(log)) {
        request.even = true;
        request.count = lanes_per_warp;
        request.entry[0] = log.entry[0][0];
        request.step = static_cast<int32_t>(log.entry[1][0] - log.entry[0][0]);
        if (analysis.has_formula(lanes_per_warp, request.step)) {
            analysis.count(request);
            return;
        }
    }
    Rows rows = rows_of(log);
    if (!rows.count) return;
    uint8_t even[log_entries];
    find_even(rows, rows.shortest, even);
    for (unsigned k = 0; k < rows.longest; ++k) {
        request.even = k < rows.shortest && even[k];
        bool several = request.even && rows.count > 1;
        request.step = several ? static_cast<int32_t>(rows.entries[1][k] - rows.entries[0][k]) : 0;
        if (request.even && analysis.has_formula(rows.count, request.step)) {
            request.count = rows.count;
            request.entry[0] = rows.entries[0][k];
        } else {
            gather(rows, k, request);
            request.even = request.even || request.count == 1;
        }
        analysis.count(request);
        if (__builtin_expect(traced, false) && site.traced[log.warp->warp->index] < trace_limit) {
            gather(rows, k, request);
            record(site, log, request);
        }
    }
}

void count_and_empty(AccessSite& site, RequestLog& log) {
    count_log(site, log);
    for (unsigned rest = log.lanes; rest; rest &= rest - 1) log.count[__builtin_ctz(rest)] = 0;
    log.lanes = 0;
    log.warp = nullptr;
}

void park(AccessSite& site) {
    save_count(site);
    RequestLog* log = site.log;
    log->site = &site;
    log->next = log->warp->parked;
    log->warp->parked = log;
    site.log = nullptr;
}

void flush_parked(WarpState& warp) {
    while (RequestLog* log = warp.parked) {
        warp.parked = log->next;
        count_and_empty(*log->site, *log);
        log->next = warp.block->worker->free_logs;
        warp.block->worker->free_logs = log;
    }
}

RequestLog* unpark(WarpState& warp, const AccessSite& site) {
    for (RequestLog** link = &warp.parked; *link; link = &(*link)->next) {
        RequestLog* log = *link;
        if (log->site != &site) continue;
        *link = log->next;
        return log;
    }
    return nullptr;
}

}  // namespace

void bind_log(AccessSite& site, ThreadState& thread) {
    save_count(site);
    WarpState* warp = thread.warp;
    WorkerState& worker = *thread.worker;
    if (site.log && site.log->warp && site.log->warp != warp) {
        if (settled(*site.log->warp->warp))
            count_and_empty(site, *site.log);
        else
            park(site);
    }
    if (!site.log || (!site.log->warp && warp->parked)) {
        RequestLog* log = warp->parked ? unpark(*warp, site) : nullptr;
        if (log && site.log) {
            site.log->next = worker.free_logs;
            worker.free_logs = site.log;
        }
        if (log) site.log = log;
        if (!site.log) site.log = take_log(worker);
    }
    RequestLog* log = site.log;
    log->warp = warp;
    if (!site.touched) {
        site.touched = true;
        worker.touched.push(&site);
    }
    unsigned lane = thread.lane;
    if (!(log->lanes >> lane & 1)) {
        log->lanes |= 1u << lane;
        log->count[lane] = 0;
    }
    site.owner = &thread;
    site.next = log->entry[lane] + log->count[lane];
    site.end = log->entry[lane] + log_entries;
}

void log_full(AccessSite& site, ThreadState& thread) {
    let_others_run();
    // Unless another lane has done so meanwhile.
    if (site.owner != &thread) bind_log(site, thread);
    if (site.next == site.end) {
        flush_warp(*thread.warp);
        bind_log(site, thread);
    }
}

void flush_site(AccessSite& site) {
    save_count(site);
    if (site.log && site.log->warp) count_and_empty(site, *site.log);
}

void flush_warp(WarpState& warp) {
    Growable<AccessSite*>& touched = warp.block->worker->touched;
    for (size_t i = 0; i < touched.size();) {
        AccessSite& site = *touched[i];
        if (site.log && site.log->warp == &warp) flush_site(site);
        if (!site.log || !site.log->warp) {
            site.touched = false;
            touched.remove_unordered(i);
        } else {
            ++i;
        }
    }
    if (warp.parked) flush_parked(warp);
}

void flush_block(BlockState& block) {
    Growable<AccessSite*>& touched = block.worker->touched;
    for (size_t i = 0; i < touched.size();) {
        AccessSite& site = *touched[i];
        if (site.log && site.log->warp && site.log->warp->block == &block) flush_site(site);
        if (!site.log || !site.log->warp) {
            site.touched = false;
            touched.remove_unordered(i);
        } else {
            ++i;
        }
    }
    for (unsigned w = 0; w < block.block->warp_count; ++w)
        if (block.warps[w].parked) flush_parked(block.warps[w]);
}

void drop_logs(WorkerState& worker) {
    worker.sites.each([&worker](AccessSite& site) {
        site.owner = nullptr;
        site.touched = false;
        if (site.log) {
            site.log->warp = nullptr;
            site.log->lanes = 0;
        }
    });
    worker.touched.clear();
    for (BlockState* block : worker.blocks) {
        for (WarpState& warp : block->warps) {
            while (RequestLog* log = warp.parked) {
                warp.parked = log->next;
                log->next = worker.free_logs;
                worker.free_logs = log;
            }
        }
    }
}

namespace {

void free_sectors(RequestScratch& touched) {
    for (uint64_t* bits : touched.bits)
        if (bits) munmap(bits, touched.words * sizeof(uint64_t));
}

}  // namespace

void begin_sectors(WorkerState& worker) {
    if (!worker.scratch) worker.scratch = static_cast<RequestScratch*>(calloc(1, sizeof(RequestScratch)));
    RequestScratch& touched = *worker.scratch;
    size_t words = (arena_range().bytes >> (sector_shift + 6)) + 1;
    if (touched.words != words) {
        free_sectors(touched);
        touched.words = words;
        for (uint64_t*& bits : touched.bits) {
            void* memory = mmap(nullptr, words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            bits = memory == MAP_FAILED ? nullptr : static_cast<uint64_t*>(memory);
        }
    }
    for (unsigned w = 0; w < 2; ++w) {
        touched.first[w] = words;
        touched.last[w] = 0;
    }
}

SectorTotals end_sectors() {
    static SectorTotals totals;
    static RequestScratch* all;
    totals = {};
    all = nullptr;
    // Everything into the first worker's bits, which are then counted and cleared.
    each_worker([](WorkerState& worker) {
        RequestScratch* touched = worker.scratch;
        if (!touched) return;
        if (!all) {
            all = touched;
            return;
        }
        for (unsigned w = 0; w < 2; ++w) {
            if (touched->first[w] > touched->last[w]) continue;
            for (size_t i = touched->first[w]; i <= touched->last[w]; ++i) all->bits[w][i] |= touched->bits[w][i];
            memset(touched->bits[w] + touched->first[w], 0,
                   (touched->last[w] - touched->first[w] + 1) * sizeof(uint64_t));
            if (all->first[w] > touched->first[w]) all->first[w] = touched->first[w];
            if (all->last[w] < touched->last[w]) all->last[w] = touched->last[w];
            touched->first[w] = touched->words;
            touched->last[w] = 0;
        }
    });
    if (!all) return totals;
    size_t first = all->first[0] < all->first[1] ? all->first[0] : all->first[1];
    size_t last = all->last[0] > all->last[1] ? all->last[0] : all->last[1];
    for (size_t i = first; i <= last && i < all->words; ++i) {
        uint64_t read = all->bits[0][i], written = all->bits[1][i];
        totals.read += static_cast<uint64_t>(__builtin_popcountll(read));
        totals.written += static_cast<uint64_t>(__builtin_popcountll(written));
        totals.either += static_cast<uint64_t>(__builtin_popcountll(read | written));
        all->bits[0][i] = all->bits[1][i] = 0;
    }
    for (unsigned w = 0; w < 2; ++w) {
        all->first[w] = all->words;
        all->last[w] = 0;
    }
    return totals;
}

}  // namespace sim::checks
