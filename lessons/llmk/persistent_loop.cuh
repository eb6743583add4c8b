// Day 16's persistent kernel: each block runs through the list of phases, and its warps have roles.
//
// Most of a phase's time goes to the steps before and after the multiplication, and each step depends on the one
// before. So each step has its own warps. *Readers* wait for the inputs of a phase, normalize them, and proceed to the next phase
// (or to attention) while the *multipliers* compute this one. *Writers* rotate, add and publish the sums of the
// previous phase. They synchronize with mbarriers, with two buffers for inputs and two for sums.
#pragma once

#include <cuda_runtime.h>

#include <climits>

#include "llmk/mbarrier.cuh"
#include "llmk/persistent_attention.cuh"
#include "llmk/persistent_inputs.cuh"
#include "llmk/persistent_multiply.cuh"
#include "llmk/persistent_outputs.cuh"
#include "llmk/persistent_prefetch.cuh"
#include "llmk/persistent_weights.cuh"
#include "llmk/reduce.cuh"

namespace llmk::persistent {

// The last block to arrive makes the next token an input and resets everything for the next launch.
template <typename T>
__device__ void advance(const Model<T>& model, int writer, int position, int launches) {
    llmk::bar_sync(kWritersBarrier, kWriters);
    if (writer != 0) return;
    __threadfence();
    if (atomicAdd(model.arrivals, 1u) != gridDim.x - 1) return;
    __threadfence();
    const Word best = atomicExch(model.best, 0ull);
    if (best > 0) {  // otherwise no logits were computed: the next token is part of the prompt
        model.tokens[position + 1] = static_cast<int>(UINT_MAX - static_cast<unsigned>(best));
    }
    model.state[0] = position + 1;
    model.state[1] = launches + 1;
    atomicExch(model.arrivals, 0u);
}

// Run phases first ... last - 1 of the list; compute logits only if requested. Several launches, each with some of the
// phases, can compute a token too: each launch loads its weights before the previous launch has ended.
template <typename T>
static __global__ void __launch_bounds__(kThreads, 1)
    decode_kernel(const Model<T> model, int first, int last, bool logits, int slots, int slot_bytes, int flying,
                  int input_bytes, int sums_bytes) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t full[kMostSlots], empty[kMostSlots], meetings[6];
    __shared__ float2 angle[kMostHead / 2];
    Shared shared;
    unsigned char* at = memory;
    const auto next = [&at](long long bytes) {
        unsigned char* begin = at;
        at += bytes;
        return begin;
    };
    shared.ring = next(slots * static_cast<long long>(slot_bytes));
    shared.inputs = next(2LL * input_bytes);
    shared.attended = reinterpret_cast<float*>(next(kReaders / 32 * model.head_dim * sizeof(float)));
    shared.sums = next(2LL * sums_bytes);
    Work* works = reinterpret_cast<Work*>(at);
    shared.full = full;
    shared.empty = empty;
    shared.ready = meetings;
    shared.summed = meetings + 2;
    shared.given = meetings + 4;
    shared.works = works;
    shared.angle = angle;
    shared.slots = slots;
    shared.slot_bytes = slot_bytes;
    shared.flying = flying;
    shared.input_bytes = input_bytes;
    shared.sums_bytes = sums_bytes;

    if (threadIdx.x < kMostSlots) {
        llmk::mbarrier_init(&full[threadIdx.x], 1);
        llmk::mbarrier_init(&empty[threadIdx.x], kWarps);
    }
    if (threadIdx.x < 2) {
        llmk::mbarrier_init(shared.ready + threadIdx.x, kReaders / 32);
        llmk::mbarrier_init(shared.summed + threadIdx.x, kWarps);
        llmk::mbarrier_init(shared.given + threadIdx.x, kWriters / 32);
    }
    llmk::fence_mbarrier_init();
    plan(model.phases, first, last, logits, works);  // synchronizes the block
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    Turn turn;
    if (threadIdx.x < kWarps * 32) {
        Turn ring;
        for (int i = 0; i < last - first; ++i) {
            if (works[i].tiles == 0) continue;
            const Work work = works[i];
            multiply<T>(work, shared, turn, ring);
            turn.next(2);
        }
        return;
    }
    if (threadIdx.x >= kThreads - 32) {
        if (threadIdx.x == kThreads - 32) ask_for_weights<T>(shared, model.weights, last - first);
        return;
    }

    asm volatile("griddepcontrol.wait;" ::: "memory");
    const int position = model.state[0], launches = model.state[1];
    const unsigned epochs = static_cast<unsigned>(launches) * model.phase_count + 1;  // epoch of phase 0, never 0
    if (threadIdx.x < kWarps * 32 + kReaders) {
        const int reader = threadIdx.x - kWarps * 32;
        for (int number = first; number < last; ++number) {
            const Work work = works[number - first];
            const unsigned read = epochs + static_cast<unsigned>(work.source);
            if (work.kind == kAttention) {
                attention(model, work, position + 1, reader, read, epochs + number, shared.attended);
            } else if (work.tiles > 0) {  // a block without tiles writes nothing, so no writer waits until it has read
                for (int next = number - first + 1; next < min(last - first, number - first + 3); ++next) {
                    if (works[next].kind == kAttention) prefetch_keys(model, works[next], position + 1, reader);
                    prefetch_for(model, works[next], reader);
                }
                llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity ^ 1);
                take_input(model, work, position + 1, reader, turn.place, read, shared.input(turn.place));
                if (reader % 32 == 0) llmk::mbarrier_arrive(shared.ready + turn.place);
                turn.next(2);
            }
        }
        return;
    }

    const int writer = threadIdx.x - kWarps * 32 - kReaders, page = page_of(model, position);
    for (int i = writer; i < model.rotary / 2; i += kWriters) {
        angle[i] =
            reinterpret_cast<const float2*>(model.rope)[static_cast<long long>(position) * (model.rotary / 2) + i];
    }
    llmk::bar_sync(kWritersBarrier, kWriters);
    for (int number = first; number < last; ++number) {
        const Work work = works[number - first];
        if (work.kind == kEmbed) {
            embed(model, work, model.phases[number].weights, writer, position, epochs + number);
        } else if (work.kind == kAdvance) {
            advance(model, writer, position, launches);
        } else if (work.tiles > 0) {
            give_output(model, work, shared, turn, writer, position, page, epochs + number);
            __syncwarp();
            if (writer % 32 == 0) llmk::mbarrier_arrive(shared.given + turn.place);
            turn.next(2);
        }
    }
}

}  // namespace llmk::persistent
