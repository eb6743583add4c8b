// Bit fields of a word. All shifts and masks of the checks are here.
#pragma once

#include <assert.h>

namespace sim::checks {

// The field of `bits` bits that begins at bit `low` of a Word.
template <typename Word, unsigned low, unsigned bits>
struct BitField {
    static_assert(bits > 0 && low + bits <= 8 * sizeof(Word), "the field does not fit into its word");

    static constexpr unsigned begin = low;
    static constexpr unsigned end = low + bits;  // first bit of the next field
    static constexpr Word largest = static_cast<Word>(~Word(0)) >> (8 * sizeof(Word) - bits);
    static constexpr Word mask = largest << low;

    static constexpr Word get(Word word) { return word >> low & largest; }
    // Returns a word whose other fields are 0.
    static constexpr Word make(Word value) {
        assert(value <= largest);
        return value << low;
    }
    static constexpr Word replace(Word word, Word value) { return (word & ~mask) | make(value); }
};

}  // namespace sim::checks
