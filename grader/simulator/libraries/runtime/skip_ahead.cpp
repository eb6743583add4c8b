// One step of XORWOW is a linear map of bits, that is, a matrix. So n steps are the n-th power of the matrix. The
// powers with exponents 1, 2, 4, 8, ... are computed when a program first needs them, in about 20 ms.
#include <pthread.h>
#include <string.h>

#include "curand_kernel.h"

namespace sim {

namespace {

constexpr unsigned words = 5, bits = 32 * words, powers = 67 + 64;

// Row i is the image of bit i.
struct BitMatrix {
    unsigned rows[bits][words];
};
BitMatrix xorwow_powers[powers];
pthread_once_t computed = PTHREAD_ONCE_INIT;

void apply(const BitMatrix& matrix, unsigned (&vector)[words]) {
    unsigned result[words] = {};
    for (unsigned i = 0; i < bits; ++i) {
        if (!(vector[i / 32] >> i % 32 & 1)) continue;
        for (unsigned j = 0; j < words; ++j) result[j] ^= matrix.rows[i][j];
    }
    memcpy(vector, result, sizeof result);
}

void compute_powers() {
    for (unsigned i = 0; i < bits; ++i) {
        curandStateXORWOW state = {};
        state.v[i / 32] = 1u << i % 32;
        curand(&state);
        memcpy(xorwow_powers[0].rows[i], state.v, sizeof state.v);
    }
    for (unsigned power = 1; power < powers; ++power) {
        xorwow_powers[power] = xorwow_powers[power - 1];
        for (auto& row : xorwow_powers[power].rows) apply(xorwow_powers[power - 1], row);
    }
}

}  // namespace

void skip_xorwow(unsigned (&vector)[5], unsigned long long n, unsigned log2_unit) {
    if (n) pthread_once(&computed, compute_powers);
    for (; n; n >>= 1, ++log2_unit)
        if (n & 1) apply(xorwow_powers[log2_unit], vector);
}

}  // namespace sim
