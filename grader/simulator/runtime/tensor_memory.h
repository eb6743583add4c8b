// Tensor memory of a block, and the pending operations of its tensor cores (Blackwell; PTX ISA, tcgen05 instructions).
//
// A block has all 512 columns for itself: sharing between the blocks of an SM is not simulated. A load takes its values
// when it is executed and assigns them to the thread's variables when the warp waits; until then these hold NaNs. MMAs
// and copies from shared memory are performed in order and as late as the program allows: when an mbarrier on which
// they were committed must complete so that a thread can continue.
#pragma once

#include "sim/tcgen05.h"
#include "thread.h"

namespace sim {

// The fields of an instruction descriptor (PTX ISA, "Instruction descriptor").
struct MmaShape {
    unsigned m, n;
    bool d_is_f32, a_is_bf16, b_is_bf16, negate_a, negate_b, a_mn_major, b_mn_major;
};
MmaShape shape_of(uint32_t instruction);
// Returns the size of K of one mma: the number of elements along k in a row of A.
constexpr unsigned depth_of(Tcgen05Kind kind) {
    return kind == Tcgen05Kind::f16 ? 16 : kind == Tcgen05Kind::mxf8f6f4 ? 32 : 64;
}
// The columns of tensor memory that hold the scale factors of this many rows of A, or columns of B.
constexpr unsigned scale_columns(unsigned rows) { return (rows + 31) / 32; }

// A tcgen05.mma, or a tcgen05.cp from shared memory to tensor memory.
struct TensorOperation {
    Tcgen05Mma mma;
    MmaShape shape;
    unsigned copy_bits;  // of a tcgen05.cp: size of a row in bits. It copies from mma.a to mma.d. 0: a tcgen05.mma
    bool copy_warpx4;    // 32 lanes are copied four times
    Thread* thread;
    const void* address;
    uint64_t number;  // number in its cluster, from 1
    TensorOperation* next;
};

struct Operands;

// Registers of a tcgen05.ld or tcgen05.st that the warp has not waited for.
struct TensorLoad {
    unsigned registers;
    uint32_t* variables[lanes_per_warp][128];
    uint32_t values[lanes_per_warp][128];
    const void* address;
    TensorLoad* next;
};

struct TensorMemory {
    uint32_t value[tensor_lanes][tensor_columns];
    uint16_t allocation[tensor_columns];  // number of the allocation that owns the column, from 1; 0: free
    unsigned allocations;                 // number of allocations so far
    unsigned group;                       // cta_group of the block's instructions so far, 1 or 2; 0: no instruction yet
    bool relinquished;                    // the block has executed tcgen05.relinquish_alloc_permit
    const void* allocated_at;             // call address of the latest allocation
    Thread* allocated_by;
    TensorOperation* oldest;
    TensorOperation* youngest;
    TensorLoad* loads[max_warps_per_block];  // newest first
    Operands* operands;                      // the decoded operands of the mma that was performed last; or null
};

// Returns the block's tensor memory. Creates it at the first call.
TensorMemory& tensor_memory_of(Block& block, const void* address);
// Checks that all instructions of a kernel use the same cta_group; cta_group::2 requires clusters made of CTA pairs.
void check_group(Thread& self, Site site, bool pair);
// Returns the other block of the CTA pair.
Block& neighbor_of(const Block& block);
// Ends the launch unless the columns [first, first + count) are allocated. `what` names the instruction, such as
// "tcgen05.ld".
void check_columns(Thread& self, Site site, Block& block, unsigned first, unsigned count, const char* what);

// Performs the block's operations up to this number.
void perform_tensor_operations(Block& block, uint64_t number);
// Computes or copies for one operation. perform_tensor_operations() calls it.
void perform(const TensorOperation& operation);
// Called when the block or its launch has ended.
void finish_tensor_memory(Block& block);

}  // namespace sim
