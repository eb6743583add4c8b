// A grid for tests: the test itself makes each thread's accesses, one after another, without a kernel.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include <initializer_list>

#include "checks/core/access.h"
#include "checks/report/findings.h"
#include "checks/synchronization/races.h"
#include "runtime/events.h"
#include "runtime/fiber.h"

namespace unit {

constexpr unsigned max_blocks = 4, max_threads = 128;
constexpr size_t shared_bytes = 16384;

// Returns the start of a block's shared memory, 1 MB after the previous one. Addresses up to 512 KB away from it belong
// to the block.
inline char* shared_memory(unsigned block) {
    constexpr size_t bytes = size_t(1) << 20;
    static char* all = static_cast<char*>(
        mmap(nullptr, max_blocks * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return all + block * bytes;
}

class Grid {
  public:
    Grid(unsigned blocks, unsigned threads, unsigned cluster = 1) : blocks_(blocks), threads_(threads) {
        static uint64_t launches = 0;
        sim::checks::forget_findings();
        launch_.kernel_name = "kernel";
        launch_.grid = dim3(blocks);
        launch_.block = dim3(threads);
        launch_.cluster = dim3(cluster);
        launch_.checks_enabled = true;
        launch_.dynamic_shared_bytes = shared_bytes;
        launch_.workers = 1;
        launch_.id = ++launches;
        sim::events::launch_begin(launch_);
        for (unsigned b = 0; b < blocks; ++b) join(b);
        for (unsigned b = 0; b < blocks; ++b) begin(b);
    }
    ~Grid() {
        for (unsigned b = 0; b < blocks_; ++b)
            if (block_[b].checks) sim::events::block_end(block_[b]);
        sim::events::launch_end(launch_);
    }
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    sim::checks::ThreadState& thread(unsigned block, unsigned thread) {
        return *sim::checks::state_of(thread_[block][thread]);
    }
    sim::Block& block(unsigned block) { return block_[block]; }
    sim::Launch& launch() { return launch_; }
    sim::Warp& warp(unsigned block, unsigned warp) { return warp_[block][warp]; }
    char* shared(unsigned block) { return block_[block].dynamic_shared; }
    void syncthreads(unsigned block) {
        unsigned lanes[sim::max_warps_per_block] = {};
        for (unsigned w = 0; w < block_[block].warp_count; ++w)
            lanes[w] = warp_[block][w].at_barrier[0].waiting = warp_[block][w].existing;
        sim::events::barrier(block_[block], 0, lanes);
    }
    // All threads of the given warps wait at a named barrier.
    void meet(unsigned block, unsigned barrier, std::initializer_list<unsigned> warps) {
        unsigned lanes[sim::max_warps_per_block] = {};
        for (unsigned w : warps) lanes[w] = warp_[block][w].at_barrier[barrier].waiting = warp_[block][w].existing;
        sim::events::barrier(block_[block], barrier, lanes);
        for (unsigned w : warps) warp_[block][w].at_barrier[barrier].waiting = 0;
    }
    void arrive(unsigned block, unsigned barrier, unsigned warp) {
        for (unsigned lane = 0; lane < 32; ++lane)
            sim::events::barrier_arrive(thread_[block][32 * warp + lane], barrier);
    }
    void sync_grid() {
        for (unsigned b = 0; b < blocks_; ++b) {
            for (unsigned w = 0; w < block_[b].warp_count; ++w) {
                sim::Warp& warp = warp_[b][w];
                warp.at_barrier[sim::grid_number].arrived = warp.existing & ~warp.exited;
            }
        }
        sim::events::grid_sync();
    }
    void arrive_at_cluster(unsigned block, unsigned thread, bool releases = true) {
        sim::events::cluster_arrive(thread_[block][thread], releases);
    }
    void complete_cluster(unsigned block) { sim::events::cluster_complete(*block_[block].cluster); }
    void wait_for_cluster(unsigned block, unsigned thread) { sim::events::cluster_waited(thread_[block][thread]); }
    void syncwarp(unsigned block, unsigned warp, unsigned lanes = ~0u) {
        sim::events::warp_collective(warp_[block][warp], lanes & warp_[block][warp].existing, true);
    }

  private:
    void join(unsigned b) {
        unsigned size = launch_.cluster.x;
        sim::Cluster& cluster = cluster_[b / size];
        cluster.linear = b / size;
        cluster.size = size;
        cluster.blocks[b % size] = &block_[b];
        cluster.live += threads_;
        block_[b].cluster = &cluster;
        block_[b].rank = b % size;
    }
    void begin(unsigned b) {
        static sim::Fiber nowhere;
        sim::Block& block = block_[b];
        block.launch = &launch_;
        block.checked = true;
        block.worker = reinterpret_cast<sim::Worker*>(&nowhere);
        block.linear = b;
        block.thread_count = block.live = threads_;
        block.warp_count = (threads_ + 31) / 32;
        block.threads = thread_[b];
        block.warps = warp_[b];
        block.shared = shared_memory(b);
        block.dynamic_shared = block.shared + (256 << 10);
        for (unsigned w = 0; w < block.warp_count; ++w) {
            unsigned lanes = threads_ - 32 * w;
            warp_[b][w].threads = thread_[b] + 32 * w;
            warp_[b][w].block = &block;
            warp_[b][w].index = w;
            warp_[b][w].existing = lanes < 32 ? (1u << lanes) - 1 : ~0u;
        }
        for (unsigned t = 0; t < threads_; ++t) {
            thread_[b][t].fiber = &nowhere;
            thread_[b][t].warp = &warp_[b][t / 32];
            thread_[b][t].block = &block;
            thread_[b][t].linear = static_cast<uint16_t>(t);
            thread_[b][t].lane = static_cast<uint8_t>(t % 32);
            thread_[b][t].call_address = this;
        }
        sim::events::block_begin(block);
    }

    unsigned blocks_, threads_;
    sim::Launch launch_ = {};
    sim::Cluster cluster_[max_blocks] = {};
    sim::Block block_[max_blocks] = {};
    sim::Warp warp_[max_blocks][max_threads / 32] = {};
    sim::Thread thread_[max_blocks][max_threads] = {};
};

// A writable tensor of floats, with one site that reads it and one that writes it.
class Floats {
  public:
    explicit Floats(bool initialized = true) {
        const int64_t shape[] = {16};
        sim::checks::forget_regions();
        region_ = &sim::checks::add_allocation({sim::events::MemoryKind::tensor, reinterpret_cast<char*>(data_),
                                                sizeof data_, "x", "float32", 1, shape, nullptr});
        if (initialized) sim::checks::mark_written(region_->base, region_->bytes);
        sim::checks::track(*region_);
    }
    ~Floats() { sim::checks::forget_regions(); }

    char* at(unsigned i) { return reinterpret_cast<char*>(data_ + i); }
    const void* code(sim::checks::Access access) { return site(access).address; }
    sim::checks::ShadowCell& cell(unsigned i) { return region_->cells[i]; }
    void read(sim::checks::ThreadState& thread, unsigned i) {
        sim::checks::read_cell(thread, cell(i), site(sim::checks::Access::read));
    }
    // Writes a value that differs from the old one, because a write of the same value is no race.
    void write(sim::checks::ThreadState& thread, unsigned i) {
        sim::checks::write_cell(thread, cell(i), site(sim::checks::Access::write), region_->base + 4 * i);
        data_[i] += 1;
        if (thread.pending) sim::checks::settle(thread, 0, nullptr);
    }
    void atomic(sim::checks::ThreadState& thread, unsigned i, bool block_scope = false) {
        sim::checks::atomic_cell(thread, cell(i), site(sim::checks::Access::atomic), {true, true, block_scope});
    }

    void strong(sim::checks::ThreadState& thread, unsigned i, sim::checks::Access access) {
        bool stores = access != sim::checks::Access::volatile_read;
        sim::checks::atomic_cell(thread, cell(i), site(access), {!stores, stores});
    }
    void atomic_load(sim::checks::ThreadState& thread, unsigned i) {
        sim::checks::atomic_cell(thread, cell(i), site(sim::checks::Access::atomic), {true, false});
    }

  private:
    sim::checks::AccessSite& site(sim::checks::Access access) {
        sim::checks::AccessSite& site = sites_[static_cast<unsigned>(access)];
        site.address = reinterpret_cast<const char*>(this) + static_cast<unsigned>(access);
        site.id = sim::checks::site_id(site.address);
        site.base = region_->base;
        site.cells = region_->cells;
        site.shift = region_->shift;
        site.size_log2 = 2;
        site.window = region_->window();
        site.space = sim::checks::Space::global;
        site.access = access;
        site.region = region_;
        return site;
    }
    alignas(32) float data_[16] = {};
    sim::checks::Region* region_;
    sim::checks::AccessSite sites_[8] = {};
};

}  // namespace unit
