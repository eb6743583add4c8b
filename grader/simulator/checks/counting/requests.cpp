#include "checks/counting/requests.h"

#include "checks/counting/request.h"
#include "checks/report/trace.h"

namespace sim::checks {

namespace {

RequestLog* take_log(WorkerState& worker) {
    RequestLog* log = worker.free_logs;
    if (log) {
        worker.free_logs = log->next;
    } else {
        log = zeros<RequestLog>();
    }
    log->lanes = 0;
    return log;
}

// Returns whether no lane of the warp can run now. Then every lane has logged all its accesses up to this point.
bool settled(const Warp& warp) { return !(warp.ready | warp.unstarted | warp.spinning | warp.paused); }

void save_count(AccessSite& site) {
    if (!site.owner) return;
    unsigned lane = site.owner->lane;
    site.log->count[lane] = static_cast<uint16_t>(site.next - site.log->entry[lane]);
    site.owner = nullptr;
}

// The log entries of the lanes that have any.
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

// Finds which of the requests 0 .. length - 1 have entries that grow evenly from lane to lane. Rows are compared three
// at a time so that the compiler can vectorize over requests.
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

// EACH: the number of entries that an access logs, 2 for logs_destinations().
template <unsigned EACH>
void count_entries(AccessSite& site, RequestLog& log) {
    RequestCounter counter(site, *log.warp->block->worker);
    Request request;
    Rows rows = rows_of(log);
    if (!rows.count) return;
    uint8_t even[log_entries];
    find_even(rows, rows.shortest, even);
    for (unsigned k = 0; k < rows.longest; k += EACH) {
        request.even = k < rows.shortest && even[k];
        request.step = static_cast<int32_t>(rows.entries[rows.count > 1][k] - rows.entries[0][k]);
        if (EACH == 1 && request.even && counter.has_formula(rows.count, request.step)) {
            request.count = rows.count;
            request.entry[0] = rows.entries[0][k];
            request.lane[0] = rows.lane[0];
            request.lane[rows.count - 1] = rows.lane[rows.count - 1];
        } else {
            gather(rows, k, request);
        }
        counter.count(request);
        if constexpr (EACH == 2) {
            Request destinations;
            gather(rows, k + 1, destinations);
            counter.count_destinations(request, destinations.entry);
        }
        if (__builtin_expect(is_traced(site, *log.warp), false)) {
            gather(rows, k, request);
            keep_request(site, *log.warp, request);
        }
    }
}

void count_and_empty(AccessSite& site, RequestLog& log) {
    if (logs_destinations(site))
        count_entries<2>(site, log);
    else
        count_entries<1>(site, log);
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
    // While other lanes ran, one of them may have taken over the site, or emptied the log by counting its requests.
    if (site.owner != &thread) bind_log(site, thread);
    if (site.next == site.end) flush_warp(*thread.warp);
}

void flush_site(AccessSite& site) {
    save_count(site);
    if (site.log && site.log->warp) count_and_empty(site, *site.log);
}

namespace {

// Counts the logs of the worker's sites whose warp is wanted, and forgets the sites that have no log.
template <typename F>
void flush_touched(WorkerState& worker, F is_wanted) {
    Growable<AccessSite*>& touched = worker.touched;
    for (size_t i = 0; i < touched.size();) {
        AccessSite& site = *touched[i];
        if (site.log && site.log->warp && is_wanted(*site.log->warp)) flush_site(site);
        if (!site.log || !site.log->warp) {
            site.touched = false;
            touched.remove_unordered(i);
        } else {
            ++i;
        }
    }
}

}  // namespace

void flush_warp(WarpState& warp) {
    flush_touched(*warp.block->worker, [&warp](const WarpState& logged) { return &logged == &warp; });
    if (warp.parked) flush_parked(warp);
}

void flush_block(BlockState& block) {
    flush_touched(*block.worker, [&block](const WarpState& logged) { return logged.block == &block; });
    for (unsigned w = 0; w < block.block->warp_count; ++w)
        if (block.warps[w].parked) flush_parked(block.warps[w]);
}

void drop_logs(WorkerState& worker) {
    worker.sites.each([](AccessSite& site) {
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

}  // namespace sim::checks
