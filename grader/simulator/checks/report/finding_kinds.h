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

template <unsigned Size>
const char* visible(const Text<Size>& text) {
    return text.chars;
}
template <typename T>
const T& visible(const T& value) {
    return value;
}

// Each payload lists its fields, which have the same names in Python: each(visit) calls visit(name, value) for them. A
// value is a uint64_t, an int64_t, a text, or one of the lists below.
#define FIELDS_1(A) visit(#A, visible(A));
#define FIELDS_2(A, B) FIELDS_1(A) FIELDS_1(B)
#define FIELDS_3(A, B, C) FIELDS_2(A, B) FIELDS_1(C)
#define FIELDS_4(A, B, C, D) FIELDS_3(A, B, C) FIELDS_1(D)
#define FIELDS(COUNT, ...)           \
    template <typename Visit>        \
    void each(Visit&& visit) const { \
        FIELDS_##COUNT(__VA_ARGS__)  \
    }

struct NoPayload {
    template <typename Visit>
    void each(Visit&&) const {}
};

struct Address {
    uint64_t address;
    FIELDS(1, address)
};

struct ArrayIndex {
    int64_t index;
    Text<256> array_type;
    FIELDS(2, index, array_type)
};

struct LeakedBytes {
    uint64_t bytes;
    FIELDS(1, bytes)
};

struct UninitializedBytes {
    uint64_t bytes;
    FIELDS(1, bytes)
};

struct ElementNumbers {
    unsigned count;
    uint64_t numbers[5];
};

struct UnwrittenElements {
    uint64_t missing;
    ElementNumbers first;
    FIELDS(2, missing, first)
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
    FIELDS(2, waits, exited)
};

struct TwoOperations {
    Text<64> operation, other_operation;
    FIELDS(2, operation, other_operation)
};

struct ExitedThreads {
    uint64_t exited, threads;
    FIELDS(2, exited, threads)
};

struct Mask {
    uint64_t mask;
    FIELDS(1, mask)
};

struct Lane {
    uint64_t lane;
    FIELDS(1, lane)
};

struct Reason {
    Text<400> reason;
    FIELDS(1, reason)
};

struct EndlessLoop {
    Text<400> reason;
    FIELDS(1, reason)
};

// The swizzle of a matrix descriptor and of a tensor map, in bytes; 16: none.
struct Swizzles {
    uint64_t descriptor, tensor_map;
    FIELDS(2, descriptor, tensor_map)
};

struct TensorCell {
    uint64_t lane, column;
    Text<16> operation, earlier;
    FIELDS(4, lane, column, operation, earlier)
};

struct TensorColumn {
    uint64_t column;
    Text<16> operation;
    FIELDS(2, column, operation)
};

struct TensorColumns {
    uint64_t columns;
    FIELDS(1, columns)
};

struct TensorInstruction {
    Text<16> operation;
    FIELDS(1, operation)
};

struct RefusedCall {
    Text<256> call;
    uint64_t error;
    Text<400> reason;
    FIELDS(3, call, error, reason)
};

struct Call {
    Text<256> call;
    FIELDS(1, call)
};

#undef FIELDS
#undef FIELDS_4
#undef FIELDS_3
#undef FIELDS_2
#undef FIELDS_1

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
