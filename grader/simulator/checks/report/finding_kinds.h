// The kinds of findings, and the typed payload of each. Their texts are in grader/verdict/findings.
#pragma once

#include <stdint.h>
#include <string.h>

#include <variant>

namespace sim::checks {

enum class Check : uint8_t { memcheck, initcheck, racecheck, synccheck, fault };

enum class FindingKind : uint8_t {
#define FINDING(NAME, CHECK, PAYLOAD) NAME,
#include "checks/report/finding_kinds.def"
#undef FINDING
};

const char* name_of(FindingKind kind);
Check check_of(FindingKind kind);

template <unsigned Size>
struct Text {
    char chars[Size];

    Text() : chars() {}
    Text(const char* text, size_t length = Size - 1) : chars() {
        if (text) strncpy(chars, text, length < Size ? length : Size - 1);
    }
};

// Each payload calls visit(name, value) for its fields, which have the same names in Python. A value is a uint64_t, an
// int64_t, a text, or one of the lists below.

struct NoPayload {
    template <typename Visit>
    void each(Visit&&) const {}
};

struct Address {
    uint64_t address;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("address", address);
    }
};

struct ArrayIndex {
    int64_t index;
    Text<256> array_type;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("index", index);
        visit("array_type", array_type.chars);
    }
};

struct LeakedBytes {
    uint64_t bytes;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("bytes", bytes);
    }
};

struct UninitializedBytes {
    uint64_t bytes;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("bytes", bytes);
    }
};

struct ElementNumbers {
    unsigned count;
    uint64_t numbers[5];
};

struct UnwrittenElements {
    uint64_t missing;
    ElementNumbers first;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("missing", missing);
        visit("first", first);
    }
};

// The payload of a race. finding_reader.py adds the place of a nearby atomic operation.
struct NearbyAtomic {
    template <typename Visit>
    void each(Visit&&) const {}
};

// The state of an mbarrier that blocked threads wait for.
struct MbarrierPhase {
    bool known;
    uint32_t phase, missing_arrivals, expected_arrivals;
    int32_t missing_bytes;  // negative: more bytes arrived than were announced
};

struct Waiting {
    unsigned threads, first;
    Text<48> operation;
    const void* address;
    unsigned line;
    MbarrierPhase mbarrier;
};

struct Waits {
    unsigned count;
    Waiting places[8];
};

struct BlockedThreads {
    Waits waits;
    uint64_t exited;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("waits", waits);
        visit("exited", exited);
    }
};

struct TwoOperations {
    Text<64> operation, other_operation;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("operation", operation.chars);
        visit("other_operation", other_operation.chars);
    }
};

struct ExitedThreads {
    uint64_t exited, threads;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("exited", exited);
        visit("threads", threads);
    }
};

struct Mask {
    uint64_t mask;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("mask", mask);
    }
};

struct Lane {
    uint64_t lane;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("lane", lane);
    }
};

struct Reason {
    Text<400> reason;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("reason", reason.chars);
    }
};

struct EndlessLoop {
    Text<400> reason;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("reason", reason.chars);
    }
};

// The swizzle of a matrix descriptor and of a tensor map, in bytes; 16: none.
struct Swizzles {
    uint64_t descriptor, tensor_map;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("descriptor", descriptor);
        visit("tensor_map", tensor_map);
    }
};

struct TensorCell {
    uint64_t lane, column;
    Text<16> operation, earlier;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("lane", lane);
        visit("column", column);
        visit("operation", operation.chars);
        visit("earlier", earlier.chars);
    }
};

struct TensorColumn {
    uint64_t column;
    Text<16> operation;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("column", column);
        visit("operation", operation.chars);
    }
};

struct TensorColumns {
    uint64_t columns;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("columns", columns);
    }
};

struct TensorInstruction {
    Text<16> operation;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("operation", operation.chars);
    }
};

struct RefusedCall {
    Text<256> call;
    uint64_t error;
    Text<400> reason;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("call", call.chars);
        visit("error", error);
        visit("reason", reason.chars);
    }
};

struct Call {
    Text<256> call;
    template <typename Visit>
    void each(Visit&& visit) const {
        visit("call", call.chars);
    }
};

using Payload =
    std::variant<NoPayload, Address, ArrayIndex, LeakedBytes, UninitializedBytes, UnwrittenElements, NearbyAtomic,
                 BlockedThreads, TwoOperations, ExitedThreads, Mask, Lane, Reason, EndlessLoop, Swizzles, TensorCell,
                 TensorColumn, TensorColumns, TensorInstruction, RefusedCall, Call>;

// Calls visit(payload) with the payload in its type. std::visit would export symbols of the standard library.
template <size_t Index = 0, typename Visit>
void visit_payload(const Payload& payload, Visit&& visit) {
    if (auto* fields = std::get_if<Index>(&payload)) {
        visit(*fields);
    } else if constexpr (Index + 1 < std::variant_size_v<Payload>) {
        visit_payload<Index + 1>(payload, visit);
    }
}

// The payload of a kind, with zeros and empty texts.
Payload empty_payload(FindingKind kind);

}  // namespace sim::checks
