// uint3 and dim3: the types of threadIdx, blockIdx, blockDim and gridDim.
//
// They are trivially copyable and 12 bytes long, so a function returns them in two registers, and reading `.x` of the
// result is not a memory access that the checks see.
#pragma once

struct uint3 {
    unsigned int x, y, z;
};

#ifndef __cplusplus
typedef struct uint3 uint3;
typedef struct dim3 {
    unsigned int x, y, z;
} dim3;
#else
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(const uint3& v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};
#endif
