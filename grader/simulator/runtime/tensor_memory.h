// Tensor memory of a block, and what its tensor cores have been asked for (Blackwell, PTX: tcgen05).
//
// A block has all 512 columns for itself: that several blocks of an SM share them is not simulated. A load takes its values
// when it is executed and gives them to the thread's variables when the warp waits; until then these hold NaNs. Products
// and copies from shared memory are performed in their order, as late as the program allows: when an mbarrier on which they
// were committed must complete so that a thread can go on.
#pragma once

#include "sim/tcgen05.h"
#include "thread.h"

namespace sim {

// Of a product: what its instruction descriptor says (PTX ISA, "Instruction descriptor").
struct ProductShape {
    unsigned m, n;
    bool d_is_f32, a_is_bf16, b_is_bf16, negate_a, negate_b, a_mn_major, b_mn_major;
};
ProductShape shape_of(uint32_t instruction);
constexpr unsigned product_depth = 16;

// A product, or a copy from shared memory to tensor memory.
struct TensorOperation {
    TensorProduct product;
    ProductShape shape;
    unsigned copy_bits;  // 0: a product; else of the copy from product.a to product.d
    Thread* thread;
    const void* address;
    uint64_t number;  // counted for each cluster, from 1
    TensorOperation* next;
};

struct Operands;

// What a warp has loaded or stored and not waited for.
struct TensorLoad {
    unsigned registers;
    uint32_t* variables[lanes_per_warp][128];
    uint32_t values[lanes_per_warp][128];
    const void* address;
    TensorLoad* next;
};

struct TensorMemory {
    uint32_t value[tensor_lanes][tensor_columns];
    uint16_t allocation[tensor_columns];  // its number, from 1; 0: nobody's
    unsigned allocations;                 // so far
    unsigned group;                       // 1 or 2: cta_group of the block's instructions; 0: none yet
    bool gave_up;                         // tcgen05.relinquish_alloc_permit
    const void* allocated_at;             // the last time
    Thread* allocated_by;
    TensorOperation* oldest;
    TensorOperation* youngest;
    TensorLoad* loads[max_warps_per_block];  // newest first
    Operands* operands;                      // of the product that was performed last, as numbers; or null
};

// Of the block, made now if it has none.
TensorMemory& tensor_memory_of(Block& block, const void* address);
// All instructions of a kernel are of the same cta_group, which for 2 takes a cluster of pairs.
void check_group(Thread& self, Site site, bool pair);
// The block with which this one is a pair.
Block& neighbor_of(const Block& block);
// The columns [first, first + count) are allocated; otherwise the launch ends. `what` says who asks: "tcgen05.ld".
void check_columns(Thread& self, Site site, Block& block, unsigned first, unsigned count, const char* what);

// Performs the block's operations up to this number.
void perform_tensor_operations(Block& block, uint64_t number);
// perform_tensor_operations for one: the arithmetic.
void perform(const TensorOperation& operation);
// The block has ended, or its launch.
void finish_tensor_memory(Block& block);

}  // namespace sim
