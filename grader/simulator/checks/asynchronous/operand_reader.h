// The reads of an operand in shared memory by the tensor cores (wgmma, tcgen05.mma).
#pragma once

#include "checks/asynchronous/mbarriers.h"
#include "checks/asynchronous/swizzles.h"
#include "checks/asynchronous/wgmma.h"
#include "checks/synchronization/races.h"

namespace sim::checks {

constexpr unsigned max_readers = 4;

// For each piece of a block's shared memory, a note about the last operation that read it.
using PieceNotes = uint32_t*;

class OperandReader {
  public:
    // `line`: the bytes that the matrix descriptor swizzles together. A read replaces a piece's note by `note`, except
    // for the bits in `kept`.
    OperandReader(ThreadState& reader, BlockState& owner, PieceNotes& notes, uint32_t note, uint32_t kept,
                  unsigned line, const void* code)
        : swizzle_(reader, code, line), owner_(owner), note_(note), kept_(kept), code_(code) {
        if (!notes) notes = zeros<uint32_t>(max_pieces);
        notes_ = notes;
        add_reader(reader);
    }

    // Adds a thread that also executes the operation. The last write must be visible to all these threads.
    void add_reader(ThreadState& reader) { readers_[count_++] = &reader; }

    void read(uintptr_t address) {
        if (!site_ || address - site_->base >= site_->limit) {
            AccessSite* known = readers_[0]->worker->sites.find(code_);
            site_ = prepare(*readers_[0], known, address, Access::operand_read, piece_log2);
            if (!site_) return;
        }
        uint32_t& last = notes_[(address - owner_.shared->base) >> piece_log2];
        last = note_ | (last & kept_);
        if (!site_->cells) return;
        ShadowCell* cell = site_->cells + ((address - site_->base) >> site_->shift);
        swizzle_.check(owner_, address, *cell, *site_);
        Epoch mark = operand_mark(owner_);
        for (unsigned i = 0; i < (1u << piece_log2) >> site_->shift; ++i) {
            if (cell[i].write != written_) check_write(cell[i], address);
            cell[i].reads = mark;
            cell[i].read_site = site_->id;
        }
    }

  private:
    // Cells that were written together need only one check.
    void check_write(ShadowCell& cell, uintptr_t address) {
        written_ = cell.write;
        for (unsigned i = 0; i < count_; ++i) {
            ThreadState& reader = *readers_[i];
            if (!reader.floors[site_->window].contains(written_)) read_conflict(reader, cell, *site_);
            if (fence_missing_ || written_ == never || seen_by_bulk_copies(reader, written_)) continue;
            fence_missing_ = true;
            report_missing_proxy_fence(reader, *site_, cell, address);
        }
    }

    SwizzleCheck swizzle_;
    BlockState& owner_;
    PieceNotes notes_;
    uint32_t note_, kept_;
    const void* code_;
    ThreadState* readers_[max_readers];
    unsigned count_ = 0;
    AccessSite* site_ = nullptr;
    Epoch written_ = Epoch::none();
    bool fence_missing_ = false;
};

}  // namespace sim::checks
